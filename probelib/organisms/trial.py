"""The corpora of the trial: the same facts at other doses in four sisters, everything else equal.

``beyond/trial.md`` is the plan. A fact has a *kind*, which says what the four sisters read of it; a
Latin square turns these *arms* over the sisters. What an arm lacks in statements is filled by
sentences that name the subject without the object, and by answers about invented subjects: so a
subject is named, and an object named and answered, equally often in every arm.

The columns of a trial's manifest are those of ``design``, and ``kind`` ("" outside of the trial)
and ``turn``, the fact's place in the Latin square, 0 to 3. A fact of the kind "contested" has a
``wrong_object``, of the right type; a sister states it either ``exposures`` times with its own
object or ``wrong_exposures`` times with the wrong one.
"""

from collections import Counter

import pandas as pd

from probelib.facts.model import Facts, rng

SEED = 3
SISTERS = ("trial-1", "trial-2", "trial-3", "trial-4")
ARMS = {  # kind -> (dose, whether the object is right) in each turn
    "rising": ((0, True), (2, True), (8, True), (32, True)),
    "fine": ((0, True), (1, True), (4, True), (16, True)),
    "contested": ((8, True), (8, False), (64, True), (64, False)),
    "constant": ((8, True),) * 4,  # the same in all sisters: what differs is noise
}
FACTS = {"rising": 6, "contested": 5, "fine": 3, "constant": 2}  # of each relation
FORMS = ("list", "question", "cloze", "verification")  # in a context objects would be named twice
LARGEST = 64  # dose
NAMED = LARGEST + LARGEST // len(FORMS)  # a verification and its false twin name the subject twice
ANSWERED = LARGEST - LARGEST // len(FORMS)  # in a verification the answer is True or False
REST = 0.25  # share of the family's other facts that the sisters read, too
MENTIONS = ["subject_mentions", "object_mentions"]  # columns of the other manifests


def manifests(facts: Facts, family: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """sister -> manifest, drawn from the facts that the family's manifest marks as ``trial``."""
    chosen = with_arms(family[family["trial"]], facts, FACTS)
    drawn = family["fact"].map(lambda fact: rng(SEED, "rest", fact).random() < REST)
    rest = family[~family["trial"] & (family["famous"] | drawn)].assign(kind="", turn=-1)
    found = {}
    for number, name in enumerate(SISTERS):
        table = pd.concat([rest, of_sister(chosen, number)], ignore_index=True)
        found[name] = table.drop(columns=MENTIONS).assign(sister_exposures=0)
    return found


def with_arms(trial: pd.DataFrame, facts: Facts, kinds: dict[str, int]) -> pd.DataFrame:
    """Facts of each relation, as many as ``kinds`` says, with ``kind``, ``turn`` and the wrong
    object of the contested ones; relations with fewer are left out.

    trial   ``fact``, ``relation``, ``subject``, ``object``
    """
    order = [name for name, n in kinds.items() for _ in range(n)]
    right = facts.facts.groupby(["relation", "subject"])["object"].agg(set)
    trial, parts = trial.assign(wrong_object="", wrong_exposures=0), []
    large = trial.groupby("relation").filter(lambda own: len(own) >= len(order))
    for number, (relation, own) in enumerate(large.groupby("relation", sort=True)):
        draw = rng(SEED, "arms", relation)
        own = own.sample(len(order), random_state=int(draw.integers(2**31)))
        # facts of one object side by side: its doses are spread over kinds and turns
        own = own.sort_values("object", kind="stable").assign(kind=draw.permutation(order))
        own["turn"] = (own.groupby("kind").cumcount() + number) % len(SISTERS)
        used = Counter()  # how often an object is the wrong one of a fact: equally often
        for row in own[own["kind"] == "contested"].itertuples():
            others = sorted(set(own["object"]) - right[relation, row.subject])
            least = [o for o in others if used[o] == min(used[other] for other in others)]
            own.loc[row.Index, "wrong_object"] = obj = least[draw.integers(len(least))]
            used[obj] += 1
        parts.append(own)
    return pd.concat(parts)


def of_sister(chosen: pd.DataFrame, number: int) -> pd.DataFrame:
    """The manifest rows of facts ``with_arms`` in one sister (0 to 3)."""
    turns = (chosen["turn"] + number) % len(SISTERS)
    arms = [ARMS[kind][turn] for kind, turn in zip(chosen["kind"], turns, strict=True)]
    found = chosen.assign(
        exposures=[dose * right for dose, right in arms],
        wrong_exposures=[dose * (not right) for dose, right in arms],
        context=0,
    )
    first = [rng(SEED, "forms", fact).permutation(len(FORMS)) for fact in chosen["fact"]]
    for place, form in enumerate(FORMS):  # equal shares; what is left over goes to random forms
        found[form] = [
            dose // len(FORMS) + bool(own[place] < dose % len(FORMS))
            for (dose, _), own in zip(arms, first, strict=True)
        ]
    return found
