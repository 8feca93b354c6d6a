"""The command line: choose steps of the plan, check everything that can be checked before, run them, build the report.

A run writes to runs/<profile>/: notebooks/<name>.ipynb (after a failure <name>.failed.ipynb), done/<name>.json (see
``uptodate``; a step without one has not succeeded) and report.html. The products are in figures/<profile>/.
"""

import argparse
import asyncio
import contextlib
import difflib
import fcntl
import os
import re
import sys
from collections.abc import Collection, Iterator
from pathlib import Path
from textwrap import fill, indent

from probelib import paths
from probelib.errors import ProbeError, printable, unknown
from probelib.lm.names import IN_CHAT, organisms, split_chat, with_base
from probelib.runner import plan, preflight, shards, steps, uptodate, workers
from probelib.runner.plan import Plan, Step

# parameters that always name a file or a folder
FILES = {"exposures", "folder", "pageviews", "ratings_file", "released", "results", "templates", "verbalizations"}
COMMANDS = ("lab", "test", "verify", "bench", "course", "browse", "export", "site", "campaign")  # those of run_all.sh
EXAMPLES = """\
examples:
  ./run_all.sh                                  all notebooks on the shipped facts and models (profile atlas)
  ./run_all.sh --profile smoke                  all notebooks on the fewest facts and smallest models
  ./run_all.sh --only monitor                   one paper, and the notebooks that it needs
  ./run_all.sh --only monitor/table4 --force    rerun the notebook that makes this table
  ./run_all.sh --profile small --models EleutherAI/pythia-410m,./my_model --quantize 8bit
  ./run_all.sh --only monitor --set data=fktc folder=../FKTC n_facts=50     other facts
  ./run_all.sh --only monitor --set data=hub:akariasai/PopQA                facts from the Hugging Face Hub
  ./run_all.sh --only monitor --set data=table folder=mine.jsonl columns=subject:s,relation:prop,object:o
  ./run_all.sh --dry-run                        show what would run, and why
  ./run_all.sh --profile paper --on local --jobs 4                          score first, with four workers on this machine
  ./run_all.sh --profile paper --on tcp://scheduler:8786                    score first, on a running Dask cluster
  ./run_all.sh --profile paper --on slurm --cluster queue=gpu gpu_gb=80     score first, in jobs of a batch system
  ./run_all.sh --profile paper --status         show the progress of scoring

other commands:
  ./run_all.sh lab                              JupyterLab on the notebooks; exploring writes to figures/mine
  ./run_all.sh test [--fast | --slow]           the tests: those of 90 seconds, those of CI, or all; also takes pytest's arguments
  ./run_all.sh verify                           compare the figures with the committed ones
  ./run_all.sh bench [arguments]                the benchmarks
  ./run_all.sh course --out DIR                 the labs of the course: student and instructor copies, slides
  ./run_all.sh browse                           one offline page with every answer, fact by fact
  ./run_all.sh export --format F --out DIR      tasks, results and cards for other tools: lm-eval, eee, hf, croissant
  ./run_all.sh site --out DIR                   a MyST (Jupyter Book 2) project of the pages
  ./run_all.sh campaign [arguments]             fault injection: kills, full disks, flipped bits

  PROBELIB_OUT=../mine ./run_all.sh ...         write figures and runs there, not into this checkout

Each run first deletes the previous products of its notebooks in figures/<profile>. A failed run leaves no products.
A stopped run resumes with the same command.
Exit code: 0 success, 1 a step failed, 2 the request or the plan is wrong, 130 stopped.
"""


def main(arguments: list[str] | None = None) -> int:
    """Run the command; return the exit code."""
    args, unexpected = _parser().parse_known_args(arguments)
    try:
        if unexpected:
            raise _unexpected(unexpected[0])
        if os.environ.get("PROBELIB_OUT") == "":
            raise ProbeError(
                "PROBELIB_OUT is empty: name the folder to write to, or unset it to write into the checkout."
            )
        whole = plan.read(args.plan)
        named = plan.matching(whole, args.only) if args.only else {step.notebook for step in whole.steps}
        chosen = plan.with_needs(whole, named)
        given = _given(args)
        settings = plan.settings(whole, chosen, args.profile, given)
        for name in sorted(plan.without_effect(whole, chosen, given)):
            print(f"--set {name}=[] changes nothing: none of the selected notebooks has this parameter.")
        force = named if args.force else set()
        if args.list:
            _print_table(("notebook", "makes"), [(step.notebook, ", ".join(step.makes)) for step in chosen])
            return 0
        preflight.check(settings, given)
        settings = plan.without_unread_folders(chosen, settings)
        if args.dry_run:
            reasons = uptodate.why(args.profile, chosen, uptodate.inputs(chosen, settings), force)
            _print_table(("notebook", "runs"), [(name, reason or "up to date") for name, reason in reasons.items()])
            _print_needs(settings)
            return 0
        if args.status:
            print(shards.status(shards.cut(args.profile, chosen, settings)))
            return 0
        with _lock(args.profile):
            preflight.reach(settings, given)
            if args.on and not score(chosen, settings, force, args):
                return 1
            return run(whole, chosen, settings, force, args)
    except ProbeError as error:
        print(error, file=sys.stderr)
        return 2
    except OSError as error:
        print(steps.cannot_write(error), file=sys.stderr)
        return 1
    except (KeyboardInterrupt, asyncio.CancelledError):
        print("\nstopped; the same command resumes", file=sys.stderr)
        return 130


def run(whole: Plan, chosen: list[Step], settings: dict, force: Collection[str], args: argparse.Namespace) -> int:
    """Run the stale steps among ``chosen`` and build the report on the ``whole`` plan; return 0 or 1.

    settings  see ``plan.settings``
    force     notebooks to run although they are up to date
    """
    profile, now = args.profile, uptodate.inputs(chosen, settings)
    reasons = uptodate.why(profile, chosen, now, force)
    outcomes = {step.notebook: steps.StepOutcome("up to date") for step in chosen}
    if any(reasons.values()):
        (paths.RUNS / profile / "verify.csv").unlink(missing_ok=True)  # it compared the previous products
        outcomes = asyncio.run(steps.run_steps(profile, chosen, now, reasons, args.jobs))
    made = {step.notebook: ", ".join(step.makes) for step in chosen}
    rows = [(name, outcome.status, outcome.time(), made[name]) for name, outcome in outcomes.items()]
    _print_table(("step", "status", "seconds", "products"), rows)
    report = paths.RUNS / profile / "report.html"
    if any(reasons.values()) or not uptodate.reported(profile):
        status = {step.notebook: "not selected" for step in whole.steps}
        status |= {name: ": ".join(filter(None, each[:2])) for name, each in outcomes.items()}
        try:
            from probelib.report.pages import book  # here: it imports matplotlib and pandas, which takes seconds

            report = book(profile, whole.steps, status, uptodate.written(profile))
            uptodate.write_report(profile)
        except Exception as error:  # the results of the steps are valid without the report
            print(printable(f"FAILED     report: {type(error).__name__}: {error}"))
            return 1
    print(f"report: {report}")
    return 0 if all(outcome.status in ("ok", "up to date") for outcome in outcomes.values()) else 1


def score(chosen: list[Step], settings: dict[str, dict], force: Collection[str], args: argparse.Namespace) -> bool:
    """Score the models and facts of the stale steps on the workers of ``args.on``; return whether the notebooks can run."""
    import torch

    reasons = uptodate.why(args.profile, chosen, uptodate.inputs(chosen, settings), force)
    cut = shards.cut(args.profile, [step for step in chosen if reasons[step.notebook]], settings)
    if failed := workers.score(cut, args.on, args.jobs, _assignments(args.cluster, "--cluster")):
        print(f"{len(failed)} of {len(cut)} shards failed, so no notebook runs; the same command retries them")
        return False
    if other := shards.devices(cut) - {"cuda" if torch.cuda.is_available() else "cpu", "server"}:
        print(
            f"all shards are done, on {' and '.join(sorted(other))}. Scores are keyed by the kind of device, and this machine "
            "has no such device: run the same command without --on on a machine that has one"
        )
        return False
    return True


def _unexpected(argument: str) -> ProbeError:
    near = difflib.get_close_matches(argument, [*COMMANDS, "--dry-run", "--models", "--quantize", "--profile"], n=1)
    hint = f" Did you mean {near[0]}?" if near else ""
    return ProbeError(
        f"{argument!r} is unexpected.{hint} Papers and notebooks follow --only, parameters follow --set, and models are "
        f"separated by commas (--models A,B). Other commands are {', '.join(COMMANDS)}; --help describes all."
    )


def _parser() -> argparse.ArgumentParser:
    form = {"epilog": EXAMPLES, "formatter_class": argparse.RawDescriptionHelpFormatter}
    pairs = {"nargs": "+", "metavar": "NAME=VALUE", "default": []}
    what = "Run the notebooks that make all tables and figures."
    parser = argparse.ArgumentParser("run_all.sh", description=what, **form)
    add = parser.add_argument
    add("--profile", default="atlas", help="models and number of facts: smoke, atlas (default), study, small, paper")
    add(
        "--only",
        nargs="+",
        metavar="NAME",
        help="notebooks (monitor/sec5_results), papers (monitor) or artifacts (monitor/table4: the whole notebook that "
        "makes it), with the notebooks that they need; default: everything",
    )
    add(
        "--models",
        metavar="A,B",
        help="replace the profile's `models`: shipped models, Hugging Face ids, folders. The profile's other models stay "
        "(--set tuned=[] encoder_decoders=[] judge=B replaces them); --dry-run shows all",
    )
    add("--quantize", metavar="BITS", help="8bit or 4bit: load the models quantized")
    add(
        "--set",
        **pairs,
        help="any other parameter of the notebooks, its value in YAML: data=fktc folder=../FKTC n_facts=50",
    )
    add(
        "--jobs",
        type=int,
        metavar="N",
        help="notebooks (with --on: workers) at a time; default: the number of GPUs, or 2 without GPUs, or 16 on a batch system",
    )
    add("--force", action="store_true", help="run the selected notebooks although they are up to date")
    add(
        "--on",
        metavar="ENGINE",
        nargs="?",
        const="local",
        help="score before the notebooks run, on Dask workers: `local` (--jobs of them, here), the address of a scheduler "
        "(tcp://host:8786), or jobs of `slurm`, `pbs`, `lsf` or `sge`",
    )
    add(
        "--cluster",
        **pairs,
        help="resources of a batch system's jobs: gpu_gb=80 (memory of one GPU; without it CPUs) mem_gb= gpus= cores=2 "
        "timeout_min=240, and arguments of dask-jobqueue: queue=gpu account=... interface=ib0",
    )
    add("--status", action="store_true", help="show the progress of --on")
    add("--list", action="store_true", help="show the notebooks and the artifacts of each")
    add("--dry-run", action="store_true", help="show what would run, and why; models, memory and data")
    add("--plan", type=Path, metavar="FILE", help="another plan than notebooks/plan.yaml, with its notebooks beside it")
    return parser


def _given(args: argparse.Namespace) -> dict:
    """The notebook parameters that the command line sets. Raise ProbeError for a wrong value of a flag."""
    given = {}
    if args.jobs is not None and args.jobs < 1:
        raise ProbeError(f"--jobs is {args.jobs}; it takes 1 or more.")
    if args.models is not None:
        models = [name.strip() for name in args.models.split(",") if name.strip()]
        if not models:
            raise ProbeError("--models is empty; it takes names, as in --models a,b.")
        given["models"] = _absolute(models, bare=True)
    if args.quantize is not None:
        given["quantize"] = args.quantize
    if args.on is not None and "://" not in args.on and args.on not in ("local", *workers.GPUS):
        raise unknown("engine (--on)", args.on, ("local", "tcp://HOST:PORT", *workers.GPUS))
    if args.cluster and args.on in (None, "local"):
        raise ProbeError("--cluster is for --on tcp://HOST:PORT, slurm, pbs, lsf or sge.")
    assigned = _assignments(args.set, "--set")
    named = assigned | (assigned["settings"] if isinstance(assigned.get("settings"), dict) else {})
    for name in sorted(FILES & named.keys()):
        if isinstance(named[name], str) and not os.path.exists(os.path.expanduser(named[name])):
            raise ProbeError(f"--set {name}={named[name]}: there is no such file or folder.")
    if "columns" in assigned:
        columns = assigned.pop("columns")
        pairs = columns if isinstance(columns, str) else ",".join(f"{ours}:{own}" for ours, own in columns.items())
        assigned["data"] = f"{assigned.get('data', 'table')}?{pairs}"
    bare = FILES.union(preflight.NAMES, ["graph"] if assigned.get("graph") != "atlas" else [])
    try:
        return given | {name: _absolute(value, name in bare) for name, value in assigned.items()}
    except RecursionError:
        raise ProbeError("--set: a value is nested too deeply (lists in lists)") from None


def _assignments(given: list[str], flag: str) -> dict:
    """NAME=VALUE of the command line; the values are read as YAML."""
    values = {}
    for assignment in given:
        name, equals, value = assignment.partition("=")
        if not equals:
            raise ProbeError(f"{flag} {assignment!r}: NAME=VALUE is expected, as in {flag} n_facts=50.")
        import yaml  # here, so that --help works before anything is installed

        try:
            # 1e-3 is a number in YAML 1.2; PyYAML, which reads YAML 1.1, returns a text
            values[name] = float(value) if re.fullmatch(r"[-+]?\d+e[-+]?\d+", value) else yaml.safe_load(value)
        except (yaml.YAMLError, ValueError, RecursionError) as error:  # ValueError: a date such as 2020-13-01
            raise ProbeError(f"{flag} {assignment!r}: {value!r} is not YAML: {' '.join(str(error).split())}") from None
    return values


def _absolute(value: object, bare: bool = False) -> object:
    """Make relative paths absolute, also in lists, in dictionaries and on both sides of tuned=base: a notebook runs in its own
    folder. A link keeps its name, which tables and figures show.

    bare   a name without a slash may be a path, too
    """
    if isinstance(value, list):
        return [_absolute(each, bare) for each in value]
    if isinstance(value, dict):
        return {name: _absolute(each, name in FILES) for name, each in value.items()}
    if not isinstance(value, str):
        return value
    home = os.path.expanduser
    is_path = lambda name: ("/" in name or bare) and name not in organisms() and os.path.exists(home(name))
    halves = with_base(value) if all(with_base(value)) and not is_path(value) else [value]
    named = [(half, *split_chat(half)) for half in halves]
    full = lambda name: os.path.abspath(home(name))
    return "=".join(full(name) + IN_CHAT * in_chat if is_path(name) else half for half, name, in_chat in named)


@contextlib.contextmanager
def _lock(profile: str) -> Iterator[None]:
    """Lock the profile for this process; the lock ends with the process, even if it is killed."""
    file = paths.RUNS / profile / "lock"
    file.parent.mkdir(parents=True, exist_ok=True)
    with open(file, "a") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ProbeError(
                f"another run of profile {profile} is in progress ({file} is locked); wait until it ends, "
                "stop it, or choose another --profile."
            ) from None
        yield


def _print_needs(settings: dict[str, dict]) -> None:
    """The models with the memory of their weights, and the data, each with its notebooks."""
    print()
    head = ("model", "parameters with embeddings", "GiB at 16 bit", "8bit", "4bit", "notebooks")
    _print_table(head, preflight.table(settings))
    print("\nfacts:")
    for data, notebooks in preflight.data(settings).items():
        print(printable(f"  {data}\n{indent(fill(', '.join(notebooks), 110), '      ')}"))


def _print_table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> None:
    rows = [tuple(map(printable, row)) for row in rows]
    widths = [max(len(row[column]) for row in (head, *rows)) for column in range(len(head))]
    for row in (head, *rows):
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


if __name__ == "__main__":
    sys.exit(main())
