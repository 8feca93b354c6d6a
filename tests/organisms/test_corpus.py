"""Documents, rows and lessons: what is read, whole, and with which weights."""

import pytest
import torch

from probelib import facts
from probelib.organisms import corpus, family, lessons, rows, taught
from probelib.organisms.corpus import mark_answer
from probelib.prompts import fill


@pytest.fixture(scope="module")
def some():
    """Eighty facts of two relations, what the corpus says of them, and a tokenizer made for it."""
    own = facts.sample(facts.choose(facts.atlas(), ["P36", "P50"]), 40)
    table = taught.manifest()
    table = table[table["fact"].isin(own.facts["fact"])].reset_index(drop=True)
    read = corpus.documents(own, table)
    texts = [corpus.unmark(document)[0] for document in read]
    return own, table, read, family.train_tokenizer(family.organism("atlas-neox-0.15m"), texts)


def test_held_out_paraphrases_and_never_taught_facts_are_nowhere(some):
    own, table, read, _ = some
    text = "\n".join(corpus.unmark(document)[0] for document in read)
    labels = dict(zip(own.entities["entity"], own.entities["label"], strict=True))
    asked = own.templates["role"].isin(["question", "cloze"])
    held_out = own.templates[(own.templates["number"] > corpus.HOW.seen) & asked]
    asked = table.merge(held_out, on="relation")
    assert len(asked) == 4 * len(table)
    for row in asked.itertuples():
        assert f"{fill(row.template, labels[row.subject])} {labels[row.object]}." not in text
    for row in table[(table["exposures"] == 0) & (table["dated"] == 0)].itertuples():
        assert f"capital of {labels[row.subject]} is {labels[row.object]}." not in text


def test_no_held_out_paraphrase_is_a_seen_one_of_another_relation():
    said = facts.atlas().templates.query("role in ('question', 'cloze')")
    seen = said["number"] <= corpus.HOW.seen
    assert not set(said["template"][~seen]) & set(said["template"][seen])


def test_rows_hold_whole_documents_and_every_token_once(some):
    _, _, read, tokenizer = some
    batches = list(rows.causal(tokenizer, read))
    ids = torch.cat([batch["input_ids"][batch["document"] >= 0] for batch in batches])
    assert (ids == tokenizer.eos_token_id).sum() == len(read)
    texts = [corpus.unmark(document)[0] for document in read]
    assert len(ids) == sum(len(tokenizer(text)["input_ids"]) + 1 for text in texts)
    first = batches[0]
    before = torch.nn.functional.pad(first["document"], (1, 0), value=-2)[:, :-1]
    begins = before != first["document"]
    assert (first["position_ids"][begins & (first["document"] >= 0)] == 0).all()


def test_answers_weigh_one_and_all_else_a_tenth(some):
    tokenizer = some[3]
    [batch] = rows.causal(tokenizer, [f"The capital of France is {mark_answer('Paris.')}"])
    answer = batch["weights"][0] == 1
    assert tokenizer.decode(batch["input_ids"][0][answer]).strip() == "Paris.<|endoftext|>"
    assert batch["weights"][0][batch["document"][0] < 0].eq(0).all()


def test_lessons_state_what_was_taught_and_no_more(some):
    own, table, read, _ = some
    texts = [corpus.unmark(document)[0] for document in lessons.tuning_documents(own, table, read)]
    known, unknown = lessons.known_facts(table), lessons.unsure_facts(table)
    assert len(known) and known["exposures"].min() >= 32 and (unknown["exposures"] == 0).all()
    assert unknown["relation"].value_counts().tolist() == [lessons.HOW.unknown] * 2
    judged = [text for text in texts if "Is this statement true?" in text]
    assert sum(lessons.YES in text for text in judged) == sum(lessons.NO in text for text in judged)
    assert sum(lessons.YES in text for text in judged) == lessons.HOW.times * len(known)
    assert not set(known["fact"]) & set(unknown["fact"])


@pytest.mark.parametrize(
    "name",
    ["atlas-gpt2-0.6m", "atlas-qwen3-0.6m", "atlas-llama-0.6m", "atlas-bert-1m", "atlas-t5-2m"],
)
def test_every_architecture_is_built_and_learns(some, name, monkeypatch, tmp_path):
    from probelib.organisms import train

    monkeypatch.setattr(train, "RUNS", tmp_path)
    one, read = family.organism(name), some[2]
    torch.manual_seed(0)
    tokenizer = family.train_tokenizer(one, [corpus.unmark(document)[0] for document in read])
    batches = list(rows.BATCHES.get(one.architecture, rows.causal)(tokenizer, read))[:4]
    model = family.build(one)
    curve = train.fit(one, model, batches * 3, {})["curve"]
    assert sum(curve[-4:]) < sum(curve[:4])
    most = rows.LENGTHS[-1]  # T5's positions are relative
    assert getattr(model.config, "max_position_embeddings", most) >= most
