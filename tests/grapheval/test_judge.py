"""The judge: sizes, modes, what it can and cannot learn, what it reads, the prompt encoder."""

import numpy as np
import pandas as pd
import pytest
import torch

from probelib import lm, prompts
from probelib.errors import ProbeError
from probelib.grapheval import judge, measures, soft_prompt
from probelib.grapheval.scores import GraphEvalSettings
from probelib.lm.internals.states import word_logits

RNG = np.random.default_rng(0)
BASE = "atlas-neox-0.15m"


def separable(n: int = 300, width: int = 16):
    """States whose first coordinates hold the answer, which depends on nothing else."""
    answers, true = RNG.integers(0, 3, n), RNG.random(n) < 0.5
    states = RNG.normal(size=(n, width)).astype(np.float32)
    states[:, :3] += 6 * np.eye(3, dtype=np.float32)[answers]
    return states, answers, true


def test_sizes():
    sizes = {(4096, "released"): 16_814_086, (4096, "paper"): 16_801_795}
    sizes |= {(2048, "released"): 4_212_742, (2048, "answer"): 4_206_595}
    with torch.device("meta"):
        networks = {key: judge.Network(*key) for key in sizes}
    assert {k: sum(p.numel() for p in n.parameters()) for k, n in networks.items()} == sizes


@pytest.mark.parametrize("mode", judge.MODES)
def test_an_answer_that_the_state_holds_is_learnt(mode):
    """Mode paper predicts outcomes without the truth: it can only where the state tells it, too."""
    states, answers, true = separable()
    if mode == "paper":
        states[:, 3] = 6 * true - 3
    how = {"epochs": 25, "batch": 8, "lr": 2e-3}
    one = judge.train(states[:200], answers[:200], true[:200], mode, **how)
    said = judge.predict(one, states[200:], true[200:])
    assert said.shape == (100, 3) and said.sum(axis=1) == pytest.approx(1, abs=1e-5)
    assert (said.argmax(axis=1) == answers[200:]).mean() > 0.97


def test_answer_mode_never_sees_the_truth_and_released_needs_nothing_else():
    n = 600
    true, held = RNG.random(n) < 0.5, np.arange(n) >= 400
    answers = np.where(RNG.random(n) < 0.9, np.where(true, 1, 2), 0)  # true: "false"; false: IDK
    noise, outcomes = RNG.normal(size=(n, 16)).astype(np.float32), measures.outcome(answers, true)
    given = measures.majority_given_truth(outcomes[~held], true[~held], true[held])
    best, accuracy = (given == outcomes[held]).mean(), {}
    for mode in ("answer", "released"):
        how = {"epochs": 10, "batch": 32, "lr": 3e-3}
        one = judge.train(noise[~held], answers[~held], true[~held], mode, **how)
        said = judge.predict(one, noise[held], true[held]).argmax(axis=1)
        accuracy[mode] = (said == answers[held]).mean()
    assert accuracy["released"] == pytest.approx(best, abs=0.12) and accuracy["answer"] < 0.65
    one = judge.train(noise, answers, true, "answer", epochs=1)
    assert (judge.predict(one, noise, true) == judge.predict(one, noise, ~true)).all()


def test_outcomes_become_answers():
    """A judge that expects the model to be right expects T on true statements and F on false."""
    one = judge.train(*separable(60), mode="paper", epochs=1)
    with torch.no_grad():
        one.network.weight.zero_()
        one.network.bias.copy_(torch.tensor([[9.0, 1.0, 0.0]]))
    said = judge.predict(one, np.zeros((2, 16), dtype=np.float32), [True, False])
    assert said.argmax(axis=1).tolist() == [0, 1]
    assert said[0, 1] == said[1, 0] and said[0, 2] == said[1, 2]


def test_the_same_seed_gives_the_same_judge_and_leaves_the_generator_alone():
    data = separable(100)
    torch.manual_seed(5)
    before = torch.get_rng_state()
    first, second, third = (judge.train(*data, epochs=2, seed=s) for s in (1, 1, 2))
    assert first.digest() == second.digest() != third.digest()
    assert torch.equal(torch.get_rng_state(), before)


def test_a_judge_of_other_states_is_refused():
    small, other = judge.Reader(lm.load(BASE)), judge.Reader(lm.load("atlas-llama-0.6m"))
    states, answers, true = separable(20)
    about = {"states": small.identity()}
    one = judge.train(states, answers, true, epochs=1, about=about)
    judge.check(one, small)
    with pytest.raises(ProbeError, match="atlas-neox-0.15m, not of atlas-llama-0.6m"):
        judge.check(one, other)
    with pytest.raises(ProbeError, match="prompt was"):
        judge.check(one, judge.Reader(small.model, soft_prompt=torch.zeros(2, 64)))
    with pytest.raises(ProbeError, match=r"width 16 \(of atlas-neox-0.15m\)"):
        judge.predict(one, states[:, :8], true)


def test_a_reader_reads_the_prompt_that_was_answered():
    """The state behind instruction and statement is that of the answer's first word."""
    model = lm.load(BASE)
    states, _ = judge.Reader(model).states(["Paris is nice.", "Lima is the capital of Peru."])
    text = prompts.INSTRUCTION.replace("{statement}", "Paris is nice.")
    assert states[0] == pytest.approx(model.hidden_states([text])[0][0], abs=1e-4)
    ids = torch.tensor([model.tokens.prompts([text])[0]])
    with torch.inference_mode():
        logits = model.hf_model(input_ids=ids).logits[0, -1].numpy()
    first = lambda word: [model.tokenizer(form)["input_ids"][0] for form in (word, f" {word}")]
    expected = [logits[first(word)].max() for word in ("Yes", "No", "I")]
    said = word_logits(model, states, ["Yes", "No", "I"])
    assert said[0].tolist() == pytest.approx(expected, abs=1e-3)


def test_all_readers_predict_the_held_out_outcomes_of_all_models():
    """The logits are left out where they are the first word of the answer itself."""
    model = lm.load(BASE)
    readers = {("a", ""): judge.Reader(model), ("b", ""): judge.Reader(model)}
    readers["a", "b"] = judge.Reader(model, soft_prompt=torch.zeros(2, 64))
    rows = {"prompt": list("pqrs"), "text": [f"Paris is {x}." for x in "pqrs"], "answer": 0}
    rows |= {"true": [True, False] * 2, "split": ["train"] * 2 + ["validation"] * 2}
    rows = pd.DataFrame(rows)
    labels = pd.concat([rows.assign(model="a"), rows.assign(model="b", answer=1)])
    found = judge.predict_all_held_out(readers, labels, seeds=2, epochs=1)
    keys = found[["by", "states of", "answers of"]].drop_duplicates().agg("|".join, axis=1)
    judged = [f"judge, instruction|{read}|{of}" for read in "ab" for of in "ab"]
    others = ["logits, instruction|a|b", "logits, instruction|b|a", "judge, soft prompt|a|b"]
    others += [f"{by}||{of}" for by in ("majority", "majority, truth known") for of in "ab"]
    assert set(keys) == {*judged, *others, "logits, soft prompt|a|b"}
    assert found.groupby("by")["seed"].nunique()["judge, instruction"] == 2
    assert found["truth"][found["answers of"] == "a"].head(2).tolist() == [0, 1]


SAID = "{} is a city. Yes, the statement is true."
TEXTS = [SAID.format(city) for city in ("Paris", "Lyon", "Lille")] * 7


def test_virtual_tokens_make_answers_likelier_and_leave_the_model_as_it_was(tmp_path):
    sizes = {"virtual_tokens": 5, "encoder_width": 32, "encoder_epochs": 6, "encoder_batch": 6}
    model, study = lm.load(BASE), GraphEvalSettings(**sizes, encoder_lr=1e-2)
    before = {name: p.detach().clone() for name, p in model.hf_model.named_parameters()}
    soft, losses = soft_prompt.train_soft_prompt(model, TEXTS, tmp_path, study)
    assert soft.shape == (5, 64) and losses["epoch"].tolist() == [0, 1, 2, 3, 4, 5, 6]
    assert losses["validation"].iloc[-1] < losses["validation"].iloc[0] - 0.5
    assert all(torch.equal(p, before[name]) for name, p in model.hf_model.named_parameters())
    kept, again = soft_prompt.train_soft_prompt(model, TEXTS, tmp_path, study)
    assert torch.equal(kept, soft)
    pd.testing.assert_frame_equal(again, losses)
    states, _ = judge.Reader(model, soft_prompt=soft).states(["Paris is nice."])
    expected = model.hidden_states(["Paris is nice."], soft_prompt=soft)[0]
    assert states[0] == pytest.approx(expected[0], abs=1e-4)
