"""``python -m probelib.overview`` writes ``notebooks/README.md``, the findings of the committed figures in README.md, and the
cell with which Colab downloads the kit in the notebooks that Colab opens."""

from probelib import files, paths
from probelib.overview import index

if __name__ == "__main__":
    files.write(paths.NOTEBOOKS / "README.md", index.page())
    readme = paths.ROOT / "README.md"
    files.write(readme, index.with_findings(readme.read_text(encoding="utf-8")))
    for name in index.ON_COLAB:
        notebook = paths.NOTEBOOKS / f"{name}.ipynb"
        files.write(notebook, index.with_colab_cell(notebook.read_text(encoding="utf-8"), index.repository()))
