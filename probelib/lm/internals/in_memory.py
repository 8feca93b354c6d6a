"""``load(hf_model, tokenizer)``: a transformers model that is already in memory, such as one that is being trained.

The model object is shared, not copied: it is put into evaluation mode, its 8-bit layers stop looking for outlier columns
(which depend on the batch), and later changes of its weights change the scores.
"""

import copy
import hashlib
from functools import cached_property

from probelib.errors import ProbeError
from probelib.lm.internals.memory import EMBEDDINGS, check_quantization
from probelib.lm.internals.weights import packed_as, refuse_bidirectional
from probelib.lm.model import LM


class InMemory(LM):
    """An ``LM`` without a folder. Its identity contains a digest of the weights as they are when it is asked for."""

    def __init__(self, hf_model, tokenizer):
        if tokenizer is None or isinstance(tokenizer, str):
            raise ProbeError("a model in memory needs its tokenizer: load(hf_model, tokenizer)")
        if hasattr(hf_model, "get_base_model"):  # peft
            if any(config.is_prompt_learning for config in hf_model.peft_config.values()):
                raise ProbeError("soft prompts of peft are not applied to a model in memory; use a LoRA adapter")
            hf_model = hf_model.get_base_model()  # its layers carry the adapter
        dtype = str(hf_model.dtype).removeprefix("torch.")
        name = f"{getattr(hf_model, 'name_or_path', '') or type(hf_model).__name__} in memory"
        super().__init__(name, None, None, {}, str(hf_model.device), dtype, None, False)
        self._given, self.tokenizer, self.config = hf_model, tokenizer, hf_model.config
        stored = getattr(hf_model.config, "quantization_config", None)
        if stored:
            self.quantize, self.quantization = packed_as(stored if isinstance(stored, dict) else stored.to_dict())

    @property
    def _digest(self) -> str:
        """16 hex digits of the weights and the vocabulary; read every time, because they may have been trained."""
        import torch

        sha = hashlib.sha256(repr(sorted(self.tokenizer.get_vocab().items())).encode())
        for name, tensor in self._given.state_dict().items():
            sha.update(name.encode())
            sha.update(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().tobytes())
        return sha.hexdigest()[:16]

    @cached_property
    def hf_model(self):
        """A shallow copy, which shares all weights, in evaluation mode."""
        from transformers import GenerationConfig

        hf_model = copy.copy(self._given).eval()
        start = getattr(hf_model.config, "decoder_start_token_id", None)
        hf_model.generation_config = GenerationConfig(decoder_start_token_id=start)
        # before the first forward, which may repack weights
        self.quantized_modules = check_quantization(self, hf_model)
        if not self.masked:
            refuse_bidirectional(self, hf_model)
        return hf_model

    @cached_property
    def ends(self) -> frozenset[int]:
        ids = getattr(self._given.generation_config, "eos_token_id", None)
        ids = (self.eos, *(ids if isinstance(ids, list) else [ids]))
        return frozenset(i for i in ids if isinstance(i, int) and i >= 0)

    @cached_property
    def n_parameters(self) -> int:
        layers = (module for module in self._given.modules() if type(module).__name__ == "Linear4bit")
        packed = {id(layer.weight): layer.in_features * layer.out_features for layer in layers}  # two in a byte
        named = self._given.named_parameters()
        return sum(packed.get(id(p), p.numel()) for name, p in named if not any(word in name for word in EMBEDDINGS))

    @cached_property
    def memory(self) -> int:
        return sum(p.nbytes for p in self._given.parameters())
