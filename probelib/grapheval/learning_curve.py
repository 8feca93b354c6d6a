"""Beyond the paper: which statements should be labelled next? Random choice compared with the judge's own uncertainty."""

import numpy as np
import pandas as pd

from probelib.grapheval.judge import Reader, predict, train


def learning_curves(
    readers: dict[str, Reader], labels: pd.DataFrame, seeds: int = 3, **training
) -> tuple[pd.DataFrame, list[int]]:
    """Learning curves of every model's judge (``learning_curve`` with ``model``), and the numbers of labels.

    readers  model -> reader of its substitute's states
    """
    frames = []
    for model, reader in readers.items():
        rows = labels[labels["model"] == model]
        held = (rows["split"] == "validation").to_numpy()
        states, _ = reader.states(rows["text"].tolist())
        answers, true, sizes = rows["answer"].to_numpy(), rows["true"].to_numpy(), label_sizes((~held).sum())
        frames.append(learning_curve(states, answers, true, held, sizes, seeds, **training).assign(model=model))
    return pd.concat(frames), sizes


def label_sizes(n: int) -> list[int]:
    """Five growing numbers of labels up to ``n``, evenly spaced on a logarithmic scale, from 20 (or half of few)."""
    return np.unique(np.geomspace(min(20, n // 2), n, 5).astype(int)).tolist()


def learning_curve(
    states: np.ndarray,
    answers: np.ndarray,
    true: np.ndarray,
    held: np.ndarray,
    sizes: list[int],
    seeds: int = 3,
    **training,
) -> pd.DataFrame:
    """Accuracy on held-out statements after a number of labels, chosen at random or by the judge's uncertainty.

    held      [n] bool: never trained on
    sizes     growing numbers of labels; the first ones are drawn at random for both
    returns   ``how`` ("random", "uncertain"), ``seed``, ``labels``, ``accuracy``
    """
    rows, pool = [], np.flatnonzero(~held)
    sizes = [n for n in sizes if n < len(pool)] + [len(pool)]
    for seed in range(seeds):
        order = np.random.default_rng(seed).permutation(pool)
        for how in ("random", "uncertain"):
            chosen, judge = order[: sizes[0]], None
            for n in sizes:
                if how == "random":
                    chosen = order[:n]
                elif n > len(chosen):
                    unlabelled = np.setdiff1d(pool, chosen, assume_unique=True)
                    unsure = most_uncertain(predict(judge, states[unlabelled], true[unlabelled]), n - len(chosen))
                    chosen = np.append(chosen, unlabelled[unsure])
                judge = train(states[chosen], answers[chosen], true[chosen], seed=seed, **training)
                predicted = predict(judge, states[held], true[held]).argmax(axis=1)
                accuracy = float((predicted == answers[held]).mean())
                rows.append({"how": how, "seed": seed, "labels": n, "accuracy": accuracy})
    return pd.DataFrame(rows)


def most_uncertain(probabilities: np.ndarray, n: int) -> np.ndarray:
    """Rows [n] of ``probabilities`` [all, 3] whose two likeliest answers are closest: the statements to label next."""
    best = np.sort(probabilities, axis=1)
    return np.argsort(best[:, -1] - best[:, -2], kind="stable")[:n]
