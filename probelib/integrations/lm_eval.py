"""The kit's models inside lm-evaluation-harness: its tasks run on the tree, with the same numbers
in less time.

    from lm_eval import simple_evaluate
    from probelib.integrations.lm_eval import ProbeLM

    simple_evaluate(model=ProbeLM("EleutherAI/pythia-160m"), tasks=["arc_easy"])

The harness does not find models of other packages by name, so this module starts its command line,
with the same arguments:

    python -m probelib.integrations.lm_eval run --model probelib --model_args
    model=EleutherAI/pythia-160m --tasks arc_easy
"""

import logging

import torch

from probelib import lm
from probelib.errors import ProbeError, extra
from probelib.lm.decode.generation import continue_ids
from probelib.lm.scoring import score_ids

with extra("lm-eval"):
    from lm_eval.api.model import TemplateLM
    from lm_eval.api.registry import register_model
    from lm_eval.models import utils as harness
    from lm_eval.utils import get_rolling_token_windows, make_disjoint_window

LENGTHS = (8, 32)  # first attempts of a generation: most answers stop early
log = logging.getLogger(__name__)


@register_model("probelib")
class ProbeLM(TemplateLM):
    """A model of ``lm.load`` that serves the harness's three kinds of requests.

    model   a name for ``lm.load``, or a loaded model; further arguments go to ``lm.load``
    """

    def __init__(self, model, batch_size=None, max_batch_size=None, device=None, **options):
        super().__init__()
        # The harness's command line passes batch sizes, but the kit packs rows by tokens; and it
        # passes a GPU even without one.
        if device and (torch.cuda.is_available() or not device.startswith("cuda")):
            options["device"] = device
        options = {name: value for name, value in options.items() if value is not None}
        self.model = lm.load(model, **options) if isinstance(model, str) else model
        self.tokenizer = self.model.tokenizer
        self.backend = "seq2seq" if self.model.encoder_decoder else "causal"
        self._ids: dict[tuple, list[int]] = {}

    # Properties that the harness reads

    @property
    def eot_token_id(self) -> int:
        return self.model.tokens.eos

    @property
    def prefix_token_id(self) -> int:
        """The token before a text without context."""
        bos = self.tokenizer.bos_token_id
        return self.eot_token_id if bos is None else bos

    @property
    def tokenizer_name(self) -> str:
        return self.tokenizer.name_or_path.replace("/", "__")

    def get_model_info(self) -> dict:
        """Provenance, kept in the ``config`` of the harness's results."""
        return {"model_" + name: value for name, value in self.model.describe().items()}

    def apply_chat_template(
        self, chat_history: list[dict[str, str]], add_generation_prompt: bool = True
    ) -> str:
        return self.tokenizer.apply_chat_template(
            chat_history,
            tokenize=False,
            add_generation_prompt=add_generation_prompt,
            continue_final_message=not add_generation_prompt,
        )

    # Tokens

    def tok_encode(
        self, string: str, add_special_tokens: bool | None = None, **kwargs
    ) -> list[int]:
        """Ids as in the harness's own backend. Each distinct text is tokenized once."""
        key = (string, add_special_tokens)
        if key not in self._ids:
            if add_special_tokens is None:
                add_special_tokens = not harness.has_bos_prefix(
                    string, self.tokenizer.decode(self.prefix_token_id)
                )
            self._ids[key] = self.tokenizer.encode(string, add_special_tokens=add_special_tokens)
            self.model.tokens.check(string, self._ids[key])
        return self._ids[key]

    def _encode_pair(self, context: str, continuation: str) -> tuple[list[int], list[int]]:
        """Ids of context and continuation, as the harness parts them: both are tokenized together
        and cut at the length of the context's tokens."""
        context, continuation = super()._encode_pair(context, continuation)
        if not continuation:
            said = "the tokenizer merges a continuation with its context: no token of it is left"
            raise ProbeError(f"{said} ({self.model.name})")
        return context, continuation

    # The three kinds of requests

    def loglikelihood(self, requests, disable_tqdm: bool = False) -> list[tuple[float, bool]]:
        return super().loglikelihood(requests, disable_tqdm=True)

    def _loglikelihood_tokens(
        self, requests, disable_tqdm: bool = False, **kwargs
    ) -> list[tuple[float, bool]]:
        """(log P in nats, whether greedy decoding gives it) of every request (texts, context ids,
        continuation ids)."""
        contexts, branches, rows = {}, {}, []
        for _, context, continuation in requests:
            context = self._fit(context, len(continuation) - 1)
            branch = (contexts.setdefault(tuple(context), len(contexts)), tuple(continuation))
            rows.append(branches.setdefault(branch, len(branches)))
        scores, best, _ = score_ids(self.model, list(map(list, contexts)), list(branches))
        found = [
            (float(logprobs.sum(dtype=float)), bool((argmax == ids).all()))
            for (_, ids), logprobs, argmax in zip(branches, scores, best, strict=True)
        ]
        return [found[row] for row in rows]

    def loglikelihood_rolling(self, requests, disable_tqdm: bool = False) -> list[float]:
        """log P (nats) of whole texts, in windows of the model's context; every token is predicted
        once."""
        windows = []  # (request, context, tokens)
        for number, request in enumerate(requests):
            ids = self.tok_encode(request.args[0])
            rolling = (self.prefix_token_id, self.model.context)
            pairs = get_rolling_token_windows(ids, *rolling, context_len=1)
            windows += [(number, *make_disjoint_window(pair)) for pair in pairs]
        totals = [0.0] * len(requests)
        for (number, *_), (logprob, _) in zip(
            windows, self._loglikelihood_tokens(windows), strict=True
        ):
            totals[number] += logprob
        return totals

    def generate_until(self, requests, disable_tqdm: bool = False) -> list[str]:
        """Greedy text up to the first stop string. Texts that have not stopped are generated again
        with a larger limit."""
        texts: list[str | None] = [None] * len(requests)
        wanted = [self._generation(request.args[1]) for request in requests]
        for most in (*LENGTHS, max((length for length, _ in wanted), default=0)):
            for length in sorted({min(most, length) for length, _ in wanted}):
                left = [i for i, text in enumerate(texts) if text is None]
                open_ = [i for i in left if min(most, wanted[i][0]) == length]
                contexts = [self._fit(self.tok_encode(requests[i].args[0]), length) for i in open_]
                found = continue_ids(self.model, contexts, length)[0] if open_ else []
                for i, ((ids, _),) in zip(open_, found, strict=True):
                    text = self.model.tokens.decode(ids, self.model.ends)
                    stops = [stop for stop in wanted[i][1] if stop and stop in text]
                    if stops or length == wanted[i][0] or not self.model.ends.isdisjoint(ids):
                        texts[i] = harness.postprocess_generated_text(text, stops, None)
        return texts

    def _generation(self, options: dict) -> tuple[int, list[str]]:
        """(most new tokens, stop strings) of a request. Raise ProbeError for sampling."""
        options = harness.normalize_gen_kwargs(options, default_max_gen_toks=256)
        if options["do_sample"]:
            raise ProbeError(
                "this task samples its texts (do_sample), and the kit only decodes greedily"
            )
        stops = harness.handle_stop_sequences(options.get("until"), eos=self.tokenizer.eos_token)
        return options["max_gen_toks"], stops

    def _fit(self, context: list[int], n: int) -> list[int]:
        """The context's last tokens that leave space for ``n`` more, as in the harness; a warning
        if any are cut."""
        room = self.model.context - (0 if self.model.encoder_decoder else n)
        if room < 1:
            reads = f"{self.model.name} reads {self.model.context} tokens"
            raise ProbeError(f"{reads}, too few for {n} after a context")
        if len(context) > room:
            log.warning("a context of %d tokens is cut to its last %d", len(context), room)
        return context[-room:]


if __name__ == "__main__":
    from lm_eval.__main__ import cli_evaluate

    cli_evaluate()
