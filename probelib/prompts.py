"""Templates and contexts -> prompts.

A frame of prompts has the columns ``prompt`` (its id), ``fact``, ``relation``, ``role``,
``template`` (its number, from 1), ``context`` ("none", "positive", "negative1", "50 examples",
...), ``seed`` (of what was sampled for it; -1 if nothing was) and ``text``.

A frame of examples, for many-shot prompts, has the columns ``relation``, ``seed``, ``position``
(from 1), ``fact``, ``subject`` and ``object`` (labels), and ``kind`` ("correct", "unknown", ...).
"""

import re
from collections.abc import Iterable
from itertools import chain

import pandas as pd

from probelib.errors import ProbeError, check_sizes, unknown
from probelib.facts.model import Facts, check_seed, rng, subjects, tuples
from probelib.facts.names import with_article

# GraphEval's question, in the words the tuned organisms know; MONITOR's fact checking
INSTRUCTION = "Is this statement true? {statement}\nAnswer:"
RECALL = "Recall the fact, then judge: {statement}\nAnswer:"  # first the fact, then their verdict
CHECK = "Statement: {statement} The statement is True or False?"
PROMPTS = ["prompt", "fact", "relation", "role", "template", "context", "seed", "text"]
EXAMPLES = ["relation", "seed", "position", "fact", "subject", "object", "kind"]
ZERO_PROMPT = "[X]"  # ZP-LKE's template: the subject alone
SLOT = re.compile(r"\[[XY]\]")


def fill(template: str, subject: str, obj: str | None = None) -> str:
    """A template with its subject, and its object where one is given; both in one pass, so that a
    name that holds "[Y]" stays a name.

    >>> fill("What language is the official language of [X]?", "Haiti")
    'What language is the official language of Haiti?'
    >>> fill("The capital of [X] is", "United States")
    'The capital of the United States is'
    >>> fill("[X] comes from [Y].", "Generation [Y]", "Chile")
    'Generation [Y] comes from Chile.'
    """
    names = {"[X]": subject.strip()} | ({} if obj is None else {"[Y]": obj.strip()})
    if template != ZERO_PROMPT:  # a subject alone is a name, not part of a sentence
        names["[X]"] = with_article(template.partition("[X]")[0], names["[X]"])
    return SLOT.sub(lambda slot: names.get(slot[0], slot[0]), template)


def in_context(context: str, text: str) -> str:
    """MONITOR's context: an entity, one full stop and one blank before the question.

    >>> in_context("Irish", "What language is the official language of Haiti?")
    'Irish. What language is the official language of Haiti?'
    """
    return f"{context.strip()}. {text}"


def templates_of(facts: Facts, role: str, relations: Iterable[str]) -> pd.DataFrame:
    """The templates of a role. Raises ProbeError if one of the ``relations`` has none."""
    found = facts.templates[facts.templates["role"] == role]
    if silent := sorted(set(relations) - set(found["relation"])):
        roles = ", ".join(sorted(set(facts.templates["role"]))) or "none"
        raise ProbeError(
            f"no {role} template for {', '.join(silent)} (the data have: {roles}). Write it "
            "beside FACTS.csv, to FACTS.templates.csv, or name relations as the atlas does (P36)"
        )
    return found


def paraphrases(facts: Facts, role: str = "question") -> pd.DataFrame:
    """Every fact with every template of a role (its paraphrases), without context."""
    templates = templates_of(facts, role, facts.facts["relation"])
    rows = facts.facts[["fact", "relation", "subject"]].merge(templates, on="relation", sort=False)
    texts = list(map(fill, rows["template"], facts.label(rows["subject"])))
    return _prompts(rows.assign(template=rows["number"], context="none", text=texts))


def split_instruction(instruction: str) -> tuple[str, str]:
    """The parts of an instruction before and after ``{statement}``."""
    if (n := instruction.count("{statement}")) != 1:
        wanted = f"{n} places {{statement}}; exactly one is expected"
        raise ProbeError(f"the instruction {instruction!r} has {wanted}")
    before, _, after = instruction.partition("{statement}")
    return before, after


def with_contexts(facts: Facts, full: bool = False) -> pd.DataFrame:
    """All of MONITOR's prompts (section 4): every paraphrase without context, paraphrase 1
    (``full``: every one) after the gold object, and every paraphrase after each distractor.

    The anchors use R + 1 + M of them, the accuracy grid R x M. Raises ProbeError if no fact has a
    distractor.
    """
    if facts.distractors.empty:
        raise ProbeError(
            f"no fact of {', '.join(facts.relations['relation'])} has a distractor (another object "
            "of the relation): draw some (n_distractors=), or take others (relations=)"
        )
    plain = paraphrases(facts)
    gold = dict(zip(facts.facts["fact"], facts.label(facts.facts["object"]), strict=True))
    first = plain if full else plain[plain["template"] == 1]
    texts = [in_context(gold[f], t) for f, t in zip(first["fact"], first["text"], strict=True)]
    positive = first.assign(context="positive", text=texts)
    distractors = facts.distractors.assign(label=facts.label(facts.distractors["object"]))
    crossed = plain.merge(distractors[["fact", "number", "label"]], on="fact", sort=False)
    negative = crossed.assign(
        context=[f"negative{n}" for n in crossed["number"]],
        text=[in_context(c, t) for c, t in zip(crossed["label"], crossed["text"], strict=True)],
    )
    frame = _prompts(pd.concat([plain, positive, negative], ignore_index=True))
    order = {fact: i for i, fact in enumerate(facts.facts["fact"])}
    return frame.sort_values("fact", key=lambda f: f.map(order), kind="stable", ignore_index=True)


def checks(facts: Facts, instruction: str = CHECK) -> pd.DataFrame:
    """MONITOR's fact checking (Table 1, template 3): every statement with its gold object (context
    "true") and with each distractor ("false1", ...) in an instruction with ``{statement}``."""
    before, after = split_instruction(instruction)
    own = facts.facts[["fact", "object"]].assign(number=0)
    shown = pd.concat([own, facts.distractors[own.columns]], ignore_index=True)
    shown["context"] = [f"false{n}" if n else "true" for n in shown["number"]]
    templates = templates_of(facts, "statement", facts.facts["relation"])
    templates = templates.rename(columns={"number": "form"})
    rows = facts.facts[["fact", "relation", "subject"]].merge(templates, on="relation", sort=False)
    rows = rows.merge(shown, on="fact", sort=False)
    labels = (facts.label(rows[side]) for side in ("subject", "object"))
    rows["text"] = [f"{before}{text}{after}" for text in map(fill, rows["template"], *labels)]
    return _prompts(rows.assign(template=rows["form"]))


def _prompts(rows: pd.DataFrame) -> pd.DataFrame:
    ids = rows["role"] + "|" + rows["fact"] + "|R" + rows["template"].astype(str)
    return rows.assign(prompt=ids + "|" + rows["context"], seed=-1)[PROMPTS]


def gold(facts: Facts) -> pd.DataFrame:
    """The gold answers as candidates: ``fact``, ``candidate`` (the object), ``label``."""
    rows = facts.facts[["fact", "object"]].rename(columns={"object": "candidate"})
    return rows.assign(label=facts.label(rows["candidate"]))


def options(facts: Facts, seed: int = 0) -> pd.DataFrame:
    """The candidates of a multiple-choice test: gold object and distractors, shuffled per fact.
    Columns as in ``gold``. Raises ProbeError if a gold object is also a distractor, or a fact has
    none."""
    right = gold(facts)
    wrong = facts.distractors[["fact", "object"]].rename(columns={"object": "candidate"})
    wrong["label"] = facts.label(wrong["candidate"])
    wrong = wrong.drop_duplicates(["fact", "label"])  # two towns of one name are one option
    answer = wrong.merge(right, on="fact", suffixes=("", "_right"))
    twice = answer["candidate"] == answer["candidate_right"]
    twice |= answer["label"] == answer["label_right"]
    if twice.any():
        one = answer[twice].iloc[0]
        raise ProbeError(
            f"{one['fact']}: the gold object {one['label']!r} is also among the wrong options "
            f"({int(twice.sum())} such facts); it must be offered exactly once: draw them again"
        )
    if alone := sorted({*right["fact"]} - {*wrong["fact"]}):
        raise ProbeError(f"{alone[0]}: no wrong option to choose from ({len(alone)} such facts)")
    rows = pd.concat([right, wrong], ignore_index=True)
    place = {fact: i for i, fact in enumerate(right["fact"])}
    sizes = rows["fact"].value_counts().items()
    chance = {fact: rng(seed, "options", fact).random(n).tolist() for fact, n in sizes}
    rows["order"] = [chance[fact].pop() for fact in rows["fact"]]
    rows["place"] = rows["fact"].map(place)
    rows = rows.sort_values(["place", "order"], ignore_index=True)
    return rows[["fact", "candidate", "label"]]


def sample_examples(pool: Facts, asked: Facts | None = None, n: int | str = 50, seed: int = 0):
    """``n`` examples of every relation, sampled without replacement and shared by its facts. The
    examples of a smaller ``n`` are the first of those of a larger one.

    pool    facts that examples are sampled from. Raises ProbeError if a subject is also scored
    asked   facts to score: their relations get examples (None: all of the pool's)
    n       1 or more, or "max": the number of facts of the smallest relation in the pool
    """
    if n != "max":
        check_sizes(n_examples=n)
    seed = check_seed(seed)
    taken = set() if asked is None else set(chain.from_iterable(subjects(asked)))
    shared = [not taken.isdisjoint(pair) for pair in subjects(pool)]
    if any(shared):
        first = pool.facts[shared].iloc[0]
        raise ProbeError(
            f"{sum(shared)} facts of the pool have a subject that is also scored (e.g. "
            f"{first['subject']!r} in {first['relation']}): facts.without_subjects removes them"
        )
    wanted = (pool if asked is None else asked).relations["relation"]
    rows = pool.facts[pool.facts["relation"].isin(wanted)].drop_duplicates(["relation", "subject"])
    rows = rows.assign(chance=[rng(seed, "example", fact).random() for fact in rows["fact"]])
    there = rows["relation"].value_counts().reindex(wanted, fill_value=0)
    least = int(there.min()) if len(there) else 0
    if least < (needed := 1 if n == "max" else n):
        few = ", ".join(f"{relation} has {count}" for relation, count in there.nsmallest(3).items())
        raise ProbeError(
            f"{needed} or more examples per relation are needed, but the pool is smaller: "
            f"{few or 'it is empty'}. Take {least or 'other'} examples "
            "(settings={n_examples: ...}), or score fewer facts (n_facts=...): those are not in it"
        )
    n = least if n == "max" else n
    rows = rows.sort_values(["relation", "chance", "fact"]).groupby("relation").head(n)
    labels = {role: pool.label(rows[role]) for role in ("subject", "object")}
    position = rows.groupby("relation").cumcount() + 1
    frame = rows.assign(seed=seed, position=position, **labels, kind="correct")
    return frame[EXAMPLES].reset_index(drop=True)


def many_shot(pairs: Iterable, subject: str, template=ZERO_PROMPT, gap=" ", variant="kit") -> str:
    """The input sigma(x*, r) [zplke, Eq. 1]: examples, then the subject. It ends without a blank:
    the blank belongs to the object.

    pairs      (subject, object) of the examples; none: a zero-shot prompt
    template   "[X]": zero prompt; any other text that ends before the object: few-shot prompting
    gap        separator of the pairs: " " (section 2.2), ", " (table 1), a line break
    variant    "released": colons and blanks as the released code writes them

    >>> many_shot([("A", "1"), ("B", "2")], "C")
    'A 1 B 2 C'
    >>> many_shot([("A", "1"), ("B", "2")], "C", variant="released")
    'A : 1 , B : 2 C : '
    >>> many_shot([("Chad", "N'Djamena")], "Haiti", "The capital of [X] is", gap=", ")
    "The capital of Chad is N'Djamena, The capital of Haiti is"
    """
    if variant == "released":
        return " , ".join(f"{x.strip()} : {y.strip()}" for x, y in pairs) + f" {subject.strip()} : "
    if variant != "kit":
        raise unknown("variant", variant, ["kit", "released"])
    shots = [f"{fill(template, x)} {y.strip()}" for x, y in pairs]
    return gap.join([*shots, fill(template, subject)])


def many_shots(asked: Facts, examples, n: int | None = None, role="zp", gap=" ", variant="kit"):
    """Every fact after the first ``n`` examples (None: all) of its relation, for each sample,
    its seed; ``role`` "zp": zero prompt, template 0; another one: each template of that role."""
    templates = {r: [(0, ZERO_PROMPT)] for r in asked.relations["relation"]}
    if role != "zp":
        own = asked.templates[asked.templates["role"] == role].groupby("relation")
        templates = {r: list(tuples(rows, "number", "template")) for r, rows in own}
    rows, labels = [], asked.label(asked.facts["subject"])
    chosen = examples if n is None else examples[examples["position"] <= n]
    said = "" if (gap, variant) == (" ", "kit") else f", {variant} {gap!r}"
    for relation, facts in asked.facts.assign(label=labels).groupby("relation", sort=False):
        for seed, shots in chosen[chosen["relation"] == relation].groupby("seed"):
            pairs = list(tuples(shots, "subject", "object"))
            context = f"{len(pairs)} examples{said}"
            for number, template in templates.get(relation, []):
                for fact, subject in tuples(facts, "fact", "label"):
                    name = f"{role}|{fact}|R{number}|{context}|seed {seed}"
                    text = many_shot(pairs, subject, template, gap, variant)
                    rows.append((name, fact, relation, role, number, context, seed, text))
    return pd.DataFrame(rows, columns=PROMPTS)
