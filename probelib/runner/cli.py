"""The command line: choose steps of the plan, check what can be checked before, run them, build the
report.

A run writes to runs/<profile>/: notebooks/<name>.ipynb (after a failure <name>.failed.ipynb),
done/<name>.json (see ``uptodate``; a step without one has not succeeded) and report.html. The
products are in figures/<profile>/.
"""

import argparse
import asyncio
import os
import sys
from collections.abc import Collection
from pathlib import Path
from textwrap import fill, indent

from probelib import parameters, paths
from probelib.errors import ProbeError, printable, unknown
from probelib.lm.names import IN_CHAT, organisms, split_chat, with_base
from probelib.runner import cluster, plan, preflight, steps, uptodate
from probelib.runner.plan import Plan, Step

# parameters that always name a file or a folder
FILES = {"exposures", "folder", "pageviews", "ratings_file", "released", "results", "templates"}
FILES |= {"verbalizations"}
COMMANDS = ("lab", "test", "verify", "bench", "course", "browse", "export", "site", "campaign")
EXAMPLES = """\
examples:
  ./run_all.sh                                  all notebooks, shipped facts and models (atlas)
  ./run_all.sh --profile smoke                  all notebooks, fewest facts and smallest models
  ./run_all.sh --only monitor                   one paper, and the notebooks that it needs
  ./run_all.sh --only monitor/table4 --force    rerun the notebook that makes this table
  ./run_all.sh --dry-run                        show what would run, and why
  ./run_all.sh --profile small --models EleutherAI/pythia-410m,./my_model --quantize 8bit
  ./run_all.sh --only monitor --set data=fktc folder=../FKTC n_facts=50
  ./run_all.sh --only monitor --set data=hub:akariasai/PopQA
  ./run_all.sh --only monitor --set data=table folder=my.csv columns=subject:s,relation:p,object:o
  ./run_all.sh --profile paper --on local --jobs 4           model by model first, 4 at a time
  ./run_all.sh --profile paper --on tcp://scheduler:8786     on a running Dask cluster
  ./run_all.sh --profile paper --on slurm --cluster queue=gpu memory=64GiB     in batch jobs

other commands:
  ./run_all.sh lab                              JupyterLab; exploring writes to figures/mine
  ./run_all.sh test [--fast | --slow]           the tests; also takes pytest's arguments
  ./run_all.sh verify                           compare the figures with the committed ones
  ./run_all.sh bench [NAME]                     the benchmarks
  ./run_all.sh campaign                         fault injection: kills, full disks, flipped bits
  ./run_all.sh course --out DIR                 the labs: student and instructor copies, slides
  ./run_all.sh browse                           one offline page with every answer
  ./run_all.sh export --format F --out DIR      results for other tools: lm-eval, eee, hf, croissant
  ./run_all.sh site --out DIR                   a MyST (Jupyter Book 2) project of the pages

  PROBELIB_OUT=../mine ./run_all.sh ...         write figures and runs there

Each run first deletes the previous products of its notebooks in figures/<profile>. A failed run
leaves no products. A stopped run resumes with the same command.
Exit code: 0 success, 1 a step failed, 2 the request or the plan is wrong, 130 stopped.
"""


def main(arguments: list[str] | None = None) -> int:
    """Run the command; return the exit code."""
    args, unexpected = _parser().parse_known_args(arguments)
    try:
        if unexpected:
            raise ProbeError(
                f"{unexpected[0]!r} is unexpected. Papers and notebooks follow --only, parameters "
                "follow --set, and models are separated by commas (--models A,B). Other commands "
                f"are {', '.join(COMMANDS)}; --help describes all."
            )
        if os.environ.get("PROBELIB_OUT") == "":
            raise ProbeError(
                "PROBELIB_OUT is empty: name the folder to write to, or unset it to write into "
                "the checkout."
            )
        whole = plan.read(args.plan)
        everything = {step.notebook for step in plan.steps_of(whole, args.profile)}
        named = plan.matching(whole, args.only) if args.only else everything
        chosen = plan.with_needs(whole, named)
        given = _given(args, plan.types(chosen))
        settings = plan.settings(whole, chosen, args.profile, given)
        if args.list:
            made = [(step.notebook, ", ".join(step.makes)) for step in chosen]
            _print_table(("notebook", "makes"), made)
            return 0
        preflight.check(settings, given)
        force = named if args.force else set()
        if args.dry_run:
            now = uptodate.inputs(chosen, settings)
            reasons = uptodate.why(args.profile, chosen, now, force)
            rows = [(name, reason or "up to date") for name, reason in reasons.items()]
            _print_table(("notebook", "runs"), rows)
            _print_needs(settings)
            return 0
        with uptodate.lock(args.profile):
            preflight.check(settings, given, online=True)
            return asyncio.run(run(whole, chosen, settings, force, args))
    except ProbeError as error:
        print(error, file=sys.stderr)
        return 2
    except OSError as error:
        print(steps.cannot_write(error), file=sys.stderr)
        return 1
    except (KeyboardInterrupt, asyncio.CancelledError):
        print("\nstopped; the same command resumes", file=sys.stderr)
        return 130


async def run(
    whole: Plan,
    chosen: list[Step],
    settings: dict[str, dict],
    force: Collection[str],
    args: argparse.Namespace,
) -> int:
    """Run the stale steps among ``chosen`` and build the report; return 0 or 1.

    settings  see ``plan.settings``
    force     notebooks to run although they are up to date
    """
    profile, now = args.profile, uptodate.inputs(chosen, settings)
    reasons = uptodate.why(profile, chosen, now, force)
    outcomes = {step.notebook: steps.StepOutcome("up to date") for step in chosen}
    if stale := [step for step in chosen if reasons[step.notebook]]:
        # it compared the previous products
        (paths.RUNS / profile / "verify.csv").unlink(missing_ok=True)
        options = _assignments(args.cluster, "--cluster")
        async with cluster.workers(args.on or "local", args.jobs, options) as places:
            if args.on:
                await cluster.one_by_one(profile, stale, settings, places)
            outcomes = await steps.run_steps(profile, chosen, now, reasons, places)
    made = {step.notebook: ", ".join(step.makes) for step in chosen}
    rows = [(name, each.status, each.time(), made[name]) for name, each in outcomes.items()]
    _print_table(("step", "status", "seconds", "products"), rows)
    report = paths.RUNS / profile / "report.html"
    if stale or not uptodate.reported(profile):
        status = {step.notebook: "not selected" for step in whole.steps}
        status |= {name: ": ".join(filter(None, each[:2])) for name, each in outcomes.items()}
        try:
            from probelib.report.pages import book  # here: matplotlib and pandas take seconds

            report = book(profile, plan.steps_of(whole, profile), status)
            uptodate.write_report(profile)
        except Exception as error:  # the results of the steps are valid without the report
            print(printable(f"FAILED     report: {type(error).__name__}: {error}"))
            return 1
    print(f"report: {report}")
    return 0 if all(o.status in ("ok", "up to date") for o in outcomes.values()) else 1


def _parser() -> argparse.ArgumentParser:
    form = {"epilog": EXAMPLES, "formatter_class": argparse.RawDescriptionHelpFormatter}
    what = "Run the notebooks that make all tables and figures."
    parser = argparse.ArgumentParser("run_all.sh", description=what, **form)
    pairs = {"nargs": "+", "metavar": "NAME=VALUE", "default": []}
    add = parser.add_argument
    profiles = "models and number of facts: smoke, atlas (default), study, small, paper"
    add("--profile", default="atlas", help=profiles)
    only = "notebooks (monitor/sec5_results), papers (monitor) or artifacts (monitor/table4: the "
    only += "whole notebook that makes it), with the notebooks they need; default: everything"
    add("--only", nargs="+", metavar="NAME", help=only)
    models = "replace the profile's `models`: shipped models, Hugging Face ids, folders. The "
    models += "profile's other models stay (--set tuned=[] encoder_decoders=[] judge=B replaces "
    add("--models", metavar="A,B", help=f"{models}them); --dry-run shows all")
    add("--quantize", metavar="BITS", help="8bit or 4bit: load the models quantized")
    other = (
        "any other parameter of the notebooks: numbers, true, false, null, [a, b] and {a: 1} as "
    )
    other += (
        "in JSON (without quotes), everything else as text: data=fktc folder=../FKTC n_facts=50"
    )
    add("--set", **pairs, help=other)
    jobs = (
        "notebooks at a time; default: the number of GPUs, or 2 without GPUs, one per worker of a "
    )
    add("--jobs", type=int, metavar="N", help=f"{jobs}cluster, or 16 on a batch system")
    add("--force", action="store_true", help="run the selected notebooks although up to date")
    on = "score model by model before the notebooks run, each in a run of its own: `local` (here), "
    on += (
        "the address of a Dask scheduler (tcp://host:8786), or jobs of `slurm`, `pbs`, `lsf`, `sge`"
    )
    add("--on", metavar="ENGINE", nargs="?", const="local", help=on)
    resources = (
        "resources of a batch system's jobs: gpu_gb=80 (memory of one GPU; without it CPUs) "
    )
    resources += "mem_gb= gpus= cores=2 timeout_min=240, and arguments of dask-jobqueue: queue=gpu "
    add("--cluster", **pairs, help=f"{resources}account=... interface=ib0")
    add("--list", action="store_true", help="show the notebooks and the artifacts of each")
    dry = "show what would run, and why; models, memory and data"
    add("--dry-run", action="store_true", help=dry)
    add("--plan", type=Path, metavar="FILE", help="another plan, with its notebooks beside it")
    return parser


def _given(args: argparse.Namespace, types: dict[str, set[type]] | None = None) -> dict:
    """The notebook parameters that the command line sets. Raise ProbeError for a wrong flag.

    types   see ``plan.types``
    """
    if args.jobs is not None and args.jobs < 1:
        raise ProbeError(f"--jobs is {args.jobs}; it takes 1 or more.")
    if args.on is not None and "://" not in args.on and args.on not in ("local", *cluster.SYSTEMS):
        raise unknown("engine (--on)", args.on, ("local", "tcp://HOST:PORT", *cluster.SYSTEMS))
    if args.cluster and args.on in (None, "local"):
        raise ProbeError("--cluster is for --on tcp://HOST:PORT, slurm, pbs, lsf or sge.")
    assigned = _assignments(args.set, "--set", types)
    inner = assigned.get("settings")
    named = assigned | (inner if isinstance(inner, dict) else {})
    for name in sorted(FILES & named.keys()):
        if isinstance(named[name], str) and not os.path.exists(os.path.expanduser(named[name])):
            raise ProbeError(f"--set {name}={named[name]}: there is no such file or folder.")
    if "columns" in assigned:
        columns = assigned.pop("columns")
        if isinstance(columns, dict):
            columns = ",".join(f"{ours}:{own}" for ours, own in columns.items())
        assigned["data"] = f"{assigned.get('data', 'table')}?{columns}"
    bare = FILES.union(preflight.NAMES, ["graph"] if assigned.get("graph") != "atlas" else [])
    try:
        found = {name: _absolute(value, name in bare) for name, value in assigned.items()}
    except RecursionError:
        raise ProbeError("--set: a value is nested too deeply (lists in lists)") from None
    if args.models is not None:
        models = [name.strip() for name in args.models.split(",") if name.strip()]
        if not models:
            raise ProbeError("--models is empty; it takes names, as in --models a,b.")
        found["models"] = _absolute(models, bare=True)
    if args.quantize is not None:
        found["quantize"] = args.quantize
    for name in preflight.NAMES:
        if isinstance(entries := found.get(name), list):
            found[name] = [each for i, each in enumerate(entries) if each not in entries[:i]]
            for twice in sorted({str(each) for each in entries if entries.count(each) > 1}):
                print(f"{name}: {twice} is named twice; it counts once.", file=sys.stderr)
    return found


def _assignments(given: list[str], flag: str, types: dict[str, set[type]] | None = None) -> dict:
    """NAME=VALUE of the command line, read by ``parameters.from_text``."""
    values = {}
    for assignment in given:
        name, equals, value = assignment.partition("=")
        if not equals:
            example = f"NAME=VALUE is expected, as in {flag} n_facts=50."
            raise ProbeError(f"{flag} {assignment!r}: {example}")
        try:
            values[name] = parameters.from_text(value, (types or {}).get(name, set()))
        except parameters.yaml_errors() as error:
            reason = " ".join(str(error).split())
            raise ProbeError(f"{flag} {assignment!r}: {value!r} is not YAML: {reason}") from None
    return values


def _absolute(value: object, bare: bool = False) -> object:
    """Make relative paths absolute, also in lists, in dictionaries and on both sides of tuned=base:
    a notebook runs in its own folder. A link keeps its name, which tables and figures show.

    bare   a name without a slash may be a path, too
    """
    if isinstance(value, list):
        return [_absolute(each, bare) for each in value]
    if isinstance(value, dict):
        return {name: _absolute(each, name in FILES) for name, each in value.items()}
    if not isinstance(value, str):
        return value
    home = os.path.expanduser
    shipped = organisms()

    def is_path(name: str) -> bool:
        return ("/" in name or bare) and name not in shipped and os.path.exists(home(name))

    halves = with_base(value) if all(with_base(value)) and not is_path(value) else [value]
    named = [(half, *split_chat(half)) for half in halves]
    full = lambda name, in_chat: os.path.abspath(home(name)) + IN_CHAT * in_chat
    return "=".join(full(name, chat) if is_path(name) else half for half, name, chat in named)


def _print_needs(settings: dict[str, dict]) -> None:
    """The models with the memory of their weights, and the data, each with its notebooks."""
    head = ("model", "parameters with embeddings", "GiB at 16 bit", "8bit", "4bit", "notebooks")
    print()
    _print_table(head, preflight.table(settings))
    print("\nfacts:")
    for data, notebooks in preflight.data(settings).items():
        print(printable(f"  {data}\n{indent(fill(', '.join(notebooks), 94), '      ')}"))


def _print_table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> None:
    rows = [tuple(map(printable, row)) for row in rows]
    widths = [max(len(row[column]) for row in (head, *rows)) for column in range(len(head))]
    for row in (head, *rows):
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        print("  ".join(cells).rstrip())


if __name__ == "__main__":
    sys.exit(main())
