"""``python -m probelib.overview`` writes ``notebooks/README.md``, into README.md what the committed figures found, and into the
notebooks that Colab opens the cell that fetches the kit."""

from probelib import files, paths
from probelib.overview import index

if __name__ == "__main__":
    files.write(paths.NOTEBOOKS / "README.md", index.page())
    readme = paths.ROOT / "README.md"
    files.write(readme, index.with_findings(readme.read_text(encoding="utf-8")))
    for name in index.ON_COLAB:
        notebook = paths.NOTEBOOKS / f"{name}.ipynb"
        files.write(notebook, index.with_colab_cell(notebook.read_text(encoding="utf-8"), index.repository()))
