"""The workloads of ``scoring`` on a real pretrained model and its tokenizer (extra ``real``)."""

from probelib import lm
from tests.bench import scoring, workloads

GOALS = scoring.GOALS | {"harness W1": 20, "harness W2": 3, "beams": 5}


def main() -> None:
    folder, size = lm.load("smollm2-135m").folder, scoring.Size(1, 1, 1)
    scoring.measure("real", folder, workloads.relations(), size, GOALS)
