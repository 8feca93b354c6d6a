"""LaTeX of Markdown cells as MathML: browsers draw it without a script, so pages and slides need no
network."""

import re

from latex2mathml.converter import convert

FORMULA = re.compile(
    r"(?P<code>(?P<ticks>`+).+?(?P=ticks))|\$\$(?P<block>.+?)\$\$|(?<![\\\w$])\$(?P<inline>[^\s$](?:[^$\n]*[^\s$])?)\$(?!\w)",
    re.DOTALL,
)


def typeset(text: str) -> str:
    """Markdown with its formulas replaced by MathML."""
    return FORMULA.sub(_mathml, text)


def _mathml(found: re.Match) -> str:
    """The MathML of a formula; code, and LaTeX that the converter does not know, is returned
    unchanged."""
    if found["code"]:
        return found[0]
    kind = "block" if found["block"] else "inline"
    try:
        return convert(found[kind], display=kind)
    except Exception:  # the converter has no error class of its own; the reader sees the LaTeX
        return found[0]
