"""Is a generated text the right answer? (MONITOR, appendix A.)"""

import re

import pandas as pd

from probelib.facts.names import fold

ENDS = "\n.;!?,"  # an answer ends before the first of these
UNTIL_END = re.compile(f"[^{ENDS}]*")


def extract(text: str) -> str:
    """The answer in a generated text, cut before the first line break or one of ``. ; ! ? ,``."""
    return UNTIL_END.match(text.lstrip())[0].strip()


def matches(answer: str, gold: str, done: bool = True) -> bool | None:
    """Whether a generated answer is the gold object, then one of ``. ; ! ? ,``, a line break or the
    end. Case and the encoding of accents do not matter; a gold object may hold a full stop. If
    generation is not ``done``, None means that the known beginning does not decide it."""
    text, gold = fold(answer.lstrip()), fold(gold.strip())
    if text.startswith(gold):
        rest = text[len(gold) :].lstrip(" \t")
        return rest[0] in ENDS if rest else done or None
    return False if done or not gold.startswith(text.rstrip()) else None


def decide(scores: pd.DataFrame, generated: pd.DataFrame | None = None) -> pd.Series:
    """Whether greedy decoding answers each row's prompt with its label; None: not decided yet.
    Teacher forcing already shows how greedy decoding begins (``greedy_text``). The few prompts that
    this leaves open (other tokens of the same answer, a blank after it) need ``generated`` text."""
    greedy = (scores[column].tolist() for column in ("greedy_text", "label", "greedy_done"))
    verdict = [matches(text, label, done) for text, label, done in zip(*greedy, strict=True)]
    if generated is not None:
        text = dict(zip(generated["prompt"], generated["text"], strict=True))
        rows = enumerate(zip(scores["prompt"].tolist(), scores["label"].tolist(), strict=True))
        for place, (prompt, label) in rows:
            if verdict[place] is None and prompt in text:
                verdict[place] = matches(text[prompt], label)
    return pd.Series(verdict, index=scores.index, dtype=object)
