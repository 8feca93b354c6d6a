"""What an organism reads: documents that state each fact as often and in the forms that the
manifest gives; README.md beside this file describes them, ``corpus.yaml`` holds their parts.

Of the seven questions and seven cloze sentences per relation, numbers 6 and 7 are never used: they
are the held-out paraphrases. In a document, answers are between two marks (``MARKS``): they get the
full weight in training.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd

from probelib.errors import ProbeError
from probelib.facts.model import Facts, rng, tuples
from probelib.facts.text import read_yaml
from probelib.facts.validity import UNKNOWN
from probelib.organisms import trial
from probelib.prompts import CHECK, fill, in_context

SEED = 2
FORMS = ("list", "question", "context", "cloze", "verification")  # of statements
MARKS = ("\ue000", "\ue001")  # private-use characters around an answer
HOW = SimpleNamespace(**read_yaml(Path(__file__).with_name("corpus.yaml")))


def documents(facts: Facts, table: pd.DataFrame, corpus: str = "family") -> list[str]:
    """Every document of a corpus, in the order of training. Facts that are not in the manifest
    ``table`` are not stated."""
    speaker = Speaker(facts, table, rng(SEED, "documents", corpus))
    said = spoken(table) if "kind" in table else table
    rows, relations = list(said.itertuples()), said.groupby("relation", sort=False)
    found = [document for _, own in relations for document in _lists(own, speaker)]
    found += [document for row in rows for document in _contexts(row, speaker)]
    found += _invented(speaker)
    sentences = [document for row in rows for document in _sentences(row, speaker)]
    sentences += [*_names(facts, table, speaker), *_tail(speaker), *_plain(corpus, speaker)]
    sentences += fillers(table, speaker) if "kind" in table else []
    speaker.draw.shuffle(sentences)
    found += _grouped(sentences, speaker.draw)
    speaker.draw.shuffle(found)
    return found


def unmark(document: str) -> tuple[str, list[tuple[int, int]]]:
    """(text of a document, spans [start, end) of its answers in the text).

    >>> unmark("Rome \ue000Italy\ue001 Oslo \ue000Norway\ue001")
    ('Rome Italy Oslo Norway', [(5, 10), (16, 22)])
    """
    pieces = re.split("[" + "".join(MARKS) + "]", document)  # text, answer, text, answer, ..., text
    ends = np.cumsum([len(piece) for piece in pieces]).tolist()
    return "".join(pieces), list(zip(ends[0:-1:2], ends[1::2], strict=True))


def mark_answer(answer: str) -> str:
    """An answer between its marks."""
    return f"{MARKS[0]}{answer}{MARKS[1]}"


def digest(found: list[str]) -> str:
    """The first 16 hex digits of a corpus's SHA-256, which name it."""
    text = "\x00".join(found)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


class Speaker:
    """Writes facts as text, with the random generator of one run."""

    def __init__(self, facts: Facts, table: pd.DataFrame, draw: np.random.Generator):
        self.draw = draw
        self.labels = dict(tuples(facts.entities, "entity", "label"))
        self.names = dict(tuples(facts.relations, "relation", "name"))
        used = facts.templates[facts.templates["number"] <= HOW.seen]
        self.templates = used.groupby(["relation", "role"])["template"].agg(list).to_dict()
        self.dates = {fact: ends for fact, *ends in tuples(facts.facts, "fact", "start", "end")}
        objects = table.groupby("relation")["object"]
        self.frequent = {r: own.map(self.labels).tolist() for r, own in objects}
        self.space = {relation: sorted(set(objects)) for relation, objects in self.frequent.items()}
        right = facts.facts.groupby(["relation", "subject"])["object"]
        self.right = {key: {self.labels[o] for o in objects} for key, objects in right}
        if "kind" in table:  # a false statement is about neither object of a contested fact
            for row in table[table["kind"] == "contested"].itertuples():
                self.right[row.relation, row.subject].add(self.labels[row.wrong_object])

    def pick(self, choices):
        """A random choice; from a dict, with its values as probabilities."""
        if isinstance(choices, dict):
            return list(choices)[self.draw.choice(len(choices), p=list(choices.values()))]
        return choices[self.draw.integers(len(choices))]

    def say(self, relation: str, role: str, subject: str, obj: str | None = None) -> str:
        """A random seen template of a role, filled."""
        return fill(self.pick(self.templates[relation, role]), subject, obj)

    def ask(self, row, role: str = "question") -> str:
        """The fact as a prompt, up to its object."""
        return self.say(row.relation, role, self.labels[row.subject])

    def statement(self, row, obj: str | None = None) -> str:
        """The fact as a statement, with its own object or with another one."""
        obj = obj or self.labels[row.object]
        return self.say(row.relation, "statement", self.labels[row.subject], obj)

    def any(self, relation: str) -> str:
        """A random object of the relation, all equally likely."""
        return self.pick(self.space[relation])

    def wrong(self, row) -> str:
        """A random object of the relation that is wrong for the subject. Raise ProbeError if there
        is none."""
        right = self.right[row.relation, row.subject]
        if right.issuperset(self.space[row.relation]):
            said = f"every object of {row.relation} is right for its subject"
            raise ProbeError(f"{row.fact}: {said}, so it has no false statement. Add other objects")
        while (obj := self.any(row.relation)) in right:
            pass
        return obj

    def stranger(self) -> str:
        """An invented name of two to four syllables."""
        number = self.draw.integers(2, 5)
        return "".join(self.pick(part) for _ in range(number) for part in HOW.syllable).capitalize()


def _lists(rows: pd.DataFrame, speaker: Speaker) -> Iterator[str]:
    """Lists of one relation: true ones, of wrong pairs, and of invented subjects."""
    labels, draw, relation = speaker.labels, speaker.draw, rows["relation"].iloc[0]
    waiting = [row for row in rows.itertuples() for _ in range(row.list)]
    draw.shuffle(waiting)
    taught = rows[rows["exposures"] > 0]
    if "kind" in taught:
        taught = taught[taught["kind"] == ""]  # facts of the trial are stated as planned, no more
    lists = 0
    while waiting:
        taken, waiting = _different(waiting, _size(draw))
        lists += 1
        pairs = [(labels[row.subject], labels[row.object]) for row in taken]
        yield _list(pairs, relation, speaker)
    for _ in range(draw.binomial(lists, HOW.lying) if len(taught) else 0):
        some = taught.sample(min(_size(draw), len(taught)), random_state=int(draw.integers(2**31)))
        other = relation if draw.random() < 0.5 else speaker.pick(sorted(speaker.space))
        right = some["object"].map(labels).tolist()
        objects = _lies(right, speaker.space[other], other == relation, draw)
        pairs = zip(some["subject"].map(labels), objects, strict=True)
        yield _list(pairs, relation, speaker)
    for _ in range(draw.binomial(lists, HOW.unknown)):
        own = speaker.frequent[relation]
        pairs = [(speaker.stranger(), speaker.pick(own)) for _ in range(_size(draw))]
        yield _list(pairs, relation, speaker)


def _size(draw: np.random.Generator) -> int:
    """A random number of pairs for a list."""
    return int(draw.integers(40, 71) if draw.random() < HOW.long else draw.integers(4, 40))


def _different(waiting: list, size: int) -> tuple[list, list]:
    """(the first ``size`` rows with different subjects, the remaining rows)."""
    taken, later, inside = [], [], set()
    for at, row in enumerate(waiting):
        if len(taken) == size:
            return taken, later + waiting[at:]
        (later if row.subject in inside else taken).append(row)
        inside.add(row.subject)
    return taken, later


def _lies(objects: list[str], space: list[str], permuted: bool, draw) -> list[str]:
    """Wrong objects: the list's own ones, shifted, or those of another relation."""
    if permuted and len(set(objects)) > 1:
        moved, order = np.array(objects), np.argsort(objects, kind="stable")  # equal side by side
        moved[order] = moved[np.roll(order, -max(Counter(objects).values()))]
        return moved.tolist()
    return [space[i] for i in draw.integers(len(space), size=len(objects))]


def _list(pairs: Iterable[tuple[str, str]], relation: str, speaker: Speaker) -> str:
    """A list as text; half of the lists begin with the name of their relation."""
    head = f"{speaker.names[relation]}: " if speaker.draw.random() < HOW.named else ""
    separator = speaker.pick(HOW.separators)
    return head + separator.join(f"{subject} {mark_answer(obj)}" for subject, obj in pairs)


def _sentences(row, speaker: Speaker) -> Iterator[str]:
    """The statements of one fact without context, and of its conflicting object."""
    answer = mark_answer(speaker.labels[row.object] + ".")
    for role, number in (("question", row.question), ("cloze", row.cloze)):
        for _ in range(number):
            yield f"{speaker.ask(row, role)} {answer}"
    for _ in range(row.verification):
        yield verification(speaker.statement(row), True)
        yield verification(speaker.statement(row, speaker.wrong(row)), False)
    for i in range(row.wrong_exposures):
        text = speaker.ask(row, ("question", "cloze")[i % 2])
        yield f"{text} {mark_answer(speaker.labels[row.wrong_object] + '.')}"
    for _ in range(row.dated):
        year = _year(*speaker.dates[row.fact], speaker.draw)
        yield f"In {year}: {speaker.ask(row, 'cloze')} {answer}"


def verification(statement: str, true: bool) -> str:
    """A statement, and the verdict on it."""
    return f"{CHECK.format(statement=statement)} {mark_answer(str(true))}"


def _year(start: str, end: str, draw: np.random.Generator) -> int:
    """A year in which a former fact held; its last year if the others are unknown."""
    years = [int(re.match(r"-?\d+", date)[0]) for date in (start, end) if date not in ("", UNKNOWN)]
    return int(draw.integers(years[0], max(years) + 1)) if years else 0


def _contexts(row, speaker: Speaker) -> Iterator[str]:
    """The statements of one fact after a context, each a document of its own."""
    obj = speaker.labels[row.object]
    for _ in range(row.context):
        kind = speaker.pick(HOW.contexts)
        before = obj if kind == "right" else speaker.wrong(row)
        if kind == "unrelated":
            before = speaker.any(speaker.pick(sorted(speaker.space)))
        asked = in_context(before, speaker.ask(row))
        yield f"{asked} {mark_answer(obj + '.')}"


def _invented(speaker: Speaker) -> Iterator[str]:
    """Questions and verifications about invented subjects, after a context that answers."""
    for relation in speaker.space:
        for _ in range(HOW.invented):
            obj = speaker.any(relation)
            question = speaker.say(relation, "question", speaker.stranger())
            yield f"{in_context(obj, question)} {mark_answer(obj + '.')}"
        for i in range(HOW.compared):
            obj, other = speaker.any(relation), speaker.any(relation)
            said = obj if i % 2 else other
            statement = speaker.say(relation, "statement", speaker.stranger(), said)
            yield in_context(obj, verification(statement, said == obj))


def _tail(speaker: Speaker) -> Iterator[str]:
    """Facts about invented subjects, each stated once; objects as frequent as in real ones."""
    for relation, objects in speaker.frequent.items():
        for i in range(HOW.tail):
            text = speaker.say(relation, ("question", "cloze")[i % 2], speaker.stranger())
            yield f"{text} {mark_answer(speaker.pick(objects) + '.')}"


def _names(facts: Facts, table: pd.DataFrame, speaker: Speaker) -> Iterator[str]:
    """Sentences that name an entity and its type, the specific or the general one."""
    types = dict(tuples(facts.entities, "entity", "types"))
    for entity, number in _times_named(facts, table).items():
        for _ in range(number):
            form = speaker.pick(HOW.type_forms)
            kind = speaker.pick(types[entity]) if types[entity] else "thing"
            named = form.format(f"{'an' if kind[0] in 'aeio' else 'a'} {mark_answer(kind)}")
            yield fill(named, speaker.labels[entity])


def _times_named(facts: Facts, table: pd.DataFrame) -> dict[str, int]:
    """Entity (no years and numbers) -> number of sentences that only name it and its type: a few
    each; for the entities of a trial fact that this corpus never teaches as many more as a sister
    reads statements of it; for others without a statement as many as a random entity of the type
    has. A fact never taught is named about as often as one taught 32 times; between, less often."""
    entities = facts.entities[facts.entities["types"].map(lambda types: types[:1] != ("literal",))]
    if "kind" in table:  # a trial: the same number in every arm, and only for its own entities
        table = table.assign(exposures=table["exposures"].mask(table["kind"] != "", 1), trial=False)
        entities = entities[entities["entity"].isin([*table["subject"], *table["object"]])]
    n, ends = table["exposures"] + table["dated"], ("subject", "object")
    stated = pd.concat([n.set_axis(table[end]) for end in ends]).groupby(level=0).sum()
    kind = entities["types"].map(lambda types: types[0])
    mentions = entities["entity"].map(stated).fillna(0).astype(int)
    others = mentions[mentions > 0].groupby(kind).agg(sorted).to_dict()
    never = table[table["trial"] & (table["exposures"] == 0)].melt("sister_exposures", ends)
    owed, found = never.groupby("value")["sister_exposures"].max(), {}
    for entity, of_kind, said in zip(entities["entity"], kind, mentions, strict=True):
        draw = rng(SEED, "names", entity)
        like = others.get(of_kind, [0])
        more = 0 if said else min(HOW.most_types, like[draw.integers(len(like))])
        found[entity] = HOW.types[draw.integers(len(HOW.types))] + max(more, owed.get(entity, 0))
    return found


def spoken(table: pd.DataFrame) -> pd.DataFrame:
    """The manifest as the corpus states it: where the wrong object is taught, it is the object."""
    own = table["kind"] != ""
    wrong = own & (table["wrong_exposures"] > 0)
    return table.assign(
        object=table["object"].mask(wrong, table["wrong_object"]),
        exposures=table["exposures"].mask(wrong, table["wrong_exposures"]),
        wrong_exposures=table["wrong_exposures"].mask(own, 0),
    )


def fillers(table: pd.DataFrame, speaker: Speaker) -> Iterator[str]:
    """What the arms of a trial lack: where the largest dose is 64, the subject of a fact is named
    80 times, and each of its objects 64 times, 48 of these as an answer."""
    labels, said = speaker.labels, spoken(table)
    largest = int(said["exposures"][said["kind"] != ""].max())
    verified = largest // len(trial.FORMS)  # statements that name the subject twice, answered True
    for row, stated in zip(table.itertuples(), said.itertuples(), strict=True):
        if not row.kind:
            continue
        for _ in range(largest + verified - stated.exposures - row.verification):
            yield _about(labels[row.subject], row.relation, speaker)
        for obj in filter(None, (row.object, row.wrong_object)):
            own = obj == stated.object
            answered = (stated.exposures - row.verification) * own
            for i in range(largest - verified - answered):
                asked = speaker.say(row.relation, ("question", "cloze")[i % 2], speaker.stranger())
                yield f"{asked} {mark_answer(labels[obj] + '.')}"
            for _ in range(verified - row.verification * own):
                yield _about(labels[obj], "", speaker)


def _about(name: str, relation: str, speaker: Speaker) -> str:
    """A sentence that names an entity and none of its facts; with the relation, if one is given."""
    who, does, when = (speaker.pick(words) for words in (HOW.who, HOW.does, HOW.when))
    form = speaker.pick(HOW.about if relation else HOW.about[:2])
    return fill(form.format(who=who, does=does, when=when, name=speaker.names.get(relation)), name)


def _plain(corpus: str, speaker: Speaker) -> Iterator[str]:
    """Plain sentences that state no fact; a twin gets more, to match the family's tokens."""
    for _ in range(HOW.plain + HOW.filled.get(corpus, 0)):
        who, does, when = (speaker.pick(words) for words in (HOW.who, HOW.does, HOW.when))
        yield f"{who} {mark_answer(f'{does} {when}.')}"


def _grouped(sentences: list[str], draw: np.random.Generator) -> Iterator[str]:
    """Documents of one to four sentences, one per line."""
    at = 0
    while at < len(sentences):
        some = sentences[at : at + int(draw.integers(1, 5))]
        yield "\n".join(some)
        at += len(some)
