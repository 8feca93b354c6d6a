"""``python -m probelib.overview`` writes ``notebooks/README.md``, and into README.md what the committed figures found."""

from probelib import files, paths
from probelib.overview import index

if __name__ == "__main__":
    files.write(paths.NOTEBOOKS / "README.md", index.page())
    readme = paths.ROOT / "README.md"
    files.write(readme, index.with_findings(readme.read_text(encoding="utf-8")))
