"""``python -m tests.bench fuzz [--n 1000] [TARGET ...]``: damaged input to what reads a user's
input.

A right input is changed in one to four places by the generator of (target, number): the same number
is the same input again. It must be read or refused with a ProbeError; anything else is a defect.
"""

import argparse
import collections
import csv
import json
import random
import tempfile
import warnings
from pathlib import Path

import nbformat
import pandas as pd
import yaml

from probelib import facts, files, parameters, store
from probelib.errors import ProbeError
from probelib.runner import cli, plan

NASTY = rb"""\ " ' { } [ ] , : | ~ = null true NaN 1e999 -1 0x1F [[[[ {} "" \ud800 ../../x [X] [Y]
2020-13-01""".split()
NASTY += [b"", b"\0", b"\t", b"\r\n", b"9" * 400]
NASTY += [b"\xff\xfe", b"\xef\xbb\xbf", "é😀\u2028".encode()]
NASTY += [b"? ", b"- ", b"%s", b"&a [*a]", b"<<: *a", b"!!python/object/apply:os.system ['true']"]
CELL = """profile = "smoke"  # str: which
models = ["a", "b"]  # list: which
n: "int or str" = 3
y = -1.5  # float
"""
STEP = {"notebook": "a", "makes": ["p/t1"], "measured": ["p/t1"]}
PLAN = {
    "profiles": {"smoke": {"n": 2}, "atlas": {}},
    "steps": [STEP | {"parameters": {"common": {"n": 3}}}],
}
CODE = nbformat.v4.new_code_cell(CELL, metadata={"tags": ["parameters"]}, id="a")
NOTEBOOK = nbformat.writes(nbformat.v4.new_notebook(cells=[CODE])).encode()
TABLE = 'relation,subject,object\nP36,Peru,Lima\nP36,Mali,"Bamako, Mali"\nP37,Peru,Spanish\n'


def read_plan(folder: Path):
    whole = plan.read(folder / "plan.yaml")
    return plan.settings(whole, whole.steps, "smoke", {})


def read_command(folder: Path):
    (folder / "a.ipynb").write_bytes(NOTEBOOK)
    (folder / "plan.yaml").write_text(yaml.safe_dump(PLAN))
    whole = plan.read(folder / "plan.yaml")
    words = (folder / "command").read_text(errors="replace").split("\n")
    args = cli._parser().parse_args(["--set", *(word for word in words if word and word[0] != "-")])
    return plan.settings(whole, whole.steps, "smoke", cli._given(args, plan.types(whole.steps)))


def read_part(folder: Path):
    part = store.Part(folder / "P36.parquet", "P36")
    if part.finished():
        return store.read([part])
    return store.write(part, pd.DataFrame({"a": [1, 2]}), {"cost": {}, "model": {}})


def _part() -> dict[str, bytes]:
    with tempfile.TemporaryDirectory() as folder:
        part = store.Part(Path(folder) / "P36.parquet", "P36")
        store.write(part, pd.DataFrame({"a": [1, 2]}), {"cost": {}, "model": {}})
        return {path.name: path.read_bytes() for path in Path(folder).iterdir()}


def facts_of(name: str):
    return lambda folder: facts.load("table", folder / name, n_facts="all")


LINES = [json.dumps(row) for row in csv.DictReader(TABLE.splitlines())]
TARGETS = {  # files, and what reads their folder
    "plan": ({"plan.yaml": yaml.safe_dump(PLAN).encode(), "a.ipynb": NOTEBOOK}, read_plan),
    "notebook": ({"a.ipynb": NOTEBOOK}, lambda folder: parameters.declared(folder / "a.ipynb")),
    "command": ({"command": b"n=5\nmodels=[a, b]\ny=1e-3"}, read_command),
    "store": (_part(), read_part),
    "csv": ({"f.csv": TABLE.encode()}, facts_of("f.csv")),
    "jsonl": ({"f.jsonl": "\n".join(LINES).encode()}, facts_of("f.jsonl")),
}


def outcome(target: str, number: int) -> str:
    """read, refused, or the defect."""
    contents, read = TARGETS[target]
    chance = random.Random(f"{target} {number}")
    with tempfile.TemporaryDirectory() as name, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for file, content in contents.items():
            (Path(name) / file).write_bytes(content)
        file = Path(name) / chance.choice(sorted(contents))
        content = file.read_bytes()
        for _ in range(chance.randint(1, 4)):
            at = chance.randrange(len(content) + 1)
            nasty, left_out = chance.choice(NASTY), chance.choice([0, 0, 1, 9])
            content = content[:at] + nasty + content[at + left_out :]
        files.write(file, content)
        try:
            read(Path(name))
        except ProbeError:
            return "refused"
        except Exception as error:
            return f"{type(error).__name__}: {error}"
    return "read"


def main(arguments: list[str]) -> int:
    """Try ``--n`` inputs per target; return 1 if one found a defect."""
    parser = argparse.ArgumentParser("python -m tests.bench fuzz")
    parser.add_argument("targets", nargs="*", default=[], metavar="TARGET")
    parser.add_argument("--n", type=int, default=1000)
    given = parser.parse_args(arguments)
    defects = 0
    for target in given.targets or TARGETS:
        found = collections.Counter()
        for number in range(given.n):
            said = outcome(target, number)
            found[said if said in ("read", "refused") else "defects"] += 1
            if said not in ("read", "refused"):
                print(target, number, said, sep=" | ", flush=True)
        defects += found["defects"]
        print(target, dict(found), flush=True)
    return 1 if defects else 0
