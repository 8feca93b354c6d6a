import sys

# without it jsonschema does not spend seconds on a grammar of IRIs, which no notebook contains
sys.modules["rfc3987_syntax"] = None  # type: ignore[assignment]

from probelib.runner.cli import main  # noqa: E402

sys.exit(main())
