"""``load`` and the verbs on model folders as a user would bring them."""

import json
import shutil
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
import torch
import transformers as hf
from safetensors.torch import load_file, save_file

from probelib import lm
from probelib.errors import ProbeError
from probelib.lm import families, names
from probelib.lm.internals.folders import download
from probelib.lm.internals.gradients import integrated_gradients
from probelib.lm.selfcheck import failures
from probelib.lm.tree import score_tree
from tests.lm import tiny


@pytest.fixture(scope="module")
def llama(tmp_path_factory):
    """A model whose tokenizer puts <s> before every text."""
    size = len(tiny.tokenizer(bos=True))
    config = hf.LlamaConfig(**tiny.WIDE | {"vocab_size": size}, bos_token_id=0, eos_token_id=1)
    return lm.load(tiny.folder(tmp_path_factory.mktemp("llama"), config, bos=True))


agrees = lambda model: "tree" not in failures(model)
PROMPT = "What is the capital of France?"


def test_logprobs_are_the_models_own_loss(model):
    """The sum is minus the loss that transformers computes when only the answer is labelled."""
    row = model.logprobs([PROMPT], [[" Paris"]]).iloc[0]
    prompt, answer = model.tokens.prompts([PROMPT])[0], list(model.tokens.continuation(" Paris"))
    labels = torch.tensor([[-100] * len(prompt) + answer])
    with torch.inference_mode():
        loss = model.hf_model(input_ids=torch.tensor([prompt + answer]), labels=labels).loss.item()
    assert row["logprob"] == pytest.approx(-loss * len(answer), abs=1e-4)
    assert row["n_tokens"] == len(answer) == len(row["token_logprobs"])


def test_probabilities_of_all_tokens_sum_to_one(model):
    every = [(0, (token,)) for token in range(model.hf_model.config.vocab_size)]
    scores, _, _ = score_tree(model.hf_model, model.tokens.prompts([PROMPT]), every, model.budget)
    assert np.exp(np.concatenate(scores, dtype=np.float64)).sum() == pytest.approx(1, abs=1e-5)


def test_batch_order_and_repetition_do_not_matter(model):
    prompts = [PROMPT, "The capital of Peru is", "Berlin Germany Rome"]
    answers = [[" Paris", " Lima"], [" Lima"], [" Italy", " Oslo", " Lyon"]]
    ask = lambda *asked: model.logprobs(*asked)["logprob"].tolist()
    alone = [x for p, a in zip(prompts, answers, strict=True) for x in ask([p], [a])]
    assert ask(prompts, answers) == pytest.approx(alone, abs=1e-4)
    turned = ask(prompts[::-1] * 2, answers[::-1] * 2)
    assert turned[-len(alone) :] == ask(prompts[::-1], answers[::-1])


@pytest.mark.parametrize("name", ["atlas-neox-0.15m", "atlas-llama-0.6m", "atlas-t5-2m"])
def test_greedy_flags_say_what_generation_writes(name):
    """What greedy generation writes is greedy to its last token, and nothing else is; the known
    beginning is its beginning."""
    one = lm.load(name)
    written = one.generate([PROMPT], max_new_tokens=3)["text"][0]
    own, other = one.logprobs([PROMPT], [[written, " Ouagadougou"]], end=True).itertuples()
    assert own.greedy and own.greedy_done and own.greedy_text.strip() == written.strip()
    assert not other.greedy and other.greedy_text
    assert written.strip().startswith(other.greedy_text.strip())


def test_generation_in_batches_is_generation_alone(model, llama, t5):
    prompts = [PROMPT, "The capital of Peru is", "Rome"]
    prompts += ["Lyon and Paris are cities, Nice is nice. Oslo"]
    for one in (model, llama, t5):
        together = one.generate(prompts, max_new_tokens=5)
        alone = pd.concat(one.generate([p], max_new_tokens=5) for p in prompts)
        assert together["text"].tolist() == alone["text"].tolist()
        assert together["logprob"].tolist() == pytest.approx(alone["logprob"].tolist(), abs=1e-3)


def test_a_generation_config_changes_no_text(folder, t5, tmp_path):
    """Penalties and bans that a model's generation_config.json asks for are not what the model
    says: neither where transformers writes (encoder-decoders) nor where the kit does."""
    wishes = {"repetition_penalty": 3.0, "no_repeat_ngram_size": 1, "min_length": 9}
    wishes |= {"suppress_tokens": list(range(40, 200))}
    for one in (lm.load(folder), t5):
        copy = shutil.copytree(one.folder, tmp_path / one.folder.name)
        (copy / "generation_config.json").write_text(json.dumps(wishes))
        other = lm.load(copy)
        ask = lambda of: of.generate([PROMPT, "Rome"], max_new_tokens=8, beams=3, returned=2)
        pd.testing.assert_frame_equal(ask(one), ask(other))


def verbs(one, text, word=" a"):
    """Every verb that reads ``text``."""
    return (
        lambda: one.logprobs([text], [[word]]),
        lambda: one.generate([text], max_new_tokens=1),
        lambda: one.hidden_states([text]),
        lambda: integrated_gradients(one, text),
        lambda: one.top_continuations(text, {"a": [word], "b": [" b"]}, 1),
        lambda: one.top_continuations(text, {"a": [word], "b": [" b"]}, 1, method="beam"),
    )


def test_a_token_that_the_model_lacks_is_named(tmp_path):
    """A tokenizer of another model, or one that was added to: an index error else, which on a GPU
    ends the process."""
    config = hf.GPTNeoXConfig(**tiny.WIDE | {"vocab_size": 270}, bos_token_id=0, eos_token_id=1)
    one, text = lm.load(tiny.folder(tmp_path / "short", config)), "What is the capital of"
    assert max(one.tokenizer(text)["input_ids"]) >= 270 > max(one.tokenizer("xyz")["input_ids"])
    assert len(one.logprobs(["xyz"], [["x"]])) == len(one.generate(["xyz"])) == 1
    for ask in (*verbs(one, text), lambda: one.logprobs(["xyz"], [[text]])):
        with pytest.raises(ProbeError, match=r"contains the token .* but the model has 270 tokens"):
            ask()


def test_what_is_longer_than_the_context_is_refused_by_every_verb(model):
    """Positions that a model never saw give a text and a score all the same, or crash (GPT-2)."""
    for ask in verbs(model, "Paris " * 150):
        with pytest.raises(ProbeError, match="reads at most 128 tokens; the prompt 'Paris Paris"):
            ask()


def test_a_turn_may_end_otherwise_than_a_text(folder, t5, tmp_path):
    """Gemma's chat models end their turn with a token of its own, which only generation_config.json
    names."""
    for one in (lm.load(folder), t5):
        options = {"max_new_tokens": 6, "eos_token_id": -1, "pad_token_id": 0}
        asked = torch.tensor(one.tokens.prompts([PROMPT]))
        ids = one.hf_model.generate(asked, **options)[0, -6:].tolist()
        copy = shutil.copytree(one.folder, tmp_path / one.folder.name)
        wishes = json.dumps({"eos_token_id": [one.tokens.eos, ids[2]]})
        (copy / "generation_config.json").write_text(wishes)
        other = lm.load(copy)
        first = ids.index(ids[2])  # greedy text may repeat itself
        before = one.tokens.decode(ids[:first])
        for path in ("tree", "plain"):
            other.path = path
            row = other.generate([PROMPT], max_new_tokens=6).iloc[0]
            assert row["finished"] and row["n_tokens"] == first + 1 and row["text"] == before
        (copy / "generation_config.json").write_text("{")
        with pytest.raises(ProbeError, match="generation_config.json cannot be read"):
            lm.load(copy).generate([PROMPT])


def test_end_of_sequence_after_the_answer(model):
    row = model.logprobs([PROMPT], [[" Paris"]], end=True).iloc[0]
    with torch.inference_mode():
        asked = torch.tensor(model.tokens.prompts([PROMPT + " Paris"]))
        logprobs = model.hf_model(asked).logits[0, -1].log_softmax(-1)
    assert row["eos_logprob"] == pytest.approx(logprobs[model.tokens.eos].item(), abs=1e-4)
    assert np.isnan(model.logprobs([PROMPT], [[" Paris"]]).iloc[0]["eos_logprob"])


def test_an_unknown_architecture_that_ignores_masks_takes_the_plain_path(folder):
    """The self-check refuses a packed row that answers otherwise, and a model that raises on it."""
    one = lm.load(folder)
    assert agrees(one)
    forward = one.hf_model.forward
    flat = lambda words: words | {"position_ids": None} if "position_ids" in words else words
    one.hf_model.forward = lambda *args, **words: forward(*args, **flat(words))
    assert not agrees(one)
    raising = lambda words: 1 / 0 if "logits_to_keep" in words else words
    one.hf_model.forward = lambda *args, **words: forward(*args, **raising(words))
    assert one.logprobs([PROMPT], [[" Paris"]]).attrs["cost"]["path"] == "repeated"


def test_eight_bits_take_the_tree_although_a_step_tips_over():
    """Of this model's answers in the self-check one differs by 0.03 nats, where an activation lies
    between two of 256 steps."""
    one = lm.load("atlas-neox-2.4m", quantize="8bit")
    assert one.choose_path() == "tree"
    prompts, answers = [f"{PROMPT} {n}" for n in range(60)], [[" Paris", " Oslo in the north"]] * 60
    ask = lambda path: np.concatenate([*one.logprobs(prompts, answers, path=path).token_logprobs])
    tree, plain = ask("tree"), ask("plain")
    assert np.abs(tree - plain).max() <= 0.1 and np.mean(np.abs(tree - plain) > 1e-4) < 0.02


def test_a_window_that_no_sequence_of_the_check_would_reach_is_checked(tmp_path, monkeypatch):
    """Phi 3 looks 100 tokens back (the released one 2,047): the mask of a packed row has to, and
    the check says so where it does not. A sequence of 150 tokens would be off by nats."""
    size = {"vocab_size": len(tiny.tokenizer(bos=True)), "max_position_embeddings": 512}
    ids = {"bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 0}
    config = hf.Phi3Config(**tiny.GROUPED | size, **ids, sliding_window=100)
    one = lm.load(tiny.folder(tmp_path, config))
    assert agrees(one) and one.hf_model.config.sliding_window == 100
    prompts, answers = [" ".join([PROMPT] * 20)], [[" Paris", " Oslo"]]
    assert len(one.tokens.prompts(prompts)[0]) > 120
    ask = lambda path: one.logprobs(prompts, answers, path=path)["logprob"].tolist()
    plain = ask("plain")
    assert ask("tree") == pytest.approx(plain, abs=1e-4)
    whole = lambda model, sees, *_: torch.where(sees, 0, torch.finfo(torch.float32).min)[None, None]
    monkeypatch.setattr(families, "_mask", whole)
    assert ask("tree") != pytest.approx(plain, abs=0.1)
    assert not agrees(one)


LONG = {"rope_type": "longrope", "rope_theta": 1e4, "short_factor": [1.0] * 8}
PHI = {"rope_parameters": LONG | {"long_factor": [2.0] * 8}, "pad_token_id": 0}
PHI["original_max_position_embeddings"] = 64
GROUPS = {"compress_rates": {"compressed_sparse_attention": 4}}


@pytest.mark.parametrize(
    ("context", "config"),
    [
        (2048, lambda words: hf.FalconConfig(**tiny.FALCON | words)),
        (64, lambda words: hf.Phi3Config(**tiny.GROUPED | words | PHI)),
        (16, lambda words: hf.LlamaConfig(**tiny.WIDE | words, index_topk=4, **GROUPS)),
        (16, lambda words: hf.LlamaConfig(**tiny.WIDE | words, lsh_attn_chunk_length=16)),
    ],
)
def test_the_context_is_what_transformers_makes_of_the_configuration(tmp_path, context, config):
    """Falcon's released files name none. Beyond it positions (Phi 3) or ties (DeepSeek) change."""
    folder = tiny.folder(tmp_path, config({"vocab_size": len(tiny.tokenizer())}))
    saved = json.loads((folder / "config.json").read_text())
    saved.pop("max_position_embeddings", None) if context == 2048 else None
    (folder / "config.json").write_text(json.dumps(saved))
    one = lm.load(folder)
    assert one.context == context
    with pytest.raises(ProbeError, match=f"at most {context} tokens"):
        one.logprobs(["Rome" * 2000], [[" Oslo"]])


def test_weights_that_are_missing_are_never_drawn(folder, tmp_path):
    """transformers fills the gap with random numbers, other ones in each process."""
    head, layer = "embed_out.weight", "gpt_neox.layers.1.mlp.dense_h_to_4h.weight"
    missing, size = "1 weights are missing from the files", "cannot be loaded.*size"
    other = {head: torch.zeros(7, 64)}
    for gone, added, words in ((head, {}, missing), (layer, {}, missing), (head, other, size)):
        copy = shutil.copytree(folder, tmp_path / f"{gone}{len(added)}")
        tensors = load_file(copy / "model.safetensors")
        del tensors[gone]
        save_file(tensors | added, copy / "model.safetensors", {"format": "pt"})
        with pytest.raises(ProbeError, match=words):
            lm.load(copy).logprobs([PROMPT], [[" Paris"]])


def test_two_threads_get_what_they_would_get_alone(tmp_path):
    """A row's masks lie where the next forward of any model finds them."""
    size = {"vocab_size": len(tiny.tokenizer(bos=True))}
    config = hf.LlamaConfig(**tiny.GROUPED | size, bos_token_id=0, eos_token_id=1)
    models = [lm.load(tiny.folder(tmp_path / name, config, bos=True)) for name in "ab"]
    questions = [[f"{PROMPT} {n + 7 * m}" for n in range(40 + 9 * m)] for m in range(2)]
    answers = [[" Paris in France", " Oslo, Rome"]]
    ask = lambda m: models[m].logprobs(questions[m], answers * len(questions[m]))["logprob"]
    with ThreadPoolExecutor(2) as pool:
        said = list(pool.map(lambda n: ask(n % 2), range(20)))  # the first two load a model each
    alone = [ask(m) for m in range(2)]
    assert all(each.equals(alone[n % 2]) for n, each in enumerate(said))


@pytest.mark.parametrize("quantize", ["8bit", "4bit"])
def test_quantized_models_are_really_quantized(folder, quantize):
    one, full = lm.load(folder, quantize=quantize), lm.load(folder)
    rows = one.logprobs([PROMPT, "Rome"], [[" Paris", " Lima"], [" Oslo"]])
    # 2 layers x 4 linear maps; the head stays as it is
    assert one.describe()["quantized_modules"] == 8
    assert one.hf_model.get_memory_footprint() < 0.8 * full.hf_model.get_memory_footprint()
    assert one.identity() != full.identity()
    one.hf_model.state_dict()  # on some CPUs this repacks weights, and corrupts the model
    # 8 bit: outliers are not looked for a batch
    alone = one.logprobs(["Rome"], [[" Oslo"]])["logprob"][0]
    assert rows["logprob"][2] == pytest.approx(alone, abs=0.02)


def test_rows_that_share_a_block_of_packed_weights_are_unpacked_as_they_were_packed():
    """Rows of 96, blocks of 64: two digits per byte, times the largest number of their block."""
    layer = lm.load("atlas-neox-0.6m@4bit").hf_model.gpt_neox.layers[0].attention.dense
    packed, state = layer.weight.data.flatten(), layer.weight.quant_state
    digits = torch.stack([packed >> 4, packed & 15], 1).flatten().long()
    by_hand = (state.code[digits].view(-1, 64) * state.absmax[:, None]).view(96, 96)
    with torch.inference_mode():
        assert torch.allclose((layer(torch.eye(96)) - layer.bias).T, by_hand, atol=1e-6)


def test_what_was_fetched_is_known_by_the_names_of_its_blobs(folder, tmp_path):
    """Hugging Face keeps snapshots of links to files that are named by their contents; these are
    not read."""

    def snapshot(commit: str, mark: str) -> dict:
        for path in folder.iterdir():
            blob = tmp_path / "models--a--b" / "blobs" / f"{mark}-{path.name}"
            blob.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, blob)
            (tmp_path / "models--a--b" / "snapshots" / commit).mkdir(parents=True, exist_ok=True)
            (tmp_path / "models--a--b" / "snapshots" / commit / path.name).symlink_to(blob)
        names._sources.clear()  # within a process "a/b" stands for one of them
        return lm.load(tmp_path / "models--a--b" / "snapshots" / commit).identity()

    # links of somebody's own: their files' names say nothing
    plain = tmp_path / "snapshots" / "best"
    plain.mkdir(parents=True)
    for path in folder.iterdir():
        shutil.copy(path, tmp_path / path.name)
        (plain / path.name).symlink_to(tmp_path / path.name)
    assert lm.load(plain).identity()["files"] == lm.load(folder).identity()["files"]
    first, same, other = snapshot("c0", "m0"), snapshot("c1", "m0"), snapshot("c2", "m1")
    assert first["revision"] == "c0" and first["files"] == same["files"] != other["files"]
    for blob in (tmp_path / "models--a--b" / "blobs").glob("m0-*.safetensors"):
        blob.write_bytes(blob.read_bytes()[:-1] + b"x")
    names._sources.clear()
    assert lm.load(tmp_path / "models--a--b" / "snapshots" / "c0").identity() == first


def test_identity_changes_with_whatever_changes_a_number(folder, tmp_path):
    base = lm.load(folder).identity()
    other = shutil.copytree(folder, tmp_path / "copy")
    assert lm.load(other).identity()["files"] == base["files"]
    config = json.loads((other / "config.json").read_text())
    (other / "config.json").write_text(json.dumps(config | {"rotary_pct": 0.5}))
    assert lm.load(other).identity()["files"] != base["files"]
    assert lm.load(folder, dtype="bfloat16").identity() != base
    changed = lm.load(other).identity()["files"]
    (other / "chat_template.jinja").write_text("{{ messages[0]['content'] }}")
    assert lm.load(other).identity()["files"] != changed


def test_what_is_fetched_of_a_model(folder, monkeypatch):
    """All that changes a number, the weights once, no code, of a subfolder only its own files;
    nothing is fetched here."""
    from huggingface_hub.utils import filter_repo_objects

    asked = {}
    fetch = lambda name, **how: asked.update(how) or str(folder)
    monkeypatch.setattr("huggingface_hub.snapshot_download", fetch)
    there = ["config.json", "tokenizer.model", "merges.txt", "chat_template.jinja"]
    there += ["model-00001-of-00002.safetensors", "modeling_x.py", "consolidated.safetensors"]
    there += ["original/model.safetensors", "pytorch_model.bin", "README.md"]
    inner = [f"fp16/{name}" for name in there]
    for name, wanted in (("some/model", there[:5]), ("some/model/fp16", inner[:5])):
        assert download(*names.split_revision(name)) == folder / name[len("some/model/") :]
        rules = {key: asked[key] for key in ("allow_patterns", "ignore_patterns")}
        assert list(filter_repo_objects([*there, *inner], **rules)) == wanted


def test_nan_weights_never_become_a_score(folder):
    one = lm.load(folder)
    with torch.no_grad():
        one.hf_model.get_input_embeddings().weight.fill_(float("nan"))
    with pytest.raises(ProbeError, match="NaN"):
        one.logprobs([PROMPT], [[" Paris"]])


def test_out_of_memory_halves_the_row_and_says_when_nothing_helps(folder):
    """A device that has room for so many tokens a row: the scores come all the same; with no room
    at all, a named error."""
    one, prompts = lm.load(folder), ["The capital of Peru is", "Berlin Germany Rome Italy", PROMPT]
    expected = one.logprobs(prompts, [[" Lima", " Oslo"]] * 3)
    forward, room = one.hf_model.forward, [10]

    def small(*args, **kwargs):
        asked = kwargs["input_ids"] if "input_ids" in kwargs else kwargs["inputs_embeds"][..., 0]
        if asked.numel() > room[0]:
            raise torch.OutOfMemoryError("no room")
        return forward(*args, **kwargs)

    one.hf_model.forward = small
    rows = one.logprobs(prompts, [[" Lima", " Oslo"]] * 3)
    assert rows["logprob"].tolist() == pytest.approx(expected["logprob"].tolist(), abs=1e-4)
    assert rows.attrs["cost"]["budget"] == one.budget <= 10
    other = lm.load(folder)
    labels = {"a": [" Lima", " Oslo"], "b": [" Rome"], "c": [" Paris"]}
    for ask in (
        # 12 a step, and room for 10
        lambda m: m.generate(prompts, max_new_tokens=4, beams=12)["text"].tolist(),
        lambda m: m.hidden_states(prompts)[0],
        lambda m: m.top_continuations(prompts, labels, 2)["candidate"].tolist(),
        lambda m: integrated_gradients(m, prompts[0], steps=20)["signed"].to_numpy(),
    ):
        one.budget = 512  # every verb finds its room
        assert np.array_equal(ask(other), ask(one)) or np.abs(ask(other) - ask(one)).max() < 1e-4
        assert one.budget < 512
    room[0] = 0
    with pytest.raises(ProbeError, match="out of memory with one token"):
        one.logprobs(prompts, [[" Lima"]] * 3)


def test_a_model_that_is_not_here_is_one_message_without_a_network(monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(ProbeError, match="use its folder"):
        lm.load("someone/some-model")


def without(folder, tmp_path, name, content=None):
    """A copy of a model folder without a file, or with other content in it."""
    copy = shutil.copytree(folder, tmp_path / "copy")
    (copy / name).unlink() if content is None else (copy / name).write_text(content)
    return copy


BROKEN = '{"model_type": "gpt_neox", "hidden_size": "64"}'
INPUTS = [  # (what is asked of the model or its folder, words of the message)
    (lambda m, f, t: m.logprobs(["Rome"], [[1999]]), "1999 is of type int"),
    (lambda m, f, t: m.logprobs([np.nan], [[" a"]]), "nan is of type float"),
    (lambda m, f, t: m.logprobs([""], [["Paris"]]), "nothing to predict from"),
    (lambda m, f, t: m.logprobs([PROMPT], [[" "]]), "is empty"),
    (lambda m, f, t: m.logprobs([PROMPT], []), "1 prompts but 0 lists"),
    (lambda m, f, t: m.logprobs([PROMPT], [[" a"]], path="fast"), "path is 'fast'; allowed"),
    (lambda m, f, t: m.generate(["Rome"], max_new_tokens=0), "max_new_tokens=0"),
    (lambda m, f, t: m.generate(["Rome"], returned=0), "returned=0"),
    (lambda m, f, t: m.generate(["Rome"], returned=3), "returned at most beams"),
    (lambda m, f, t: m.hidden_states(["Rome"], layer=99), "layer 99 .* allowed: 0 .* to 2"),
    (lambda m, f, t: m.hidden_states([""]), "no last token to read"),
    (lambda m, f, t: m.top_continuations("Rome", {"Q90": " Paris"}, 1), "labels of 'Q90'"),
    (lambda m, f, t: m.top_continuations("Rome", {"Q90": [" Paris"]}, 0), "n=0"),
    (lambda m, f, t: lm.load(without(f, t, "config.json")), "has no config.json"),
    (lambda m, f, t: lm.load(without(f, t, "model.safetensors")), "Pickled weights"),
    (lambda m, f, t: lm.load(without(f, t, "tokenizer.json")), "has no tokenizer"),
    (lambda m, f, t: lm.load(without(f, t, "config.json", BROKEN)).context, "cannot be read"),
    (lambda m, f, t: lm.load(without(f, t, "config.json", "{")).context, "cannot be read"),
    (lambda m, f, t: lm.load("atlas-neox-2"), "did you mean atlas-neox"),
    (lambda m, f, t: lm.load("smollm2-135m@3bit"), "unknown variant of smollm2.*did you mean 8bit"),
    (lambda m, f, t: lm.load("gpt2"), "unknown model 'gpt2'"),
    (lambda m, f, t: lm.load(f, quantize="3bit"), "unknown quantize '3bit'.*8bit"),
    (lambda m, f, t: lm.load(f, dtype="float8"), "float8"),
    (lambda m, f, t: lm.load(f, m.tokenizer), "tokenizer and name go with a model in memory"),
    (lambda m, f, t: lm.load(m.hf_model, m.tokenizer, dtype="bfloat16"), "dtype: omit them"),
    (lambda m, f, t: lm.load(f, device="mps").device, "device is 'mps'; allowed: auto, cpu, cuda"),
    (lambda m, f, t: lm.load(f, device="cuda").device, "torch finds no GPU here"),
]


@pytest.mark.parametrize(("ask", "words"), INPUTS, ids=[words for _, words in INPUTS])
def test_bad_input_is_named(model, folder, tmp_path, ask, words):
    with pytest.raises(ProbeError, match=words):
        ask(model, folder, tmp_path)
