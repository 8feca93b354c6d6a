"""What ZP-LKE scores: its settings and inputs (``prompts.many_shots`` makes the lists)."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from probelib.errors import ProbeError, unknown
from probelib.facts import Facts, atlas, choose
from probelib.facts.model import rng
from probelib.facts.text import read_yaml
from probelib.lm.names import family, pairs_with_base, tuned_pairs
from probelib.paths import PACKAGE
from probelib.prompts import PROMPTS, many_shot, many_shots, paraphrases, sample_examples

METHODS = {  # (role of the prompt, whether examples precede it) -> the estimator's name
    ("zp", True): "ZP-LKE",
    ("hgp", True): "few-shot HGP",
    ("hgp", False): "HGP",
    ("mmp", False): "MMP",
    ("cloze", False): "plain sentence",
}
PROMPTED = {"hgp": "HGP", "mmp": "MMP", "cloze": "plain sentence"}
TEMPLATES = 3  # per role and relation, as in the paper
CONTEXTS = {  # panel of figure 4 -> (kind of the replaced examples, whether they are spread)
    "unknown, spread": ("unknown", True),
    "unknown, block": ("unknown", False),
    "incorrect, spread": ("incorrect", True),
    "incorrect, block": ("incorrect", False),
}
DECISIONS = {  # how pairs are written: (arguments of ``prompts.many_shots``, text before an option)
    "as here: a blank": ({}, " "),
    "a comma": ({"gap": ", "}, " "),
    "a line break": ({"gap": "\n"}, " "),
    "as released": ({"variant": "released"}, " : "),
}
LONGEST_LIST = 70  # pairs in the longest lists that the shipped models were trained on
# requirements of notebook 02_models that every shipped model misses
NO_LISTS = "permuted lists to lower log P"
NO_TEXT = "answers of the right type where never taught"


@dataclass(frozen=True)
class DesignSettings:
    """Settings of section 3 that rarely change."""

    stated: int = 1  # of the atlas, only facts taught at least this often; 0: all
    shots: tuple[int, ...] = (1, 2, 5, 10, 20, 30, 50)  # numbers of examples
    draws: int = 5  # of examples in figure 3
    n_sequence: int = 200  # pairs in the sequences of figures 4 and 11 to 13
    n_replaced: int = 40  # of them replaced
    star: int = 114  # the position marked in the paper
    n_generated: int = 60  # facts after which table 1 generates, at most


@dataclass(frozen=True)
class PromptsSettings:
    """Settings of section 4.1 (the paper: 50 tokens, 400 facts of the relation of figure 6)."""

    stated: int = 1  # as above
    n_examples: int = 50
    draws: int = 2  # of examples, for the multiple-choice test of ZP-LKE
    new_tokens: int = 20  # of the response test
    relation: str = "P449"  # of figure 6: the original broadcaster
    n_relation: int = 60  # its facts there


@dataclass(frozen=True)
class ModelsSettings:
    """Settings of section 4.2 (the paper: one draw)."""

    n_test: int | None = None  # facts per relation, at most (the paper: 400); None: all
    n_examples: int | str = 50  # or "max"
    draws: int = 2  # of examples
    seed: int = 0  # of facts, options and examples


def shipped(model: str) -> bool:
    """Whether a model is one of the kit's, so that its training corpus is known."""
    return model.startswith("atlas-")


def shared_examples(
    facts: Facts | None, pool: Facts, models: Iterable = (), n_examples=50, draws=2, seed=0
) -> pd.DataFrame:
    """``draws`` draws of ``n_examples`` examples per relation: a frame of examples (``prompts``).
    ``facts``, ``pool``: ``facts.multiple_choice``; None: no fact is scored, the examples are.
    ``models``: loaded ones, into whose contexts the longest list must fit; with "max" one that
    fits into all."""
    drawn = pd.concat([sample_examples(pool, facts, n_examples, seed + i) for i in range(draws)])
    fitting = [fit_examples(n_examples, drawn, facts, model) for model in models]
    return drawn[drawn["position"] <= min(fitting)] if fitting else drawn


def fit_examples(n: int | str, examples: pd.DataFrame, facts: Facts, model) -> int:
    """Return ``n`` if lists of ``n`` examples fit into the model's context, which must also hold
    the tokens around every text, the longest subject and 16 tokens of an object; with "max" the
    number that fits. Raise ProbeError if they do not fit."""
    length = lambda texts: [len(ids) for ids in model.tokens.encode(texts)]
    context = model.context - len(model.tokens.prompts(["a"])[0]) + length(["a"])[0]
    subjects = facts.facts.assign(label=facts.label(facts.facts["subject"]))
    subjects = subjects.groupby("relation")["label"]
    longest = subjects.agg(lambda labels: max(length([f" {label}" for label in labels])))
    most = {}
    for (relation, _), shots in examples.groupby(["relation", "seed"]):
        pairs = zip(shots["subject"], shots["object"], strict=True)
        each = np.cumsum(length([f" {x} {y}" for x, y in pairs]))
        fitting = int(np.searchsorted(each, context - longest[relation] - 16, side="right"))
        most[relation] = min(fitting, most.get(relation, fitting))
    relation, fits = min(most.items(), key=lambda item: item[1])
    if n == "max":
        return fits
    if not isinstance(n, int) or not 0 < n <= fits:
        said = f"at most {fits} examples of relation {relation} are in the pool and fit into the"
        said += f" {model.context} tokens that the model reads"
        raise ProbeError(f"n_examples={n!r}: {said}; use a number from 1 to {fits}, or 'max'")
    return n


def bases(models: list[str], tuned: list[str]) -> dict[str, str]:
    """Fine-tuned model -> its base; "" if that is not among ``models``."""
    return dict.fromkeys(tuned_pairs(tuned), "") | dict(pairs_with_base(models, tuned))


def describe(models: dict, base_of: dict[str, str]) -> pd.DataFrame:
    """Table 7: name, family, kind, base (``bases``; "" for base models), parameters (without
    embeddings) and context (tokens) of loaded models."""
    table = pd.DataFrame({"model": list(models), "family": map(family, models)})
    table["kind"] = np.where(table["model"].isin(base_of), "fine-tuned", "base")
    table["base"] = table["model"].map(base_of).fillna("")
    about = [(model.n_parameters, model.context) for model in models.values()]
    return table.join(pd.DataFrame(about, columns=["parameters", "context"]))


def sentence_role(facts: Facts) -> str:
    """The role of the sentences that prompt a model: "cloze", or "question" without sentences."""
    return "cloze" if "cloze" in set(facts.templates["role"]) else "question"


def eight_inputs(fact: Facts, examples: pd.DataFrame, everything: Facts, seed: int = 0):
    """Table 1's inputs, a frame of ``prompts``: facts after no, correct, incorrect and unknown
    examples, prompted and zero-prompt. ``examples``: four correct ones."""
    role, kinds = sentence_role(fact), {"correct": examples}
    for kind in ("incorrect", "unknown"):
        kinds[kind] = replaced(examples, kind, range(1, 5), everything, seed)
    inputs = [paraphrases(fact, role)]
    for kind, own in kinds.items():
        inputs.append(many_shots(fact, own, 2, role).assign(context=f"2 {kind}"))
    inputs.append(many_shots(fact, examples, 1).assign(context="1 correct"))
    for kind, own in kinds.items():
        inputs.append(many_shots(fact, own, 4).assign(context=f"4 {kind}"))
    inputs = pd.concat(inputs).query("template <= 1")
    return inputs.assign(prompt=inputs["prompt"] + "|" + inputs["context"])


def sequence(examples: pd.DataFrame, context: str) -> pd.DataFrame:
    """One prompt per example: all pairs before it, then its subject. Together they are one pass."""
    rows = []
    for (relation, seed), shots in examples.groupby(["relation", "seed"], sort=False):
        pairs = list(zip(shots["subject"], shots["object"], strict=True))
        for i, (position, fact) in enumerate(zip(shots["position"], shots["fact"], strict=True)):
            name = f"sequence|{relation}|{context}|seed {seed}|{position:03d}"
            text = many_shot(pairs[:i], pairs[i][0])
            rows.append((name, fact, relation, "sequence", 0, context, seed, text))
    return pd.DataFrame(rows, columns=PROMPTS)


def sequences(
    examples: pd.DataFrame, everything: Facts, n_replaced: int, star: int, seed: int = 0
) -> dict[str, pd.DataFrame]:
    """Context -> the examples of figure 4: "correct", and with ``n_replaced`` of them replaced
    (``CONTEXTS``). ``star``: see ``positions``."""
    n, found = int(examples["position"].max()), {"correct": examples}
    for context, (kind, spread) in CONTEXTS.items():
        where = positions(n, n_replaced, spread, star, seed if spread else 0)
        found[context] = replaced(examples, kind, where, everything, seed)
    return found


def positions(n: int, count: int, spread: bool, free=None, seed: int = 0) -> list[int]:
    """``count`` of the positions 1..n. ``spread``: sampled, but neither ``free`` nor the position
    before it. Otherwise one block in the middle."""
    if count > n - 2:
        raise ProbeError(f"{count} of {n} positions are to be replaced; at most {n - 2} can be")
    if not spread:
        first = (n - count) // 2 + 1
        return list(range(first, first + count))
    choices = [i for i in range(1, n + 1) if free is None or i not in (free - 1, free)]
    drawn = rng(seed, "positions", n, count).choice(choices, count, replace=False)
    return sorted(int(i) for i in drawn)


def replaced(
    examples: pd.DataFrame, kind: str, where: Iterable[int], facts: Facts, seed: int = 0
) -> pd.DataFrame:
    """The examples with those at the positions ``where`` replaced. ``kind`` "incorrect": the
    subject stays and gets an object that is wrong for it; "unknown": an invented subject with any
    object (numbers: from their whole range). ``facts``: all of the relation."""
    if kind not in ("incorrect", "unknown"):
        raise unknown("kind of example", kind, ["incorrect", "unknown"])
    frame, where = examples.reset_index(drop=True), set(where)
    labels = [facts.label(facts.facts[role]) for role in ("subject", "object")]
    right = set(zip(*labels, strict=True))
    space = sorted({label for _, label in right})
    if kind == "unknown" and all(o.isdecimal() for o in space):
        space = [str(year) for year in range(min(map(int, space)), max(map(int, space)) + 1)]
    names = invented_names(len(examples), set(examples["subject"]), seed)
    for i, row in frame[frame["position"].isin(where)].iterrows():
        relation, subject = row["relation"], row["subject"]
        objects = [o for o in space if kind == "unknown" or (subject, o) not in right]
        if not objects:
            raise ProbeError(f"{subject}: every object of {relation} is right, none incorrect")
        draw = rng(seed, kind, relation, int(row["seed"]), int(row["position"]))
        new = objects[draw.integers(len(objects))]
        subject = subject if kind == "incorrect" else names.pop()
        frame.loc[i, ["subject", "object", "fact"]] = [subject, new, f"{relation}:{subject}:{new}"]
    return frame.assign(kind=np.where(frame["position"].isin(where), kind, frame["kind"]))


def invented_names(n: int, real: set[str], seed: int = 0) -> list[str]:
    """``n`` invented names (none of ``real``), sampled with ``seed``. Once all pairs of first and
    last names are used, names get a second first name."""
    parts = read_yaml(PACKAGE / "zplke" / "invented_names.yaml")
    first, last = parts["first"], parts["last"]
    names = [f"{a} {c}" for a in first for c in last]
    pairs = len(names)
    names += [f"{a} {b} {c}" for a in first for b in first for c in last if a != b]
    more = pairs + rng(seed, "more names").permutation(len(names) - pairs)
    order = [*rng(seed, "names").permutation(pairs), *more]
    return [name for name in (names[i] for i in order) if name not in real][:n][::-1]


def relations_with_prompts() -> list[str]:
    """The relations for which the paper has human-written prompts, in the atlas's names."""
    return sorted(set(atlas().templates.query("role == 'hgp'")["relation"]))


def with_prompts(facts: Facts) -> Facts:
    """The facts of ``relations_with_prompts``. Raise ProbeError if there are none."""
    own, known = facts.relations["relation"], relations_with_prompts()
    if not (chosen := [relation for relation in own if relation in known]):
        raise unknown("relation with prompts", ", ".join(own), known)
    return choose(facts, chosen)


def used_templates(facts: Facts) -> pd.DataFrame:
    """The templates that section 4.1 uses: up to three per role and relation."""
    return facts.templates.query("role in @PROMPTED and number <= @TEMPLATES")


def five_ways(facts: Facts, examples: pd.DataFrame) -> pd.DataFrame:
    """All inputs of section 4.1, a frame of ``prompts`` with ``method`` (``METHODS``): ZP-LKE after
    every draw of examples, HGP after the first one, and human (HGP), mined (MMP) and plain
    sentences alone. ``generated``: whether the response test uses it (ZP-LKE after the first draw,
    few-shot HGP with its first prompt, all others)."""
    inputs, used = [many_shots(facts, examples)], used_templates(facts)
    for role in PROMPTED:
        if relations := sorted(set(used.loc[used["role"] == role, "relation"])):
            own = paraphrases(choose(facts, relations), role)
            inputs.append(own[own["template"] <= TEMPLATES])
    first = examples["seed"].min()
    few = many_shots(facts, examples[examples["seed"] == first], role="hgp")
    inputs = pd.concat([*inputs, few], ignore_index=True)
    shown, zp = inputs["context"] != "none", inputs["role"] == "zp"
    method = [METHODS[key] for key in zip(inputs["role"], shown, strict=True)]
    generated = np.where(zp, inputs["seed"] == first, ~shown | (inputs["template"] <= 1))
    return inputs.assign(method=method, generated=generated)


def separated(facts: Facts, examples: pd.DataFrame) -> pd.DataFrame:
    """Inputs of figure 6, a frame of ``prompts``: the same examples with a blank, or with the words
    of a human (HGP) or mined (MMP) prompt, ``between`` subject and object."""
    inputs = pd.concat([many_shots(facts, examples, role=role) for role in ("zp", "hgp", "mmp")])
    inputs = inputs[inputs["template"] <= TEMPLATES]
    words = used_templates(facts).set_index(["role", "number", "relation"])["template"].to_dict()
    between = []
    for role, number, relation in inputs[["role", "template", "relation"]].to_numpy():
        text = words.get((role, number, relation), "").replace("[X]", "").strip()
        between.append(f"{PROMPTED[role]}: {text}" if number else "a blank")
    return inputs.assign(between=between)
