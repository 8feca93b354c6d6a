"""Every reader of files, the plan, the parameters, the command line and a server's answers, fed with damaged input:

    python -m tests.kit.fuzz                        10,000 inputs for each
    python -m tests.kit.fuzz --n 500 plan fktc      fewer, for some
    python -m tests.kit.fuzz plan --case 1234       one input again, with the traceback
    python -m tests.kit.fuzz --record tests/kit/fuzz.csv    the outcome per target, over the row of an earlier run

A right input is changed in one to four places by the generator of (target, number): the same number is the same input again.
The outcome is right when it is a value or a ProbeError. Anything else, and anything that takes more than 10 seconds, is a defect.

Found so far, all mended: a plan that is no UTF-8 or holds a date such as 2020-13-01 (the same in --set), a notebook whose
cells are no cells, a parameters cell with half a surrogate pair, a store's record without its cost or model, a relation whose
templates are no list of texts, a store's record without its digest, a served token whose number no tokenizer can hold.
"""

import argparse
import collections
import contextlib
import datetime
import io
import json
import random
import signal
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import nbformat
import pandas as pd
import yaml

from probelib import parameters, store
from probelib.beyond import imported
from probelib.errors import ProbeError
from probelib.facts import downloads, shipped
from probelib.facts.formats import annotated, bear, fktc, lama, tables, trex_mc, wikifactdiff
from probelib.facts.graphs import dbpedia, graph, wikidata
from probelib.runner import cli, plan
from tests.beyond.test_imported import FRANCE, OLD
from tests.conftest import PROFILE
from tests.facts.formats import (
    test_annotated,
    test_bear,
    test_fktc,
    test_lama,
    test_tables,
    test_trex_mc,
    test_wikifactdiff,
)
from tests.facts.graphs import test_dbpedia, test_graph, test_wikidata

LIMIT = 10  # seconds for one input
NASTY = [
    b"", b"\0", b"\xff\xfe", b"\xef\xbb\xbf", b"\r\n", b"\n\n", b"\t", b'"', b"'", b"\\", b"{", b"[", b"]", b"}", b",", b":",
    b"|",
    b"null", b"true", b"NaN", b"-Infinity", b"1e999", b"-1", b"0", b"9" * 40, b"1.5", b"0x1F", b"1_000", b"~", b"2020-13-01",
    b"[[[[", b"{}", b"[]", b'""', b"\\ud800", "é😀\u2028".encode(), b"../../x", b"<script>", b"%s", b"{x}", b"=", b"? ", b"- ",
    b"!!python/object/apply:os.system ['true']", b"!!set {a}", b"!!binary aGk=", b"&a [*a]", b"*a", b"<<: *a",
    b"[X]", b"[Y]", b"Q1", b"P36", b"+1949-05-23T00:00:00Z",
]  # fmt: skip


class Target(NamedTuple):
    """files: the right content by file name; read: what reads the folder that holds them."""

    files: dict[str, bytes]
    read: Callable[[Path], object]


def lines(*rows) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def one(name: str, content: bytes | str, read: Callable) -> Target:
    """A target of a single file."""
    return Target({name: content.encode() if isinstance(content, str) else content}, lambda folder: read(folder / name))


def parquet(*rows) -> bytes:
    buffer = io.BytesIO()
    pd.DataFrame(list(rows)).to_parquet(buffer)
    return buffer.getvalue()


def folder_of(write: Callable[[Path], object]) -> dict[str, bytes]:
    """The files that a writer leaves."""
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder))
        return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(Path(folder).rglob("*")) if p.is_file()}


def notebook(source: str) -> bytes:
    cell = nbformat.v4.new_code_cell(source, metadata={"tags": ["parameters"]}, id="a")
    return nbformat.writes(nbformat.v4.new_notebook(cells=[cell])).encode()


PARAMETERS = f"""{PROFILE}
quantize = None  # str: 8bit or 4bit
models = ["a", "b"]  # list: which
n: int | str = 3  # int or str: how many
x = None
y = -1.5  # float
"""
STEPS = [
    {"notebook": "a", "title": "A", "makes": ["p/t1"], "measured": ["p/t1"], "timeout_s": 60,
     "parameters": {"common": {"n": 3}, "smoke": {"models": ["x"]}}},
    {"notebook": "p/b", "needs": ["a"], "makes": ["p/t2"]},
]  # fmt: skip
PLAN = {"profiles": {"smoke": {"n": 2}, "atlas": {}}, "steps": STEPS}


def read_plan(folder: Path):
    whole = plan.read(folder / "plan.yaml")
    return plan.settings(whole, plan.with_needs(whole, [step.notebook for step in whole.steps]), "smoke", {})


def read_command(folder: Path):
    text = (folder / "command").read_text(errors="replace").split("\n")
    models, quantize, *assigned = [*text, "", ""]
    given = {"models": models or None, "quantize": quantize or None, "set": [a for a in assigned if a]}
    args = SimpleNamespace(jobs=1, on=None, cluster=[], **given)
    given = cli._given(args)
    whole = cached_plan()
    return plan.settings(whole, whole.steps, "smoke", given)


KEPT = tempfile.TemporaryDirectory()  # until the process ends: the settings of a plan are read from its notebooks


@cache
def cached_plan():
    for name, content in TARGETS["plan"].files.items():
        (Path(KEPT.name) / name).parent.mkdir(exist_ok=True)
        (Path(KEPT.name) / name).write_bytes(content)
    return plan.read(Path(KEPT.name) / "plan.yaml")


def read_answer(folder: Path):
    """A server's answer to three tokens, from the JSON on."""
    from probelib.lm.remote import served as module

    answer, model = (folder / "answer.json").read_bytes(), served()
    try:
        said = json.loads(answer)
    except (ValueError, RecursionError):
        raise ProbeError("not JSON") from None  # as ``transport.fetch_json``
    kept, module.fetch_json = module.fetch_json, lambda *_, **__: said
    try:
        return [model._read(choice, [349, 502, 269]) for choice in model._complete([[349, 502, 269]], echo=True)]
    finally:
        module.fetch_json = kept


@cache
def served():
    from probelib import lm

    model = lm.load("http://127.0.0.1:9/v1#atlas-neox-0.15m")
    model.__dict__["card"] = {"owned_by": "nobody"}
    model.ids  # noqa: B018 (loaded before a clock runs)
    return model


COLUMNS = {
    "tokens": ["token_id:349", "token_id:502", "token_id:269", "token_id:4"],
    "token_logprobs": [None, -1.5, -2.5, -0.5],
    "top_logprobs": [None, {"token_id:7": -1.0, "token_id:502": -1.5}, {"token_id:269": -2.5}, {"token_id:4": -0.5}],
}
CHOICE = {"index": 0, "text": "a b", "finish_reason": "length", "logprobs": COLUMNS}
ANSWER = {"usage": {"prompt_tokens": 3}, "choices": [CHOICE]}

ENTITIES = [json.dumps(entity).encode() for entity in (test_wikidata.GERMANY, test_wikidata.BERLIN)]
WIKIDATA = b"[\n" + b",\n".join(ENTITIES) + b"\n]\n"
ATLAS = {f"facts/{p.name}": p.read_bytes() for p in map(shipped.ATLAS.joinpath, ("P36.yaml", "P36.tsv"))}


TSV = test_tables.CSV.replace('"a remark, in\ntwo lines"', "a remark").replace(",", "\t")
REGISTRY = """one: {purpose: p, licence: l, note: n, urls: ["https://a/{file}"], files: {a.json:
     {sha256: %s, bytes: 3}, b.csv: {}}}
two:
  purpose: "p: q"
  licence: none
  note: by hand
  urls: []
  files:
    c.ttl.bz2: {bytes: 12}
""" % ("0a" * 32)


def read_relation(folder: Path):
    shipped._read_relation(folder / "facts/P36.yaml")
    return shipped._read_facts(folder / "facts/P36.tsv")


def read_part(folder: Path):
    part = store.Part(folder / "part.parquet", "P36")
    return store.read([part])


def write_part(folder: Path) -> None:
    part, note = store.Part(folder / "part.parquet", "P36"), {"cost": {"n": 1}, "model": {"m": 1}}
    store.write(part, pd.DataFrame({"a": [1, 2]}), note)


BEAR = {"metadata_relations.json": lines({"P36": test_bear.P36})}
BEAR |= {"P36.jsonl": lines(test_bear.FRANCE, test_bear.ITALY)}
BEAR_RESULTS = {"metadata_results.json": lines({"P36": test_bear.P36 | test_bear.RUN})}
BEAR_RESULTS |= {"P36_results.jsonl": lines(test_bear.SCORES, test_bear.MORE)}
TARGETS = {
    "fktc": Target({"P37-subclass.json": lines(test_fktc.HEADER, test_fktc.HAITI)}, fktc.read_fktc),
    "lama": Target(folder_of(lambda f: test_lama.write(f, test_lama.BORN, test_lama.OTHER)), lama.read_lama),
    "bear": Target(BEAR, bear.read_bear),
    "bear_results": Target(BEAR_RESULTS, imported.read),
    "harness": Target({"gpt2/samples_capitals_2026-01-02T03-04-05.678901.jsonl": lines(FRANCE, OLD)}, imported.read),
    "csv": one("facts.csv", test_tables.CSV, tables.read_triples),
    "tsv": one("facts.tsv", TSV, tables.read_triples),
    "parquet": one("f.parquet", parquet({"relation": "P36", "subject": "a", "object": "b"}), tables.read_triples),
    "pageviews": one("views.json", lines({"Nic Offer": 12, "a": 0}), tables.read_pageviews),
    "trex_mc": Target(
        folder_of(lambda f: test_trex_mc.write(f, [test_trex_mc.row(wrong=["Rome", "Oslo"])])), trex_mc.read_trex_mc
    ),
    "ratings": one("scores.json", lines(test_annotated.RATINGS), annotated.read_ratings),
    "verbalizations": one("taxonomy.csv", test_annotated.TAXONOMY, annotated.read_verbalizations),
    "templates": one("templates.json", lines(test_wikifactdiff.COUNTS), wikifactdiff.read_wikifactdiff),
    "said": one("said.jsonl", lines(*test_wikifactdiff.SAID), wikifactdiff.read_wikifactdiff),
    "dbpedia": Target(
        {"objects.ttl": test_dbpedia.OBJECTS.encode()}, lambda f: dbpedia.read_dbpedia(f / "objects.ttl", f / "graph")
    ),
    "wikidata": Target({"dump.json": WIKIDATA}, lambda f: wikidata.read_wikidata(f / "dump.json", f / "graph")),
    "graph": Target(folder_of(lambda f: graph.write_graph(test_graph.SMALL, f)), graph.open_graph),
    "atlas": Target(ATLAS, read_relation),
    "registry": one("r.yaml", REGISTRY, downloads.registry),
    "store": Target(folder_of(write_part), read_part),
    "plan": Target(
        {"plan.yaml": yaml.safe_dump(PLAN).encode(), "a.ipynb": notebook(PARAMETERS), "p/b.ipynb": notebook(PROFILE)},
        read_plan,
    ),
    "parameters": one("a.ipynb", notebook(PARAMETERS), parameters.declared),
    "command": Target(
        {"command": b'atlas-neox-2.4m,./m\n4bit\nn=3\nmodels=[a, "b"]\nx={k: [1, 2020-01-01]}\ny=1e-3\n'}, read_command
    ),
    "answer": one("answer.json", lines(ANSWER), lambda path: read_answer(path.parent)),
}

BEFORE = {"answer": served, "command": cached_plan}  # loaded once, before a clock runs


def changed(content: bytes, chance: random.Random) -> bytes:
    """Content with one to four changes."""
    for _ in range(chance.randint(1, 4)):
        at = chance.randint(0, len(content))
        to = min(len(content), at + chance.choice([0, 1, 1, 2, 5, 20, 200]))
        kind = chance.randrange(7)
        if kind == 0:  # a byte
            content = content[:at] + bytes([chance.randrange(256)]) + content[at + 1 :]
        elif kind == 1:  # something left out
            content = content[:at] + content[to:]
        elif kind == 2:  # something twice
            content = content[:to] + content[at:to] * chance.choice([1, 1, 3]) + content[to:]
        elif kind == 3:  # something else from the file
            start = chance.randint(0, len(content))
            content = content[:at] + content[start : start + chance.randint(1, 40)] + content[to:]
        elif kind == 4:  # cut off
            content = content[:at]
        else:  # something nasty, in place of a word or in between
            end = next((i for i in range(at, len(content)) if content[i] in b' ",\n\t:]}'), at)
            to = at if chance.random() < 0.3 else end
            content = content[:at] + chance.choice(NASTY) + content[to:]
    return content


def case(target: str, number: int, folder: Path) -> None:
    """Writes input ``number`` of a target: one of its files is changed."""
    chance, files = random.Random(f"{target}:{number}"), dict(TARGETS[target].files)
    name = chance.choice(sorted(files))
    files[name] = changed(files[name], chance)
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)


class Hang(BaseException):
    """Longer than LIMIT seconds; no reader can catch it by mistake."""


def _hang(*_):
    raise Hang


def outcome(target: str, number: int) -> str:
    """ "read", "refused", or what is wrong."""
    if target in BEFORE:
        BEFORE[target]()
    kept = signal.signal(signal.SIGALRM, _hang)
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):
        warnings.simplefilter("ignore")
        case(target, number, Path(folder))
        try:
            signal.alarm(LIMIT)
            TARGETS[target].read(Path(folder))
            return "read"
        except ProbeError:
            return "refused"
        except Hang:
            return "HANGS"
        except Exception as error:
            return f"{type(error).__name__}: {' '.join(str(error).split())[:100]}"
        finally:
            signal.alarm(0)
            signal.signal(signal.SIGALRM, kept)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("targets", nargs="*", help=f"default: all of {', '.join(TARGETS)}")
    parser.add_argument("--n", type=int, default=10_000, help="inputs for each")
    parser.add_argument("--case", type=int, help="one input, with the traceback")
    parser.add_argument("--record", type=Path, help="a CSV file with one row per target")
    args = parser.parse_args()
    names, bad = args.targets or list(TARGETS), 0
    if args.case is not None:
        with tempfile.TemporaryDirectory() as folder:
            case(names[0], args.case, Path(folder))
            print(TARGETS[names[0]].read(Path(folder)))
        return 0
    print(f"{'target':16}{'inputs':>8}{'read':>8}{'refused':>9}{'defects':>9}{'seconds':>9}")
    for name in names:
        started, (found, first) = time.process_time(), feed(name, args.n)
        seconds, wrong = time.process_time() - started, args.n - found["read"] - found["refused"]
        bad += wrong
        print(f"{name:16}{args.n:8}{found['read']:8}{found['refused']:9}{wrong:9}{seconds:9.1f}", flush=True)
        for said, count in found.most_common():
            if said not in ("read", "refused"):
                print(f"    {count:6} x {said} (first: --case {first[said]})", flush=True)
        if args.record:
            counts = {"inputs": args.n, "read": found["read"], "refused": found["refused"], "defects": wrong}
            record(args.record, {"target": name, **counts, "date": datetime.date.today().isoformat()})
    return 1 if bad else 0


def feed(target: str, n: int) -> tuple[collections.Counter, dict[str, int]]:
    """The outcomes of inputs 0 to ``n`` - 1 with their counts, and the number of the first input of each."""
    said = [outcome(target, number) for number in range(n)]
    return collections.Counter(said), {what: said.index(what) for what in set(said)}


def record(path: Path, row: dict) -> None:
    """Write a target's row in the place of its earlier one; ``refused`` are ProbeErrors."""
    rows = pd.read_csv(path).to_dict("records") if path.exists() else []
    rows = {each["target"]: each for each in (*rows, row)}
    pd.DataFrame([rows[name] for name in TARGETS if name in rows]).to_csv(path, index=False)


if __name__ == "__main__":
    sys.exit(main())
