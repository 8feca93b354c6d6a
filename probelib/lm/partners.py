"""Which models go together, by their names: families, and instruction-tuned models with their
bases."""

import re

from probelib.lm.names import with_base


def family(name: str) -> str:
    """The part of a model's name before its size.

    >>> family("atlas-neox-0.6m"), family("lmsys/vicuna-7b-v1.3")
    ('atlas-neox', 'lmsys/vicuna')
    """
    return re.split(r"-\d+(?:\.\d+)?[mb]\d*(?![a-z])", name, flags=re.IGNORECASE)[0]


def tuned_pairs(tuned: list[str]) -> dict[str, str]:
    """Instruction-tuned model -> its base: ``X-it`` -> ``X``; an entry ``Y=X`` names the base."""
    return {name: base or name.removesuffix("-it") for name, base in map(with_base, tuned)}


def pairs_with_base(models: list[str], tuned: list[str]) -> list[tuple[str, str]]:
    """(instruction-tuned model, base) for every entry of ``tuned`` whose base is among
    ``models``."""
    return [
        (name, base) for name, base in tuned_pairs(tuned).items() if base in models and base != name
    ]


def tuned_of(model: str, tuned: list[str]) -> str | None:
    """The first instruction-tuned model of a base; None if there is none."""
    return next((name for name, _ in pairs_with_base([model], tuned)), None)
