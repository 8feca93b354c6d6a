"""What the four papers claim, what was found here, and why it differs: one page for all papers.

figures/<profile>/phenomena.md   claims and reasons from published/phenomena.yaml, findings from the run's artifacts
"""

from pathlib import Path

from probelib import files, paths, published
from probelib.errors import ProbeError
from probelib.report import summary
from probelib.report.section import read_record
from probelib.report.shown import escape_markdown, markdown_rows

TITLE = """# What the papers claim, and what came out here

One row per claim. *Here* is the finding of the artifact that the link leads to, computed by its notebook. *Sign* says whether
its key number has the paper's sign. *Why* names what explains a difference: the test-bed (small models whose training is known),
their training, the size of models or samples, or the paper's own analysis.
"""
NAMES = {"monitor": "MONITOR", "zplke": "ZP-LKE", "distractors": "Distractors", "grapheval": "GraphEval"}


def write_phenomena(profile: str, steps: list) -> Path | None:
    """Write the page of a profile; None if no artifact of it was made. Claims whose artifact is missing are counted."""
    page_of = {artifact: f"{step.notebook}.md" for step in steps for artifact in step.makes}
    parts, missing = [], 0
    for paper, claims in published.phenomena().items():
        rows = [("claim", "artifact", "here", "sign", "why")]
        for claim in claims:
            artifact = claim["artifact"]
            record = paths.FIGURES / profile / f"{artifact}.json"
            if artifact not in page_of or not record.exists():
                missing += 1
                continue
            key = summary.key_numbers(profile, artifact)
            link = f"[{artifact.split('/')[1]}]({page_of[artifact]})"
            cells = [claim["claim"], _finding(record), key.sign if key else "", claim["why"]]
            said, *others = map(escape_markdown, cells)
            rows.append((said, link, *others))
        if len(rows) > 1:
            parts.append(f"\n## {NAMES[paper]}\n\n{markdown_rows(rows)}\n")
    if not parts:
        return None
    left_out = f"\n{missing} claims are left out: their artifacts were not made in this run.\n" if missing else ""
    return files.write(paths.FIGURES / profile / "phenomena.md", TITLE + "".join(parts) + left_out)


def _finding(record: Path) -> str:
    """The finding of an artifact; for a damaged record, advice."""
    try:
        return read_record(record)["finding"]
    except ProbeError as error:
        return str(error)
