"""What a newcomer reads after a mistake on the command line: one line that says what is wrong, where,
what is allowed, what to try. Each room has a table of its own for Python."""

import re

import pytest

from probelib.runner import cli

SMALLEST = "atlas-neox-0.15m"


def begins(message: str, expected: str) -> bool:
    """Whether a message holds the parts between the dots in their order, the first one at its
    beginning."""
    first, *parts = map(str.strip, expected.split("..."))
    return bool(re.match(".*".join(map(re.escape, (first, *parts))), message, re.DOTALL))


SEC5 = ("--only", "monitor/sec5_results")
ON_THE_COMMAND_LINE = [
    ((*SEC5, "--set", "n_fact=3"),
     "unknown parameter (none of the selected notebooks has it) 'n_fact'; did you mean n_facts or format? Known: ..."),
    ((*SEC5, "--set", "n_facts", "3"), "--set 'n_facts': NAME=VALUE is expected, as in --set n_facts=50."),
    ((*SEC5, "--set", f"models={SMALLEST}"),
     f"--set models={SMALLEST}, monitor/sec5_results: '{SMALLEST}' is of type str, the notebook takes list. A list is written "
     f"[{SMALLEST}]."),
    ((*SEC5, "--set", "folder=columns.csv"),
     "folder=... the data are the atlas, which takes no folder; "
     "name the data in this folder: --set data=table ..."),
    (("--on", "slrum"),
     "unknown engine (--on) 'slrum'; Known: local, tcp://HOST:PORT."),
    (("monitor",), "'monitor' is unexpected. Papers and notebooks follow --only, ..."),
    ((*SEC5, "--models", SMALLEST, "atlas-neox-0.6m"),
     "'atlas-neox-0.6m' is unexpected. ... models are separated by commas (--models A,B) ..."),
    ((*SEC5, "--set", "data=capital.csv"),
     "data='capital.csv' looks like a path: data='table' ..."),
    (("--jobs", "0"), "--jobs is 0; it takes 1 or more."),
    (("--models", ", "), "--models is empty"),
    (("--set", f"n={'[' * 480}{']' * 480}"), ""),  # deeper than Python follows
]  # fmt: skip


@pytest.mark.parametrize(
    ("flags", "expected"), ON_THE_COMMAND_LINE, ids=[" ".join(f) for f, _ in ON_THE_COMMAND_LINE]
)
def test_a_mistake_on_the_command_line_is_one_line(tmp_path, monkeypatch, capsys, flags, expected):
    monkeypatch.chdir(tmp_path)
    for name in ("columns.csv", "capital.csv"):
        (tmp_path / name).write_text("relation,subject,object\nP36,France,Paris\n")
    assert cli.main(list(flags)) == 2
    printed = capsys.readouterr()
    assert printed.out == "" and printed.err.count("\n") == 1
    assert begins(printed.err, expected), printed.err
