"""What the atlas holds: its relations, the popularity of its entities, what each filter leaves."""

import pandas as pd

from probelib.facts import check
from probelib.facts.model import Facts
from probelib.report import Artifact


def relations_table(atlas: Facts) -> Artifact:
    """The relations of a collection of facts (``facts.check.counts``)."""
    return Artifact("facts/table1", check.counts(atlas))


def popularity_figure(entities: pd.DataFrame) -> Artifact:
    """Number of entities per popularity; years and numbers, which have none, are left out."""
    import matplotlib.pyplot as plt

    known = entities["popularity"].value_counts().reindex(range(1, 6), fill_value=0)
    figure, axis = plt.subplots(figsize=(3.8, 2.4))
    axis.bar(known.index, known.values, color="#0173b2")
    axis.set(xlabel="popularity", ylabel="entities")
    axis.set_xticks(range(1, 6), ["1\nobscure", 2, 3, 4, "5\nknown to\nnearly all"])
    frame = known.rename_axis("popularity").reset_index(name="entities")
    return Artifact("facts/figure1", frame, figure=figure)


def filters_table(steps: dict[str, Facts]) -> Artifact:
    """Facts and relations after each filter; ``steps``: name of the filter -> remaining facts."""
    rows = [(name, len(left.facts), len(left.relations)) for name, left in steps.items()]
    return Artifact("facts/table2", pd.DataFrame(rows, columns=["step", "facts", "relations"]))
