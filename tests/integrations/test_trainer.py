"""The panel while a real model trains with the real Trainer."""

import numpy as np
import pandas as pd
import pytest
import torch
import transformers as hf

from probelib import facts
from probelib.errors import ProbeError
from probelib.integrations.trainer import PanelCallback, panel_values
from tests.lm import tiny


@pytest.fixture(scope="module")
def panel():
    return facts.load(relations=["P36"], n_facts=4, n_distractors=3)


def test_values_by_hand():
    """Two facts with two options: one known (q = 3/4), one not (q = 1/4)."""
    scores = pd.DataFrame({"prompt": [0, 0, 1, 1], "fact": ["a", "a", "b", "b"], "gold": [True, False, True, False]})
    scores["logprob"] = np.log([0.3, 0.1, 0.1, 0.3])
    values = panel_values(scores, pd.Series(["a", "b"]), pd.DataFrame({"higher": [0], "lower": [1]}))
    assert values["known_share"] == 0.5 and values["concordance"] == 1.0
    assert values["bits"] == pytest.approx((np.log2(1.5) + np.log2(0.5)) / 2)
    tied = scores.assign(logprob=-1.0)
    assert panel_values(tied, pd.Series(["a", "b"]), None) == {"known_share": 0.0, "bits": pytest.approx(0)}


def train(folder, panel, **options):
    """Three steps on sentences that state the panel; the trainer, and the weights at the end."""
    tokenizer = tiny.tokenizer()
    tokenizer.pad_token = tokenizer.eos_token
    own = {"vocab_size": len(tokenizer), "bos_token_id": 0, "eos_token_id": 1, "hidden_dropout": 0.1}
    config = hf.GPTNeoXConfig(**tiny.WIDE | own)
    hf.set_seed(0)
    model = hf.AutoModelForCausalLM.from_config(config)
    rows = [{"input_ids": (ids := tokenizer(text)["input_ids"][:16]), "labels": ids} for text in tiny.TEXTS[:5] * 2]
    rows = [row for row in rows if len(row["input_ids"]) == len(rows[0]["input_ids"])]
    short = {"max_steps": 3, "logging_steps": 1, "per_device_train_batch_size": 1, "use_cpu": True}
    arguments = hf.TrainingArguments(folder, report_to=[], save_strategy="no", disable_tqdm=True, **short)
    trainer = hf.Trainer(model, arguments, train_dataset=rows, processing_class=tokenizer)
    if options:
        trainer.add_callback(PanelCallback(trainer, panel, **options))
    trainer.train()
    return trainer, torch.cat([parameter.detach().flatten() for parameter in model.parameters()])


def test_the_panel_is_logged_and_training_is_not_disturbed(tmp_path, panel):
    exposures = dict(zip(panel.facts["fact"], [64, 64, 0, 0], strict=True))
    watched, weights = train(tmp_path, panel, every=2, exposures=exposures)
    logged = [entry for entry in watched.state.log_history if "probelib/bits" in entry]
    assert [entry["step"] for entry in logged] == [2, 3]  # every second, and the last
    assert [entry["step"] for entry in watched.state.log_history if "loss" in entry] == [1, 2, 3]  # none is lost
    for entry in logged:
        assert 0 <= entry["probelib/known_share"] <= 1 and entry["probelib/concordance"] in (0, 0.25, 0.5, 0.75, 1)
        assert np.isfinite(entry["probelib/bits"]) and entry["probelib/bits"] <= 2
    assert logged[0]["probelib/bits"] != logged[1]["probelib/bits"]  # of other weights
    assert torch.equal(weights, train(tmp_path, panel)[1])  # dropout included


def test_arguments_that_raise(panel):
    with pytest.raises(ProbeError, match="every=0"):
        PanelCallback(None, panel, every=0)
    with pytest.raises(ProbeError, match="no clozes template for P36"):
        PanelCallback(None, panel, every=1, role="clozes")
    with pytest.raises(ProbeError, match="no relation has facts with 32 exposures"):
        PanelCallback(None, panel, every=1, exposures=dict.fromkeys(panel.facts["fact"], 0))
