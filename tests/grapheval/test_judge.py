"""The judge: sizes, modes, what it can and cannot learn, files, prompt encoder."""

import numpy as np
import pytest
import torch
import transformers as hf
from tokenizers import Tokenizer, decoders, models, normalizers, trainers

from probelib import files, lm, prompts
from probelib import grapheval as ge
from probelib.errors import ProbeError
from probelib.grapheval import judge, learning_curve, soft_prompt
from probelib.lm.internals.states import word_logits
from tests.lm import tiny

RNG = np.random.default_rng(0)
BASE = "atlas-neox-0.15m"


def separable(n: int = 300, width: int = 16):
    """States whose first coordinates hold the answer, which depends on nothing else."""
    answers, true = RNG.integers(0, 3, n), RNG.random(n) < 0.5
    states = RNG.normal(size=(n, width)).astype(np.float32)
    states[:, :3] += 6 * np.eye(3, dtype=np.float32)[answers]
    return states, answers, true


@pytest.mark.parametrize(
    ("width", "mode", "wanted"),
    [
        (4096, "released", 16_814_086),
        (2048, "released", 4_212_742),
        (4096, "paper", 16_801_795),
        (2048, "answer", 4_206_595),
    ],
)
def test_sizes(width, mode, wanted):
    assert judge.n_parameters(width, mode) == wanted


@pytest.mark.parametrize("mode", judge.MODES)
def test_an_answer_that_the_state_holds_is_learnt(mode):
    """Mode paper predicts outcomes without the truth: it can only where the state tells the truth, too."""
    states, answers, true = separable()
    if mode == "paper":
        states[:, 3] = 6 * true - 3
    one = judge.train(states[:200], answers[:200], true[:200], mode, epochs=100, batch=8, lr=1e-3)
    said = judge.predict(one, states[200:], true[200:])
    assert said.shape == (100, 3) and said.sum(axis=1) == pytest.approx(1, abs=1e-5)
    assert (said.argmax(axis=1) == answers[200:]).mean() > 0.97


def test_answer_mode_never_sees_the_truth_and_released_needs_nothing_else():
    n = 600
    true = RNG.random(n) < 0.5
    answers = np.where(RNG.random(n) < 0.9, np.where(true, 1, 2), 0)  # false: mostly IDK; true: mostly "false"
    noise = RNG.normal(size=(n, 16)).astype(np.float32)
    outcomes, held = ge.outcome(answers, true), np.arange(n) >= 400
    given = ge.majority_given_truth(outcomes[~held], true[~held], true[held])
    best = (given == outcomes[held]).mean()
    accuracy = {}
    for mode in ("answer", "released"):
        one = judge.train(noise[~held], answers[~held], true[~held], mode, epochs=10, batch=32, lr=3e-3)
        accuracy[mode] = (judge.predict(one, noise[held], true[held]).argmax(axis=1) == answers[held]).mean()
    assert accuracy["released"] == pytest.approx(best, abs=0.12) and accuracy["answer"] < 0.65 < best
    one = judge.train(noise, answers, true, "answer", epochs=1)
    assert (judge.predict(one, noise, true) == judge.predict(one, noise, ~true)).all()


def test_outcomes_become_answers():
    """A judge that always expects the model to be right expects T on true statements and F on false ones."""
    one = judge.train(*separable(60), mode="paper", epochs=1)
    with torch.no_grad():
        one.network.weight.zero_()
        one.network.bias.copy_(torch.tensor([[9.0, 1.0, 0.0]]))
    states = np.zeros((2, 16), dtype=np.float32)
    said = judge.predict(one, states, [True, False])
    assert said.argmax(axis=1).tolist() == [0, 1] and said[0, 1] == said[1, 0] and said[0, 2] == said[1, 2]


def test_the_same_seed_gives_the_same_judge_and_leaves_the_generator_alone():
    data = separable(100)
    torch.manual_seed(5)
    before = torch.get_rng_state()
    first, second, third = (judge.train(*data, epochs=2, seed=s) for s in (1, 1, 2))
    assert judge.judge_digest(first) == judge.judge_digest(second)
    assert not torch.equal(first.network.weight, third.network.weight)
    assert torch.equal(torch.get_rng_state(), before)


def test_bad_input_never_becomes_a_number():
    states, answers, true = separable(20)
    one = judge.train(states, answers, true, epochs=1, about={"states": {"model": "small"}})
    with pytest.raises(ProbeError, match=r"width 16 \(of small\)"):
        judge.predict(one, states[:, :8], true)
    with pytest.raises(ProbeError, match="one of each"):
        judge.train(states, answers[:5], true)
    with pytest.raises(ProbeError, match="omit unevaluated statements"):
        judge.train(states, np.where(answers == 0, -1, answers), true)
    with pytest.raises(ProbeError, match="NaN"):
        judge.train(states * np.nan, answers, true)
    with pytest.raises(ProbeError, match="unknown judge mode"):
        judge.train(states, answers, true, "relesed")


def test_a_judge_of_another_model_is_refused():
    small, other = judge.Reader(lm.load(BASE)), judge.Reader(lm.load("atlas-llama-0.6m"))
    one = judge.train(*separable(20), epochs=1, about={"states": small.identity()})
    judge.check(one, small)
    with pytest.raises(ProbeError, match="atlas-neox-0.15m, not on these of atlas-llama-0.6m"):
        judge.check(one, other)
    with pytest.raises(ProbeError, match="prompt was"):
        judge.check(one, judge.Reader(small.model, soft_prompt=torch.zeros(2, 64)))


def test_a_reader_reads_the_prompt_that_was_answered(monkeypatch):
    """The state behind instruction and statement is the one from which the first word of the answer comes."""
    model = lm.load(BASE)
    states, _ = judge.Reader(model).states(["Paris is nice.", "Lima is the capital of Peru."])
    text = prompts.INSTRUCTION.replace("{statement}", "Paris is nice.")
    assert states[0] == pytest.approx(model.hidden_states([text])[0][0], abs=1e-4)
    ids = torch.tensor([model.tokens.prompts([text])[0]])
    with torch.inference_mode():
        logits = model.hf_model(input_ids=ids).logits[0, -1].numpy()
    first = [[model.tokenizer(form)["input_ids"][0] for form in (word, f" {word}")] for word in ("Yes", "No", "I")]
    expected = [logits[tokens].max() for tokens in first]
    said = word_logits(model, states, ["Yes", "No", "I"])
    assert said[0].tolist() == pytest.approx(expected, abs=1e-3)
    head = model.hf_model.get_output_embeddings()
    forward = head.forward

    def small(states):
        if len(states) > 1:
            raise torch.OutOfMemoryError("no room")
        return forward(states)

    monkeypatch.setattr(head, "forward", small)
    assert word_logits(model, states, ["Yes", "No", "I"]) == pytest.approx(said, abs=1e-4) and model.budget == 1


TEXTS = [f"{city} is a city in France. Yes, the statement is true." for city in ("Paris", "Lyon", "Nice", "Lille")] * 5


def test_no_word_is_the_blank_that_a_tokenizer_puts_before_every_text(tmp_path):
    """Where " Yes" is "▁ ▁Yes", its first token is a bare blank, which " No" begins with as well."""
    raw = Tokenizer(models.BPE(unk_token="<unk>"))
    raw.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    raw.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    words = ["Yes", "No", "I", "think", "Paris", "is", "nice", ".", "Lima"]
    trainer = trainers.BpeTrainer(vocab_size=80, special_tokens=["<unk>", "</s>"], show_progress=False)
    raw.train_from_iterator(words * 9, trainer)
    tokenizer = hf.PreTrainedTokenizerFast(tokenizer_object=raw, unk_token="<unk>", eos_token="</s>")
    tiny.build(hf.LlamaConfig(**tiny.WIDE | {"vocab_size": len(tokenizer)})).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    one = lm.load(tmp_path)
    (blank,) = {one.tokens.encode([f" {word}"])[0][0] for word in ("Yes", "No", "I")}
    with torch.no_grad():
        one.hf_model.get_output_embeddings().weight[blank] = 0  # its logit is 0 everywhere
    said = word_logits(one, one.hidden_states(["Paris is nice.", "Lima", "I think"])[0], ["Yes", "No", "I"])
    assert len(np.unique(said)) == 9  # zeros would be alike


def test_wide_models_share_what_statements_begin_with(monkeypatch):
    model, told, statements = lm.load(BASE), {}, ["Paris is nice.", "Paris is a city.", "Lima is nice."]
    for wide in (0, 10**9):
        monkeypatch.setattr(judge, "WIDE", wide)
        told[wide] = judge.Reader(model).states(statements)
    (shared, few), (padded, many) = told.values()
    assert shared == pytest.approx(padded, abs=1e-4) and few["forwarded_tokens"] < many["forwarded_tokens"]


def test_virtual_tokens_make_the_answers_likelier_and_leave_the_model_as_it_was(tmp_path):
    model = lm.load(BASE)
    before = {name: p.detach().clone() for name, p in model.hf_model.named_parameters()}
    soft, losses = soft_prompt.train_soft_prompt(model, TEXTS, tmp_path, tokens=5, width=32, epochs=6, lr=1e-2, batch=6)
    assert soft.shape == (5, 64) and losses["epoch"].tolist() == [0, 1, 2, 3, 4, 5, 6]
    assert losses["validation"].iloc[-1] < losses["validation"].iloc[0] - 0.5
    assert all(torch.equal(p, before[name]) for name, p in model.hf_model.named_parameters())
    kept, again = soft_prompt.train_soft_prompt(model, TEXTS, tmp_path, tokens=5, width=32, epochs=6, lr=1e-2, batch=6)
    assert torch.equal(kept, soft) and again["validation"].tolist() == losses["validation"].tolist()
    assert len(list(tmp_path.iterdir())) == 1
    states, _ = judge.Reader(model, soft_prompt=soft).states(["Paris is nice."])
    assert states[0] == pytest.approx(model.hidden_states(["Paris is nice."], soft_prompt=soft)[0][0], abs=1e-4)


def test_a_damaged_prompt_is_reported(tmp_path):
    model = lm.load(BASE)
    options = {"tokens": 2, "width": 8, "epochs": 0}
    soft_prompt.train_soft_prompt(model, TEXTS[:4], tmp_path, **options)
    files.write(next(tmp_path.iterdir()), b"nonsense")
    with pytest.raises(ProbeError, match="damaged"):
        soft_prompt.train_soft_prompt(model, TEXTS[:4], tmp_path, **options)


def test_the_doubtful_ones_are_labelled_next():
    said = np.array([[0.9, 0.1, 0.0], [0.4, 0.35, 0.25], [0.5, 0.0, 0.5]])
    assert learning_curve.most_uncertain(said, 2).tolist() == [2, 1]


def test_a_learning_curve_begins_and_ends_at_the_same_places():
    states, answers, true = separable(120)
    held = np.arange(120) >= 80
    rows = learning_curve.learning_curve(states, answers, true, held, [10, 40], seeds=2, epochs=5, batch=8, lr=1e-3)
    assert rows.groupby("how")["labels"].agg(list).tolist() == [[10, 40, 80] * 2] * 2
    first = rows[rows["labels"] == 10].pivot(index="seed", columns="how", values="accuracy")
    assert first["random"].tolist() == first["uncertain"].tolist()
