"""Best-first search for the n most probable of 10,000 labels: equal to scoring every label, at a fraction of its tokens.

``python -m tests.benchmarks labels`` writes its table in README.md.
"""

import numpy as np
import pandas as pd

from probelib import facts, lm, prompts
from probelib.lm.decode.labels import Labels
from tests.benchmarks.measuring import write_table

CANDIDATES, N, PROMPTS = 10_000, 10, 25


def run(name: str = "atlas-neox-2.4m") -> list[dict]:
    """One row a prompt: tokens of the trie, tokens forwarded, largest difference to brute force, seconds of both."""
    atlas, model = facts.atlas(), lm.load(name)
    known = atlas.entities.iloc[np.random.default_rng(0).permutation(len(atlas.entities))[:CANDIDATES]]
    texts = {
        e: [f" {x}" for x in (label, *aliases)]
        for e, label, aliases in known[["entity", "label", "aliases"]].itertuples(index=False)
    }
    labels = Labels(model, texts)
    asked = prompts.paraphrases(facts.load(n_facts=2), "cloze").query("template == 1")["text"].tolist()[:PROMPTS]
    return [_one(model, prompt, labels, texts) for prompt in asked]


def _one(model, prompt: str, labels: Labels, texts: dict) -> dict:
    flat = [(candidate, text) for candidate, own in texts.items() for text in dict.fromkeys(own)]
    rows = model.logprobs([prompt], [[text for _, text in flat]], end=True)
    total = rows.assign(candidate=[c for c, _ in flat], p=rows["logprob"] + rows["eos_logprob"])
    best = total.groupby("candidate", sort=False)["p"].agg(np.logaddexp.reduce).nlargest(N)
    found = model.top_continuations(prompt, labels, N)
    cost = found.attrs["cost"]
    return {"prompt": prompt, "trie tokens": cost["trie_tokens"], "forwarded": cost["forwarded_tokens"],
            "share": cost["forwarded_tokens"] / cost["trie_tokens"], "seconds": cost["seconds"],
            "brute force seconds": rows.attrs["cost"]["seconds"],
            "difference": float(np.abs(np.sort(best.to_numpy()) - np.sort(found["logprob"].to_numpy())).max())}  # fmt: skip


def in_short(rows: list[dict]) -> pd.DataFrame:
    """One row: what was searched, the share that was forwarded, the largest difference, and how much faster it was."""
    table = pd.DataFrame(rows)
    share = 100 * table["share"]
    cells = {
        "candidates": CANDIDATES,
        "trie tokens": table["trie tokens"][0],
        "prompts": len(table),
        "forwarded, %, median": share.median(),
        "lowest": share.min(),
        "highest": share.max(),
        "largest difference, 1e-6 nats": 1e6 * table["difference"].max(),
        "times faster than scoring every label, median": (table["brute force seconds"] / table["seconds"]).median(),
    }
    return pd.DataFrame([cells])


def main() -> None:
    digits = {"largest difference, 1e-6 nats": 1, "times faster than scoring every label, median": 1}
    digits |= dict.fromkeys(("forwarded, %, median", "lowest", "highest"), 1)
    write_table("labels", in_short(run()), digits)


if __name__ == "__main__":
    main()
