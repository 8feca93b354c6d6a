"""ZP-LKE's inputs: which examples precede a subject, and what stands between subject and object.

The lists themselves are ``prompts.many_shots``, which other packages use, too.
"""

from collections.abc import Iterable

import numpy as np
import pandas as pd

from probelib.errors import ProbeError, unknown
from probelib.facts import Facts, atlas, choose
from probelib.facts.model import rng
from probelib.prompts import PROMPTS, many_shot, many_shots, paraphrases

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
FIRST_NAMES = "Alda Bruno Cleo Dario Edda Fabio Greta Hanno Ilka Jorin Kaja Lorenz Mila Nando Orla "
FIRST_NAMES += "Pavle Runa Silas Tilda Vico"
LAST_NAMES = "Abendal Brisko Castermo Dunfeld Erlova Fannick Gorbeno Hattrup Ivanek Jostrand "
LAST_NAMES += "Kelmar Lundovic Morvane Nessling"


def sentence_role(facts: Facts) -> str:
    """The role of the sentences that prompt a model: "cloze", or "question" without sentences."""
    return "cloze" if "cloze" in set(facts.templates["role"]) else "question"


def eight_inputs(
    fact: Facts, examples: pd.DataFrame, everything: Facts, seed: int = 0
) -> pd.DataFrame:
    """Table 1: facts after no, correct, incorrect and unknown examples, prompted and zero-prompt.
    A frame of ``prompts``.

    examples     four correct ones;   everything: all facts of the relation (``replaced``)
    """
    role, kinds = sentence_role(fact), {"correct": examples}
    for kind in ("incorrect", "unknown"):
        kinds[kind] = replaced(examples, kind, range(1, 5), everything, seed)
    inputs = [paraphrases(fact, role)]
    for kind, own in kinds.items():
        inputs.append(many_shots(fact, own, 2, role).assign(context=f"2 {kind}"))
    inputs.append(many_shots(fact, examples, 1).assign(context="1 correct"))
    for kind, own in kinds.items():
        inputs.append(many_shots(fact, own, 4).assign(context=f"4 {kind}"))
    inputs = pd.concat(inputs)
    inputs = inputs[inputs["template"] <= 1]
    return inputs.assign(prompt=inputs["prompt"] + "|" + inputs["context"])


def sequence(examples: pd.DataFrame, context: str) -> pd.DataFrame:
    """One prompt per example: all pairs before it, then its subject. Together they are one forward
    pass over the sequence, with the probability of every object after the pairs that precede it."""
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
    (``CONTEXTS``).

    star   a position that is not replaced if they are spread, nor the one before it
    """
    n, found = int(examples["position"].max()), {"correct": examples}
    for context, (kind, spread) in CONTEXTS.items():
        where = positions(n, n_replaced, spread, star, seed if spread else 0)
        found[context] = replaced(examples, kind, where, everything, seed)
    return found


def positions(
    n: int, count: int, spread: bool, free: int | None = None, seed: int = 0
) -> list[int]:
    """``count`` of the positions 1..n. ``spread``: sampled, but neither ``free`` nor the position
    before it, so that the pair at ``free`` follows an untouched one. Otherwise one block in the
    middle."""
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
    """The examples with those at the positions ``where`` replaced.

    kind      "incorrect": the subject stays and gets an object that is wrong for it; "unknown": an
              invented subject with any object (numbers: from their whole range)
    facts     all facts of the relation, whose objects are sampled
    """
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
        relation, subject, objects = row["relation"], row["subject"], space
        if kind == "incorrect":
            objects = [o for o in space if (subject, o) not in right]
        if not objects:
            raise ProbeError(
                f"{subject}: every object of {relation} is right for it, so none is incorrect"
            )
        draw = rng(seed, kind, relation, int(row["seed"]), int(row["position"]))
        new = objects[draw.integers(len(objects))]
        subject = subject if kind == "incorrect" else names.pop()
        changed = [subject, new, f"{relation}:{subject}:{new}"]
        frame.loc[i, ["subject", "object", "fact"]] = changed
    return frame.assign(kind=np.where(frame["position"].isin(where), kind, frame["kind"]))


def invented_names(n: int, real: set[str], seed: int = 0) -> list[str]:
    """``n`` invented names (none of ``real``), sampled with ``seed``. Once all pairs of first and
    last names are used, names get a second first name."""
    first, last = FIRST_NAMES.split(), LAST_NAMES.split()
    names = [f"{a} {c}" for a in first for c in last]
    pairs = len(names)
    names += [f"{a} {b} {c}" for a in first for b in first for c in last if a != b]
    more = pairs + rng(seed, "more names").permutation(len(names) - pairs)
    order = [*rng(seed, "names").permutation(pairs), *more]
    return [name for name in (names[i] for i in order) if name not in real][:n][::-1]


def relations_with_prompts() -> list[str]:
    """The relations for which the paper has human-written prompts, in the atlas's names."""
    templates = atlas().templates
    return sorted(set(templates.loc[templates["role"] == "hgp", "relation"]))


def with_prompts(facts: Facts) -> Facts:
    """The facts of ``relations_with_prompts``. Raise ProbeError if there are none."""
    known = relations_with_prompts()
    chosen = [relation for relation in facts.relations["relation"] if relation in known]
    if not chosen:
        raise unknown("relation with prompts", ", ".join(facts.relations["relation"]), known)
    return choose(facts, chosen)


def used_templates(facts: Facts) -> pd.DataFrame:
    """The templates that section 4.1 uses: up to three per role and relation."""
    templates = facts.templates
    return templates[templates["role"].isin(PROMPTED) & (templates["number"] <= TEMPLATES)]


def five_ways(facts: Facts, examples: pd.DataFrame) -> pd.DataFrame:
    """All inputs of section 4.1, a frame of ``prompts`` with ``method`` (``METHODS``): ZP-LKE after
    every draw of examples, human (HGP) and mined (MMP) prompts and plain sentences alone, and HGP
    after the first draw of the same examples. ``generated``: whether text is generated after it, in
    the response test: ZP-LKE after the first draw, few-shot HGP with its first prompt, the
    others."""
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
    """Inputs of figure 6, a frame of ``prompts`` with ``between``: the same examples with a blank,
    or with the words of a human (HGP) or mined (MMP) prompt, between subject and object."""
    inputs = pd.concat([many_shots(facts, examples, role=role) for role in ("zp", "hgp", "mmp")])
    inputs = inputs[inputs["template"] <= TEMPLATES]
    used = used_templates(facts)
    words = used.set_index(["role", "number", "relation"])["template"].to_dict()
    between = []
    for role, number, relation in inputs[["role", "template", "relation"]].to_numpy():
        text = words.get((role, number, relation), "").replace("[X]", "").strip()
        between.append(f"{PROMPTED[role]}: {text}" if number else "a blank")
    return inputs.assign(between=between)
