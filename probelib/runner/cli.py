"""The command line: choose steps of the plan, check what can be checked, run, build the report.

A run writes to runs/<profile>/: notebooks/<name>.ipynb (after a failure <name>.failed.ipynb),
done/<name>.json (see ``uptodate``; a step without one has not succeeded) and report.html. The
products are in figures/<profile>/.
"""

import argparse
import asyncio
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from probelib import parameters, paths
from probelib.errors import ProbeError, printable, unknown
from probelib.lm.names import organisms, split_display, split_variant, with_base
from probelib.runner import cluster, plan, preflight, steps, uptodate
from probelib.runner.plan import Plan, Step

# parameters that always name a file or a folder
FILES = {"exposures", "folder", "pageviews", "ratings_file", "released", "results", "templates"}
FILES |= {"verbalizations"}
COMMANDS = ("lab", "compare", "test", "verify", "bench", "campaign", "course")
EXAMPLES = """\
examples:
  ./run_all.sh                                  all notebooks, shipped facts and models (atlas)
  ./run_all.sh --only monitor                   one paper, and the notebooks that it needs
  ./run_all.sh --only monitor/table4 --force    rerun the notebook that makes this table
  ./run_all.sh --dry-run                        show what would run, and why
  ./run_all.sh --only zplke --models EleutherAI/pythia-410m,mine=./my_model --quantize 8bit
  ./run_all.sh --only monitor --set data=table folder=my.csv columns=subject:s,relation:p,object:o
  ./run_all.sh --profile paper --on tcp://host:8786      on the workers of a Dask scheduler

other commands:
  ./run_all.sh lab                              JupyterLab; exploring writes to figures/mine
  ./run_all.sh test [--fast | --slow]           the tests; also takes pytest's arguments
  ./run_all.sh compare MODEL OTHER              facts lost and gained, by name
  ./run_all.sh verify                           compare the figures with the committed ones
  ./run_all.sh bench [NAME]                     the benchmarks
  ./run_all.sh campaign                         fault injection: kills, full disks, flipped bits
  ./run_all.sh course --out DIR                 the labs: student and instructor copies

  PROBELIB_OUT=../mine ./run_all.sh ...         write figures and runs there

Each run first deletes the previous products of its notebooks in figures/<profile>. A failed run
leaves no products. A stopped run resumes with the same command.
Exit code: 0 success, 1 a step failed, 2 the request or the plan is wrong, 130 stopped.
"""
YES = {"action": "store_true"}
FLAGS: dict[str, tuple[dict, str]] = {
    "--profile": ({"metavar": "NAME"}, "models and number of facts: smoke, atlas, real, study, "
                  "small, paper; default: mine with --models, --quantize or --set, otherwise atlas"),
    "--only": ({"nargs": "+", "metavar": "NAME"}, "notebooks (monitor/sec5_results), papers "
               "(monitor) or artifacts (monitor/table4: the whole notebook that makes it), with "
               "the notebooks they need; default: everything"),
    "--models": ({"metavar": "A,B"}, "in place of all models of the notebooks: shipped models, "
                 "Hugging Face ids, folders, NAME=any of these (shown as NAME). --set tuned=[C] "
                 "judge=D adds models of other roles"),
    "--quantize": ({"metavar": "BITS"}, "8bit or 4bit: load the models quantized"),
    "--set": ({"nargs": "+", "metavar": "NAME=VALUE", "default": []},
              "other parameters of the notebooks: numbers, true, false, null, [a, b] and {a: 1} as in JSON (without quotes), everything else as text: data=fktc "
              "folder=../FKTC n_facts=50"),
    "--jobs": ({"metavar": "N", "type": int}, "notebooks at a time; default: the number of GPUs, "
               "or 2 without GPUs, or one per worker of a cluster"),
    "--force": (YES, "run the selected notebooks although up to date"),
    "--on": ({"metavar": "ENGINE", "default": "local"}, "where the notebooks run: `local` (here), "
             "or on the workers of a Dask scheduler (tcp://host:8786)"),
    "--list": (YES, "show the notebooks and the artifacts of each"),
    "--dry-run": (YES, "show what would run, and why; models and memory"),
    "--plan": ({"metavar": "FILE", "type": Path}, "another plan, with its notebooks beside it"),
}  # fmt: skip


def main(arguments: list[str] | None = None) -> int:
    """Run the command; return the exit code."""
    args, unexpected = _parser().parse_known_args(arguments)
    try:
        if os.environ.get("PROBELIB_OUT") == "":
            raise ProbeError("PROBELIB_OUT is empty: name the folder to write to, or unset it.")
        if unexpected:
            raise ProbeError(
                f"{unexpected[0]!r} is unexpected. Papers and notebooks follow --only, parameters "
                "follow --set, and models are separated by commas (--models A,B). Other commands "
                f"are {', '.join(COMMANDS)}; --help describes all."
            )
        return _run(args)
    except (ProbeError, RecursionError) as error:  # lists in lists in lists ...
        print(error, file=sys.stderr)
        return 2
    except OSError as error:
        print(steps.cannot_write(error), file=sys.stderr)
        return 1
    except (KeyboardInterrupt, asyncio.CancelledError):
        print("\nstopped; the same command resumes", file=sys.stderr)
        return 130


def _run(args: argparse.Namespace) -> int:
    whole = plan.read(args.plan)
    if args.profile is None:  # exploring never touches the figures of the default profile
        own = plan.OWN in whole.profiles and (args.models or args.quantize or args.set)
        args.profile = plan.OWN if own else plan.DEFAULT
    everything = {step.notebook for step in plan.steps_of(whole, args.profile)}
    named = plan.matching(whole, args.only, args.profile) if args.only else everything
    if left_out := sorted(plan.matching(whole, args.only or []) - named):
        print(f"left out, not in profile {args.profile} unless named: {', '.join(left_out)}")
    chosen = plan.with_needs(whole, named)
    given = _given(args, plan.types(chosen))
    settings = plan.settings(whole, chosen, args.profile, given)
    if args.list:
        _print_table(("notebook", "makes"), [(s.notebook, ", ".join(s.makes)) for s in chosen])
        return 0
    preflight.check(settings, given, online=not args.dry_run)
    force = named if args.force else set()
    if args.dry_run:
        now = uptodate.inputs(chosen, settings)
        reasons = uptodate.why(args.profile, chosen, now, force)
        print(f"profile {args.profile}: products in {paths.FIGURES / args.profile}")
        _print_table(("notebook", "runs"), [(n, why or "up to date") for n, why in reasons.items()])
        head = ("model", "parameters with embeddings", "GiB at 16 bit", "8bit", "4bit", "notebooks")
        print()
        _print_table(head, preflight.table(settings))
        print(printable("".join(f"{line}\n" for line in preflight.lacking(settings))), end="")
        return 0
    with uptodate.lock(args.profile):
        return asyncio.run(_execute(whole, chosen, settings, force, args))


async def _execute(whole: Plan, chosen: list[Step], settings: dict, force: set, args) -> int:
    """Run the stale steps among ``chosen`` and build the report; return 0 or 1."""
    profile, now = args.profile, uptodate.inputs(chosen, settings)
    reasons = uptodate.why(profile, chosen, now, force)
    outcomes = {step.notebook: steps.StepOutcome("up to date") for step in chosen}
    report = paths.RUNS / profile / "report.html"
    if any(reasons.values()):
        for old in (report, paths.RUNS / profile / "verify.csv"):  # of the previous products
            old.unlink(missing_ok=True)
        async with cluster.workers(args.on, args.jobs) as places:
            outcomes = await steps.run_steps(profile, chosen, now, reasons, places)
    made = {step.notebook: ", ".join(step.makes) for step in chosen}
    rows = [(name, each.status, each.time(), made[name]) for name, each in outcomes.items()]
    _print_table(("step", "status", "seconds", "products"), rows)
    if not report.exists():
        status = {step.notebook: "not selected" for step in whole.steps}
        status |= {name: ": ".join(filter(None, each[:2])) for name, each in outcomes.items()}
        try:
            from probelib.report.pages import book  # here: matplotlib and pandas take seconds

            book(profile, plan.steps_of(whole, profile), status)
        except Exception as error:  # the results of the steps are valid without the report
            print(printable(f"FAILED     report: {type(error).__name__}: {error}"))
            return 1
    print(f"report: {report}")
    return 0 if all(o.status in ("ok", "up to date") for o in outcomes.values()) else 1


def _parser() -> argparse.ArgumentParser:
    look: dict = {"epilog": EXAMPLES, "formatter_class": argparse.RawDescriptionHelpFormatter}
    what = "Run the notebooks that make all tables and figures."
    parser = argparse.ArgumentParser("run_all.sh", description=what, **look)
    for flag, (options, text) in FLAGS.items():
        parser.add_argument(flag, help=text, **options)
    return parser


def _given(args: argparse.Namespace, types: dict[str, set[type]] | None = None) -> dict:
    """The notebook parameters that the command line sets. Raise ProbeError for a wrong flag.

    types   see ``plan.types``
    """
    if args.jobs is not None and args.jobs < 1:
        raise ProbeError(f"--jobs is {args.jobs}; it takes 1 or more.")
    if "://" not in args.on and args.on != "local":
        raise unknown("engine (--on)", args.on, ("local", "tcp://HOST:PORT"))
    assigned = dict(_assigned(each, types or {}) for each in args.set)
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
    found = {name: _absolute(value, name in bare) for name, value in assigned.items()}
    if args.models is not None:
        found = _only(args.models, types or {"models": {list}}) | found
    return found | ({"quantize": args.quantize} if args.quantize is not None else {})


def _only(models: str, types: dict[str, set[type]]) -> dict:
    """The values of all parameters that name models, so that no other model takes part."""
    names = dict.fromkeys(name.strip() for name in models.split(",") if name.strip())
    if not names:
        raise ProbeError("--models is empty; it takes names, as in --models a,b.")
    chosen = _absolute(list(names), bare=True)
    found: dict = {n: [] if list in types[n] else None for n in preflight.NAMES if n in types}
    if not found:
        raise ProbeError("--models: none of the selected notebooks takes a model.")
    values = {"models": chosen, "model_name": chosen[0]}
    return found | {name: value for name, value in values.items() if name in found}


def _assigned(assignment: str, types: dict[str, set[type]]) -> tuple[str, Any]:
    """NAME=VALUE of --set, read by ``parameters.from_text``."""
    name, equals, value = assignment.partition("=")
    if not equals:
        said = "NAME=VALUE is expected, as in --set n_facts=50."
        raise ProbeError(f"--set {assignment!r}: {said}")
    try:
        return name, parameters.from_text(value, types.get(name, set()))
    except parameters.yaml_errors() as error:
        reason = " ".join(str(error).split())
        raise ProbeError(f"--set {assignment!r}: {value!r} is not YAML: {reason}") from None


def _absolute(value, bare: bool = False):
    """Make relative paths absolute, also in lists, in dictionaries, in NAME=SOURCE and tuned=base:
    a notebook runs in its own folder. A link keeps its name, which tables and figures show.

    bare   a name without a slash may be a path, too
    """
    if isinstance(value, list):
        return [_absolute(each, bare) for each in value]
    if isinstance(value, dict):
        return {name: _absolute(each, name in FILES) for name, each in value.items()}
    if not isinstance(value, str):
        return value
    if value.startswith("table:"):  # a table of facts as a graph
        return f"table:{_absolute(value.removeprefix('table:'), bare)}"
    name, variant = split_variant(value)
    path = os.path.expanduser(name)
    if ("/" in name or bare) and name not in organisms() and os.path.exists(path):
        return os.path.abspath(path) + variant
    halves = split_display(value)
    halves = halves if all(halves) else with_base(value)
    return "=".join(_absolute(half, bare) for half in halves) if all(halves) else value


def _print_table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> None:
    lines = [head, *(tuple(map(printable, row)) for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for row in lines:
        print("  ".join(map(str.ljust, row, widths)).rstrip())
