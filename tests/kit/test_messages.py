"""What a newcomer reads after thirty mistakes: what is wrong, where, what is allowed, what to try.
Nothing is scored here."""

from pathlib import Path

import pytest

from probelib import ProbeError, beyond, explore, facts, lm, monitor, prompts
from probelib.explore import menus
from probelib.runner import cli

SMALLEST = "atlas-neox-0.15m"
TABLES = {
    "columns.csv": "subjekt,relation,object\nA,P36,B\n",
    "nothing.csv": "",
    "head.csv": "subject,relation,object\n",
    "hole.csv": "subject,relation,object\nA,P36,\n",
    "liege.csv": "subject,relation,object\nA,liege,B\nC,liege,D\n",
    "notes.txt": "subject relation object",
    "capital.csv": "subject,relation,object\nFrance,capital,Paris\nPeru,capital,Lima\n",
    "country.csv": "country,capital\nFrance,Paris\n",
    "semicolon.csv": "subject;relation;object\nFrance;P36;Paris\n",
    "comma.csv": "subject,relation,object\nUnited States,P36,Washington, D.C.\n",
}


@pytest.fixture
def here(tmp_path, monkeypatch) -> Path:
    """A folder with a newcomer's files, from which everything is started."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    for name, text in TABLES.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "latin.csv").write_bytes(
        "subject,relation,object\nMünchen,P36,B\n".encode("latin-1")
    )
    (tmp_path / "folder").mkdir()
    (tmp_path / "half").mkdir()
    (tmp_path / "half" / "config.json").write_text("{}")
    return tmp_path


def table(name: str) -> facts.Facts:
    return facts.load("table", name)


# (what is called, how its message begins); "..." stands for a longer list
IN_PYTHON = [
    (lambda: repr(lm.load(SMALLEST, device="cuda")), "device='cuda', but torch finds no GPU here ... use device='cpu'"),
    (lambda: lm.load("atlas-neox-2"),
     "unknown model 'atlas-neox-2'; did you mean atlas-neox-2.4m or atlas-neox-1.2m or atlas-neox-5m? Known: <folder>, "
     "<owner>/<name> on Hugging Face, ..."),
    (lambda: lm.load("./my_model"), "./my_model: no such folder"),
    (lambda: lm.load("./folder"), "...folder has no config.json: it is not a model folder"),
    (lambda: lm.load("./half"),
     "...half has no *.safetensors that transformers loads ... save it with model.save_pretrained(folder)"),
    (lambda: lm.load(SMALLEST, quantize="3bit"),
     "unknown quantize '3bit'; did you mean 8bit or 4bit? Known: 4bit, 8bit."),
    (lambda: lm.load(SMALLEST, dtype="half"), "unknown dtype 'half'; Known: auto, bfloat16, float16, float32."),
    (lambda: facts.load(relations="P36"), "relations: 'P36' is given; a list of texts is needed: ['P36']"),
    (lambda: facts.load(relations=["P3666"]),
     "unknown relation 'P3666'; did you mean P36 (capital) or ... Known: K1 (Nobel Prize year), ... more."),
    (lambda: facts.load(relations=["capital"]),
     "unknown relation 'capital'; did you mean P36 (capital) or P1376 (capital of)?"),
    (lambda: facts.load(relations=[36]), "relations: 36 is of type int; a list of texts is needed"),
    (lambda: facts.load(relations=[]),
     "relations is an empty list; name one, ['P36'], or give None for all"),
    (lambda: facts.load(n_facts="many"),
     "n_facts is 'many'; allowed: 'panel', 'natural', 'trial', 'all', or a number of facts per relation (from 1)"),
    (lambda: facts.load("tabel", "x.csv"), "unknown data 'tabel'; did you mean table or ... Known: atlas, bear, ..."),
    (lambda: facts.load("table"), "data='table' needs folder=..., the path of its files"),
    (lambda: table("mine.csv"), "mine.csv: no such file in /..."),
    (lambda: table("folder"), "folder: a table is a .csv, .tsv, .parquet, .jsonl or .json file"),
    (lambda: table("notes.txt"), "notes.txt: a table is a .csv, .tsv, .parquet, .jsonl or .json file"),
    (lambda: table("columns.csv"),
     "columns.csv:1: the columns are ['subjekt', 'relation', 'object']; needed, each once: ['relation', 'subject', 'object']. "
     "Rename them in the file, or say which are meant: columns=subject:subjekt"),
    (lambda: table("nothing.csv"), "nothing.csv:1: an empty file; its first line names the columns"),
    (lambda: table("head.csv"), "table:head.csv: no facts; a file holds one per row, below its header"),
    (lambda: table("hole.csv"), "hole.csv:2: an empty object; fill it in, or delete the row"),
    (lambda: prompts.paraphrases(table("liege.csv")),
     "no question template for liege; available roles: none. Those of FACTS.csv are in FACTS.templates.csv..."),
    (lambda: table("capital.csv"),
     "table:capital.csv: relation 'capital' has no templates. Did you mean P36, which gets those of the atlas? ..."),
    (lambda: table("country.csv"),
     "country.csv:1: the columns are ['country', 'capital']; ... columns=relation:=P36 (a text after = is the same in "
     "every row),subject:NAME,object:NAME"),
    (lambda: facts.load("table?subject:land", "country.csv"),
     "country.csv:1: the columns are ['country', 'capital']; ... Rename them in the file, or say which are meant: columns=..."),
    (lambda: table("semicolon.csv"),
     "semicolon.csv:1: the columns are ['subject;relation;object']; ... The cells are separated by ';': use commas..."),
    (lambda: table("comma.csv"),
     "comma.csv:2: 4 cells, the header has 3: ... A cell with a comma needs quotation marks"),
    (lambda: table("latin.csv"),
     "latin.csv:2: not UTF-8 (byte 25). Save the file as UTF-8 (in a spreadsheet: CSV UTF-8)"),
    (lambda: facts.load("capital.csv"),
     "data='capital.csv' looks like a path: data='table' with folder='capital.csv' reads it"),
    (lambda: facts.load("atlas", "capital.csv"),
     "folder='capital.csv': the atlas is shipped and takes no folder. Name the data that the folder holds: data='table'"),
    (lambda: facts.pick(facts.atlas(), ["P36:Frence:Paris"]),
     "1 of 1 ids name no fact of atlas, the first is 'P36:Frence:Paris'; did you mean P36:France:Paris ..."),
    (lambda: facts.pick(facts.atlas(), "P36:France:Paris"),
     "ids: 'P36:France:Paris' is given; a list of texts is needed: ['P36:France:Paris']"),
    (lambda: facts.draw_distractors(facts.load(relations=["P36"], n_facts=1), n="5"),
     "n='5' distractors; an integer of at least 0 is needed"),
    (lambda: explore.look(explore.load_pool(), SMALLEST, "P36:France:Paris", Path("runs")),
     "'atlas-neox-0.15m' is the name of a model; give the model itself: explore.load_model('atlas-neox-0.15m')"),
    (lambda: monitor.score([SMALLEST], ["P36:France:Paris"], Path("runs")),
     "facts: pass what `facts.load` returns, not a list"),
    (lambda: facts.load("fktc", "folder"),
     "folder: no file {relation}-subclass*.json there; found: none"),
    (lambda: facts.load("popqa", "folder"), "folder: no file test.tsv there; found: none"),
    (lambda: facts.load("hub:popqa"),
     "data=hub:popqa: hub:OWNER/NAME is expected, with @REVISION and /FILES if needed"),
    (lambda: explore.fact_about("P36", "Frence"),
     "none of the 426 subjects of P36 is called 'Frence'; the nearest are France, Greece, French Polynesia, French Guiana"),
    (lambda: menus.find("fact", "z", {"Brazil – Brasília": "a", "Zambia – Lusaka": "b"}),
     "2 facts match 'z': Brazil – Brasília, Zambia – Lusaka. Type more of the name."),
    (lambda: beyond.score([SMALLEST], None, Path(), measures=["ZP choise"]),
     "unknown measure 'ZP choise'; did you mean ZP choice or ZP response? Known: ..."),
    (lambda: monitor.score(SMALLEST, facts.load(relations=["P36"], n_facts=1), Path()),
     "models: 'atlas-neox-0.15m' is given; a list of texts is needed: ['atlas-neox-0.15m']"),
]  # fmt: skip


def begins(message: str, expected: str) -> bool:
    """Whether a message holds the parts between the dots in their order, the first one at its
    beginning."""
    first, *parts = expected.split("...")
    at = len(first)
    found = message.startswith(first.rstrip()) or message.startswith(first)
    for part in parts:
        at = message.find(part.strip(), at)
        found = found and at >= 0
    return found


@pytest.mark.parametrize(
    ("call", "expected"), IN_PYTHON, ids=[expected[:40] for _, expected in IN_PYTHON]
)
def test_a_mistake_in_python_is_explained(here, call, expected):
    with pytest.raises(ProbeError) as error:
        call()
    assert begins(str(error.value), expected), error.value


SEC5 = ("--only", "monitor/sec5_results")
ON_THE_COMMAND_LINE = [
    (("--profile", "atlass"),
     "unknown profile 'atlass'; did you mean atlas? Known: atlas, mine, paper, small, smoke, study."),
    (("--only", "monitor/sec5"),
     "unknown notebook, paper or artifact (--list shows all) 'monitor/sec5'; did you mean ... monitor/sec5_results ..."),
    (("--only", "notebooks/monitor/sec5_results.ipynb"),
     "unknown notebook, paper or artifact (--list shows all) 'notebooks/monitor/sec5_results.ipynb'; did you mean "
     "monitor/sec5_results ..."),
    ((*SEC5, "--set", "n_fact=3"),
     "unknown parameter (none of the selected notebooks has it) 'n_fact'; did you mean n_facts or format? Known: ..."),
    ((*SEC5, "--set", "n_facts", "3"), "--set 'n_facts': NAME=VALUE is expected, as in --set n_facts=50."),
    ((*SEC5, "--set", f"models={SMALLEST}"),
     f"--set models={SMALLEST}, monitor/sec5_results: '{SMALLEST}' is of type str, the notebook takes list. A list is written "
     f"[{SMALLEST}]."),
    ((*SEC5, "--set", "seed=abc"),
     "--set seed=abc, monitor/sec5_results: 'abc' is of type str, the notebook takes int."),
    ((*SEC5, "--set", "data=table", "folder=mine.csv"), "--set folder=mine.csv: there is no such file or folder."),
    ((*SEC5, "--set", "folder=columns.csv"),
     "folder=... the data are the atlas, which is shipped and takes no folder; "
     "name the data in this folder: --set data=table ..."),
    ((*SEC5, "--set", "models=[a,b"), "--set 'models=[a,b': '[a,b' is not YAML: ..."),
    ((*SEC5, "--models", "./my_model", "--dry-run"), "./my_model: no such folder"),
    ((*SEC5, "--quantize", "16bit", "--dry-run"),
     "unknown quantize '16bit'; did you mean 8bit or 4bit? Known: 4bit, 8bit."),
    (("--on", "slrum"),
     "unknown engine (--on) 'slrum'; Known: local, tcp://HOST:PORT."),
    (("labs",), "'labs' is unexpected. ... Other commands are lab, test, ..."),
    (("monitor",), "'monitor' is unexpected. Papers and notebooks follow --only, ..."),
    ((*SEC5, "--models", SMALLEST, "atlas-neox-0.6m"),
     "'atlas-neox-0.6m' is unexpected. ... models are separated by commas (--models A,B) ..."),
    ((*SEC5, "--set", "data=capital.csv"),
     "data='capital.csv' looks like a path: data='table' ..."),
    (("--jobs", "0"), "--jobs is 0; it takes 1 or more."),
    (("--plan", "my_plan.yaml"), "cannot read the plan ... my_plan.yaml: No such file or directory."),
]  # fmt: skip


@pytest.mark.parametrize(
    ("flags", "expected"), ON_THE_COMMAND_LINE, ids=[" ".join(f) for f, _ in ON_THE_COMMAND_LINE]
)
def test_a_mistake_on_the_command_line_is_one_line(here, capsys, flags, expected):
    assert cli.main(list(flags)) == 2
    printed = capsys.readouterr()
    assert printed.out == "" and printed.err.count("\n") == 1 and begins(printed.err, expected), (
        printed.err
    )
