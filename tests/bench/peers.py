"""What others run for the same questions, on the same model object and tokenizer.

Each function does what its original does, with the original's defaults where a line says nothing
else. Only the first one needs a package that the kit does not (``pip install lm-eval``)."""

import logging

import numpy as np
import torch

from probelib.errors import ProbeError


def harness(model, tokenizer, batch: int):
    """lm-evaluation-harness: a function from pairs (context, continuation) to log-probs [pairs]."""
    try:
        from lm_eval.api.instance import Instance
        from lm_eval.models.huggingface import HFLM
    except ImportError as error:
        raise ProbeError("lm-evaluation-harness is not installed (pip install lm-eval)") from error
    # it warns that it was given a model object; that is meant
    logging.getLogger("lm_eval").setLevel(logging.ERROR)
    peer = HFLM(pretrained=model, tokenizer=tokenizer, batch_size=batch)

    def loglikelihood(pairs: list[tuple[str, str]]) -> np.ndarray:
        requests = [Instance("loglikelihood", {}, pair, n) for n, pair in enumerate(pairs)]
        return np.array([logprob for logprob, _ in peer.loglikelihood(requests, disable_tqdm=True)])

    return loglikelihood


def sorted_batches(model, tokenizer, pairs: list[tuple[str, str]], rows: int = 32) -> np.ndarray:
    """A careful loop of one's own: teacher-forced, sorted by length, right-padded batches.
    Log-probs [pairs]."""
    texts = list(dict.fromkeys(text for pair in pairs for text in pair))
    ids = dict(zip(texts, tokenizer(texts)["input_ids"], strict=True))
    order = sorted(range(len(pairs)), key=lambda n: sum(len(ids[text]) for text in pairs[n]))
    logprobs = np.empty(len(pairs))
    with torch.inference_mode():
        for start in range(0, len(order), rows):
            batch = order[start : start + rows]
            padded = tokenizer.pad(
                {"input_ids": [(ids[pairs[n][0]] + ids[pairs[n][1]])[:-1] for n in batch]},
                padding_side="right",
                return_tensors="pt",
            ).to(model.device)
            # [rows, longest, vocabulary]
            logits = torch.log_softmax(model(**padded, use_cache=False).logits, -1)
            for row, n in enumerate(batch):
                prompt, answer = (ids[text] for text in pairs[n])
                predicting = torch.arange(len(prompt) - 1, len(prompt) + len(answer) - 1)
                logprobs[n] = logits[row, predicting, answer].sum()
    return logprobs


def beams_one_by_one(model, tokenizer, prompts: list[str]) -> list:
    """MONITOR's released scheme: five beams, 15 new tokens, one prompt at a time; what ``generate``
    returns for each."""
    return [
        model.generate(
            **tokenizer(prompt, return_tensors="pt", return_token_type_ids=False).to(model.device),
            num_beams=5,
            max_new_tokens=15,
            do_sample=False,
            return_dict_in_generate=True,
            output_scores=True,
        )
        for prompt in prompts
    ]


def padded_states(model, tokenizer, texts: list[str], rows: int = 64) -> np.ndarray:
    """GraphEval's judge: the whole model with its head, every layer's states, left-padded batches
    in the given order."""
    states = []
    with torch.no_grad():
        for start in range(0, len(texts), rows):
            padded = tokenizer(
                texts[start : start + rows],
                padding=True,
                padding_side="left",
                truncation=True,
                max_length=256,
                return_tensors="pt",
                return_token_type_ids=False,
            ).to(model.device)
            states.append(model(**padded, output_hidden_states=True).hidden_states[-1][:, -1])
    return torch.cat(states).float().cpu().numpy()


def sorted_states(model, tokenizer, texts: list[str], rows: int = 32) -> np.ndarray:
    """A careful loop of one's own: the model without its head, sorted by length, right-padded
    batches."""
    ids = tokenizer(texts)["input_ids"]
    order = sorted(range(len(texts)), key=lambda n: len(ids[n]))
    states = np.empty((len(texts), model.config.hidden_size), dtype=np.float32)
    with torch.inference_mode():
        for start in range(0, len(order), rows):
            batch = order[start : start + rows]
            padded = tokenizer.pad(
                {"input_ids": [ids[n] for n in batch]}, padding_side="right", return_tensors="pt"
            )
            padded = padded.to(model.device)
            # [rows, longest, width]
            hidden = model.base_model(**padded, use_cache=False).last_hidden_state
            every = torch.arange(len(batch), device=hidden.device)
            states[batch] = hidden[every, padded["attention_mask"].sum(1) - 1].float().cpu()
    return states
