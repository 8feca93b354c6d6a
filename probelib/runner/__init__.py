import sys

# without it jsonschema spends seconds on a grammar of IRIs, which no notebook contains
sys.modules["rfc3987_syntax"] = None  # type: ignore[assignment]
