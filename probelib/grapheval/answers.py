"""From a generated text to an answer, and from an answer to an outcome (GraphEval, section 4.1).

"True" has three meanings: the statement is true (``true``), the model says so (``Answer.TRUE``), the model is right
(``Outcome.RIGHT``; the paper calls this class "True").
"""

import re
from enum import IntEnum

import numpy as np
import pandas as pd

from probelib.errors import unknown


class Answer(IntEnum):
    """A model's answer to a statement."""

    TRUE = 0
    FALSE = 1
    IDK = 2


class Outcome(IntEnum):
    """The answer compared with the truth of the statement."""

    RIGHT = 0
    WRONG = 1
    IDK = 2


UNEVALUATED = -1  # in a column of answers: no answer is known

# Labels


DOUBT = re.compile(
    r"\b(?:don['’]?t|do not|can ?not|can['’]t)\b.*\b(?:known?|determined?|sure|certain)\b|\bunsure\b"
    r"|\b(?:not|isn['’]t) (?:\w+ )?(?:known(?! (?:as|by|for(?! (?:certain|sure)\b))\b)|determined|sure|certain)\b"
)
PLAIN = (  # no negation before it in its clause
    r"(?:.*(?:;|\b(?:so|but|therefore|thus|hence)\b))?"
    r"(?:(?!\b(?:not?|none|neither|never|nothing|cannot|\w+n['’]t|whether|if|unclear|unlikely|impossible|opposite|wrong"
    r"|doubt\w*)\b).)*"
)
FALSE = re.compile(
    rf"\W*(?:no|false|incorrect)\b|.*\bnot (?:true|correct)\b|{PLAIN}(?:\bis|['’]s) (?:false|incorrect|untrue)\b"
)
TRUE = re.compile(rf"\W*(?:yes|true|correct)\b|{PLAIN}(?:\bis|['’]s) (?:true|correct)\b")
SENTENCE_END = re.compile(r"[.!?]+(?=\s|$)|\n")
VERDICT = re.compile(r"\W*(?:yes|no|true|false|correct|incorrect)\b(?:,|\W*$)|.*\bstatement is\b")  # and no object


def parse_answer(text: str, variant: str = "kit") -> Answer | None:
    """The answer in a text; None if there is none (``label_texts`` counts such texts as "don't know").

    variant  "kit": in the first sentence, ignoring case; doubt takes precedence over "false", and "false" over "true".
             "recalled": the same in the first sentence with an answer after the recalled object ("1944. Yes, ...").
             "released": as in the released code, in the set of all words, "true" before "false"

    >>> parse_answer(" No, the statement is not true."), parse_answer(" No, the statement is not true.", "released")
    (<Answer.FALSE: 1>, <Answer.TRUE: 0>)
    >>> parse_answer(" St. Louis. Yes, the statement is true.", "recalled")
    <Answer.TRUE: 0>
    >>> parse_answer(" The capital of France is Paris.") is None
    True
    """
    if variant == "released":
        words = set(re.sub(r"[^\w\s]", "", text).split())
        return Answer.TRUE if words & {"true", "Yes"} else Answer.FALSE if words & {"false", "No"} else None
    if variant not in ("kit", "recalled"):
        raise unknown("variant of the parser", variant, ["kit", "recalled", "released"])
    text = text.strip().lower()
    if variant == "kit":
        return _sentence_answer(re.split(r"[.!?\n]", text, maxsplit=1)[0])
    first, *others = SENTENCE_END.split(text)
    found = (answer for answer in map(_sentence_answer, others) if answer is not None)
    alone = _sentence_answer(first) if DOUBT.search(first) or VERDICT.match(first) else None  # nothing was recalled
    return next(found, None) if alone is None else alone


def _sentence_answer(sentence: str) -> Answer | None:
    """The answer in one lower-case sentence; None if there is none."""
    if DOUBT.search(sentence):
        return Answer.IDK
    return Answer.FALSE if FALSE.match(sentence) else Answer.TRUE if TRUE.match(sentence) else None


def majority_vote(answers: list[Answer]) -> Answer:
    """The most frequent of several answers to one statement; "don't know" for a tie. (The kit takes three answers if decoding
    samples, and one if it is greedy, because greedy decoding always gives the same.)

    >>> majority_vote([Answer.TRUE, Answer.FALSE, Answer.IDK])
    <Answer.IDK: 2>
    """
    counts = np.bincount(answers, minlength=3)
    best = np.flatnonzero(counts == counts.max())
    return Answer(best[0]) if len(best) == 1 else Answer.IDK


def label_texts(generated: pd.DataFrame, variant: str = "kit") -> pd.DataFrame:
    """Labels from generated texts, one row per prompt: ``prompt``, ``answer`` (an ``Answer``), ``unparsed`` (texts without an
    answer, which count as "don't know"), ``n_texts`` (per prompt), ``text`` (the first one).

    generated  ``prompt``, ``rank``, ``text``: one row per text
    """
    rows = generated.sort_values("rank", kind="stable")
    by_prompt: dict[str, list[str]] = {prompt: [] for prompt in generated["prompt"]}
    for prompt, text in zip(rows["prompt"], rows["text"], strict=True):
        by_prompt[prompt].append(text)
    table = []
    for prompt, texts in by_prompt.items():
        parsed = [parse_answer(text, variant) for text in texts]
        answer = int(majority_vote([Answer.IDK if a is None else a for a in parsed]))
        table.append((prompt, answer, parsed.count(None), len(texts), texts[0]))
    return pd.DataFrame(table, columns=["prompt", "answer", "unparsed", "n_texts", "text"])


def outcome(answer, true) -> np.ndarray:
    """Outcomes [n] of answers [n] to statements that are true or not [n]."""
    answer, true = np.asarray(answer), np.asarray(true, dtype=bool)
    agrees = (answer == Answer.TRUE) == true
    return np.where(answer == Answer.IDK, Outcome.IDK, np.where(agrees, Outcome.RIGHT, Outcome.WRONG)).astype(np.int64)


def answer_from_outcome(outcome, true) -> np.ndarray:
    """Answers [n] with these outcomes [n] on statements that are true or not [n]: the inverse of ``outcome``."""
    outcome, true = np.asarray(outcome), np.asarray(true, dtype=bool)
    says_true = (outcome == Outcome.RIGHT) == true
    return np.where(outcome == Outcome.IDK, Answer.IDK, np.where(says_true, Answer.TRUE, Answer.FALSE)).astype(np.int64)
