"""``python -m probelib.facts check``: counts and problems of the shipped atlas; exit code 1 where something is wrong."""

import sys

from probelib.errors import ProbeError
from probelib.facts.check import counts, problems, wrong_distractors
from probelib.facts.model import current
from probelib.facts.shipped import read_atlas


def main() -> int:
    if sys.argv[1:] != ["check"]:
        print(__doc__)
        return 2
    try:
        atlas = read_atlas()
    except ProbeError as error:
        print(error)
        return 1
    table, found = counts(atlas), problems(atlas)
    print(table.to_string(index=False, float_format="{:.2f}".format))
    print(
        f"\n{len(atlas.facts):,} facts, {len(table)} relations, {len(atlas.entities):,} entities; "
        f"{table['former'].sum()} former values, {(table['objects'] >= 100).sum()} relations with 100 or more distinct objects, "
        f"{table['object_in_subject'].sum()} objects inside their subject, "
        f"{wrong_distractors(current(atlas), atlas)} wrong distractors"
    )
    print(*found or ["no problems"], sep="\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
