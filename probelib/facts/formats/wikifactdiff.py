"""Templates in the style of WikiFactDiff [wikifactdiff]: many statement templates per relation, each with its number of uses.

Distractors takes the most frequent template that ends in the object for retrieval, and the five most frequent for calibration.

Two kinds of files are read:

``*.json``                 {"P36": {"The capital of [X] is [Y]": 12, ...}, ...}; a list of templates in place of counts gives
                           the first the highest rank. [SUB] or XXXX may replace [X], [OBJ] or ____ for [Y].
``*.jsonl``, ``*.parquet``   verbalizations of triples (configuration triple_verbs_V2 of the data set), one triple per row:
                           {"triple": {"subject": {"label": "France", ...}, "relation": {"id": "P36", ...},
                                       "object": {"label": "Paris", ...}},
                            "verbalizations": [{"verbalization": "The capital of France is Paris.", ...}, ...],
                            "error": null}

A verbalization becomes a template if it holds the object exactly once and the subject; all others are counted, not kept.
"""

import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pandas as pd

from probelib.errors import ProbeError
from probelib.facts.formats.rows import read_table
from probelib.facts.formats.tables import cut
from probelib.facts.model import TEMPLATES, Facts, validate
from probelib.facts.text import check_object, check_texts, is_a, number_in, read_json, read_objects, suffix_of

OTHER_SLOTS = {"[SUB]": "[X]", "XXXX": "[X]", "[OBJ]": "[Y]", "____": "[Y]"}
BANNED = {"[X] is a [Y] being", "[X] is a member of the [Y] species", "[X] belongs to the class of [Y]"}
SUBJECT, OBJECT = "\ue000", "\ue001"  # replace the slots while labels are searched: no label holds them


def read_wikifactdiff(path: str | Path) -> tuple[pd.DataFrame, dict[str, int]]:
    """(templates of a file, number left out by reason). The frame has the columns ``relation``, ``template``, ``count`` (0 if the
    file ranks without counts) and ``ends`` (True: the object comes last), the most frequent first.
    """
    path = Path(path)
    readers = {".json": _read_counts, ".jsonl": _read_verbalizations, ".parquet": _read_verbalizations}
    if (kind := suffix_of(path)) not in readers:
        raise ProbeError(f"{path}: templates are read from .json, .jsonl and .parquet files")
    counts, left_out = readers[kind](path)
    rows = [
        (relation, template, count, cut(template) is not None)
        for relation in sorted(counts, key=lambda relation: (number_in(relation), relation))
        for template, count in counts[relation].most_common()  # equal counts stay in the order of the file
        if template not in BANNED
    ]
    left_out["banned template"] = sum(template in BANNED for found in counts.values() for template in found)
    if not rows:
        raise ProbeError(f"{path}: no usable template; left out: {left_out}")
    return pd.DataFrame(rows, columns=["relation", "template", "count", "ends"]), left_out


def add_templates(facts: Facts, templates: pd.DataFrame, n: int = 5) -> Facts:
    """``facts`` with the ``n`` most frequent templates per relation that end in the object, as ``cloze`` (cut before the object)
    and as ``statement``; they replace the templates of ``facts`` in these roles. Relations without templates get none."""
    ends = templates[templates["ends"] & templates["relation"].isin(facts.relations["relation"])]
    ends = ends.assign(number=ends.groupby("relation").cumcount() + 1).query("number <= @n")
    found = [
        ends.assign(role="cloze", template=ends["template"].map(cut)),
        ends.assign(role="statement"),
        facts.templates[~facts.templates["role"].isin(["cloze", "statement"])],
    ]
    return validate(replace(facts, templates=pd.concat([frame[TEMPLATES] for frame in found], ignore_index=True)))


def _read_counts(path: Path) -> tuple[dict[str, Counter], dict[str, int]]:
    counts = {}
    for relation, found in check_object(f"{path}:1", read_json(path), {}).items():
        where = f"{path}: {relation}"
        if isinstance(found, list):
            found = dict.fromkeys(check_texts(where, "the value", found), 0)
        if not isinstance(found, dict) or not all(is_a(count, int) and 0 <= count < 2**63 for count in found.values()):
            wanted = "templates with their counts, or a list of templates, are needed"
            raise ProbeError(f"{where}: {wanted}: {str(found)[:80]}")
        counts[relation] = Counter()
        for text, count in found.items():
            counts[relation][_check_template(where, text)] += count
    return counts, {}


def _check_template(where: str, text: str) -> str:
    for other, slot in OTHER_SLOTS.items():
        text = text.replace(other, slot)
    if text.count("[X]") != 1 or text.count("[Y]") != 1:
        wanted = "a template needs [X] and [Y] (or [SUB] and [OBJ], XXXX and ____), each once"
        raise ProbeError(f"{where}: {wanted}: {text!r}")
    return text.strip()


def _read_verbalizations(path: Path) -> tuple[dict[str, Counter], dict[str, int]]:
    keys = {"triple": dict, "verbalizations": list | None, "error": str | None}
    counts, left_out = {}, Counter({"triple with an error": 0, "subject or object not found": 0})
    for line, row in read_table(path, keys) if ".parquet" in path.suffixes else read_objects(path, {}):
        if check_object(f"{path}:{line}", row, keys)["error"] is not None:
            left_out["triple with an error"] += 1
            continue
        relation, subject, obj, sentences = _check_row(f"{path}:{line}", row)
        for sentence in sentences:
            if template := template_of(sentence, subject, obj):
                counts.setdefault(relation, Counter())[template] += 1
            else:
                left_out["subject or object not found"] += 1
    return counts, dict(left_out)


def _check_row(where: str, row: dict) -> tuple[str, str, str, list[str]]:
    keys = {"subject": "label", "relation": "id", "object": "label"}
    triple = check_object(where, row["triple"], dict.fromkeys(keys, dict))
    parts = (check_object(where, triple[part], {key: str})[key].strip() for part, key in keys.items())
    subject, relation, obj = parts
    sentences = [check_object(where, v, {"verbalization": str})["verbalization"] for v in row["verbalizations"] or []]
    if not (relation and subject and obj):
        raise ProbeError(f"{where}: an empty relation, subject or object")
    return relation, subject, obj, sentences


def template_of(sentence: str, subject: str, obj: str) -> str | None:
    """A sentence with [X] for its subject and [Y] for its object, found as whole words without regard to case. Quotes around
    them, "the" before the subject and the full stop after the object are removed with them. None if the sentence does not have
    the object exactly once, or lacks the subject.

    >>> template_of("The capital of France is Paris.", "France", "Paris")
    'The capital of [X] is [Y]'
    """
    named = lambda label: rf"(?<![\w+-])[\"']?{re.escape(label)}(?![\w+-])"
    close = r"(?:[\"'](?!s\b))?"  # a quote, but not the apostrophe of France's
    text, found = re.subn(rf"{named(obj)}\.?{close}\.?", OBJECT, sentence, flags=re.IGNORECASE)
    if found != 1:
        return None
    text, found = re.subn(rf"(?:\bthe )?{named(subject)}{close}", SUBJECT, text, count=1, flags=re.IGNORECASE)
    if not found or any(text.count(mark) != 1 for mark in (SUBJECT, OBJECT)) or "[X]" in text or "[Y]" in text:
        return None
    return text.replace(SUBJECT, "[X]").replace(OBJECT, "[Y]").strip()
