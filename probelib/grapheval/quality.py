"""Quality of the judge: precision, recall and F1, compared with baselines that read no state (GraphEval, appendix A)."""

import numpy as np
import pandas as pd

from probelib.grapheval.answers import outcome
from probelib.grapheval.measures import paired_change
from probelib.stats import ece, percentile_interval, reliability, wilson

SCORES = ("precision", "recall", "f1")


def judge_quality(truth, predicted, times: int = 500) -> dict[str, float]:
    """Agreement of predicted classes [n] with true ones [n] (answers or outcomes).

    ``precision``, ``recall``, ``f1`` weighted by the classes' shares, as in the paper (weighted recall is accuracy), each with
    its 95 % interval ``precision low``, ... (bootstrap over statements; of recall Wilson's); ``macro_f1``: every class that
    occurs counts the same; ``n``
    """
    truth, predicted = np.asarray(truth, int), np.asarray(predicted, int)
    names = [*SCORES, *(f"{score} {end}" for score in SCORES for end in ("low", "high")), "macro_f1"]
    if not len(truth):
        return dict.fromkeys(names, np.nan) | {"n": 0}
    classes = int(max(truth.max(), predicted.max())) + 1
    counts = np.zeros((classes, classes))
    np.add.at(counts, (truth, predicted), 1)
    drawn = np.random.default_rng(0).multinomial(len(truth), counts.ravel() / len(truth), size=times)
    *found, macro = (float(score) for score in weighted_scores(counts))
    row = dict(zip(SCORES, found, strict=True)) | {"macro_f1": macro, "n": len(truth)}
    replicates = weighted_scores(drawn.reshape(times, classes, classes))
    for score, values in zip(SCORES, replicates, strict=False):
        row[f"{score} low"], row[f"{score} high"] = percentile_interval(values)
    row["recall low"], row["recall high"] = wilson(int((truth == predicted).sum()), len(truth))
    return row


def weighted_scores(counts: np.ndarray) -> tuple[np.ndarray, ...]:
    """Weighted precision, recall and F1, and macro F1, of confusion counts [..., true class, predicted class]; a class that is
    never predicted has precision 0. Macro F1 is the mean over the classes that occur.

    >>> [round(float(score), 3) for score in weighted_scores(np.array([[3, 1], [0, 4]]))]
    [0.9, 0.875, 0.873, 0.873]
    """
    hit, true, said = np.einsum("...ii->...i", counts), counts.sum(-1), counts.sum(-2)
    ratio = lambda a, b: np.divide(a, b, out=np.zeros(np.broadcast(a, b).shape), where=b > 0)
    precision, recall, f1 = ratio(hit, said), ratio(hit, true), ratio(2 * hit, true + said)  # [..., classes]
    weight, occurs = ratio(true, true.sum(-1, keepdims=True)), true > 0
    means = tuple((weight * score).sum(-1) for score in (precision, recall, f1))
    return *means, ratio((f1 * occurs).sum(-1), occurs.sum(-1))


def majority(training, n: int) -> np.ndarray:
    """The constant baseline: the training set's most frequent class, n times."""
    return np.full(n, np.bincount(training, minlength=3).argmax())


def majority_given_truth(training, training_true, true) -> np.ndarray:
    """The baseline that knows only whether the statement is true: the most frequent class of the training set among the true
    (false) statements. A judge that is given the truth, as the released one is, must beat it."""
    training, training_true = np.asarray(training), np.asarray(training_true, dtype=bool)
    best = [np.bincount(training[training_true == kind], minlength=3).argmax() for kind in (False, True)]
    return np.asarray(best)[np.asarray(true, dtype=bool).astype(int)]


def held_out_quality(predicted: dict, labels: pd.DataFrame) -> pd.DataFrame:
    """Quality of every judge on the held-out statements: ``states of``, ``prompt``, ``answers of``, ``seed`` and
    ``judge_quality`` of the outcomes.

    predicted  (model read, prompt, model predicted) -> probabilities [seeds, held-out statements, 3]
    labels     per model and statement: ``model``, ``split``, ``answer``, ``true``
    """
    rows = []
    for (read, prompt, model), probabilities in predicted.items():
        answer, true = _held_out(labels, model)
        for seed, answers in enumerate(probabilities.argmax(axis=2)):
            quality = judge_quality(outcome(answer, true), outcome(answers, true))
            rows.append({"states of": read, "prompt": prompt, "answers of": model, "seed": seed} | quality)
    return pd.DataFrame(rows)


def baseline_quality(labels: pd.DataFrame) -> pd.DataFrame:
    """Quality of the two majority baselines per model: ``model``, ``by`` and ``judge_quality``."""
    rows = []
    for model, own in labels.groupby("model", sort=False):
        outcomes, true = outcome(own["answer"], own["true"]), own["true"].to_numpy()
        held = (own["split"] == "validation").to_numpy()
        constant = majority(outcomes[~held], int(held.sum()))
        by_truth = majority_given_truth(outcomes[~held], true[~held], true[held])
        for by, predicted in (("majority", constant), ("majority, truth known", by_truth)):
            rows.append({"model": model, "by": by} | judge_quality(outcomes[held], predicted))
    return pd.DataFrame(rows)


def compare_with_baselines(
    quality: pd.DataFrame,
    words: pd.DataFrame,
    labels: pd.DataFrame,
    substitute: pd.Series,
    instruction: str = "at once",
) -> pd.DataFrame:
    """Judges, last-token logits and baselines per model (figure 4): ``model``, ``by``, mean quality over seeds; NaN for the
    logits that are the first word of the answer itself (``same_word``).

    quality  ``held_out_quality``
    words    the logits' answers to the held-out statements: ``states of``, ``prompt``, ``answer``
    """
    rows = []
    for model, small in substitute.items():
        answer, true = _held_out(labels, model)
        for called, prompt in (("instruction", ""), ("soft prompt", model)):
            mine = (quality[["states of", "prompt", "answers of"]] == [small, prompt, model]).all(axis=1)
            rows += quality[mine].assign(model=model, by=f"judge, {called}").to_dict("records")
            answers = words["answer"][(words["states of"] == small) & (words["prompt"] == prompt)]
            logits = judge_quality(outcome(answer, true), outcome(answers, true))
            if not prompt and same_word(model, small, instruction):
                logits = dict.fromkeys(logits, np.nan) | {"n": logits["n"]}
            rows.append({"model": model, "by": f"logits, {called}"} | logits)
    rows += baseline_quality(labels).to_dict("records")
    table = pd.DataFrame(rows).drop(columns=["states of", "prompt", "answers of", "seed"])
    return table.groupby(["model", "by"], sort=False).mean().reset_index()


def judge_differences(
    predicted: dict, words: pd.DataFrame, labels: pd.DataFrame, substitute: pd.Series, instruction: str = "at once"
) -> pd.DataFrame:
    """Paired differences in accuracy on the held-out statements (figure 4): ``model``, ``difference``, ``change``, ``low``,
    ``high`` (``judge_figures.DIFFERENCES``). Without "soft prompt" in its name, a difference is with the instruction. Judge
    and logits are those on the substitute; see ``compare_with_baselines``."""
    rows = []
    for model, small in substitute.items():
        answer, true = _held_out(labels, model)
        own = labels[(labels["model"] == model) & (labels["split"] == "train")]
        outcomes = outcome(own["answer"], own["true"])
        constant = majority_given_truth(outcomes, own["true"], true) == outcome(answer, true)
        judged, soft = ((predicted[small, p, model].argmax(axis=2) == answer).mean(axis=0) for p in ("", model))
        own_words = words[words["states of"] == small]
        logits, soft_logits = (own_words["answer"][own_words["prompt"] == p].to_numpy() == answer for p in ("", model))
        known = {"judge - majority": (constant, judged), "soft prompt - instruction": (judged, soft)}
        known["judge - logits, soft prompt"] = (soft_logits, soft)
        known["logits - majority, soft prompt"] = (constant, soft_logits)
        if not same_word(model, small, instruction):
            known["judge - logits"] = (logits, judged)
        rows += [{"model": model, "difference": name} | paired_change(*pair) for name, pair in known.items()]
    return pd.DataFrame(rows)


def same_word(model: str, small: str, instruction: str) -> bool:
    """Whether the logits after the instruction are those of the first word of the answer that is to be predicted: of a model
    that is its own substitute and answers at once."""
    return model == small and instruction == "at once"


def calibration(predicted: dict, labels: pd.DataFrame, substitute: pd.Series) -> tuple[pd.DataFrame, dict[str, float]]:
    """Reliability of the judges on substitutes with the instruction, probabilities averaged over seeds: the curves
    (``stats.reliability`` with ``model``) and each model's expected calibration error."""
    curves, errors = {}, {}
    for model, small in substitute.items():
        probabilities = predicted[small, "", model].mean(axis=0)  # [held-out statements, 3]
        answer, _ = _held_out(labels, model)
        sure, right = probabilities.max(axis=1), probabilities.argmax(axis=1) == answer
        curves[model], errors[model] = reliability(sure, right), ece(sure, right)
    return pd.concat(curves, names=["model"]).reset_index(level=0), errors


def _held_out(labels: pd.DataFrame, model: str) -> tuple[np.ndarray, np.ndarray]:
    """Answers and truths of one model's held-out statements."""
    rows = labels[(labels["model"] == model) & (labels["split"] == "validation")]
    return rows["answer"].to_numpy(), rows["true"].to_numpy()
