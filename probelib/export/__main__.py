"""``python -m probelib.export``, or ``./run_all.sh export``: write a profile's facts and results for other tools."""

import argparse
import sys
import time
from pathlib import Path

from probelib import beyond, export, facts, files, lm, paths
from probelib.errors import command, unknown
from probelib.export.cards import Result, atlas_card, eval_results, model_card
from probelib.export.croissant import facts_csv
from probelib.export.tasks import NAME
from probelib.runner import plan

STEP = "beyond/agreement"  # the notebook whose models and facts are exported


@command
def main(arguments: list[str] | None) -> None:
    """Run the command."""
    parser = argparse.ArgumentParser("run_all.sh export", description=export.__doc__.split("\n")[0])
    parser.add_argument("--format", required=True, help=", ".join(export.FORMATS))
    parser.add_argument("--out", type=Path, required=True, help="the folder to write to")
    parser.add_argument("--profile", default="atlas", help="its models, facts and scores (default: atlas)")
    parser.add_argument("--models", help="other models, separated by commas")
    parser.add_argument("--n-facts", type=int, help="facts per relation (default: those of the profile)")
    args = parser.parse_args(arguments)
    if args.format not in export.FORMATS:
        raise unknown("format", args.format, export.FORMATS)
    for path in write(args.format, args.out, args.profile, args.models, args.n_facts):
        print(path)


def write(format: str, out: Path, profile: str, models: str | None = None, n_facts: int | None = None) -> list[Path]:
    """Write one format; return the paths of its main files."""
    if format == "croissant":
        return [export.write_croissant(facts.atlas(), out)]
    steps = plan.read()
    given = {"models": models.split(",")} if models else {}
    given |= {"n_facts": n_facts} if n_facts else {}
    step = next(each for each in steps.steps if each.notebook == STEP)
    values = plan.settings(steps, [step], profile, given)[STEP]
    questions = beyond.load_questions(n_facts=values["n_facts"])
    test, store = export.choice_test(questions), paths.RUNS / profile / "scores"
    written, now = [export.write_task(test, out)] if format == "lm-eval" else [], int(time.time())
    results = {}
    for name in lm.short_names(values["models"]):
        model = lm.load(name)
        scores, chosen = test.score(model, store)
        results[name] = Result(chosen["correct"].mean(), len(chosen), test.facts)
        if format != "hf":
            writer = export.write_results if format == "lm-eval" else export.write_evaluation
            written.append(writer(test, model, scores, chosen, out, now))
    return write_cards(results, out) if format == "hf" else written


def write_cards(results: dict[str, Result], out: Path) -> list[Path]:
    """Write ``.eval_results`` of the models with a result, a card of every organism, and the atlas with its card; return the
    paths."""
    texts = {out / files.slug(name) / ".eval_results" / f"{NAME}.yaml": eval_results(results[name]) for name in results}
    texts |= {out / name / "README.md": model_card(name, results.get(name)) for name in lm.organisms()}
    atlas = facts.atlas()
    texts |= {out / "atlas" / "README.md": atlas_card(atlas), out / "atlas" / "facts.csv": facts_csv(atlas)}
    return [files.write(path, text) for path, text in texts.items()]


if __name__ == "__main__":
    sys.exit(main())
