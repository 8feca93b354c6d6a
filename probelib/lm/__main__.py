"""``python -m probelib.lm convert FOLDER``: write the pickled weights (*.bin) of a model folder as model.safetensors.
``convert ID FOLDER`` downloads a Hugging Face id that has no others into a folder first.

``lm.load`` never unpickles. This command does so with ``weights_only=True``, which refuses everything but tensors.
"""

import sys
from pathlib import Path

from probelib.errors import ProbeError
from probelib.lm.internals.folders import download
from probelib.lm.internals.pickled import convert_pickled
from probelib.lm.names import is_id, split_revision


def main(arguments: list[str]) -> Path:
    """Run the command; return the path of the weights."""
    if len(arguments) not in (2, 3) or arguments[0] != "convert":
        raise ProbeError("usage: python -m probelib.lm convert FOLDER, or convert ID FOLDER")
    source, *folder = arguments[1:]
    if not folder:
        return convert_pickled(Path(source))
    if not is_id(source) or Path(folder[0]).exists():
        raise ProbeError(f"convert ID FOLDER needs a Hugging Face id and a new folder, not {source} and {folder[0]}")
    return convert_pickled(download(*split_revision(source), False, Path(folder[0])))


if __name__ == "__main__":
    try:
        print(main(sys.argv[1:]))
    except ProbeError as error:
        sys.exit(str(error))
