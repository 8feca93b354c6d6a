"""The corpora of the trial: the same facts at other doses in four sisters, everything else equal.

``beyond/trial.md`` is the plan. A fact has a *kind*, which says what the four sisters read of it; a
Latin square turns these *arms* over the sisters. What an arm lacks in statements is filled by
sentences that name the subject without the object, and by answers about invented subjects: so a
subject is named, and an object named and answered, equally often in every arm.

The columns of a trial's manifest (README.md) include ``kind`` ("" outside of the trial) and
``turn``, the fact's place in the Latin square, 0 to 3. A sister states a fact either ``exposures``
times with its own object or ``wrong_exposures`` times with the wrong one, of the right type.
"""

from collections import Counter

import numpy as np
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
REST = 0.25  # share of the family's other facts that the sisters read, too


def manifests(facts: Facts, family: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """sister -> manifest, drawn from the facts that the family's manifest marks as ``trial``."""
    family = family.drop(columns=["subject_mentions", "object_mentions"])
    chosen = with_arms(family[family["trial"]], facts)
    drawn = family["fact"].map(lambda fact: rng(SEED, "rest", fact).random() < REST)
    rest = family[~family["trial"] & (family["famous"] | drawn)].assign(kind="", turn=-1)
    sisters = {name: of_sister(chosen, number) for number, name in enumerate(SISTERS)}
    return {
        name: pd.concat([rest, own], ignore_index=True).assign(sister_exposures=0)
        for name, own in sisters.items()
    }


def with_arms(trial: pd.DataFrame, facts: Facts) -> pd.DataFrame:
    """The trial's facts with ``kind``, ``turn`` and the wrong object of the contested ones, as many
    of each relation as ``FACTS`` says; relations with fewer are left out."""
    order = [name for name, n in FACTS.items() for _ in range(n)]
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


def of_sister(chosen: pd.DataFrame, number: int, largest: int = LARGEST) -> pd.DataFrame:
    """The manifest rows of facts ``with_arms`` in a sister (0 to 3); no dose above ``largest``."""
    turns = (chosen["turn"] + number) % len(SISTERS)
    arms = [ARMS[kind][turn] for kind, turn in zip(chosen["kind"], turns, strict=True)]
    dose, right = np.transpose(arms)
    dose = np.minimum(dose, largest)
    found = chosen.assign(exposures=dose * right, wrong_exposures=dose * (1 - right), context=0)
    # equal shares of the forms; what is left over goes to random ones
    order = np.stack([rng(SEED, "forms", f).permutation(len(FORMS)) for f in chosen["fact"]])
    for form, place in zip(FORMS, order.T, strict=True):
        found[form] = dose // len(FORMS) + (place < dose % len(FORMS))
    return found
