"""Prompts: the strings, their number, their order."""

from dataclasses import replace

import pytest

from probelib import facts, prompts
from probelib.distractors.prompts import karr_texts
from probelib.errors import ProbeError
from probelib.facts import Facts, read_fktc
from tests.facts.test_formats import HAITI, HEADER, write


@pytest.fixture
def haiti(tmp_path) -> Facts:
    return read_fktc(write(tmp_path, HEADER, HAITI))


def test_the_papers_own_example(haiti):
    rows = prompts.with_contexts(haiti).set_index(["template", "context"])["text"]
    assert rows[1, "none"] == "What language is the official language of Haiti?"
    assert rows[1, "positive"] == "French. What language is the official language of Haiti?"
    assert rows[1, "negative3"] == "Irish. What language is the official language of Haiti?"
    assert rows[2, "negative5"] == "Hawaiian. What does Haiti officially speak?"


def test_the_number_of_prompts(haiti):
    """R without context, one behind the right object, R x M behind the distractors."""
    rows = prompts.with_contexts(haiti)
    found = rows["context"].map(lambda c: c.rstrip("12345")).value_counts().to_dict()
    assert found == {"negative": 2 * 5, "none": 2, "positive": 1}
    assert rows["prompt"].is_unique and set(rows.columns) == set(prompts.PROMPTS)


def test_without_a_wrong_object_nothing_interferes(haiti):
    with pytest.raises(ProbeError, match="no fact of P37 has a distractor"):
        prompts.with_contexts(replace(haiti, distractors=haiti.distractors.iloc[:0]))


def test_templates_are_missing_by_name(haiti):
    """Whatever shows statements says which relations have none, and drops no fact."""
    labels = {entity: (entity,) for entity in haiti.entities["entity"]}
    for ask in (lambda: prompts.checks(haiti), lambda: karr_texts(haiti.facts, haiti, labels)):
        words = "no statement template for P37 .the data have: question.*FACTS.templates"
        with pytest.raises(ProbeError, match=words):
            ask()


def test_fact_checks_show_the_object_and_every_distractor(haiti):
    rows = prompts.checks(facts.with_templates(haiti, facts.atlas(), ["statement"]))
    assert len(rows) == 7 * (1 + 5) and rows["prompt"].is_unique
    text = rows.set_index(["template", "context"])["text"]
    assert text[1, "true"].startswith("Statement: ") and "French" in text[1, "true"]
    assert text[1, "true"].endswith(". The statement is True or False?")
    assert "Irish" in text[2, "false3"] and "French" not in text[2, "false3"]


def test_a_name_is_never_taken_for_a_slot():
    assert prompts.fill("[Y] bought [X].", "a [Y]", " {head} ") == "{head} bought a [Y]."
    assert prompts.split_instruction("True? {statement}\nAnswer:") == ("True? ", "\nAnswer:")
    for wrong in ("True?", "{statement} {statement}"):
        with pytest.raises(ProbeError, match="exactly one is expected"):
            prompts.split_instruction(wrong)
