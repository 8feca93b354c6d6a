"""The command line: choose steps of the plan, check what can be checked, run, build the report.

A run writes to runs/<profile>/: notebooks/<name>.ipynb (after a failure <name>.failed.ipynb),
done/<name>.json (see ``uptodate``; a step without one has not succeeded) and report.html. The
products are in figures/<profile>/.
"""

import argparse
import asyncio
import os
import sys
import warnings
from collections.abc import Iterable
from datetime import date
from functools import cache
from pathlib import Path

from probelib import parameters, paths
from probelib.errors import ProbeError, printable, unknown
from probelib.runner import plan, preflight, steps, uptodate
from probelib.runner.plan import Plan, Step

OPTIONS = Path(__file__).with_name("options.yaml")
# parameters that always name a file or a folder
FILES = {"exposures", "folder", "pageviews", "ratings_file", "released", "results", "templates"}
FILES |= {"verbalizations"}
ABOUT = {"data": ["data", "folder"], "models": uptodate.MODELS, "format": ["format"]}  # of a run


def main(arguments: list[str] | None = None) -> int:
    """Run the command; return the exit code."""
    args, unexpected = _parser().parse_known_args(arguments)
    try:
        if unexpected:
            raise ProbeError(
                f"{unexpected[0]!r} is unexpected. Papers and notebooks follow --only, parameters "
                "follow --set, and models are separated by commas (--models A,B); see --help."
            )
        with warnings.catch_warnings():
            said = cache(lambda text: print(printable(f"warning: {text}"), file=sys.stderr))
            warnings.showwarning = lambda message, *_, **__: said(str(message))  # once, one line
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
        lines = [f"models: {', '.join(preflight.models(settings))}", *preflight.lacking(settings)]
        print(printable("\n".join(dict.fromkeys(lines))))
        return 0
    for line in preflight.lacking(settings):
        warnings.warn(line, stacklevel=1)
    with uptodate.lock(args.profile):
        return asyncio.run(_execute(whole, chosen, settings, force, args))


async def _execute(whole: Plan, chosen: list[Step], settings: dict, force: set, args) -> int:
    """Run the stale steps among ``chosen`` and build the report; return 0 or 1."""
    profile, now = args.profile, uptodate.inputs(chosen, settings)
    reasons = uptodate.why(profile, chosen, now, force)
    outcomes = {step.notebook: steps.StepOutcome("up to date") for step in chosen}
    report = paths.RUNS / profile / "report.html"
    if any(reasons.values()):
        from probelib.runner import cluster  # here: papermill takes a second

        async with cluster.workers(args.on, args.jobs) as places:
            outcomes = await steps.run_steps(profile, chosen, now, reasons, places)
    made = {step.notebook: ", ".join(step.makes) for step in chosen}
    rows = [(name, each.status, each.cost, made[name]) for name, each in outcomes.items()]
    _print_table(("step", "status", "cost", "products"), rows)
    written = [file.stat().st_mtime for file in (report.parent / "done").rglob("*.json")]
    old = not report.exists() or report.stat().st_mtime < max(written, default=0)
    if old or any(reasons.values()):  # the last run's report stays until this run's is written
        status = {name: ": ".join(filter(None, each[:2])) for name, each in outcomes.items()}
        try:
            from probelib.report.pages import book  # here: matplotlib and pandas take seconds

            ran = lambda name: name in status or uptodate.read(profile, name)  # now or before
            shown = [s for s in plan.steps_of(whole, profile) if ran(s.notebook)]
            about = {"profile": [profile], "last run": [str(date.today())], "its data": ["atlas"]}
            given = {f"its {name}": preflight.models(settings, of) for name, of in ABOUT.items()}
            book(profile, shown, status, about | {name: of for name, of in given.items() if of})
        except Exception as error:  # the results of the steps are valid without the report
            print(printable(f"FAILED     report: {type(error).__name__}: {error}"))
            return 1
    print(f"report: {report}")
    return 0 if all(o.status in ("ok", "up to date") for o in outcomes.values()) else 1


def _parser() -> argparse.ArgumentParser:
    about = parameters.parse_yaml(OPTIONS.read_text(encoding="utf-8"))
    look = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser("run_all.sh", formatter_class=look, **about["command"])
    parser.register("type", "int", int)
    for flag, options in about["options"].items():
        parser.add_argument(flag, **options)
    return parser


def _given(args: argparse.Namespace, types: dict[str, set[type]]) -> dict:
    """The notebook parameters that the command line sets (``types``: see ``plan.types``)."""
    if args.jobs is not None and args.jobs < 1:
        raise ProbeError(f"--jobs is {args.jobs}; it takes 1 or more.")
    if "://" not in args.on and args.on != "local":
        raise unknown("engine (--on)", args.on, ("local", "tcp://HOST:PORT"))
    assigned = {}
    for each in args.set:
        name, equals, value = each.partition("=")
        if not equals:
            raise ProbeError(f"--set {each!r}: NAME=VALUE is expected, as in --set n_facts=50.")
        assigned[name] = parameters.from_text(os.path.expanduser(value), types.get(name, set()))
    for name in sorted(FILES & assigned.keys()):
        if isinstance(assigned[name], str) and not os.path.exists(assigned[name]):
            raise ProbeError(f"--set {name}={assigned[name]}: there is no such file or folder.")
    if columns := assigned.pop("columns", None):
        assigned["data"] = f"{assigned.get('data', 'table')}?{columns}"
    if args.models is not None:
        assigned = _only(args.models, types) | assigned
    return assigned | ({"quantize": args.quantize} if args.quantize is not None else {})


def _only(models: str, types: dict[str, set[type]]) -> dict:
    """The values of all parameters that name models, so that no other model takes part."""
    chosen = list(dict.fromkeys(name.strip() for name in models.split(",") if name.strip()))
    if not chosen:
        raise ProbeError("--models is empty; it takes names, as in --models a,b.")
    values: dict = {n: [] if list in types[n] else None for n in preflight.NAMES if n in types}
    if not values:
        raise ProbeError("--models: none of the selected notebooks takes a model.")
    named = {"models": chosen, "model_name": chosen[0]}
    return values | {name: named[name] for name in named.keys() & values.keys()}


def _print_table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> None:
    lines = [head, *(tuple(map(printable, row)) for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for row in lines:
        print("  ".join(map(str.ljust, row, widths)).rstrip())
