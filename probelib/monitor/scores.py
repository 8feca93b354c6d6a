"""What MONITOR scores: the facts and prompts of every artifact, and the calls that score them; and
whether a generated text is the right answer (appendix A)."""

import re
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from probelib import facts, lm, prompts, store
from probelib.errors import ProbeError, texts_of
from probelib.facts import Facts
from probelib.facts.names import fold
from probelib.monitor.measures import GRID

EFFECTS = {"positive": "pos. context", "negative1": "neg. context", "none": "framing"}  # table 7
ENDS = "\n.;!?,"  # an answer ends before the first of these
UNTIL_END = re.compile(f"[^{ENDS}]*")


def score(
    models: list[str], facts: Facts, folder: str | Path, quantize: str | None = None, dtype="auto"
) -> dict[str, pd.DataFrame]:
    """Score the gold answer after every prompt of ``prompts.with_contexts``: display name of the
    model -> ``score_answers``. Raise ProbeError if two models have the same display name."""
    if not isinstance(facts, Facts):
        raise ProbeError(f"facts: pass what `facts.load` returns, not a {type(facts).__name__}")
    framed, gold = prompts.with_contexts(facts), prompts.gold(facts)
    loaded = _loaded(models, quantize, dtype)
    return {model.name: score_answers(model, framed, gold, folder) for model in loaded}


def _loaded(models: list[str], quantize: str | None, dtype: str) -> Iterator:
    """The models, one at a time. No two may share a display name: one would replace the other."""
    sources = {}
    for source in dict.fromkeys(texts_of("models", models)):
        model = lm.load(source, quantize=quantize, dtype=dtype)
        if model.name in sources:
            said = f"{sources[model.name]!r} and {source!r} have the same display name"
            how = "Rename one of them (a folder: ln -s THE-FOLDER another-name)"
            raise ProbeError(f"models: {said} {model.name!r}. {how}")
        sources[model.name] = source
        yield model


def score_answers(model, framed: pd.DataFrame, gold: pd.DataFrame, folder: str | Path):
    """``store.score`` of the gold answers (``prompts.gold``), and ``correct``: whether greedy
    decoding gives them. ``.attrs``: ``generated``, the number of prompts that teacher forcing does
    not decide (``decide``): only these are generated; ``cost``, of both; ``parameters``."""
    rows = store.score(model, framed, gold, folder, end=True)
    verdict = decide(rows)
    undecided = framed[framed["prompt"].isin(rows["prompt"][verdict.isna()])]
    generated = store.generate(model, undecided, folder) if len(undecided) else None
    verdict[verdict.isna()] = decide(rows[verdict.isna()], generated)
    rows["correct"] = verdict.astype(bool)
    rows.attrs |= {"generated": len(undecided), "parameters": model.n_parameters}
    if generated is not None:
        rows.attrs["cost"] = store.sum_costs([rows.attrs["cost"], generated.attrs["cost"]])
    return rows


def extract(text: str) -> str:
    """The answer in a generated text, cut before the first line break or one of ``. ; ! ? ,``."""
    return UNTIL_END.match(text.lstrip())[0].strip()


def matches(answer: str, gold: str, done: bool = True) -> bool | None:
    """Whether a generated answer is the gold object, then one of ``. ; ! ? ,``, a line break or the
    end. Case and the encoding of accents do not matter; a gold object may hold a full stop. If
    generation is not ``done``, None means that the known beginning does not decide it."""
    text, gold = fold(answer.lstrip()), fold(gold.strip())
    if text.startswith(gold):
        rest = text[len(gold) :].lstrip(" \t")
        return rest[0] in ENDS if rest else done or None
    return False if done or not gold.startswith(text.rstrip()) else None


def decide(scores: pd.DataFrame, generated: pd.DataFrame | None = None) -> pd.Series:
    """Whether greedy decoding answers each row's prompt with its label; None: not decided yet.
    Teacher forcing already shows how greedy decoding begins (``greedy_text``). The few prompts that
    this leaves open (other tokens of the same answer, a blank after it) need ``generated`` text."""
    greedy = (scores[column].tolist() for column in ("greedy_text", "label", "greedy_done"))
    verdict = [matches(text, label, done) for text, label, done in zip(*greedy, strict=True)]
    if generated is not None:
        text = dict(zip(generated["prompt"], generated["text"], strict=True))
        rows = enumerate(zip(scores["prompt"].tolist(), scores["label"].tolist(), strict=True))
        for place, (prompt, label) in rows:
            if verdict[place] is None and prompt in text:
                verdict[place] = matches(text[prompt], label)
    return pd.Series(verdict, index=scores.index, dtype=object)


def facts_shown(panel: Facts, relations, taught, n_facts="panel", seed: int = 0) -> Facts:
    """Facts for artifacts that show single relations: more than the panel has, and known ones; the
    panel itself if ``taught``, ids of the facts that the shipped models were taught, is None or has
    none. Relations that the data lack are replaced (``facts.substitute_relations``); ``n_facts``
    per relation, "panel": up to 40."""
    if taught is None:
        return panel
    wanted = facts.substitute_relations(panel, list(dict.fromkeys(relations)))
    size = 40 if n_facts == "panel" else n_facts
    found = facts.load(relations=wanted, n_facts=size, seed=seed, among=taught)
    source = f"{panel.source}, facts that the models were taught"
    return replace(found, source=source) if len(found.facts) else panel


def gold_label(facts: Facts, fact: str) -> str:
    """The label of a fact's object."""
    return facts.label(facts.facts.loc[facts.facts["fact"] == fact, "object"])[0]


# ---- section 3: forms of the prompt


def example_templates(facts: Facts) -> pd.DataFrame:
    """The five templates, filled with the first fact: ``kind``, ``template``, ``one fact``."""
    roles = facts.templates.drop_duplicates("role").set_index("role")["template"]
    cloze, question, statement = roles.reindex(["cloze", "question", "statement"]).fillna("-")
    subject, gold = facts.label(facts.facts.iloc[0][["subject", "object"]])
    filled = prompts.fill(question, subject)
    first = facts.distractors[facts.distractors["fact"] == facts.facts["fact"].iloc[0]]
    first = facts.label(first.sort_values("number")["object"].head(1))
    negative = [prompts.in_context(label, filled) for label in first] or ["-"]
    judged = prompts.CHECK.format(statement=prompts.fill(statement, subject, gold))
    rows = [
        ("WP", cloze, prompts.fill(cloze, subject)),
        ("QA", question, filled),
        ("FC", prompts.CHECK.format(statement=statement), judged),
        ("[Y]. QA", f"[Y]. {question}", prompts.in_context(gold, filled)),
        ("[Y_]. QA", f"[Y_]. {question}", negative[0]),
    ]
    return pd.DataFrame(rows, columns=["kind", "template", "one fact"])


def prompts_by_form(facts: Facts) -> dict[str, pd.DataFrame]:
    """The prompts of section 3.1: questions (QA, with all contexts) and, if the facts have such
    templates, sentences to complete (WP) and statements to judge (FC)."""
    roles = set(facts.templates["role"])
    by_form = {"QA": prompts.with_contexts(facts)}
    if "cloze" in roles:
        by_form["WP"] = prompts.paraphrases(facts, "cloze")
    if "statement" in roles:
        by_form["FC"] = prompts.checks(facts)
    return by_form


def score_forms(
    models: list[str], facts: Facts, folder: str | Path, quantize: str | None = None, dtype="auto"
) -> dict[str, dict[str, pd.DataFrame]]:
    """Scores of ``prompts_by_form`` (QA, WP: ``score_answers``) by form and name of the model."""
    by_form, gold = prompts_by_form(facts), prompts.gold(facts)
    words = [(fact, word, word) for fact in gold["fact"] for word in ("True", "False")]
    words = pd.DataFrame(words, columns=["fact", "candidate", "label"])
    scores = {form: {} for form in by_form}
    for model in _loaded(models, quantize, dtype):
        for form, framed in by_form.items():
            how, candidates = (store.score, words) if form == "FC" else (score_answers, gold)
            scores[form][model.name] = how(model, framed, candidates, folder)
    return scores


# ---- examples: generated text, objects, attributions. ``models``: loaded, taken one at a time


def generate_framings(model, fact: str, facts: Facts) -> pd.DataFrame:
    """What a model answers to all frames of a fact, and to frame 1 in each context (figure 1)."""
    framed, gold = prompts.with_contexts(facts), gold_label(facts, fact)
    rows = framed[framed["fact"] == fact].query(GRID["released13"], engine="python")
    found = model.generate(rows["text"].tolist())["text"].map(extract).tolist()
    rows = rows[["context", "template", "text"]]
    return rows.assign(answer=found, correct=[matches(answer, gold) for answer in found])


def score_objects(model, texts: list[str], facts: Facts) -> pd.DataFrame:
    """Scores and ``probability`` of every object of the facts and their distractors after texts."""
    objects = pd.concat([facts.facts["object"], facts.distractors["object"]])
    labels = sorted(set(facts.label(objects)))
    rows = model.logprobs(texts, [[f" {label}" for label in labels]] * len(texts))
    rows["label"] = [labels[c] for c in rows["candidate"]]
    rows["text"] = [texts[i] for i in rows["prompt"]]
    return rows.assign(probability=np.exp(rows["logprob"].astype(float)), model=model.name)


def generate_for_fact(models: Iterable, fact: str, facts: Facts, scores: dict) -> pd.DataFrame:
    """What models generate for a fact after its answer, a distractor and no context (table 7), and
    ``prob.`` of the gold answer, the mean over its tokens. ``scores``: ``score`` of the facts."""
    framed, rows = prompts.with_contexts(facts), []
    own = framed[(framed["fact"] == fact) & (framed["template"] == 1)]
    own = own.set_index("context").loc[list(EFFECTS)]
    for model in models:
        tokens = scores[model.name].set_index("prompt")["token_logprobs"][own["prompt"]]
        outputs = model.generate(own["text"].tolist())["text"].map(extract)
        means = [np.exp(each.astype(float)).mean() for each in tokens]
        columns = {"effect": EFFECTS.values(), "input": own["text"].tolist(), "model": model.name}
        rows.append(pd.DataFrame(columns | {"output": outputs.tolist(), "prob.": means}))
    return pd.concat(rows).sort_index(kind="stable")


def misprimed_prompt(model, scores: list, framed: pd.DataFrame, relation: str) -> pd.Series:
    """The prompt of figure 5, a row of ``framed`` with ``prepended``, its negative context: the
    first model (of the two ``scores``) answers it, the second one, ``model``, answers with the
    distractor. Prompts of ``relation`` come first, then the surest answers. Without such a prompt,
    one that the first model answers, if any."""
    bare = framed[framed["context"] == "none"].set_index(["fact", "template"])["text"]
    queue = framed.query(GRID["negative"], engine="python")
    first, second = (own.set_index("prompt").loc[queue["prompt"]] for own in scores)
    rank = 2 * first["correct"].to_numpy(int) - second["correct"].to_numpy(int)
    queue = queue.assign(rank=rank, logprob=first["logprob"].to_numpy())
    queue = queue.sort_values(["rank", "logprob"], ascending=False, kind="stable")
    questions = bare[queue[["fact", "template"]].itertuples(index=False, name=None)]
    pairs = zip(queue["text"], questions, strict=True)
    queue["prepended"] = [text.removesuffix(question).strip() for text, question in pairs]
    tried = queue[queue["rank"] == 2]
    tried = tried.sort_values("relation", key=lambda r: r != relation, kind="stable").head(100)
    if tried.empty:
        return queue.iloc[0]
    said = zip(model.generate(tried["text"].tolist())["text"], tried["prepended"], strict=True)
    return tried.iloc[int(np.argmax([matches(a, p.removesuffix(".")) for a, p in said]))]


def attribute(models: Iterable, prompt: pd.Series, scores: dict, steps: int = 200) -> pd.DataFrame:
    """Integrated gradients of the first answer token over the words of ``misprimed_prompt``:
    ``model``, ``word``, ``signed``, ``score`` (share), ``prepended`` (whether the word belongs to
    the context), and per model ``begins`` (the token), ``correct``, ``probability``, ``baseline``,
    ``error`` (relative, of the integral). Raise ProbeError if ``error`` is 0.05 or more."""
    from probelib.lm.internals.gradients import by_word, integrated_gradients

    rows = []
    for model in models:
        tokens = integrated_gradients(model, prompt["text"], steps)
        about = tokens.attrs
        if about["relative_delta"] >= 0.05:
            what = f"the integral has not converged in {steps} steps; take more (steps=)"
            raise ProbeError(f"{model.name}: {what}")
        words = by_word(tokens, prompt["text"]).assign(model=model.name)
        words["prepended"] = np.arange(len(words)) < len(prompt["prepended"].split())
        right = scores[model.name].set_index("prompt")["correct"][prompt["prompt"]]
        found = {"begins": about["target_text"].strip(), "correct": bool(right)}
        found |= {"probability": about["probability"], "baseline": about["baseline_probability"]}
        rows.append(words.assign(**found, error=about["relative_delta"]))
    return pd.concat(rows, ignore_index=True)


def time_both(model, facts: Facts) -> pd.DataFrame:
    """The cost of MONITOR and of the accuracy study (table 8), without the store and a warm-up
    round: one row per way ("generated": as released; "teacher-forced"), round and study."""
    framed, gold, rows = prompts.with_contexts(facts), prompts.gold(facts), []
    studies = {"MONITOR": "released13", "accuracy": "grid"}
    for i in range(-1, 3):  # three rounds after the warm-up
        for way in ("generated", "teacher-forced"):
            for what, runs in studies.items():
                asked = framed.query(GRID[runs], engine="python")
                with tempfile.TemporaryDirectory() as fresh:
                    if way == "generated":
                        found = store.generate(model, asked, fresh)
                    else:
                        found = score_answers(model, asked, gold, fresh)
                tokens, seconds = (found.attrs["cost"][k] for k in ("forwarded_tokens", "seconds"))
                hours = seconds / 3600 * 1000 / len(facts.facts)
                rows.append((way, i, what, len(asked), tokens, seconds, hours))
    columns = ["way", "round", "what", "prompts", "forwarded tokens", "device seconds"]
    table = pd.DataFrame(rows, columns=[*columns, "device hours for 1,000 facts"])
    return table[table["round"] >= 0]
