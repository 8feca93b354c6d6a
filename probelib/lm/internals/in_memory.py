"""``load(hf_model, tokenizer)``: a transformers model that is already in memory, such as one that
is being trained. The object is shared, not copied: later changes change the scores and their key.
Scoring leaves it as it was.
"""

import copy
import hashlib
import json
from functools import cached_property
from pathlib import Path

from probelib.errors import ProbeError
from probelib.lm import text
from probelib.lm.internals.memory import EMBEDDINGS
from probelib.lm.internals.weights import packed_as
from probelib.lm.model import LM


class InMemory(LM):
    """An ``LM`` without a folder; its identity is measured whenever it is asked for."""

    tokenizer_source = "as given"

    def __init__(self, hf_model, tokenizer, name: str | None = None):
        if tokenizer is None:
            raise ProbeError("a model in memory needs its tokenizer: load(hf_model, tokenizer)")
        text.warn_of_its_file(tokenizer)
        hf_model = getattr(hf_model, "_orig_mod", hf_model)  # of torch.compile
        if hasattr(hf_model, "get_base_model"):  # peft
            if any(config.is_prompt_learning for config in hf_model.peft_config.values()):
                raise ProbeError("soft prompts of peft are not applied here; use a LoRA adapter")
            hf_model = hf_model.get_base_model()  # its layers carry the adapter
        dtype = str(hf_model.dtype).removeprefix("torch.")
        super().__init__(name or "", None, None, None, str(hf_model.device), dtype)
        self._given, self.tokenizer, self.config = hf_model, tokenizer, hf_model.config
        if stored := getattr(hf_model.config, "quantization_config", None):
            self.quantize = packed_as(stored if isinstance(stored, dict) else stored.to_dict())
        self._measured: dict = {}  # the last identity
        if not name:  # two models of one origin differ: an adapter on and off
            origin = Path(getattr(hf_model, "name_or_path", "") or type(hf_model).__name__)
            sha = hashlib.sha256(json.dumps(self.identity(), default=str).encode()).hexdigest()
            self.name = f"{Path(*origin.parts[-2:])} in memory ({sha[:6]})"

    def identity(self) -> dict:
        """Everything that changes a number, as it is now: the weights may have been trained."""
        found = {
            "files": self._digest_of_weights(),
            "settings": self._weights(),  # also the configuration
            "reads": text.digest(self.tokenizer),
            "probe": self.probe,
            "quantize": self.quantize,
            "dtype": self.dtype,
            "device": self.device.type,
        }
        if self._measured not in ({}, found):  # what was made for the earlier model
            for name in {"tokens", "tries", "ends"} & vars(self).keys():
                del vars(self)[name]
            self.path = None
        self._measured = found
        return {"model": self.name} | found

    _identity = identity

    def _digest_of_weights(self) -> str:
        """16 hex digits; sums of weights would miss two rows that change places."""
        import torch

        sha = hashlib.sha256()
        for name, tensor in self._given.state_dict().items():
            sha.update(name.encode())
            sha.update(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().data)
        return sha.hexdigest()[:16]

    @property
    def probe(self) -> list[float]:
        from probelib.lm.internals.forwards import probe

        return probe(self)

    def confirm(self, record: dict) -> None:
        """Nothing to do: the probe is part of the key."""

    def _load(self):
        return copy.copy(self._given)  # all modules are shared, its ``generation_config`` is not

    def _remember(self) -> None:
        """Nothing to do: it may be trained on."""

    def _generation_ends(self):
        return getattr(self._given.generation_config, "eos_token_id", None)

    @cached_property
    def n_parameters(self) -> int:
        four = [m for m in self._given.modules() if type(m).__name__ == "Linear4bit"]
        packed = {id(m.weight): m.in_features * m.out_features for m in four}  # two in a byte
        named = self._given.named_parameters()
        inner = [p for name, p in named if not any(word in name for word in EMBEDDINGS)]
        return sum(packed.get(id(p), p.numel()) for p in inner)
