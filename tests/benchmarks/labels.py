"""Best-first search for the n most probable of 10,000 labels: equal to scoring every label, at a fraction of its tokens."""

import numpy as np

from probelib import facts, lm, prompts
from probelib.lm.decode.labels import Labels

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


def main() -> None:
    rows = run()
    share = np.array([row["share"] for row in rows])
    print(
        f"best-first search, n = {N} of {CANDIDATES:,} candidates, {rows[0]['trie tokens']:,} trie tokens, {len(rows)} prompts"
    )
    low, middle, high = 100 * share.min(), 100 * np.median(share), 100 * share.max()
    print(f"forwarded: median {middle:.1f} % of the trie's tokens (range {low:.1f} to {high:.1f} %)")
    print(f"largest difference to scoring every label: {max(row['difference'] for row in rows):.1e} nats")
    ratio = np.median([row["brute force seconds"] / row["seconds"] for row in rows])
    print(f"time: {ratio:.1f} x faster than scoring every label (median)")


if __name__ == "__main__":
    main()
