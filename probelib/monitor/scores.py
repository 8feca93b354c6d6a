"""What MONITOR scores: the facts and prompts of every artifact, and the calls that score them."""

import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from probelib import facts, lm, prompts, store
from probelib.errors import ProbeError, texts_of
from probelib.facts import Facts, choose, pick, substitute_relations
from probelib.monitor.alternatives import misprimed, released_anchors
from probelib.monitor.answers import decide, extract, matches
from probelib.monitor.measures import distances, measure_facts

EFFECTS = {"positive": "pos. context", "negative1": "neg. context", "none": "framing"}  # of table 7


def score(
    models: list[str], facts: Facts, folder: str | Path, quantize: str | None = None, dtype: str = "auto"
) -> dict[str, pd.DataFrame]:
    """Score the gold answer after every prompt of ``prompts.with_contexts``: name of the model -> ``score_answers``."""
    if not isinstance(facts, Facts):
        raise ProbeError(f"facts: pass what `facts.load` returns, not a {type(facts).__name__}")
    framed, gold = prompts.with_contexts(facts), prompts.gold(facts)
    loaded = (lm.load(name, quantize=quantize, dtype=dtype) for name in dict.fromkeys(texts_of("models", models)))
    return {model.name: score_answers(model, framed, gold, folder) for model in loaded}


def score_answers(model, framed: pd.DataFrame, gold: pd.DataFrame, folder: str | Path) -> pd.DataFrame:
    """``store.score`` of the gold answers, and the column ``correct``: whether greedy decoding gives them.

    framed, gold   a frame of ``prompts``; ``prompts.gold``
    ``.attrs``     ``generated``: number of prompts that teacher forcing does not decide (see ``decide``), only these are
                   generated; ``cost``: of both; ``parameters``: of the model
    """
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


def scored_models(scores: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """One row per model: its size and precision, and how many of its prompts had to be generated."""
    rows = []
    for name, frame in scores.items():
        model = frame.attrs["models"][0]
        rows.append(
            {
                "model": name,
                "parameters": frame.attrs["parameters"],
                "encoder-decoder": model.get("encoder_decoder"),
                "precision": model.get("quantize") or model.get("dtype"),
                "prompts": len(frame),
                "prompts generated": frame.attrs["generated"],
            }
        )
    return pd.DataFrame(rows)


def facts_shown(
    panel: Facts, relations: list[str], taught: set[str] | None, n_facts: int | str = "panel", seed: int = 0
) -> Facts:
    """Facts for artifacts that show a single relation: more than the panel has, and only facts that the models may know.

    panel      the facts as loaded; returned unchanged if ``taught`` is None, or if none of its relations has such a fact
    relations  those that are shown; a relation that the data lack is replaced as in ``facts.substitute_relations``
    taught     ids of facts of the atlas, usually those that the shipped models were taught
    n_facts    facts per relation; "panel": up to 100
    """
    if taught is None:
        return panel
    wanted, _ = substitute_relations(panel, list(dict.fromkeys(relations)))
    size = 100 if n_facts == "panel" else n_facts
    found = facts.load(relations=wanted, n_facts=size, seed=seed, among=taught)
    return replace(found, source=f"{panel.source}, facts that the models were taught") if len(found.facts) else panel


def one_relation(facts: Facts, relation: str) -> tuple[Facts, str]:
    """The facts of one relation (the first one of the data if they lack it), and a sentence about them for captions."""
    (chosen,), note = substitute_relations(facts, [relation])
    found = choose(facts, [chosen])
    about = f"{len(found.facts)} facts ({found.source})"
    return found, f"relation {chosen} ({found.relations['name'].iloc[0]}), {about}. {note}".strip()


def example_templates(facts: Facts) -> pd.DataFrame:
    """The five templates of section 3: ``kind``, ``template``, ``one fact`` (filled with the first fact)."""
    roles = facts.templates.drop_duplicates("role").set_index("role")["template"]
    cloze, question, statement = (roles.get(role, "-") for role in ("cloze", "question", "statement"))
    subject, gold = facts.label(facts.facts.iloc[0][["subject", "object"]])
    filled = prompts.fill(question, subject)
    wrong = facts.distractors[facts.distractors["fact"] == facts.facts["fact"].iloc[0]].sort_values("number")
    negative = [prompts.in_context(label, filled) for label in facts.label(wrong["object"].head(1))]
    judged = prompts.CHECK.format(statement=prompts.fill(statement, subject, gold))
    rows = [
        ("WP", cloze, prompts.fill(cloze, subject)),
        ("QA", question, filled),
        ("FC", prompts.CHECK.format(statement=statement), judged),
        ("[Y]. QA", f"[Y]. {question}", prompts.in_context(gold, filled)),
        ("[Y_]. QA", f"[Y_]. {question}", (negative or ["-"])[0]),
    ]
    return pd.DataFrame(rows, columns=["kind", "template", "one fact"])


def prompts_by_form(facts: Facts) -> dict[str, pd.DataFrame]:
    """The prompts of section 3.1: questions (QA, with all contexts) and, if the facts have such templates, sentences to complete
    (WP) and statements to judge (FC)."""
    roles = set(facts.templates["role"])
    by_form = {"QA": prompts.with_contexts(facts)}
    if "cloze" in roles:
        by_form["WP"] = prompts.paraphrases(facts, "cloze")
    if "statement" in roles:
        by_form["FC"] = prompts.checks(facts)
    return by_form


def score_forms(
    models: list[str], facts: Facts, folder: str | Path, quantize: str | None = None, dtype: str = "auto"
) -> dict[str, dict[str, pd.DataFrame]]:
    """Score ``prompts_by_form``: form -> name of the model -> scores.

    QA, WP: ``score_answers``. FC: scores of "True" and "False" after every statement. "FC written": three tokens of generated
    text after every statement
    """
    by_form, gold = prompts_by_form(facts), prompts.gold(facts)
    words = [(fact, word, word) for fact in gold["fact"] for word in ("True", "False")]
    words = pd.DataFrame(words, columns=["fact", "candidate", "label"])
    scores = {form: {} for form in (*by_form, *(["FC written"] if "FC" in by_form else []))}
    for name in dict.fromkeys(models):
        model = lm.load(name, quantize=quantize, dtype=dtype)
        for form in set(by_form) & {"QA", "WP"}:
            scores[form][name] = score_answers(model, by_form[form], gold, folder)
        if "FC" in by_form:
            scores["FC"][name] = store.score(model, by_form["FC"], words, folder)
            scores["FC written"][name] = store.generate(model, by_form["FC"], folder, max_new_tokens=3)
    return scores


def generate_framings(
    name: str, fact: str, facts: Facts, quantize: str | None = None, dtype: str = "auto"
) -> pd.DataFrame:
    """What a model answers to all frames of a fact, and to frame 1 in each context (figure 1).

    returns  ``context``, ``template``, ``text``, ``answer`` (greedy, cut at the first stop), ``correct``
    """
    framed = prompts.with_contexts(facts)
    rows = framed[(framed["fact"] == fact) & ((framed["context"] == "none") | (framed["template"] == 1))]
    texts = lm.load(name, quantize=quantize, dtype=dtype).generate(rows["text"].tolist())["text"]
    found = texts.map(extract).tolist()
    gold = gold_label(facts, fact)
    columns = rows[["context", "template", "text"]]
    return columns.assign(answer=found, correct=[matches(answer, gold) for answer in found])


def score_objects(model, texts: list[str], facts: Facts) -> pd.DataFrame:
    """Scores of every object of the facts and of their distractors after every text: ``prompt`` (index of the text), ``label``,
    ``logprob``, ``probability``, ``text``."""
    labels = sorted({*facts.label(facts.facts["object"]), *facts.label(facts.distractors["object"])})
    rows = model.logprobs(texts, [[f" {label}" for label in labels]] * len(texts))
    return rows.assign(
        label=[labels[c] for c in rows["candidate"]],
        probability=np.exp(rows["logprob"].astype(float)),
        text=[texts[i] for i in rows["prompt"]],
    )


def top_objects(
    models: list[str], text: str, facts: Facts, quantize: str | None = None, dtype: str = "auto", n: int = 3
) -> pd.DataFrame:
    """The ``n`` most probable objects after a text (figure 2): ``model``, ``label``, ``probability``."""
    rows = []
    for name in models:
        found = score_objects(lm.load(name, quantize=quantize, dtype=dtype), [text], facts)
        rows.append(found.assign(model=name).nlargest(n, "probability")[["model", "label", "probability"]])
    return pd.concat(rows)


def gold_label(facts: Facts, fact: str) -> str:
    """The label of a fact's object."""
    return facts.label(facts.facts.loc[facts.facts["fact"] == fact, "object"])[0]


def generate_for_fact(
    models: list[str],
    fact: str,
    facts: Facts,
    scores: dict[str, pd.DataFrame],
    quantize: str | None = None,
    dtype: str = "auto",
) -> pd.DataFrame:
    """What models generate for one fact with its positive context, its first distractor and no context (table 7).

    scores   ``score`` of the same facts
    returns  ``effect``, ``input``, ``model``, ``output`` (greedy), ``prob.`` (of the gold answer, mean over its tokens)
    """
    framed = prompts.with_contexts(facts)
    own = framed[(framed["fact"] == fact) & (framed["template"] == 1) & framed["context"].isin(list(EFFECTS))]
    effects, rows = own["context"].map(EFFECTS), []
    for name in models:
        outputs = lm.load(name, quantize=quantize, dtype=dtype).generate(own["text"].tolist())["text"].map(extract)
        tokens = scores[name].set_index("prompt")["token_logprobs"][own["prompt"]]
        means = [np.exp(logprobs.astype(float)).mean() for logprobs in tokens]
        columns = {"effect": effects.to_numpy(), "input": own["text"].to_numpy(), "model": name}
        rows.append(pd.DataFrame(columns | {"output": outputs.to_numpy(), "prob.": means}))
    order = list(EFFECTS.values()).index
    return pd.concat(rows).sort_values("effect", key=lambda effect: effect.map(order), kind="stable")


def misprimed_prompt(
    models: list[str],
    scores: dict[str, pd.DataFrame],
    framed: pd.DataFrame,
    relation: str = "P37",
    quantize: str | None = None,
    dtype: str = "auto",
    most: int = 100,
) -> pd.Series:
    """The prompt of figure 5: the first model answers it, the last one answers with the distractor before
    the question; prompts of ``relation`` come first. Without such a prompt among ``most``, the first of ``misprimed``.

    returns  a row of ``framed``, and ``prepended``: the text before the question
    """
    first, last = scores[models[0]], scores[models[-1]]
    queue = framed.set_index("prompt").loc[misprimed(first, last, framed)].reset_index()
    bare = framed[framed["context"] == "none"].set_index(["fact", "template"])["text"]
    questions = [bare[key] for key in queue[["fact", "template"]].itertuples(index=False, name=None)]
    before = [t.removesuffix(q).strip() for t, q in zip(queue["text"], questions, strict=True)]
    queue = queue.assign(prepended=before)
    right = first.set_index("prompt")["correct"][queue["prompt"]].to_numpy(bool)
    wrong = ~last.set_index("prompt")["correct"][queue["prompt"]].to_numpy(bool)
    tried = queue[right & wrong].sort_values("relation", key=lambda r: r != relation, kind="stable").head(most)
    if tried.empty:
        return queue.iloc[0]
    said = lm.load(models[-1], quantize=quantize, dtype=dtype).generate(tried["text"].tolist())["text"]
    for answer, (_, row) in zip(said, tried.iterrows(), strict=True):
        if matches(answer, row["prepended"].removesuffix(".")):
            return row
    return tried.iloc[0]


def attribute(
    models: list[str],
    prompt: pd.Series,
    scores: dict[str, pd.DataFrame],
    quantize: str | None = None,
    dtype: str = "auto",
    steps: int = 200,
) -> pd.DataFrame:
    """Integrated gradients of the first answer token over the words of a prompt (figure 5).

    prompt   ``misprimed_prompt``;   scores: ``score``;   steps: of the integral
    returns  ``model``, ``word``, ``signed``, ``score`` (share), ``prepended`` (whether the word belongs to the context),
             and per model ``begins`` (the token), ``correct``, ``probability``,
             ``baseline``, ``error`` (relative, of the integral). Raise ProbeError if ``error`` is 0.05 or more
    """
    from probelib.lm.internals.gradients import by_word

    rows = []
    for name in models:
        tokens = lm.load(name, quantize=quantize, dtype=dtype).integrated_gradients(prompt["text"], steps=steps)
        if tokens.attrs["relative_delta"] >= 0.05:
            raise ProbeError(f"{name}: the integral has not converged in {steps} steps; take more (steps=)")
        per_model = {
            "begins": tokens.attrs["target_text"].strip(),
            "correct": bool(scores[name].set_index("prompt")["correct"][prompt["prompt"]]),
            "probability": tokens.attrs["probability"],
            "baseline": tokens.attrs["baseline_probability"],
            "error": tokens.attrs["relative_delta"],
        }
        words = by_word(tokens, prompt["text"])
        words["prepended"] = np.arange(len(words)) < len(prompt["prepended"].split())
        rows.append(words.assign(model=name, **per_model))
    return pd.concat(rows, ignore_index=True)


def context_shares(
    models: list[str],
    scores: dict[str, pd.DataFrame],
    facts: Facts,
    quantize: str | None = None,
    dtype: str = "auto",
    n: int = 8,
    steps: int = 50,
) -> pd.DataFrame:
    """How much of an answer's attribution falls on a negative context, for ``n`` prompts of different facts.

    returns  ``model``, ``fact``, ``share`` (of the prepended words), ``even`` (the same if all words counted equally);
             ``.attrs["misprimed"]``: number of these prompts that the first model answers and the last one does not
    """
    from probelib.lm.internals.gradients import by_word

    framed = prompts.with_contexts(facts)
    queue = misprimed(scores[models[0]], scores[models[-1]], framed)
    queue = framed.set_index("prompt").loc[queue].reset_index().drop_duplicates("fact")  # one prompt per fact
    first, last = (
        scores[m].set_index("prompt")["correct"][queue["prompt"]].to_numpy(bool) for m in (models[0], models[-1])
    )
    apart = int((first & ~last).sum())
    few = queue[: max(apart, n)].iloc[:: max(1, apart // n)].head(n)
    bare = framed[framed["context"] == "none"].set_index(["fact", "template"])["text"]
    rows = []
    for name in models:
        model = lm.load(name, quantize=quantize, dtype=dtype)
        for fact, template, text in few[["fact", "template", "text"]].itertuples(index=False):
            words = by_word(model.integrated_gradients(text, steps=steps), text)
            rows.append((name, fact, *context_share(words["score"], text, bare[fact, template])))
    table = pd.DataFrame(rows, columns=["model", "fact", "share", "even"])
    table.attrs["misprimed"] = min(apart, len(few))
    return table


def context_share(score: pd.Series, text: str, question: str) -> tuple[float, float]:
    """The share of the words before the question in an attribution, and the same if all words counted equally."""
    before = len(text.removesuffix(question).split())
    return score[:before].sum(), before / len(score)


def with_answer_cue(
    models: list[str], facts: Facts, folder: str | Path, quantize: str | None = None, dtype: str = "auto", n: int = 4
) -> dict[str, pd.DataFrame]:
    """``measure_facts`` of the first ``n`` facts per relation if every prompt ends in a line break and "Answer:"."""
    framed, gold = prompts.with_contexts(facts), prompts.gold(facts)
    few = facts.facts[facts.facts.groupby("relation").cumcount() < n]["fact"]
    cued = framed[framed["fact"].isin(few) & ((framed["context"] == "none") | (framed["template"] == 1))]
    cued = cued.assign(text=cued["text"] + "\nAnswer:")
    loaded = {name: lm.load(name, quantize=quantize, dtype=dtype) for name in dict.fromkeys(models)}
    return {name: measure_facts(score_answers(model, cued, gold, folder), cued) for name, model in loaded.items()}


def as_released(
    models: list[str],
    facts: Facts,
    relation: str = "P178",
    quantize: str | None = None,
    dtype: str = "auto",
    n: int = 12,
) -> dict[str, pd.DataFrame]:
    """``distances`` and ``anchored`` of the first ``n`` facts of a relation by the released algorithm (see
    ``released_anchors``)."""
    few = first_facts(facts, relation, n)
    framed, gold = prompts.with_contexts(few), prompts.gold(few)
    framed = framed[(framed["context"] == "none") | (framed["template"] == 1)]
    primary, measured = framed[framed["context"] == "positive"], {}
    for name in models:
        model = lm.load(name, quantize=quantize, dtype=dtype)
        ids = dict(zip(primary["fact"], model.beam_steps(primary["text"].tolist())["ids"], strict=True))
        runs = model.beam_steps(framed["text"].tolist(), watch=[ids[fact] for fact in framed["fact"]])
        anchors = released_anchors(runs.assign(prompt=framed["prompt"].to_numpy()), framed, gold)
        measured[name] = distances(anchors).assign(anchored=anchors["anchored"])
    return measured


def first_facts(facts: Facts, relation: str = "P1412", n_facts: int = 6) -> Facts:
    """The first facts of a relation (of its substitute, if the data lack it)."""
    (relation,), _ = substitute_relations(facts, [relation])
    chosen = choose(facts, [relation])
    return pick(chosen, chosen.facts["fact"].head(n_facts))


def time_both(model, facts: Facts, rounds: int = 3) -> pd.DataFrame:
    """Measure the cost of MONITOR and of the accuracy study on the same facts, without the store (table 8).

    model    a loaded model
    returns  one row per way ("generated": as released; "teacher-forced"), round and study: ``prompts``, ``forwarded tokens``,
             ``device seconds``, ``device hours for 1,000 facts``; a first warm-up round is left out
    """
    framed, gold = prompts.with_contexts(facts), prompts.gold(facts)
    negative = framed["context"].str.startswith("negative")
    studies = {
        "MONITOR": framed[(framed["context"] == "none") | (framed["template"] == 1)],
        "accuracy": framed[negative],
    }
    rows = []
    for i in range(-1, rounds):
        for way in ("generated", "teacher-forced"):
            for what, needed in studies.items():
                with tempfile.TemporaryDirectory() as fresh:
                    forced = way == "teacher-forced"
                    run = score_answers(model, needed, gold, fresh) if forced else store.generate(model, needed, fresh)
                cost = run.attrs["cost"]
                rows.append((way, i, what, len(needed), cost["forwarded_tokens"], cost["seconds"]))
    columns = ["way", "round", "what", "prompts", "forwarded tokens", "device seconds"]
    table = pd.DataFrame(rows, columns=columns).query("round >= 0")
    return table.assign(**{"device hours for 1,000 facts": table["device seconds"] / 3600 * 1000 / len(facts.facts)})


def _score(model, facts: Facts, values: dict, folder: Path) -> None:
    score_answers(model, prompts.with_contexts(facts), prompts.gold(facts), folder)


REQUESTS = {
    "score": store.Request(
        uses=("data", "folder", "relations", "seed", "n_facts"),
        models=store.all_models,
        facts=lambda values: facts.load(**values),
        score=_score,
    )
}
