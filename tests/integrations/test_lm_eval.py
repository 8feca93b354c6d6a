"""lm-evaluation-harness on the kit's models: the numbers of its own backend, request by request and
as whole evaluations."""

import json
import logging

import pytest

pytest.importorskip("lm_eval", reason="needs the extra lm-eval")

import transformers as hf
from lm_eval import simple_evaluate
from lm_eval.api.instance import Instance
from lm_eval.models.huggingface import HFLM
from lm_eval.tasks import TaskManager

from probelib import lm
from probelib.errors import ProbeError
from probelib.integrations.lm_eval import ProbeLM
from tests.lm import tiny

pytestmark = pytest.mark.filterwarnings("ignore")
logging.getLogger("lm_eval").setLevel(logging.ERROR)
T5 = lambda: hf.T5Config(**tiny.T5 | {"vocab_size": 320}, eos_token_id=1, pad_token_id=0)
LLAMA = lambda: hf.LlamaConfig(**tiny.GROUPED | {"vocab_size": 320}, bos_token_id=0, eos_token_id=1)
PAIRS = [
    ("The capital of France is", " Paris"),
    ("The capital of France is", " Madrid, in Spain"),
    ("The capital of France is ", "Paris"),  # the blank moves to the continuation
    ("What is the capital of Spain?", " Madrid"),
    ("Lyon and Par", "is are cities"),  # the tokenizer joins what the boundary parts
    ("", "Paris is nice"),
    ("x " * 300, " Paris"),  # longer than the context
]


@pytest.fixture(autouse=True, scope="module")
def offline():
    """The harness looks for metrics and data on the Hub, and repeats what fails."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
        patch.setattr("datasets.config.HF_HUB_OFFLINE", True)
        yield


def ask(model, kind: str, requests: list[tuple]) -> list:
    instances = [Instance(kind, {}, each, n) for n, each in enumerate(requests)]
    return getattr(model, kind)(instances, disable_tqdm=True)


def both(folder, config=None, bos=False):
    """Our backend and the harness's own on one model."""
    model = lm.load(tiny.folder(folder, config, bos))
    how = {"batch_size": 1, "logits_cache": False}
    return ProbeLM(model), HFLM(pretrained=model.hf_model, tokenizer=model.tokenizer, **how)


@pytest.fixture(scope="module", params=["neox", "llama with BOS", "t5"])
def backends(request, tmp_path_factory):
    config = {"neox": None, "llama with BOS": LLAMA(), "t5": T5()}[request.param]
    return both(tmp_path_factory.mktemp("model"), config, bos="BOS" in request.param)


def test_loglikelihood_is_that_of_the_harness(backends):
    ours, own = (ask(model, "loglikelihood", PAIRS) for model in backends)
    assert [a for a, _ in ours] == pytest.approx([b for b, _ in own], abs=1e-4)
    assert [a for _, a in ours] == [b for _, b in own]


def test_greedy_answers_and_perplexities_are_those_of_the_harness(tmp_path):
    models = both(tmp_path)
    options = [{"until": ["\n"], "max_gen_toks": 40}, {"until": ["a"], "max_gen_toks": 12}]
    options.append({"max_gen_toks": 3})
    asked = [(context, dict(options[n % 3])) for n, (context, _) in enumerate(PAIRS[:6]) if context]
    ours, own = (ask(model, "generate_until", asked) for model in models)
    assert ours == own and len(set(ours)) > 1
    # the second takes several windows
    texts = [("Paris is nice.",), ("The capital of Peru is Lima. " * 40,)]
    ours, own = (ask(model, "loglikelihood_rolling", texts) for model in models)
    for (text,), mine, theirs in zip(texts, ours, own, strict=True):
        tokens = len(models[0].tok_encode(text))
        # per token: rounding adds up over a document
        assert mine / tokens == pytest.approx(theirs / tokens, abs=1e-5)


def test_a_whole_evaluation_is_equal(tmp_path):
    """Two tasks from local files: multiple choice with two examples before each question, and
    generated answers."""
    countries, choices = ["France", "Peru", "Norway", "Spain", "Italy"], ["Paris", "Lima", "Oslo"]
    rows = [{"question": f"What is the capital of {c}?", "choices": choices} for c in countries]
    rows = [row | {"answer": n % 3} for n, row in enumerate(rows)]
    data = tmp_path / "data.jsonl"
    data.write_text("\n".join(map(json.dumps, rows)))
    task = {"dataset_path": "json", "dataset_kwargs": {"data_files": {"test": str(data)}}}
    task |= {"test_split": "test", "fewshot_split": "test", "doc_to_text": "{{question}}"}
    choice = task | {"task": "choice", "output_type": "multiple_choice", "num_fewshot": 2}
    choice |= {"doc_to_choice": "choices", "doc_to_target": "answer"}
    choice |= {"metric_list": [{"metric": "acc"}, {"metric": "acc_norm"}]}
    text = task | {"task": "text", "output_type": "generate_until"}
    text |= {"doc_to_target": "{{choices[answer]}}", "metric_list": [{"metric": "exact_match"}]}
    text |= {"generation_kwargs": {"until": ["."], "max_gen_toks": 5}}
    manager = TaskManager(include_defaults=False)  # reads none of its 10,000 files
    common, models = {"task_manager": manager, "bootstrap_iters": 0}, both(tmp_path / "model")
    run = lambda model: simple_evaluate(model, tasks=[dict(choice), dict(text)], **common)
    ours, own = map(run, models)
    assert ours["results"] == own["results"]
    for name in ("choice", "text"):
        first, second = (result["samples"][name] for result in (ours, own))
        assert [s["target"] for s in first] == [s["target"] for s in second]
        if name == "choice":
            logprobs = lambda samples: [float(r[0][0]) for s in samples for r in s["resps"]]
            assert logprobs(first) == pytest.approx(logprobs(second), abs=1e-4)
    assert ours["config"]["model_path"] == "tree" and ours["config"]["model_bos"] == "none"
    common |= {"model_args": {"model": str(tmp_path / "model")}, "device": "cuda:0"}
    # as the command line asks for it
    named = simple_evaluate("probelib", tasks=[dict(choice)], batch_size=1, **common)
    assert named["results"]["choice"] == ours["results"]["choice"]


def test_what_the_kit_cannot_do_is_reported(tmp_path):
    model = ProbeLM(lm.load(tiny.folder(tmp_path)))
    with pytest.raises(ProbeError, match="do_sample"):
        ask(model, "generate_until", [("a", {"do_sample": True, "temperature": 0.7})])
    with pytest.raises(ProbeError, match="no token of it is left"):
        ask(model, "loglikelihood", [("Pa", "ris")])
