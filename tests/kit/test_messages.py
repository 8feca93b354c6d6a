"""What a newcomer reads after a mistake: what is wrong, where, what is allowed, what to try.
Nothing is scored here; each room has a table of its own as well."""

import re
from pathlib import Path

import pytest

from probelib import ProbeError, beyond, facts, monitor
from probelib.organisms import train
from probelib.runner import cli

SMALLEST = "atlas-neox-0.15m"
TABLES = {
    "columns.csv": "subjekt,relation,object\nA,P36,B\n",
    "notes.txt": "subject relation object",
    "capital.csv": "subject,relation,object\nFrance,capital,Paris\nPeru,capital,Lima\n",
    "country.csv": "country,capital\nFrance,Paris\n",
}


@pytest.fixture
def here(tmp_path, monkeypatch) -> Path:
    """A folder with a newcomer's files, from which everything is started."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    for name, text in TABLES.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "folder").mkdir()
    return tmp_path


def table(name: str) -> facts.Facts:
    return facts.load("table", name)


# (what is called, how its message begins); "..." stands for a longer list
IN_PYTHON = [
    (lambda: facts.load(relations=["P3666"]),
     "unknown relation 'P3666'; did you mean P36 (capital) or ... Known: K1 (Nobel ..."),
    (lambda: table("mine.csv"), "mine.csv: no such file in /..."),
    (lambda: table("notes.txt"), "notes.txt: a table is a .csv, .tsv, .parquet, .jsonl or ..."),
    (lambda: table("country.csv"),
     "country.csv:1: the columns are ['country', 'capital']; needed: ... "
     "columns=subject:HEAD,relation:=P36,object:TAIL (a text after = is the same in every row)"),
    (lambda: facts.pick(facts.atlas(), "P36:France:Paris"),
     "ids: 'P36:France:Paris' is given; a list of texts is needed: ['P36:France:Paris']"),
    (lambda: monitor.score([SMALLEST], ["P36:France:Paris"], Path("runs")),
     "facts: pass what `facts.load` returns, not a list"),
    (lambda: facts.load("fktc", "folder"),
     "folder: no file *-subclass*.json there; found: none"),
    (lambda: beyond.score([SMALLEST], None, Path(), measures=["ZP choise"]),
     "unknown measure 'ZP choise'; did you mean ZP choice or ZP response? Known: ..."),
    (lambda: next(train.train_all(["neox"])), "unknown organism 'neox'; ..."),
]  # fmt: skip


def begins(message: str, expected: str) -> bool:
    """Whether a message holds the parts between the dots in their order, the first one at its
    beginning."""
    first, *parts = map(str.strip, expected.split("..."))
    return bool(re.match(".*".join(map(re.escape, (first, *parts))), message, re.DOTALL))


@pytest.mark.parametrize(("call", "expected"), IN_PYTHON, ids=[said[:40] for _, said in IN_PYTHON])
def test_a_mistake_in_python_is_explained(here, call, expected):
    with pytest.raises(ProbeError) as error:
        call()
    assert begins(str(error.value), expected), error.value


SEC5 = ("--only", "monitor/sec5_results")
ON_THE_COMMAND_LINE = [
    ((*SEC5, "--set", "n_fact=3"),
     "unknown parameter (none of the selected notebooks has it) 'n_fact'; "
     "did you mean n_facts or format? Known: ..."),
    ((*SEC5, "--set", "n_facts", "3"),
     "--set 'n_facts': NAME=VALUE is expected, as in --set n_facts=50."),
    ((*SEC5, "--set", f"models={SMALLEST}"),
     f"--set models={SMALLEST}, monitor/sec5_results: '{SMALLEST}' is of type str, the notebook "
     "takes list. A list is written [a, b]; ..."),
    ((*SEC5, "--set", "folder=columns.csv"),
     "folder=... the data are the atlas, which is shipped and takes no folder; "
     "name the data in this folder: --set data=table ..."),
    (("--on", "slrum"),
     "unknown engine (--on) 'slrum'; Known: local, tcp://HOST:PORT."),
    (("monitor",), "'monitor' is unexpected. Papers and notebooks follow --only, ..."),
    ((*SEC5, "--models", SMALLEST, "atlas-neox-0.6m"),
     "'atlas-neox-0.6m' is unexpected. ... models are separated by commas (--models A,B) ..."),
    ((*SEC5, "--set", "data=capital.csv"),
     "unknown data 'capital.csv'; ... A table is data=table folder=PATH."),
    ((*SEC5, "--models", SMALLEST, "--set", "format=shot"),
     "unknown format 'shot'; did you mean shots or chat? ..."),
    (("--jobs", "0"), "--jobs is 0; it takes 1 or more."),
    (("--models", ", "), "--models is empty"),
    (("--set", f"n={'[' * 480}{']' * 480}"), ""),  # deeper than Python follows
]  # fmt: skip


@pytest.mark.parametrize(("flags", "expected"), ON_THE_COMMAND_LINE)
def test_a_mistake_on_the_command_line_is_one_line(here, capsys, flags, expected):
    assert cli.main(list(flags)) == 2
    printed = capsys.readouterr()
    assert printed.out == "" and printed.err.count("\n") == 1
    assert begins(printed.err, expected), printed.err
