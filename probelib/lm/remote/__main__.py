"""``python -m probelib.lm.remote http://localhost:8000/v1#NAME --local MODEL``: check a server, also against a local twin."""

import argparse
import json
import sys

from probelib import lm
from probelib.errors import ProbeError, command
from probelib.lm.remote.served import Served


@command
def main(arguments: list[str] | None) -> None:
    """Print what the check measured. Raise ProbeError if the server has a fault."""
    parser = argparse.ArgumentParser("python -m probelib.lm.remote", description="Check a server that serves a model.")
    parser.add_argument("address", help="http://host:port/v1#NAME")
    here = "the same model here: a Hugging Face id, a folder, a shipped model"
    parser.add_argument("--local", metavar="MODEL", help=here)
    args = parser.parse_args(arguments)
    served = lm.load(args.address)
    if not isinstance(served, Served):
        raise ProbeError(f"{args.address} is no address of a server, such as http://localhost:8000/v1#NAME")
    print(json.dumps(served.check(lm.load(args.local) if args.local else None), indent=1))


if __name__ == "__main__":
    sys.exit(main())
