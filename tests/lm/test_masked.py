"""Masked language models: pseudo-log-likelihoods, and what refuses to be computed with them."""

import pytest
import torch
import transformers as hf
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

from probelib import lm
from probelib.errors import ProbeError
from tests.lm import tiny

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "capital", "is", "par", "##is"]
WORDS += ["rome", "oslo", "##ian", "."]


def bert(path, kind=hf.BertForMaskedLM, **changed):
    """A tiny BERT with a WordPiece tokenizer: "paris" is two tokens."""
    raw = Tokenizer(models.WordPiece({word: n for n, word in enumerate(WORDS)}, unk_token="[UNK]"))
    raw.normalizer = normalizers.BertNormalizer()
    raw.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    ends = [("[CLS]", 2), ("[SEP]", 3)]
    raw.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=ends)
    names = {f"{name}_token": f"[{name.upper()}]" for name in ("pad", "unk", "cls", "sep", "mask")}
    torch.manual_seed(0)
    model = kind(hf.BertConfig(**tiny.WIDE | {"vocab_size": len(WORDS)} | changed))
    for parameter in model.parameters():
        if parameter.dim() > 1:
            torch.nn.init.normal_(parameter, std=0.25)
    model.save_pretrained(path)
    hf.PreTrainedTokenizerFast(tokenizer_object=raw, **names).save_pretrained(path)
    return path


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return lm.load(bert(tmp_path_factory.mktemp("bert")))


def log_p(model, words: str, position: int, token: str) -> float:
    """By hand: one forward of these tokens, log-softmax at one position."""
    ids = torch.tensor([[WORDS.index(word) for word in words.split()]])
    with torch.inference_mode():
        scores = torch.log_softmax(model.hf_model(ids).logits[0, position], -1)
    return scores[WORDS.index(token)].item()


def test_pseudo_log_likelihood_by_hand(model):
    """Within a word, later tokens are masked too."""
    word = model.logprobs("the capital is", [" Paris", " Paris Rome."])
    start = "[CLS] the capital is"
    second = log_p(model, f"{start} par [MASK] [SEP]", 5, "##is")
    first = log_p(model, f"{start} [MASK] [MASK] [SEP]", 4, "par")
    assert word["token_logprobs"][0] == pytest.approx([first, second], abs=1e-5)
    longer = [
        log_p(model, f"{start} [MASK] [MASK] rome . [SEP]", 4, "par"),
        log_p(model, f"{start} par [MASK] rome . [SEP]", 5, "##is"),
        log_p(model, f"{start} par ##is [MASK] . [SEP]", 6, "rome"),
        log_p(model, f"{start} par ##is rome [MASK] [SEP]", 7, "."),
    ]
    assert word["token_logprobs"][1] == pytest.approx(longer, abs=1e-5)
    assert set(word["note"]) == {"pseudo-log-likelihood"} and word.attrs["cost"]["path"] == "pseudo"


def test_what_needs_a_generator_is_refused(model):
    assert model.masked and model.describe()["path"] in (None, "pseudo")
    for work in (
        lambda: lm.load(model.hf_model, model.tokenizer).generate(["the capital is"]),
        lambda: model.logprobs(["the"], [[" rome"]], end=True),
        lambda: model.top_continuations("the", {"r": [" rome"]}, 1, end=False),
        lambda: model.hidden_states(["the"]),
    ):
        with pytest.raises(ProbeError, match="masked language model"):
            work()
    with pytest.raises(ProbeError, match="allowed for .*pseudo"):
        model.logprobs(["the"], [[" rome"]], path="tree")


def test_a_bidirectional_model_is_never_scored_as_a_decoder(tmp_path):
    """Its config says that it is a causal class, and its attention sees later tokens."""
    one = lm.load(bert(tmp_path / "wrong", hf.BertLMHeadModel))
    with pytest.raises(ProbeError, match="not an autoregressive model.*ForMaskedLM"):
        one.logprobs(["the capital is"], [[" Paris"]])
    decoder = lm.load(bert(tmp_path / "right", hf.BertLMHeadModel, is_decoder=True))
    assert not decoder.masked and decoder.logprobs("the capital is", " Paris")["logprob"][0] < 0
