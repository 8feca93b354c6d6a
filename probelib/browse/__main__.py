"""``python -m probelib.browse``, or ``./run_all.sh browse``: write the page of a profile."""

import argparse
import sys
from functools import partial
from pathlib import Path

import yaml

from probelib import beyond, facts, files, lm, paths
from probelib.browse import gather_answers, render
from probelib.browse.collect import fact_names
from probelib.errors import command
from probelib.facts.model import Facts
from probelib.report import links
from probelib.runner import plan, verify

STEP = "beyond/agreement"  # the notebook whose models and facts are shown: its scores are in the store


@command
def main(arguments: list[str] | None) -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(
        "run_all.sh browse",
        description="Write one page, without server or network, that shows every answer: pick a model, a relation, a fact. "
        f"Scores of the notebook {STEP} are read from the profile's store; missing ones are computed first. Facts that the "
        "profile's tables name are on the page, too, and the report links them.",
    )
    parser.add_argument("--profile", default="atlas", help="its models, facts and scores (default: atlas)")
    parser.add_argument("--models", help="other models, separated by commas")
    parser.add_argument("--n-facts", help="panel, all, or a number per relation")
    args = parser.parse_args(arguments)
    print(f"browse: {write(args.profile, args.models, args.n_facts)}")


def write(profile: str, models: str | None = None, n_facts: str | None = None) -> Path:
    """Write the page of a profile, and its report again, which links the page; return the page's path."""
    whole = plan.read()
    step = next(each for each in whole.steps if each.notebook == STEP)
    given = {"models": models.split(",")} if models else {}
    given |= {"n_facts": yaml.safe_load(n_facts)} if n_facts else {}
    values = plan.settings(whole, [step], profile, given)[STEP]
    names, tuned, encoders = lm.short_names(values["models"], values["tuned"], values["encoder_decoders"])
    load = partial(beyond.load_questions, encoder=beyond.encoder_of(encoders))
    parts = [load(n_facts=values["n_facts"])]
    if others := named_in_tables(profile, whole, parts[0].facts):
        parts.append(load(only=others))
    about = gather_answers(names, parts, paths.RUNS / profile / "scores", tuned)
    page = files.write(paths.RUNS / profile / links.PAGE, render(about, profile))
    verify.renew_report(profile, whole)
    return page


def named_in_tables(profile: str, whole: plan.Plan, chosen: Facts) -> list[str]:
    """The ids of the current facts of the atlas that the profile's tables name and that are not among the chosen facts."""
    tables = [paths.FIGURES / profile / f"{artifact}.html" for step in whole.steps for artifact in step.makes]
    pages = [links.link_facts(path.read_text(encoding="utf-8")) for path in tables if path.exists()]
    wanted = set().union(*map(links.linked_facts, pages)) - set(fact_names(chosen).values())
    return [fact for fact, name in fact_names(facts.current(facts.atlas())).items() if name in wanted]


if __name__ == "__main__":
    sys.exit(main())
