"""A panel of facts scored while a model trains with the Trainer of transformers.

from probelib import facts
from probelib.integrations.trainer import PanelCallback

trainer = Trainer(model, args, train_dataset=..., processing_class=tokenizer)
trainer.add_callback(PanelCallback(trainer, facts.load(), every=500))
trainer.train()
"""

import numpy as np
import pandas as pd
from transformers import TrainerCallback

from probelib import lm, prompts
from probelib.beyond.capacity import bits_by_likelihood
from probelib.beyond.concordance import ordered, pairs_of_facts
from probelib.errors import ProbeError, check_sizes
from probelib.facts.model import Facts


class PanelCallback(TrainerCallback):
    """Every ``every`` steps and at the end, score the facts and log the values with the Trainer:

    probelib/known_share   share of facts whose object is the most probable option (a tie does not count as known)
    probelib/bits          mean over facts of log2 n + log2 q [bits], q the normalized probability of the object among n options
    probelib/concordance   share of pairs (a taught and a never-taught fact of one relation) with the higher q for the taught
                           one, a tie counting half; only with ``exposures``

    facts       with distractors, which are the options besides the object
    exposures   fact -> exposure count in the training data; a fact counts as taught from ``taught`` exposures on
    role        role of the templates; the first one of each relation is the prompt
    """

    def __init__(self, trainer, facts: Facts, every: int, exposures=None, taught: int = 32, role: str = "cloze"):
        check_sizes(every=every)
        asked = prompts.paraphrases(facts, role)
        self.prompts = asked[asked["template"] == 1].reset_index(drop=True)
        self.options = prompts.options(facts)
        self.gold = dict(zip(facts.facts["fact"], facts.facts["object"], strict=True))
        self.trainer, self.every, self.pairs = trainer, every, None
        if exposures is not None:
            design = self.prompts[["fact", "relation"]].assign(model="", group="")
            self.pairs = pairs_of_facts(design.assign(exposures=design["fact"].map(exposures)), taught)
            if self.pairs.empty:
                raise ProbeError(
                    f"no relation has facts with {taught} exposures or more and facts with none: nothing to compare"
                )

    def on_step_end(self, args, state, control, model=None, **kwargs):
        if state.global_step % self.every == 0:
            due = control.should_log  # Trainer.log resets it: the training loss of this step would not be logged
            self.log(model)
            control.should_log = due

    def on_train_end(self, args, state, control, model=None, **kwargs):
        if state.global_step % self.every:
            self.log(model)

    def log(self, hf_model) -> None:
        modes = [(module, module.training) for module in hf_model.modules()]
        try:
            values = self.measure(lm.load(hf_model, self.trainer.processing_class))
        finally:
            for module, training in modes:  # because scoring sets the shared modules to evaluation mode
                module.training = training
        self.trainer.log({f"probelib/{name}": float(value) for name, value in values.items()})

    def measure(self, model) -> dict[str, float]:
        """The values of a model of ``lm.load``."""
        options = {fact: own for fact, own in self.options.groupby("fact")}
        continuations = [[f" {label}" for label in options[fact]["label"]] for fact in self.prompts["fact"]]
        scores = model.logprobs(self.prompts["text"].tolist(), continuations)
        names = [options[fact]["candidate"].tolist() for fact in self.prompts["fact"]]
        scores["fact"] = self.prompts["fact"].to_numpy()[scores["prompt"]]
        scores["gold"] = [names[p][c] for p, c in zip(scores["prompt"], scores["candidate"], strict=True)]
        scores["gold"] = scores["gold"] == scores["fact"].map(self.gold)
        return panel_values(scores, self.prompts["fact"], self.pairs)


def panel_values(scores: pd.DataFrame, facts: pd.Series, pairs: pd.DataFrame | None) -> dict[str, float]:
    """``known_share``, ``bits`` and, with pairs of row numbers of ``facts``, ``concordance``.

    scores   ``prompt``, ``fact``, ``gold``, ``logprob`` (nats); one prompt per fact
    """
    rank = scores.groupby("prompt")["logprob"].rank(ascending=False, method="max")
    bits = bits_by_likelihood(scores)
    values = {"known_share": (rank[scores["gold"]] == 1).mean(), "bits": bits.mean()}
    if pairs is not None:
        total = scores.groupby("prompt")["logprob"].transform(np.logaddexp.reduce)
        share = (scores["logprob"] - total)[scores["gold"]].set_axis(scores["fact"][scores["gold"]])
        values["concordance"] = ordered(share.reindex(facts).to_numpy()[:, None], pairs).mean()
    return values
