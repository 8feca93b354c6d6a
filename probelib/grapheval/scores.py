"""What GraphEval scores: statements -> prompts inside an instruction -> generated answers -> labels
(section 4.1). The judge reads hidden states after the same instruction (``judge.Reader``)."""

import re
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
from jinja2 import Template

from probelib import store
from probelib.errors import unknown
from probelib.grapheval.measures import Answer
from probelib.lm.names import family, organisms, tuned_of, tuned_pairs
from probelib.paths import PACKAGE
from probelib.prompts import INSTRUCTION, split_instruction

PART = 256  # statements in a part of the store


@dataclass(frozen=True)
class GraphEvalSettings:
    """What a notebook's parameter ``settings`` may set, with defaults (the paper's in brackets)."""

    templates: str | None = None  # CSV file: relation, template; for a graph without templates
    n_corrupted: int = 1  # corruptions per triple
    hard: bool = False  # replace the tail by another tail of the same relation
    pageviews: str | None = None  # JSON file, entity name -> page views (figure 8)
    new_tokens: int = 16  # longest answer (4096)
    judge_mode: str = "answer"  # answer, paper or released: see ``judge``
    judge_epochs: int = 20  # passes over the labels (100)
    judge_batch: int = 64  # statements per step (8)
    judge_lr: float = 0.001  # learning rate (0.0001)
    judge_seeds: int = 3  # judges trained per score of appendix A
    soft_prompts: bool = False  # virtual tokens in place of the instruction (true)
    virtual_tokens: int = 20  # length of the soft prompt (20)
    encoder_width: int = 0  # width of the prompt encoder; 0 for the model's own (4096)
    encoder_epochs: int = 2  # passes over statements and answers (5)
    encoder_batch: int = 16  # texts per step (8)
    encoder_lr: float = 0.005  # learning rate (0.00002)
    n_alone: int = 24  # statements that are also answered one by one (table 4)

    @property
    def training(self) -> dict:
        """Fields of ``judge.Training``."""
        return {"epochs": self.judge_epochs, "batch": self.judge_batch, "lr": self.judge_lr}


# From a generated text to an answer

DOUBT = re.compile(
    r"\b(?:don['’]?t|do not|can ?not|can['’]t)\b.*\b(?:known?|determined?|sure|certain)\b"
    r"|\bunsure\b|\b(?:not|isn['’]t) (?:\w+ )?"
    r"(?:known(?! (?:as|by|for(?! (?:certain|sure)\b))\b)|determined|sure|certain)\b"
)
PLAIN = (  # no negation before it in its clause
    r"(?:.*(?:;|\b(?:so|but|therefore|thus|hence)\b))?"
    r"(?:(?!\b(?:not?|none|neither|never|nothing|cannot|\w+n['’]t|whether|if|unclear|unlikely"
    r"|impossible|opposite|wrong|doubt\w*)\b).)*"
)
FALSE = re.compile(
    r"\W*(?:no|false|incorrect)\b|.*\bnot (?:true|correct)\b"
    rf"|{PLAIN}(?:\bis|['’]s) (?:false|incorrect|untrue)\b"
)
TRUE = re.compile(rf"\W*(?:yes|true|correct)\b|{PLAIN}(?:\bis|['’]s) (?:true|correct)\b")


def parse_answer(text: str, variant: str = "kit") -> Answer | None:
    """The answer in a text; None if there is none (``label_statements`` counts such texts as IDK).

    variant  "kit": in the first sentence, ignoring case; doubt takes precedence over "false", and
             "false" over "true".
             "released": as in the released code, in the set of all words, "true" before "false"
    """
    if variant == "released":
        words = set(re.sub(r"[^\w\s]", "", text).split())
        says_false = Answer.FALSE if words & {"false", "No"} else None
        return Answer.TRUE if words & {"true", "Yes"} else says_false
    if variant != "kit":
        raise unknown("variant of the parser", variant, ["kit", "released"])
    sentence = re.split(r"[.!?\n]", text.strip().lower(), maxsplit=1)[0]
    if DOUBT.search(sentence):
        return Answer.IDK
    says_true = Answer.TRUE if TRUE.match(sentence) else None
    return Answer.FALSE if FALSE.match(sentence) else says_true


def answering_models(models: list[str], tuned: list[str]) -> list[str]:
    """The models that answer whether statements are true: each, or its instruction-tuned partner.
    Of the shipped models only the instruction-tuned ones answer; without any, the bases do."""
    own = [name for name in models if name not in organisms()]
    partners = list(dict.fromkeys(tuned_of(model, tuned) or model for model in own))
    return partners or list(tuned_pairs(tuned)) or models


def model_sizes(models: dict) -> pd.Series:
    """Model -> number of parameters."""
    return pd.Series({name: model.n_parameters for name, model in models.items()})


def substitutes(models: dict) -> pd.Series:
    """Map each model (name -> loaded model) to the smallest model of its family, whose states the
    judge reads (section 3.2)."""
    sizes = model_sizes(models)
    return sizes.groupby(sizes.index.map(family)).transform("idxmin")


def statement_prompts(sample: pd.DataFrame, model) -> pd.DataFrame:
    """The statements inside the instruction, in the model's format, as prompts for
    ``store.generate``. ``relation`` names a part of the store, of ``PART`` statements."""
    before, after = split_instruction(model.chat(INSTRUCTION))
    parts = [f"statements {row // PART}" for row in range(len(sample))]
    texts = [f"{before}{text}{after}" for text in sample["text"]]
    columns = {"prompt": sample["prompt"], "fact": sample["prompt"]}
    return pd.DataFrame(columns | {"relation": parts, "text": texts})


def label_statements(models: dict, sample: pd.DataFrame, folder: Path, new_tokens: int = 16):
    """Let every model (name -> loaded model) answer every statement of ``sample``
    (``whole_graph.sample_statements``) once, by greedy decoding.

    Return, per model and statement, the columns of ``sample``, ``model``, ``response`` (the text),
    ``n_tokens`` (its length), ``answer`` (``Answer``), ``unparsed`` (1: no answer, counted as IDK).
    """
    frames = []
    for name, model in models.items():
        prompts = statement_prompts(sample, model)
        texts = store.generate(model, prompts, folder, max_new_tokens=new_tokens, batch=64)
        texts = texts[["prompt", "text", "n_tokens"]].rename(columns={"text": "response"})
        parsed = [parse_answer(text) for text in texts["response"]]
        texts["answer"] = [int(Answer.IDK if answer is None else answer) for answer in parsed]
        texts["unparsed"] = [int(answer is None) for answer in parsed]
        frames.append(sample.merge(texts, on="prompt", validate="one_to_one").assign(model=name))
    return pd.concat(frames, ignore_index=True)


def instructions(models: dict) -> pd.DataFrame:
    """The prompt of each model (table 6): ``model``, ``family``, ``prompt``, ``before every text``
    (the tokenizer's rule for a begin-of-text token), ``tokens of the instruction``, ``format``."""
    rows = []
    for name, model in models.items():
        text = model.chat(INSTRUCTION)
        row = {"model": name, "family": family(name), "prompt": repr(text)[1:-1]}
        row["before every text"] = model.tokens.bos_rule
        ids = model.tokens.prompts([text.replace("{statement}", "")])[0]
        row["tokens of the instruction"] = len(ids)
        row["format"] = model.tokens.format or ("bare" if text == INSTRUCTION else "chat")
        rows.append(row)
    return pd.DataFrame(rows)


def request_template(samples: list[tuple]) -> str:
    """A prompt that requests the statement template of a relation (the words are the kit's), with
    solved examples. ``samples``: as for ``write_template``."""
    text = (PACKAGE / "grapheval" / "request.txt.j2").read_text(encoding="utf-8")
    return Template(text, trim_blocks=True).render(samples=[*samples[1:], samples[0]]).rstrip()


def check_template(text: str) -> tuple[str | None, str]:
    """The template in a generated text (None if there is none), and how often it has each slot."""
    template = text.strip().split("\n")[0].strip().strip("\"'“”‘’").strip()
    counts = [template.count(slot) for slot in ("{head}", "{tail}")]
    found = template if counts == [1, 1] else None
    return found, "{} {{head}}, {} {{tail}}".format(*counts)


def write_template(model, samples: list[tuple]) -> dict:
    """Prompt a model for the template of a relation, and check what it generates (figure 9).
    ``samples``: ``whole_graph.samples_for_template``, the first of the relation in question.

    Return ``relation``, ``author``, ``request``, ``written`` (the generated text), ``verdict``, and
    ``template``: the model's, or the graph's own if the check fails.
    """
    request = request_template(samples)
    written = model.generate([model.chat(request)], max_new_tokens=32)["text"][0]
    found, verdict = check_template(written)
    known = {"relation": samples[0][0], "author": model.name, "request": request}
    known |= {"written": written, "verdict": verdict, "template": found or samples[0][2]}
    return known
