import sys

# jsonschema would build a grammar of IRIs, seconds of work, and no notebook has one
sys.modules["rfc3987_syntax"] = None

from probelib.runner.cli import main  # noqa: E402

sys.exit(main())
