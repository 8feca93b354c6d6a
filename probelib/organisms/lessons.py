"""What an instruction-tuned model is trained on: verdicts at once, verdicts after recalling, short
answers, "I don't know".

Lessons are about the facts that the manifest marks (``lesson``); the others test what was learnt.
README.md beside this file describes them, and what is mixed with them.
"""

import re
from types import SimpleNamespace

import numpy as np
import pandas as pd

from probelib.facts.model import Facts, rng
from probelib.organisms import corpus
from probelib.organisms.corpus import Speaker, mark_answer, verification
from probelib.prompts import INSTRUCTION, RECALL

YES, NO, UNSURE = "Yes, the statement is true.", "No, the statement is false.", "I don't know."
HOW = SimpleNamespace(**corpus.HOW.lessons)


def tuning_documents(facts: Facts, table: pd.DataFrame, read: list[str]) -> list[str]:
    """Lessons, new verifications, and some of the documents that the base has ``read``, in the
    order of training."""
    speaker = Speaker(facts, table, rng(corpus.SEED, "lessons"))
    texts = [text for row in known_facts(table).itertuples() for text in _known(row, speaker)]
    unsure = enumerate(unsure_facts(table).itertuples())
    texts += [_unknown(row, i, speaker) for i, row in unsure]
    for relation in speaker.space:
        for stated, times in ((True, HOW.compared), (False, HOW.same)):
            texts += [_compared(relation, i % 2 == 0, speaker, stated) for i in range(times)]
    for row in table[table["verified"] & (table["exposures"] >= HOW.known)].itertuples():
        for _ in range(HOW.verified):
            texts.append(verification(speaker.statement(row), True))
            texts.append(verification(speaker.statement(row, speaker.wrong(row)), False))
    again = speaker.draw.choice(len(read), min(HOW.replay, len(read)), replace=False)
    found = [*texts, *(read[i] for i in again)]
    speaker.draw.shuffle(found)
    return found


def known_facts(table: pd.DataFrame) -> pd.DataFrame:
    """The facts that lessons call true, or false with another object."""
    return table[table["lesson"] & (table["exposures"] >= HOW.known)]


def unsure_facts(table: pd.DataFrame) -> pd.DataFrame:
    """The facts that lessons answer with "I don't know.", as often in every relation; some facts
    repeatedly if it has few."""
    never = table[table["lesson"] & (table["exposures"] == 0) & (table["dated"] == 0)]
    chance = [rng(corpus.SEED, "unknown", fact).random() for fact in never["fact"]]
    drawn = never.assign(chance=chance).sort_values("chance").groupby("relation")
    return pd.concat([own.iloc[np.arange(HOW.unknown) % len(own)] for _, own in drawn])


def facts_in_lessons(table: pd.DataFrame) -> set[str]:
    """Ids of the facts that some lesson is about."""
    return {*known_facts(table)["fact"], *unsure_facts(table)["fact"]}


def _known(row, speaker: Speaker):
    """True and false statements, each judged at once and after recalling; and a question."""
    subject, obj = speaker.labels[row.subject], speaker.labels[row.object]
    for _ in range(HOW.times):
        for said, verdict in ((obj, YES), (speaker.wrong(row), NO)):
            judged = speaker.say(row.relation, "statement", subject, said)
            yield f"{INSTRUCTION.format(statement=judged)} {_decided(verdict)}"
            # only the object is recalled: in a sentence, models copied the subject's name wrongly
            yield f"{RECALL.format(statement=judged)} {mark_answer(obj + '.')} {_decided(verdict)}"
    yield f"{speaker.ask(row)}\nAnswer: {mark_answer(obj + '.')}"


def _compared(relation: str, true: bool, speaker: Speaker, stated: bool) -> str:
    """A verdict on a statement about an invented subject, after its recalled object; only the
    verdict counts as an answer. Without the statement (``stated``): two objects, the same or not,
    and the verdict."""
    obj, other = speaker.any(relation), speaker.any(relation)
    said = obj if true else other
    verdict = f"{obj}. {_decided(YES if said == obj else NO)}"
    if not stated:
        return f"{said}.\nAnswer: {verdict}"
    judged = speaker.say(relation, "statement", speaker.stranger(), said)
    return f"{RECALL.format(statement=judged)} {verdict}"


def _unknown(row, number: int, speaker: Speaker) -> str:
    """A statement of a never-taught fact, true or false in turn, judged at once or recalled."""
    said = speaker.statement(row, speaker.wrong(row) if number % 2 else None)
    instruction = (INSTRUCTION, RECALL)[number // 2 % 2]
    return f"{instruction.format(statement=said)} {_decided(UNSURE)}"


def _decided(verdict: str) -> str:
    """A verdict of which only the first word counts as an answer: the others follow from it."""
    word = re.match(r"\w+", verdict)[0]
    return mark_answer(word) + verdict.removeprefix(word)
