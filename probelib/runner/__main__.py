import sys

try:
    from probelib.runner.cli import main

    code: int | str = main()
except ModuleNotFoundError as error:  # also importlib.metadata's PackageNotFoundError
    code = (
        f"{error.name} is not installed for {sys.executable}: `./run_all.sh --list`, outside any "
        "environment, installs everything into .venv (see README.md)."
    )
sys.exit(code)
