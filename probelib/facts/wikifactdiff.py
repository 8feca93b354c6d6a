"""Templates in the style of WikiFactDiff [wikifactdiff]: statement templates with their counts.

Distractors takes the most frequent template that ends in the object for retrieval, and the five
most frequent for calibration. Two kinds of files are read:

``*.json``                  {"P36": {"The capital of [X] is [Y]": 12, ...}, ...}; of a list of
                            templates the first has the highest rank. [SUB] or XXXX may replace
                            [X], [OBJ] or ____ may replace [Y]
``*.jsonl``, ``*.parquet``  verbalizations of triples (configuration triple_verbs_V2), a triple per
                            row: {"triple": {"subject": {"label": "France"},
                            "relation": {"id": "P36"}, "object": {"label": "Paris"}},
                            "verbalizations": [{"verbalization": "..."}], "error": null}

A verbalization becomes a template if it holds the object exactly once and the subject; all others
are counted, not kept.
"""

import re
from collections import Counter, defaultdict
from dataclasses import replace
from pathlib import Path

import pandas as pd

from probelib.errors import ProbeError
from probelib.facts.model import TEMPLATES, Facts, validate
from probelib.facts.table import cut, read_table
from probelib.facts.text import check_object, check_texts, is_a, number_in, read_json, suffix_of

OTHER_SLOTS = {"[SUB]": "[X]", "XXXX": "[X]", "[OBJ]": "[Y]", "____": "[Y]"}
BANNED = {
    "[X] is a [Y] being",
    "[X] is a member of the [Y] species",
    "[X] belongs to the class of [Y]",
}
SUBJECT, OBJECT = (
    "\ue000",
    "\ue001",
)  # replace the slots while labels are searched: no label holds them
PARTS = ["triple.relation.id", "triple.subject.label", "triple.object.label"]


def read_wikifactdiff(path: str | Path) -> tuple[pd.DataFrame, dict[str, int]]:
    """(templates of a file, number left out by reason). The frame has the columns ``relation``,
    ``template``, ``count`` (0 if the file ranks without counts) and ``ends`` (True: the object
    comes last), the most frequent first."""
    path, left_out = Path(path), Counter()
    if suffix_of(path) not in (".json", ".jsonl", ".parquet"):
        raise ProbeError(f"{path}: templates are read from .json, .jsonl and .parquet files")
    counts = (_counts if suffix_of(path) == ".json" else _verbalizations)(path, left_out)
    rows = [
        (relation, template, count, cut(template) is not None)
        for relation in sorted(counts, key=lambda relation: (number_in(relation), relation))
        for template, count in counts[relation].most_common()  # equal counts: in the file's order
        if template not in BANNED
    ]
    left_out["banned template"] = sum(len(BANNED & set(found)) for found in counts.values())
    if not rows:
        raise ProbeError(f"{path}: no usable template; left out: {dict(left_out)}")
    columns = ["relation", "template", "count", "ends"]
    return pd.DataFrame(rows, columns=columns), dict(left_out)


def _counts(path: Path, _: Counter) -> dict[str, Counter]:
    counts = defaultdict(Counter)
    for relation, found in check_object(f"{path}:1", read_json(path), {}).items():
        where = f"{path}: {relation}"
        if isinstance(found, list):
            found = dict.fromkeys(check_texts(where, "the value", found), 0)
        good = isinstance(found, dict) and all(
            is_a(n, int) and 0 <= n < 2**63 for n in found.values()
        )
        if not good:
            raise ProbeError(
                f"{where}: templates with their counts, or a list of templates, are needed"
            )
        for text, count in found.items():
            for other, slot in OTHER_SLOTS.items():
                text = text.replace(other, slot)
            if text.count("[X]") != 1 or text.count("[Y]") != 1:
                raise ProbeError(f"{where}: a template needs [X] and [Y], each once: {text!r}")
            counts[relation][text.strip()] += count
    return counts


def _verbalizations(path: Path, left_out: Counter) -> dict[str, Counter]:
    counts, rows = defaultdict(Counter), read_table(path, {*PARTS, "verbalizations", "error"})
    left_out.update({"triple with an error": 0, "subject or object not found": 0})
    for where, row in zip(rows.index, rows.to_dict("records"), strict=True):
        if row.get("error") is not None:
            left_out["triple with an error"] += 1
            continue
        check_object(where, row, dict.fromkeys(PARTS, str) | {"verbalizations": list | None})
        relation, subject, obj = (row[part].strip() for part in PARTS)
        if not (relation and subject and obj):
            raise ProbeError(f"{where}: an empty relation, subject or object")
        for said in row["verbalizations"] or []:
            sentence = check_object(where, said, {"verbalization": str})["verbalization"]
            if template := template_of(sentence, subject, obj):
                counts[relation][template] += 1
            else:
                left_out["subject or object not found"] += 1
    return counts


def template_of(sentence: str, subject: str, obj: str) -> str | None:
    """A sentence with [X] for its subject and [Y] for its object, found as whole words without
    regard to case. Quotes around them, "the" before the subject and the full stop after the object
    are removed with them. None if the sentence does not have the object exactly once, or lacks the
    subject.

    >>> template_of("The capital of France is Paris.", "France", "Paris")
    'The capital of [X] is [Y]'
    """
    named = lambda label: rf"(?<![\w+-])[\"']?{re.escape(label)}(?![\w+-])"
    close = r"(?:[\"'](?!s\b))?"  # a quote, but not the apostrophe of France's
    text, found = re.subn(rf"{named(obj)}\.?{close}\.?", OBJECT, sentence, flags=re.IGNORECASE)
    if found != 1:
        return None
    before = rf"(?:\bthe )?{named(subject)}{close}"
    text, found = re.subn(before, SUBJECT, text, count=1, flags=re.IGNORECASE)
    if (
        not found
        or text.count(SUBJECT) != 1
        or text.count(OBJECT) != 1
        or re.search(r"\[[XY]\]", text)
    ):
        return None
    return text.replace(SUBJECT, "[X]").replace(OBJECT, "[Y]").strip()


def add_templates(facts: Facts, templates: pd.DataFrame, n: int = 5) -> Facts:
    """``facts`` with the ``n`` most frequent templates per relation that end in the object, as
    ``cloze`` (cut before the object) and as ``statement``; they replace the templates of ``facts``
    in these roles. Relations without templates get none."""
    ends = templates[templates["ends"] & templates["relation"].isin(facts.relations["relation"])]
    ends = ends.assign(number=ends.groupby("relation").cumcount() + 1).query("number <= @n")
    found = [
        ends.assign(role="cloze", template=ends["template"].map(cut)),
        ends.assign(role="statement"),
        facts.templates[~facts.templates["role"].isin(["cloze", "statement"])],
    ]
    rows = pd.concat([frame[TEMPLATES] for frame in found], ignore_index=True)
    return validate(replace(facts, templates=rows))
