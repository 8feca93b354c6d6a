"""ZP-LKE's own inputs: sequences in which every object is scored, and replaced examples (section 3); prompts to compare with
lists (section 4.1).

The lists themselves, ``prompts.many_shots``, are also used by other packages.
"""

from collections.abc import Iterable

import numpy as np
import pandas as pd

from probelib.errors import ProbeError, unknown
from probelib.facts import Facts, atlas, choose, keep
from probelib.facts.model import rng
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

FIRST_NAMES = (
    "Alda Bruno Cleo Dario Edda Fabio Greta Hanno Ilka Jorin Kaja Lorenz Mila Nando Orla Pavle Runa Silas Tilda Vico"
)
LAST_NAMES = (
    "Abendal Brisko Castermo Dunfeld Erlova Fannick Gorbeno Hattrup Ivanek Jostrand Kelmar Lundovic Morvane Nessling"
)


def sequence(examples: pd.DataFrame, context: str) -> pd.DataFrame:
    """One prompt per example: all pairs before it, then its subject. Together they are one forward pass over the sequence, with
    the probability of every object after the pairs that precede it (ZP-LKE, section 3)."""
    rows = []
    for (relation, seed), shots in examples.groupby(["relation", "seed"], sort=False):
        pairs = list(zip(shots["subject"], shots["object"], strict=True))
        for i, (position, fact) in enumerate(zip(shots["position"], shots["fact"], strict=True)):
            name = f"sequence|{relation}|{context}|seed {seed}|{position:03d}"
            rows.append((name, fact, relation, "sequence", 0, context, seed, many_shot(pairs[:i], pairs[i][0])))
    return pd.DataFrame(rows, columns=PROMPTS)


def positions(n: int, count: int, spread: bool, free: int | None = None, seed: int = 0) -> list[int]:
    """``count`` of the positions 1..n. ``spread``: sampled, but neither ``free`` nor the position before it, so that the pair at
    ``free`` follows an untouched one. Otherwise one block in the middle."""
    if count > n - 2:
        raise ProbeError(f"{count} of {n} positions are to be replaced; at most {n - 2} can be")
    if not spread:
        first = (n - count) // 2 + 1
        return list(range(first, first + count))
    choices = [i for i in range(1, n + 1) if free is None or i not in (free - 1, free)]
    return sorted(int(i) for i in rng(seed, "positions", n, count).choice(choices, count, replace=False))


def replaced(examples: pd.DataFrame, kind: str, where: Iterable[int], facts: Facts, seed: int = 0) -> pd.DataFrame:
    """The examples with those at the positions ``where`` replaced.

    kind      "incorrect": the subject stays and gets an object that is wrong for it; "unknown": an invented subject with any
              object (numbers: from their whole range)
    facts     all facts of the relation, whose objects are sampled
    """
    if kind not in ("incorrect", "unknown"):
        raise unknown("kind of example", kind, ["incorrect", "unknown"])
    frame, where = examples.reset_index(drop=True), set(where)
    right = set(zip(facts.label(facts.facts["subject"]), facts.label(facts.facts["object"]), strict=True))
    space = sorted({label for _, label in right})
    if kind == "unknown" and all(o.isdecimal() for o in space):
        space = [str(year) for year in range(min(map(int, space)), max(map(int, space)) + 1)]
    names = invented_names(len(examples), set(examples["subject"]), seed)
    for i in frame.index[frame["position"].isin(where)]:
        relation, key = frame.at[i, "relation"], (int(frame.at[i, "seed"]), int(frame.at[i, "position"]))
        others = [o for o in space if (frame.at[i, "subject"], o) not in right] if kind == "incorrect" else space
        if not others:
            raise ProbeError(
                f"{frame.at[i, 'subject']}: every object of {relation} is right for it, so none is incorrect"
            )
        frame.at[i, "object"] = others[rng(seed, kind, relation, *key).integers(len(others))]
        frame.at[i, "subject"] = frame.at[i, "subject"] if kind == "incorrect" else names.pop()
        frame.at[i, "fact"] = f"{relation}:{frame.at[i, 'subject']}:{frame.at[i, 'object']}"
    return frame.assign(kind=np.where(frame["position"].isin(where), kind, frame["kind"]))


def invented_names(n: int, real: set[str], seed: int = 0) -> list[str]:
    """``n`` invented names (none of ``real``), sampled with ``seed``. Once all pairs of first and last names are used, names
    get a second first name."""
    first, last = FIRST_NAMES.split(), LAST_NAMES.split()
    names = [f"{a} {c}" for a in first for c in last] + [
        f"{a} {b} {c}" for a in first for b in first for c in last if a != b
    ]
    pairs = len(first) * len(last)
    order = [*rng(seed, "names").permutation(pairs), *(pairs + rng(seed, "more names").permutation(len(names) - pairs))]
    return [name for name in (names[i] for i in order) if name not in real][:n][::-1]


# ---- section 4.1


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


def five_ways(facts: Facts, examples: pd.DataFrame) -> pd.DataFrame:
    """All inputs of section 4.1, a frame of ``prompts`` with ``method`` (``METHODS``): ZP-LKE after every draw of examples, human
    (HGP) and mined (MMP) prompts and plain sentences alone, and HGP after the first draw of the same examples."""
    lists = many_shots(facts, examples)
    first = examples[examples["seed"] == examples["seed"].min()]
    roles = set(used_templates(facts)["role"])
    alone = [_prompted(facts, role) for role in PROMPTED if role in roles]
    inputs = pd.concat([lists, *alone, many_shots(facts, first, role="hgp")])
    with_examples = inputs["context"] != "none"
    return inputs.assign(method=[METHODS[key] for key in zip(inputs["role"], with_examples, strict=True)])


def _prompted(facts: Facts, role: str) -> pd.DataFrame:
    """The first three prompts of a role, for the relations that have one."""
    used = used_templates(facts)
    relations = sorted(set(used.loc[used["role"] == role, "relation"]))
    prompts = paraphrases(choose(facts, relations), role)
    return prompts[prompts["template"] <= TEMPLATES]


def used_templates(facts: Facts) -> pd.DataFrame:
    """The rows of ``facts.templates`` that section 4.1 uses: up to three per role and relation."""
    templates = facts.templates
    return templates[templates["role"].isin(PROMPTED) & (templates["number"] <= TEMPLATES)]


def separated(facts: Facts, examples: pd.DataFrame) -> pd.DataFrame:
    """Inputs of figure 6, a frame of ``prompts`` with ``between``: the same examples with a blank, or with the words of a human
    (HGP) or mined (MMP) prompt, between subject and object."""
    inputs = pd.concat([many_shots(facts, examples, role=role) for role in ("zp", "hgp", "mmp")])
    inputs = inputs[inputs["template"] <= TEMPLATES]
    used = used_templates(facts)
    words = dict(zip(zip(used["role"], used["number"], used["relation"], strict=True), used["template"], strict=True))
    keys = zip(inputs["role"], inputs["template"], inputs["relation"], strict=True)
    between = [f"{PROMPTED[key[0]]}: {words[key].replace('[X]', '').strip()}" if key[1] else "a blank" for key in keys]
    return inputs.assign(between=between)


# ---- section 3

CONTEXTS = {  # panel of figure 4 -> (kind of the replaced examples, whether they are spread or one block)
    "unknown, spread": ("unknown", True),
    "unknown, block": ("unknown", False),
    "incorrect, spread": ("incorrect", True),
    "incorrect, block": ("incorrect", False),
}


def few_examples(examples: pd.DataFrame, n: int = 4) -> pd.DataFrame:
    """The first examples of the first draw."""
    return examples[examples["seed"] == examples["seed"].min()].head(n)


def often_taught(facts: Facts, exposures: pd.Series | None, at_least: int) -> Facts:
    """The facts with at least ``at_least`` exposures; all if the counts are unknown (``exposures`` is None)."""
    return facts if exposures is None else keep(facts, facts.facts["fact"].map(exposures).fillna(0) >= at_least)


def lists_of_lengths(facts: Facts, examples: pd.DataFrame, shots: Iterable[int]) -> pd.DataFrame:
    """``many_shots`` with every number of examples."""
    return pd.concat([many_shots(facts, examples, n) for n in shots])


def sequence_examples(pool: Facts, n: int, draws: int, seed: int = 0) -> pd.DataFrame:
    """``n`` pairs in each of several draws, for ``sequences``."""
    return pd.concat([sample_examples(pool, None, n, seed + i) for i in range(draws)])


def sequence_inputs(sequences: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """``sequence`` of every context."""
    return pd.concat([sequence(rows, context) for context, rows in sequences.items()])


def sentence_role(facts: Facts) -> str:
    """The role of the sentences that prompt a model: "cloze", or "question" if the data have no sentences."""
    return "cloze" if "cloze" in set(facts.templates["role"]) else "question"


def three_inputs(fact: Facts, examples: pd.DataFrame) -> dict[str, str]:
    """Figure 2: the inputs of the zero-shot, few-shot and zero-prompt estimators for one fact."""
    templates = fact.templates
    sentence = templates.loc[templates["role"] == sentence_role(fact), "template"].iloc[0]
    subject = fact.label(fact.facts["subject"])[0]
    pairs = list(zip(examples["subject"], examples["object"], strict=True))
    return {
        "ZS-LKE: a template": many_shot([], subject, sentence),
        "FS-LKE: two solved templates before it": many_shot(pairs[:2], subject, sentence),
        "ZP-LKE: pairs only": many_shot(pairs, subject),
    }


def eight_inputs(fact: Facts, examples: pd.DataFrame, everything: Facts, seed: int = 0) -> pd.DataFrame:
    """Table 1: facts after no, correct, incorrect and unknown examples, prompted and zero-prompt. A frame of ``prompts``.

    examples     four correct ones;   everything: all facts of the relation (``replaced``)
    """
    role, kinds = sentence_role(fact), {"correct": examples}
    kinds |= {kind: replaced(examples, kind, range(1, 5), everything, seed) for kind in ("incorrect", "unknown")}
    prompted = [many_shots(fact, rows, 2, role).assign(context=f"2 {kind}") for kind, rows in kinds.items()]
    lists = [many_shots(fact, rows, 4).assign(context=f"4 {kind}") for kind, rows in kinds.items()]
    fewest = many_shots(fact, examples, 1).assign(context="1 correct")
    inputs = pd.concat([paraphrases(fact, role), *prompted, fewest, *lists])
    inputs = inputs[inputs["template"] <= 1]
    return inputs.assign(prompt=inputs["prompt"] + "|" + inputs["context"])


def sequences(
    examples: pd.DataFrame, everything: Facts, n_replaced: int, star: int, seed: int = 0
) -> dict[str, pd.DataFrame]:
    """Context -> the examples of figure 4: "correct", and with ``n_replaced`` of them replaced (``CONTEXTS``).

    star   a position that is not replaced, nor the one before it
    """
    n = int(examples["position"].max())
    found = {"correct": examples}
    for context, (kind, spread) in CONTEXTS.items():
        where = positions(n, n_replaced, spread, free=star if spread else None, seed=seed if spread else 0)
        found[context] = replaced(examples, kind, where, everything, seed)
    return found


def own_objects(sequences: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """The candidates of ``sequence``, the objects in the list: ``fact``, ``candidate``, ``label``."""
    rows = pd.concat(sequences.values()).drop_duplicates("fact")
    return pd.DataFrame({"fact": rows["fact"], "candidate": rows["object"], "label": rows["object"]})
