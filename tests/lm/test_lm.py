"""``load`` and the verbs on model folders as a user would bring them."""

import json
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
import torch
import transformers as hf
from safetensors.torch import load_file, save_file
from tokenizers.processors import TemplateProcessing

from probelib import lm
from probelib.errors import ProbeError
from probelib.lm import families, names
from probelib.lm.internals import cpu
from probelib.lm.internals.memory import announce, needs_several_gpus
from probelib.lm.internals.weights import refuse_offload
from probelib.lm.selfcheck import failures
from probelib.lm.tree import score_tree
from probelib.paths import ROOT
from tests.lm import tiny


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tiny.folder(tmp_path_factory.mktemp("neox"))


@pytest.fixture(scope="module")
def model(folder):
    return lm.load(folder)


@pytest.fixture(scope="module")
def llama(tmp_path_factory):
    """A model whose tokenizer puts <s> before every text."""
    size = len(tiny.tokenizer(bos=True))
    config = hf.LlamaConfig(**tiny.WIDE | {"vocab_size": size}, bos_token_id=0, eos_token_id=1)
    return lm.load(tiny.folder(tmp_path_factory.mktemp("llama"), config, bos=True))


@pytest.fixture(scope="module")
def t5(tmp_path_factory):
    size = len(tiny.tokenizer())
    return lm.load(
        tiny.folder(
            tmp_path_factory.mktemp("t5"),
            hf.T5Config(**tiny.T5 | {"vocab_size": size}, eos_token_id=1, pad_token_id=0),
        )
    )


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
    prompts, answers = (
        [PROMPT, "The capital of Peru is", "Berlin Germany Rome"],
        [[" Paris", " Lima"], [" Lima"], [" Italy", " Oslo", " Lyon"]],
    )
    together = model.logprobs(prompts, answers)
    alone = [
        model.logprobs([p], [a])["logprob"].tolist() for p, a in zip(prompts, answers, strict=True)
    ]
    assert together["logprob"].tolist() == pytest.approx(
        [x for rows in alone for x in rows], abs=1e-4
    )
    turned = model.logprobs(prompts[::-1] * 2, answers[::-1] * 2)
    assert (
        turned["logprob"].tolist()[-len(together) :]
        == model.logprobs(prompts[::-1], answers[::-1])["logprob"].tolist()
    )


def test_bos_exactly_once_or_not_at_all(model, llama):
    assert model.tokens.bos_rule == "none" and llama.tokens.bos_rule == "<s>"
    assert (
        llama.tokens.prompts([PROMPT])[0].count(0) == 1
        and model.tokens.prompts([PROMPT])[0].count(0) == 0
    )
    assert 0 not in llama.tokens.continuation(" Paris")
    assert llama.logprobs([""], [["Paris"]]).iloc[0]["logprob"] < 0  # <s> is enough to predict from
    with pytest.raises(ProbeError, match="nothing to predict from"):
        model.logprobs([""], [["Paris"]])


@pytest.mark.parametrize("name", ["atlas-neox-0.15m", "atlas-llama-0.6m", "atlas-t5-2m"])
def test_greedy_flags_say_what_generation_writes(name):
    """What greedy generation writes is greedy to its last token, and nothing else is; the known
    beginning is its beginning."""
    one = lm.load(name)
    written = one.generate([PROMPT], max_new_tokens=3)["text"][0]
    own, other = one.logprobs([PROMPT], [[written, " Ouagadougou"]], end=True).itertuples()
    assert own.greedy and own.greedy_done and own.greedy_text.strip() == written.strip()
    assert (
        not other.greedy
        and written.strip().startswith(other.greedy_text.strip())
        and other.greedy_text
    )


def test_generation_in_batches_is_generation_alone(model, llama, t5):
    prompts = [
        PROMPT,
        "The capital of Peru is",
        "Rome",
        "Lyon and Paris are cities, Nice is nice. Oslo",
    ]
    for one in (model, llama, t5):
        together = one.generate(prompts, max_new_tokens=5)
        alone = [one.generate([p], max_new_tokens=5).iloc[0] for p in prompts]
        assert together["text"].tolist() == [row["text"] for row in alone]
        assert together["logprob"].tolist() == pytest.approx(
            [row["logprob"] for row in alone], abs=1e-3
        )


def test_a_generation_config_changes_no_text(folder, t5, tmp_path):
    """Penalties and bans that a model's generation_config.json asks for are not what the model
    says: neither where transformers writes (encoder-decoders, MONITOR's beams) nor where the kit
    does."""
    wishes = {
        "repetition_penalty": 3.0,
        "no_repeat_ngram_size": 1,
        "suppress_tokens": list(range(40, 200)),
        "min_length": 9,
    }
    for one in (lm.load(folder), t5):
        copy = shutil.copytree(one.folder, tmp_path / one.folder.name)
        (copy / "generation_config.json").write_text(json.dumps(wishes))
        other = lm.load(copy)
        ask = lambda of: of.generate([PROMPT, "Rome"], max_new_tokens=8, beams=3, returned=2)
        pd.testing.assert_frame_equal(ask(one), ask(other))
        steps = lambda of: of.beam_steps([PROMPT], beams=3, max_new_tokens=8).iloc[0]
        assert (
            steps(one)["ids"] == steps(other)["ids"] and steps(one)["text"] == steps(other)["text"]
        )
        assert steps(one)["probability"].tolist() == steps(other)["probability"].tolist()


def test_a_decoder_may_be_told_elsewhere_what_it_begins_with(t5, tmp_path):
    folder = shutil.copytree(t5.folder, tmp_path / "t5")
    for name, change in (
        ("config.json", lambda told: told.pop("decoder_start_token_id")),
        ("generation_config.json", lambda told: told.update(decoder_start_token_id=0)),
    ):
        told = json.loads((folder / name).read_text())
        change(told)
        (folder / name).write_text(json.dumps(told))
    asked = ["Where is Paris?"], [["France", "Spain"]]
    pd.testing.assert_frame_equal(lm.load(folder).logprobs(*asked), t5.logprobs(*asked))
    told.pop("decoder_start_token_id")
    (folder / name).write_text(json.dumps(told))
    with pytest.raises(ProbeError, match="decoder_start_token_id"):
        lm.load(folder).logprobs(*asked)


def test_a_token_that_the_model_lacks_is_named(tmp_path):
    """A tokenizer of another model, or one that was added to: an index error else, which on a GPU
    ends the process."""
    config = hf.GPTNeoXConfig(**tiny.WIDE | {"vocab_size": 270}, bos_token_id=0, eos_token_id=1)
    one, text = lm.load(tiny.folder(tmp_path / "short", config)), "What is the capital of"
    assert max(one.tokenizer(text)["input_ids"]) >= 270 > max(one.tokenizer("xyz")["input_ids"])
    assert len(one.logprobs(["xyz"], [["x"]])) == len(one.generate(["xyz"])) == 1
    asks = {
        "logprobs": lambda: one.logprobs(["xyz"], [[text]]),
        "prompt": lambda: one.logprobs([text], [["x"]]),
        "generate": lambda: one.generate([text]),
        "hidden_states": lambda: one.hidden_states([text]),
        "beam_steps": lambda: one.beam_steps([text]),
        "top_continuations": lambda: one.top_continuations("xyz", {"Q": [text]}, 1),
        "integrated_gradients": lambda: one.integrated_gradients(text),
    }
    for ask in asks.values():
        with pytest.raises(ProbeError, match=r"contains the token .* but the model has 270 tokens"):
            ask()


def test_a_first_token_that_the_model_lacks_is_named(tmp_path):
    """ "<s>" was added to the tokenizer, and the embeddings were left as they were."""
    folder = tiny.folder(
        tmp_path / "bos", hf.LlamaConfig(**tiny.GROUPED | {"vocab_size": 320}), bos=True
    )
    told = json.loads((folder / "config.json").read_text())
    one = lm.load(folder)
    one.tokenizer.add_special_tokens({"bos_token": "<new>"})
    one.tokenizer._tokenizer.post_processor = TemplateProcessing(
        single="<new> $A", special_tokens=[("<new>", one.tokenizer.bos_token_id)]
    )
    assert one.tokenizer("a")["input_ids"][0] >= told["vocab_size"]
    with pytest.raises(ProbeError, match="contains the token '<new>'"):
        one.logprobs(["a"], [["b"]])


def test_an_encoder_may_answer_in_a_form_of_its_own(tmp_path):
    """Switch Transformers ask their encoder's answer for what its router said."""
    config = hf.SwitchTransformersConfig(
        **tiny.T5 | {"vocab_size": 320}, num_experts=2, num_sparse_encoder_layers=1
    )
    one = lm.load(tiny.folder(tmp_path / "switch", config))
    rows = one.logprobs(["Where is Paris?"], [["France", "Spain"]])
    ids = one.tokenizer(["Where is Paris?"], return_tensors="pt")
    for text, found in zip(["France", "Spain"], rows["token_logprobs"], strict=True):
        answer = torch.tensor([one.tokens.continuation(text)])
        with torch.inference_mode():
            logits = one.hf_model(**ids, labels=answer).logits[0].log_softmax(-1)
        assert found == pytest.approx(logits.gather(1, answer.T)[:, 0].numpy(), abs=1e-4)


def test_a_turn_may_end_otherwise_than_a_text(folder, t5, tmp_path):
    """Gemma's chat models end their turn with a token of its own, which only generation_config.json
    names."""
    for one in (lm.load(folder), t5):
        ids = one.hf_model.generate(
            torch.tensor([one.tokens.prompts([PROMPT])[0]]),
            max_new_tokens=6,
            eos_token_id=-1,
            pad_token_id=0,
        )[0, -6:].tolist()
        copy = shutil.copytree(one.folder, tmp_path / one.folder.name)
        (copy / "generation_config.json").write_text(
            json.dumps({"eos_token_id": [one.eos, ids[2]]})
        )
        other = lm.load(copy)
        first = ids.index(ids[2])  # greedy text may repeat itself
        before = one.tokens.decode(ids[:first])
        for path in ("tree", "plain"):
            other.path = path
            row = other.generate([PROMPT], max_new_tokens=6).iloc[0]
            assert row["finished"] and row["n_tokens"] == first + 1 and row["text"] == before
        step = other.beam_steps([PROMPT], beams=1, max_new_tokens=6).iloc[0]
        assert step["ids"] == ids[: first + 1] and step["text"] == before
        (copy / "generation_config.json").write_text("{")
        with pytest.raises(ProbeError, match="generation_config.json cannot be read"):
            lm.load(copy).generate([PROMPT])


def test_beams_come_best_first_with_plain_sums(model):
    rows = model.generate([PROMPT], max_new_tokens=4, beams=4, returned=3)
    assert rows["rank"].tolist() == [0, 1, 2] and rows["logprob"].is_monotonic_decreasing
    assert rows["logprob"][0] >= model.generate([PROMPT], max_new_tokens=4)["logprob"][0] - 1e-4


def test_end_of_sequence_after_the_answer(model):
    row = model.logprobs([PROMPT], [[" Paris"]], end=True).iloc[0]
    with torch.inference_mode():
        logits = model.hf_model(torch.tensor(model.tokens.prompts([PROMPT + " Paris"]))).logits[
            0, -1
        ]
    assert row["eos_logprob"] == pytest.approx(logits.log_softmax(-1)[model.eos].item(), abs=1e-4)
    assert np.isnan(model.logprobs([PROMPT], [[" Paris"]]).iloc[0]["eos_logprob"])


def test_t5_prompts_go_to_the_encoder_and_answers_have_no_blank(t5):
    rows = {
        path: t5.logprobs([PROMPT, "Rome"], [[" Paris", " Lima"], [" Oslo"]], path=path)[
            "logprob"
        ].tolist()
        for path in ("tree", "plain")
    }
    assert rows["tree"] == pytest.approx(rows["plain"], abs=1e-4)
    assert t5.tokens.continuation(" Paris") == t5.tokens.continuation("Paris")


def test_an_unknown_architecture_that_ignores_masks_takes_the_plain_path(folder):
    """The self-check refuses a packed row that answers otherwise, and a model that raises on it."""
    one = lm.load(folder)
    assert agrees(one)
    forward = one.hf_model.forward
    one.hf_model.forward = lambda *args, **kwargs: forward(
        *args, **kwargs | {"position_ids": None} if "position_ids" in kwargs else kwargs
    )
    assert not agrees(one)
    one.hf_model.forward = lambda *args, **kwargs: (
        forward(*args, **kwargs) if "logits_to_keep" not in kwargs else 1 / 0
    )
    assert one.logprobs([PROMPT], [[" Paris"]]).attrs["cost"]["path"] == "repeated"


@pytest.mark.parametrize(
    "options", [{}, {"dtype": "bfloat16"}, {"quantize": "8bit"}, {"quantize": "4bit"}]
)
def test_a_mask_that_is_ignored_is_noticed_above_all_rounding(options, monkeypatch):
    """A row in which every token sees all that stands before it, the branches of others too."""
    one, whole = lm.load("atlas-llama-0.6m", **options), families.additive_mask
    one.budget = 64  # a shorter check
    assert agrees(one)
    causal = lambda sees: torch.ones_like(sees).tril(sees.shape[1] - len(sees))
    monkeypatch.setattr(
        families, "additive_mask", lambda sees, dtype: whole(sees | causal(sees), dtype)
    )
    assert not agrees(one)


def test_eight_bits_take_the_tree_although_a_step_tips_over():
    """Of this model's answers in the self-check one differs by 0.03 nats, where an activation lies
    between two of 256 steps."""
    one = lm.load("atlas-neox-2.4m", quantize="8bit")
    assert one.choose_path() == "tree"
    prompts, answers = [f"{PROMPT} {n}" for n in range(60)], [[" Paris", " Oslo in the north"]] * 60
    tree, plain = (
        np.concatenate(one.logprobs(prompts, answers, path=path)["token_logprobs"].to_list())
        for path in ("tree", "plain")
    )
    assert np.abs(tree - plain).max() <= 0.1 and np.mean(np.abs(tree - plain) > 1e-4) < 0.02


@pytest.mark.parametrize("part", ["blocks", "shared"])
@pytest.mark.parametrize("window", [None, 4096])
def test_attention_in_parts_is_checked_before_it_is_trusted(tmp_path, monkeypatch, part, window):
    """Keys of one part are a place off: nothing else goes this way. Also in a model that has a
    window."""
    size = tiny.GROUPED | {
        "vocab_size": len(tiny.tokenizer(bos=True)),
        "max_position_embeddings": 8192,
    }
    config = hf.MistralConfig(**size, sliding_window=window, bos_token_id=0, eos_token_id=1)
    one, flash = lm.load(tiny.folder(tmp_path, config)), cpu.flash

    def shifted(query, key, *rest, **options):
        hit = (
            query.shape[2] == cpu.QUERIES if part == "blocks" else options["attn_mask"] is None
        )  # all see them
        return flash(query, key.roll(1, 2) if hit else key, *rest, **options)

    assert agrees(one)
    monkeypatch.setattr(cpu, "flash", shifted)
    assert not agrees(one)


def test_a_window_that_no_sequence_of_the_check_would_reach_is_checked(tmp_path, monkeypatch):
    """Phi 3 looks 100 tokens back (the released one 2,047): the mask of a packed row has to, and
    the check says so where it does not. A sequence of 150 tokens would be off by nats."""
    size = tiny.GROUPED | {
        "vocab_size": len(tiny.tokenizer(bos=True)),
        "max_position_embeddings": 512,
    }
    config = hf.Phi3Config(
        **size, sliding_window=100, bos_token_id=0, eos_token_id=1, pad_token_id=0
    )
    one = lm.load(tiny.folder(tmp_path, config))
    assert agrees(one) and one.hf_model.config.sliding_window == 100
    prompts, answers = [" ".join([PROMPT] * 20)], [[" Paris", " Oslo"]]
    assert len(one.tokens.prompts(prompts)[0]) > 120
    tree, plain = (
        one.logprobs(prompts, answers, path=path)["logprob"].tolist() for path in ("tree", "plain")
    )
    assert tree == pytest.approx(plain, abs=1e-4)
    whole = lambda model, sees, query, key: families.additive_mask(sees, model.dtype)[None, None]
    monkeypatch.setattr(families, "_mask", whole)
    assert one.logprobs(prompts, answers, path="tree")["logprob"].tolist() != pytest.approx(
        plain, abs=0.1
    )
    assert not agrees(one)


def test_chunks_that_no_sequence_of_the_check_would_reach_are_checked(tmp_path, monkeypatch):
    """Llama 4 looks within chunks of (released) 8,192 tokens: a packed row whose layers all see
    everything is noticed."""
    size = tiny.GROUPED | {
        "vocab_size": len(tiny.tokenizer()),
        "max_position_embeddings": 512,
        "num_hidden_layers": 4,
    }
    config = hf.Llama4TextConfig(
        **size, head_dim=16, attention_chunk_size=100, intermediate_size_mlp=64, num_local_experts=4
    )
    assert lm.load(tiny.folder(tmp_path, config)).choose_path() == "tree"
    whole = lambda model, sees, query, key: families.additive_mask(sees, model.dtype)[None, None]
    masks = lambda *given: {"full_attention": whole(*given), "chunked_attention": whole(*given)}
    monkeypatch.setattr(families, "_mask", masks)
    assert lm.load(tiny.folder(tmp_path, config)).choose_path() == "repeated"


def test_a_window_that_the_family_does_not_have_is_none(tmp_path):
    """Files of models that were converted from another family may still name one."""
    size = tiny.GROUPED | {"vocab_size": len(tiny.tokenizer(bos=True))}
    one = lm.load(tiny.folder(tmp_path, hf.LlamaConfig(**size, bos_token_id=0, eos_token_id=1)))
    saved = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(saved | {"sliding_window": 8}))
    other = lm.load(tmp_path)
    assert other.hf_model.config.sliding_window == 8 and other.choose_path() == "tree"
    ask = lambda of: of.logprobs([PROMPT * 3], [[" Paris"]])["logprob"].tolist()
    assert ask(one) == ask(other)


def test_the_context_is_what_transformers_makes_of_the_configuration(tmp_path):
    """Falcon's released files name none, Gemma 3's is nested, and Phi 3's positions are turned
    otherwise beyond the first 64."""
    size = tiny.GROUPED | {"vocab_size": len(tiny.tokenizer(bos=True))}
    long = {
        "rope_type": "longrope",
        "rope_theta": 1e4,
        "short_factor": [1.0] * 8,
        "long_factor": [2.0] * 8,
    }
    text = size | {"head_dim": 16, "layer_types": ["sliding_attention", "full_attention"]}
    vision = {
        "hidden_size": 32,
        "intermediate_size": 32,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
    }
    ends = {"bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 0}
    configs = {
        2048: hf.FalconConfig(**tiny.FALCON | {"vocab_size": size["vocab_size"]}, **ends),
        128: hf.Gemma3Config(
            text_config=text, vision_config=vision | {"image_size": 28, "patch_size": 14}, **ends
        ),
        64: hf.Phi3Config(
            **size, rope_parameters=long, original_max_position_embeddings=64, **ends
        ),
    }
    for context, config in configs.items():
        folder = tiny.folder(tmp_path / str(context), config)
        saved = json.loads((folder / "config.json").read_text())
        saved.pop("max_position_embeddings", None) if context == 2048 else None
        (folder / "config.json").write_text(json.dumps(saved))
        one = lm.load(folder)
        assert one.context == context
        with pytest.raises(ProbeError, match=f"at most {context} tokens"):
            one.logprobs(["Rome" * 2000], [[" Oslo"]])


def test_a_config_that_cannot_be_read_is_named(folder, tmp_path):
    for n, broken in enumerate(
        ('{"model_type": "gpt_neox", "hidden_size": "64"}', '{"model_type": "unheard_of"}', "{")
    ):
        copy = shutil.copytree(folder, tmp_path / str(n))
        (copy / "config.json").write_text(broken)
        with pytest.raises(ProbeError, match="config.json cannot be read"):
            lm.load(copy).logprobs([PROMPT], [[" Paris"]])


def test_weights_that_are_missing_are_never_drawn(folder, tmp_path):
    """transformers fills the gap with random numbers, other ones in each process."""
    for n, gone in enumerate(
        ("embed_out.weight", "gpt_neox.layers.1.mlp.dense_h_to_4h.weight", None)
    ):
        copy = shutil.copytree(folder, tmp_path / str(n))
        tensors = load_file(copy / "model.safetensors")
        tensors.pop(gone, None) if gone else tensors.update(
            {"embed_out.weight": torch.zeros(7, 64)}
        )
        save_file(tensors, copy / "model.safetensors", {"format": "pt"})
        with pytest.raises(
            ProbeError, match="1 weights are missing from the files|cannot be loaded.*size"
        ):
            lm.load(copy).logprobs([PROMPT], [[" Paris"]])


def test_a_text_is_not_taken_for_a_list_of_letters(model):
    wanted = {
        "1999 is of type int": lambda: model.logprobs(["Rome"], [[1999]]),
        "nan is of type float": lambda: model.logprobs([np.nan], [[" a"]]),
        "max_new_tokens=0": lambda: model.generate(["Rome"], max_new_tokens=0),
        "returned=0": lambda: model.generate(["Rome"], returned=0),
        "layer 99 does not exist; allowed: 0 .* to 2": lambda: model.hidden_states(
            ["Rome"], layer=99
        ),
        "labels of 'Q90'": lambda: model.top_continuations("Rome", {"Q90": " Paris"}, 1),
        "labels is .* must be": lambda: model.top_continuations("Rome", [" Paris"], 1),
        "n=0": lambda: model.top_continuations("Rome", {"Q90": [" Paris"]}, 0),
    }
    for message, ask in wanted.items():
        with pytest.raises(ProbeError, match=message):
            ask()


def test_any_kind_of_list_will_do(model):
    prompts, answers = ["Rome", PROMPT], [" Oslo", " Paris in"]
    rows, texts, held = (
        model.logprobs(prompts, [answers] * 2),
        model.generate(prompts),
        model.hidden_states(prompts)[0],
    )
    for kind in (
        tuple,
        np.array,
        lambda x: pd.Series(x, index=[7, 9]),
        lambda x: (text for text in x),
    ):
        again = model.logprobs(kind(prompts), [kind(answers), answers])
        assert again["logprob"].tolist() == rows["logprob"].tolist()
        assert model.generate(kind(prompts))["text"].tolist() == texts["text"].tolist()
        assert (model.hidden_states(kind(prompts))[0] == held).all()
        best = [
            model.top_continuations(of(prompts), {"x": of(answers)}, 1)["logprob"].tolist()
            for of in (list, kind)
        ]
        assert best[0] == best[1]
        assert (
            model.beam_steps(kind(prompts), beams=2)["text"].tolist()
            == model.beam_steps(prompts, beams=2)["text"].tolist()
        )


def test_two_threads_get_what_they_would_get_alone(tmp_path):
    """A row's masks lie where the next forward of any model finds them."""
    config = hf.LlamaConfig(
        **tiny.GROUPED | {"vocab_size": len(tiny.tokenizer(bos=True))},
        bos_token_id=0,
        eos_token_id=1,
    )
    models = [lm.load(tiny.folder(tmp_path / name, config, bos=True)) for name in "ab"]
    questions = [[f"{PROMPT} {n + 7 * m}" for n in range(40 + 9 * m)] for m in range(2)]
    ask = lambda m: models[m].logprobs(
        questions[m], [[" Paris in France", " Oslo, Rome"]] * len(questions[m])
    )["logprob"]
    with ThreadPoolExecutor(2) as pool:
        said = list(pool.map(lambda n: ask(n % 2), range(20)))  # the first two load a model each
    alone = [ask(m) for m in range(2)]
    assert all(each.equals(alone[n % 2]) for n, each in enumerate(said))


@pytest.mark.parametrize("quantize", ["8bit", "4bit"])
def test_quantized_models_are_really_quantized(folder, quantize):
    one, full = lm.load(folder, quantize=quantize), lm.load(folder)
    rows = one.logprobs([PROMPT, "Rome"], [[" Paris", " Lima"], [" Oslo"]])
    assert (
        one.describe()["quantized_modules"] == 8
    )  # 2 layers x 4 linear maps; the head stays as it is
    assert one.hf_model.get_memory_footprint() < 0.8 * full.hf_model.get_memory_footprint()
    assert one.identity() != full.identity()
    alone = one.logprobs(["Rome"], [[" Oslo"]])["logprob"][
        0
    ]  # 8 bit: outliers are not looked for a batch
    assert rows["logprob"].tolist()[2] == pytest.approx(alone, abs=0.02)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_four_bit_computes_in_the_models_precision(folder, dtype):
    """bitsandbytes' default is float32 whatever the model's, which takes a GPU two to three times
    as long."""
    compute = lambda one: {
        each.compute_dtype for each in one.hf_model.modules() if hasattr(each, "compute_dtype")
    }
    assert compute(lm.load(folder, quantize="4bit", dtype=dtype)) == {getattr(torch, dtype)}
    asked = lm.load(folder, quantize="4bit", dtype=dtype, bnb_4bit_compute_dtype="float16")
    assert compute(asked) == {torch.float16} and asked.identity()["quantization"]


def test_four_bit_keeps_its_weights_over_forwards_and_saves(folder):
    """On some CPUs bitsandbytes repacks weights at the first forward; reading or saving them
    afterwards corrupts the model."""
    one = lm.load(folder, quantize="4bit")
    before = one.logprobs([PROMPT], [[" Paris"]])["logprob"][0]
    one.hf_model.state_dict()
    assert one.logprobs([PROMPT], [[" Paris"]])["logprob"][0] == before


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

    plain = (
        tmp_path / "snapshots" / "best"
    )  # links of somebody's own: their files' names say nothing
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
    (other / "modeling_own.py").write_text("")  # code counts where it is run
    assert [
        lm.load(other, trust_remote_code=code).identity()["files"]
        == lm.load(other).identity()["files"]
        for code in (False, True)
    ] == [True, False]


def test_what_is_fetched_of_a_model(folder, monkeypatch):
    """All that changes a number, the weights once, code only where it may run; nothing is fetched
    here."""
    from huggingface_hub.utils import filter_repo_objects

    asked = {}
    monkeypatch.setattr(
        "huggingface_hub.snapshot_download", lambda name, **how: asked.update(how) or str(folder)
    )
    there = [
        "config.json",
        "tokenizer.model",
        "merges.txt",
        "chat_template.jinja",
        "model-00001-of-00002.safetensors",
    ]
    there += [
        "modeling_x.py",
        "consolidated.safetensors",
        "original/model.safetensors",
        "pytorch_model.bin",
        "README.md",
    ]
    for code, wanted in ((False, there[:5]), (True, there[:6])):
        lm.load("some/model", trust_remote_code=code)
        rules = {key: asked[key] for key in ("allow_patterns", "ignore_patterns")}
        assert list(filter_repo_objects(there, **rules)) == wanted


def bad_folders(folder, tmp_path):
    for name, remove in {
        "no config": "config.json",
        "no weights": "model.safetensors",
        "no tokenizer": "tokenizer.json",
    }.items():
        copy = shutil.copytree(folder, tmp_path / name)
        (copy / remove).unlink()
        yield (
            copy,
            {"no config": "config.json", "no weights": "safetensors", "no tokenizer": "tokenizer"}[
                name
            ],
        )


def test_bad_input_gets_a_named_error(model, folder, tmp_path):
    for copy, word in bad_folders(folder, tmp_path):
        with pytest.raises(ProbeError, match=word):
            lm.load(copy)
    with pytest.raises(ProbeError, match="atlas-neox"):
        lm.load("atlas-neox-2")
    with pytest.raises(ProbeError, match="8bit"):
        lm.load(folder, quantize="3bit")
    with pytest.raises(ProbeError, match="at most 128 tokens"):
        model.logprobs(["Paris " * 200], [[" Lima"]])
    for empty in ("", " "):
        with pytest.raises(ProbeError, match="empty"):
            model.logprobs([PROMPT], [[empty]])
    with pytest.raises(ProbeError, match="no GPU"):
        lm.load(folder, device="cuda").device  # noqa: B018
    with pytest.raises(ProbeError, match="chat template"):
        model.generate([PROMPT], chat=True)


def test_damaged_weights_are_an_error(folder, tmp_path):
    copy = shutil.copytree(folder, tmp_path / "damaged")
    (copy / "model.safetensors").write_bytes((copy / "model.safetensors").read_bytes()[:1000])
    with pytest.raises(ProbeError, match="damaged or incomplete"):
        lm.load(copy)


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
    for ask in (
        lambda m: m.generate(prompts, max_new_tokens=4, beams=12)[
            "text"
        ].tolist(),  # 12 a step, and room for 10
        lambda m: m.hidden_states(prompts)[0],
        lambda m: m.top_continuations(
            prompts, {"a": [" Lima", " Oslo"], "b": [" Rome"], "c": [" Paris"]}, 2
        )["candidate"].tolist(),
        lambda m: m.integrated_gradients(prompts[0], steps=20)["signed"].to_numpy(),
    ):
        one.budget = one.default_budget  # every verb finds its room
        assert np.array_equal(ask(other), ask(one)) or np.abs(ask(other) - ask(one)).max() < 1e-4
        assert one.budget < one.default_budget
    room[0] = 0
    for ask in (
        lambda: one.logprobs(prompts, [[" Lima"]] * 3),
        lambda: one.beam_steps(prompts[:1]),
    ):
        with pytest.raises(ProbeError, match="out of memory with one token"):
            ask()


@pytest.mark.parametrize("error", [RuntimeError("could not create a primitive"), MemoryError()])
def test_a_lack_of_the_computers_own_memory_is_named(folder, error):
    """oneDNN's word for it says nothing to a user; any other error stays what it is."""
    one = lm.load(folder)
    one.choose_path()
    one.hf_model.forward = lambda *_, **__: (_ for _ in ()).throw(error)
    with pytest.raises(ProbeError, match="gets no more memory .*ulimit -v"):
        one.logprobs([PROMPT], [[" Paris"]])
    one.hf_model.forward = lambda *_, **__: (_ for _ in ()).throw(RuntimeError("no kernel image"))
    with pytest.raises(RuntimeError, match="no kernel image"):
        one.logprobs([PROMPT], [[" Paris"]])


def test_a_full_device_sends_no_model_to_the_plain_path(folder):
    """The self-check needs room, too: where memory runs short in it, it takes shorter rows, and
    comes to the same verdict."""
    one = lm.load(folder)
    forward, asked = one.hf_model.forward, []

    def small(*args, **kwargs):
        asked.append(kwargs["input_ids"].numel())
        if asked[-1] > 300:
            raise torch.OutOfMemoryError("no room")
        return forward(*args, **kwargs)

    one.hf_model.forward = small
    assert one.choose_path() == "tree"
    assert max(asked) > 300 and one.budget < 300


def test_what_is_longer_than_the_context_is_refused_by_every_verb(model):
    """Positions that a model never saw give a text and a score all the same, or crash (GPT-2)."""
    long, labels = "Paris " * 150, {"a": [" Lima"], "b": [" Rome"]}
    for ask in (
        lambda: model.logprobs([long], [[" Lima"]]),
        lambda: model.generate([long], max_new_tokens=1),
        lambda: model.beam_steps([long]),
        lambda: model.hidden_states([long]),
        lambda: model.integrated_gradients(long),
        lambda: model.top_continuations(long, labels, 1),
        lambda: model.top_continuations(long, labels, 1, method="beam"),
    ):
        with pytest.raises(ProbeError, match="reads at most 128 tokens; the prompt 'Paris Paris"):
            ask()


@pytest.mark.parametrize("special", ["pad_token", "eos_token"])
def test_a_special_token_that_the_model_lacks(special, tmp_path):
    """Added to the tokenizer and not to the embeddings: nothing is padded with it, and nothing ends
    with it."""
    one, tokenizer = lm.load(tiny.folder(tmp_path)), tiny.tokenizer()
    tokenizer.add_special_tokens({special: "<|new|>"})
    tokenizer.save_pretrained(tmp_path)
    one.path = "plain"
    if special == "pad_token":
        assert len(one.generate([PROMPT, "Rome"], max_new_tokens=3)) == 2
    else:
        for ask in (
            lambda: one.logprobs([PROMPT], [[" Paris"]], end=True),
            lambda: one.generate([PROMPT]),
            lambda: one.top_continuations(PROMPT, {"a": [" Paris"]}, 1),
        ):
            with pytest.raises(ProbeError, match=r"contains the token '<\|new\|>'"):
                ask()


def test_memory_is_estimated_before_loading(folder):
    """Weights in float32: four bytes each; in 4 bit the layers take an eighth of that, the
    embeddings what they took."""
    full = lm.load(folder)
    assert full.memory == pytest.approx(
        sum(p.numel() * 4 for p in full.hf_model.parameters()), rel=0.01
    )
    assert lm.load(folder, dtype="bfloat16").memory == full.memory // 2
    assert lm.load(folder, quantize="4bit").memory == full.memory - round(3.5 * full.n_parameters)


def test_a_mixture_in_8_bits_would_stay_in_full_precision_and_is_refused(tmp_path):
    """transformers holds the experts of a layer as one tensor, which bitsandbytes leaves as it is,
    without a word."""
    size = tiny.GROUPED | {
        "vocab_size": len(tiny.tokenizer()),
        "bos_token_id": 0,
        "eos_token_id": 1,
    }
    folder = tiny.folder(tmp_path, hf.MixtralConfig(**size, num_local_experts=4))
    full, eight = lm.load(folder), lm.load(folder, quantize="8bit")
    experts = 2 * 4 * 3 * 64 * 128  # layers, experts of each, matrices of each
    assert eight.memory == pytest.approx(full.memory - 3 * (full.n_parameters - experts), abs=1)
    with pytest.raises(ProbeError, match=r"11% .* experts"):
        eight.logprobs([PROMPT], [[" Paris"]])


def test_files_may_hold_masks_and_second_copies_which_are_no_parameters(tmp_path, folder):
    """Pythia's files hold each layer's causal mask, GPT-2's as numbers; Mistral's the weights once
    more under other names."""
    copy = shutil.copytree(folder, tmp_path / "copy")
    tensors = load_file(copy / "model.safetensors")
    masks = {
        f"gpt_neox.layers.{n}.attention.bias": torch.ones(1, 1, 512, 512, dtype=torch.bool)
        for n in range(2)
    }
    masks["h.0.attn.bias"] = torch.ones(1, 1, 256, 256)
    save_file(
        {f"layers.{name}": tensor for name, tensor in tensors.items()},
        copy / "consolidated.safetensors",
    )
    save_file(tensors | masks, copy / "model.safetensors", {"format": "pt"})
    one, four = lm.load(folder), lm.load(copy, quantize="4bit")
    assert (four.n_parameters, lm.load(copy).memory) == (one.n_parameters, one.memory)
    assert four.logprobs([PROMPT], [[" Paris"]])["logprob"][0] < 0


def test_a_quantized_t5_keeps_what_its_mlps_end_with(t5):
    for quantize in ("8bit", "4bit"):
        one = lm.load(t5.folder, quantize=quantize)
        assert one.hf_model.get_memory_footprint() == pytest.approx(one.memory, rel=0.1)


def test_shared_experts_count_as_parameters_and_shared_embeddings_do_not(tmp_path, t5):
    deepseek = tiny.DECODERS["deepseek"]()
    deepseek.vocab_size = len(tiny.tokenizer())
    for one, word in ((lm.load(tiny.folder(tmp_path, deepseek)), "shared_experts"), (t5, "shared")):
        sizes = {name: p.numel() for name, p in one.hf_model.named_parameters()}
        inner = [
            name
            for name in sizes
            if not {"shared", "embed_tokens", "lm_head"} & set(name.split("."))
        ]
        assert one.n_parameters == pytest.approx(
            sum(sizes[name] for name in inner), abs=10
        )  # buffers lie beside them
        assert any(word in name for name in sizes)


@pytest.mark.slow
def test_quantized_models_are_quiet(folder):
    """Warnings before every product would fill a notebook."""
    ask = f"""
from probelib import lm
for quantize in ("8bit", "4bit"):
    print(lm.load({str(folder)!r}, quantize=quantize).logprobs(["Rome"], [[" Oslo"]])["logprob"][0] < 0)
"""
    done = subprocess.run(
        [sys.executable, "-c", ask], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert (done.stdout.split(), done.stderr) == (["True", "True"], "")


@pytest.mark.parametrize(
    "options", [{"bnb_4bit_quant_type": "fp4"}, {"bnb_4bit_use_double_quant": True}]
)
def test_four_bit_variants_are_other_models(folder, options):
    one, plain = lm.load(folder, quantize="4bit", **options), lm.load(folder, quantize="4bit")
    assert one.identity() != plain.identity() and one.describe()["quantized_modules"] == 8
    assert np.isfinite(one.logprobs([PROMPT], [[" Paris"]])["logprob"][0])


def test_options_that_exclude_each_other(folder):
    for wrong, said in (
        ({"device": "cpu", "device_map": "auto"}, "exclude each other"),
        ({"bnb_4bit_quant_type": "fp4"}, "requires quantize"),
        ({"dtype": "float8"}, "float8"),
        (
            {"quantize": "4bit", "bnb_4bit_quant_typ": "fp4"},
            "bnb_4bit_quant_typ'.*bnb_4bit_quant_type",
        ),
        ({"quantize": "8bit", "bnb_4bit_quant_type": "fp4"}, "llm_int8_threshold"),
        ({"revision": "step1000"}, "local folder with one revision"),
    ):
        with pytest.raises(ProbeError, match=said):
            lm.load(folder, **wrong)
    for device in ("mps", "meta", "tpu:3"):
        with pytest.raises(
            ProbeError, match=f"device is '{device}'; allowed: auto, cpu, cuda, cuda:1"
        ):
            lm.load(folder, device=device).device  # noqa: B018


def test_a_model_that_is_not_here_is_one_message_without_a_network(monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(ProbeError, match="use its folder"):
        lm.load("someone/some-model")


def test_a_model_is_never_computed_from_the_cpu_without_being_asked_to(folder):
    """What accelerate leaves on a model that the GPUs cannot hold, made by hand: there is no GPU
    here."""
    one = lm.load(folder, device_map="auto")
    spread = type("Spread", (), {"hf_device_map": {"layers.0": 0, "layers.1": "cpu"}})()
    with pytest.raises(ProbeError, match="device_map='offload'"):
        refuse_offload(one, spread)
    refuse_offload(lm.load(folder, device_map="offload"), spread)
    refuse_offload(
        one, type("Whole", (), {"hf_device_map": {"": "cpu"}})()
    )  # all of it there: no GPU at all
    with pytest.raises(ProbeError, match="offload"):
        lm.load(folder, device_map="balanced")


def test_what_loading_takes_is_told_before(folder):
    one = lm.load(folder)
    assert f"{one.memory / 2**30:.2f} GiB of weights in float32 on cpu" in announce(
        one
    ) and not needs_several_gpus(one)
    assert "hf_model" not in vars(one)  # nothing was loaded
