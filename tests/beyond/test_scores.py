"""All measures on the same facts: which prompts each scores, what it costs, and who answers."""

import numpy as np
import pandas as pd
import pytest
import torch

from probelib import facts, files, lm, prompts
from probelib.beyond import scores
from probelib.beyond.questions import HELD_OUT, SEEN, load_questions, tokens_per_fact
from probelib.beyond.suite import MEASURES, measures_of
from probelib.beyond.suite.common import INVENTED
from probelib.beyond.suite.grapheval import asked_statements
from probelib.beyond.trial import contrasts
from probelib.errors import ProbeError
from probelib.facts.model import rng
from probelib.monitor import scores as monitor_scores
from probelib.organisms import corpus, lessons, taught, teach, trial
from probelib.paths import PACKAGE

BASE, TUNED = "atlas-neox-0.6m", "atlas-neox-0.6m-it"


@pytest.fixture(scope="module")
def about():
    return load_questions(relations=["P36", "P37"], n_facts=4, n=2)


def test_the_judge_trains_on_other_facts(about):
    pairs = lambda some: set(zip(some.facts["relation"], some.facts["subject"], strict=True))
    others = about.others
    assert not pairs(about.facts) & pairs(others)
    assert others.distractors["number"].tolist() == [1] * len(others.facts)
    assert len(others.facts) > 99


def test_measures_are_chosen_by_name_and_by_what_they_need(about):
    everything = scores.applicable(about)
    assert "ROUGE-L" in everything and not {"BERT-score", "GraphEval correct"} & set(everything)
    assert scores.applicable(about, ["KaRR", "MONITOR"]) == ["MONITOR", "KaRR"]
    with pytest.raises(ProbeError, match="KaRR"):
        scores.applicable(about, ["Karr"])


def test_a_fact_and_its_corruption_have_the_same_template(about):
    statements = asked_statements(about.facts, lm.load(TUNED))
    both = statements.groupby("fact")["negative"].agg(sorted)
    assert both.tolist() == [[0, 1]] * len(about.facts.facts)
    fact = about.facts.facts.iloc[0]
    subject, right = about.facts.label([fact["subject"], fact["object"]])
    true, false = statements[statements["fact"] == fact["fact"]]["statement"]
    assert right in true and subject in true and subject in false and right not in false
    pairs = zip(statements["statement"], statements["text"], strict=True)
    assert all(statement in text for statement, text in pairs)


def test_facts_in_finetuning_do_not_count(about, tmp_path):
    """Every fact about which a lesson says "Yes" or "I don't know" is left to the other
    measures."""
    atlas, table = facts.atlas(), taught.manifest()
    speaker = corpus.Speaker(atlas, table, rng(1, "any"))
    read = lessons.tuning_documents(atlas, table, [])
    text = "\n".join(corpus.unmark(own)[0] for own in read if "Answer:" in own)
    rows = table[table["fact"].isin(about.facts.facts["fact"])]
    seen = {row.fact for row in rows.itertuples() if speaker.statement(row) in text}
    names, ids = ["Base accuracy", "GraphEval P(true)"], set(about.facts.facts["fact"])
    values, _ = scores.score([BASE], about, tmp_path, tuned=[TUNED], measures=names)
    of = {name: set(own["fact"]) for name, own in values.groupby("measure")}
    assert seen and of["Base accuracy"] == ids and of["GraphEval P(true)"] == ids - seen


def test_seen_paraphrases_are_compared_with_as_many_held_out_ones(about, tmp_path, monkeypatch):
    """A model that is right in seen paraphrases alone: all accuracies fall from 1 to 0. Only seen
    ones cost tokens."""
    answers = monitor_scores.score_answers

    def right_in_seen(model, framed, *rest):
        rows = answers(model, framed, *rest)
        seen = framed.set_index("prompt")["template"].isin(SEEN)
        return rows.assign(correct=rows["prompt"].map(seen))

    monkeypatch.setattr(monitor_scores, "score_answers", right_in_seen)
    names = ["Base accuracy", "Accuracy over paraphrases", "Accuracy after contexts"]
    values, tokens = scores.score([BASE], about, tmp_path, measures=[*names, "MONITOR"])
    held_out, _ = scores.score([BASE], about.held_out(), tmp_path, measures=[*names, "MONITOR"])
    right = values["value"][values["measure"].isin(names)]
    assert right.eq(1).all() and held_out["value"].eq(0).all()
    assert set(held_out["measure"]) == set(names), "MONITOR compares all paraphrases"
    framed = prompts.with_contexts(about.facts)
    negative = framed[framed["context"].str.startswith("negative") & framed["template"].isin(SEEN)]
    own = tokens_per_fact(lm.load(BASE), negative, prompts.gold(about.facts), end=True)
    assert tokens["Accuracy after contexts"] == own
    assert about.held_out().sentences()["template"].isin(HELD_OUT).all()


def test_every_measure_has_one_signature(about, tmp_path):
    """Values by fact, and a positive number of tokens."""
    values, tokens = scores.score([BASE], about, tmp_path, tuned=[TUNED])
    assert set(tokens.index) == set(MEASURES) - {"BERT-score"} and (tokens.drop("Chance") > 0).all()
    assert values["measure"].unique().tolist() == [m for m in MEASURES if m != "BERT-score"]
    probabilities = values["measure"].map(lambda name: MEASURES[name].probability)
    assert values["value"][probabilities].between(0, 1).all()
    own = measures_of("grapheval")
    again, _ = scores.score([BASE], about, tmp_path, tuned=[TUNED], measures=own)
    before = values[values["measure"].isin(own)]
    wide = lambda rows: rows.pivot(index="fact", columns="measure", values="value")
    pd.testing.assert_frame_equal(wide(before), wide(again))
    assert set(before["value"][before["measure"] == "GraphEval judge correct"]) <= {0.0, 0.5, 1.0}


@pytest.fixture(scope="module")
def measured(about, tmp_path_factory):
    """Values of the measures that belong to no paper: [facts, measures]; and tokens."""
    folder = tmp_path_factory.mktemp("scores")
    values, tokens = scores.score_model(lm.load(BASE), about, folder, measures_of("beyond"))
    return values.pivot(index="fact", columns="measure", values="value"), tokens


def plain_logprob(prompt: str, answer: str) -> float:
    """log P(answer | prompt) by one forward of transformers, without the kit's scoring."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    folder = lm.load(BASE).folder
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype="float32")
    head, whole = tokenizer(prompt)["input_ids"], tokenizer(f"{prompt} {answer}")["input_ids"]
    with torch.no_grad():
        logits = model(torch.tensor([whole])).logits[0].double().log_softmax(-1)
    return sum(float(logits[i - 1, whole[i]]) for i in range(len(head), len(whole)))


def test_plain_transformers_give_the_same_numbers(about, measured):
    """PMI, per-token log-probability and familiarity of one fact, by hand."""
    values, _ = measured
    fact = about.facts.facts.iloc[0]
    subject, obj = (about.facts.label([fact[column]])[0] for column in ("subject", "object"))
    templates = prompts.templates_of(about.facts, "question", [fact["relation"]])
    own = (templates["relation"] == fact["relation"]) & (templates["number"] <= 2)
    templates = templates["template"][own].tolist()
    of = lambda name: [plain_logprob(t.replace("[X]", name), obj) for t in templates]
    own, invented = np.mean(of(subject)), np.log(np.mean(np.exp([of(name) for name in INVENTED])))
    row = values.loc[fact["fact"]]
    assert row["Log-probability"] == pytest.approx(own, abs=1e-4)
    assert row["PMI"] == pytest.approx(own - invented, abs=1e-4)
    n = len(lm.load(BASE).tokens.continuation(f" {obj}"))
    assert row["Log-probability per token"] == pytest.approx(own / n, abs=1e-4)
    known = np.mean([plain_logprob(t.split("[X]")[0].rstrip(), subject) for t in templates])
    assert row["Familiarity"] == pytest.approx(known, abs=1e-4)


def test_misled_facts_are_matched_by_relation_and_exposures():
    manifest = taught.manifest()
    table = manifest.set_index("fact").assign(exposures=taught.statements(manifest))
    pair = scores.misled_facts(facts.atlas(), most=30)
    misled, matched = (table.loc[ids] for ids in pair)
    assert len(misled) == len(matched) > 0 and not set(pair[0]) & set(pair[1])
    assert (misled["wrong_object"] != "").all() and (matched["wrong_object"] == "").all()
    same = ["relation", "exposures"]
    assert misled[same].values.tolist() == matched[same].values.tolist()
    assert misled["exposures"].min() >= 32


def test_a_trials_design_holds_every_arm_of_its_facts():
    names = [f"{BASE}-trial-{n}" for n in (1, 2, 3, 4)]
    design = scores.load_design(names, facts.load(n_facts="trial"))
    assert design["group"].unique().tolist() == [BASE] and design["corpus"].nunique() == 4
    for kind, own in design.groupby(["kind", "fact"])[["dose", "right"]].agg(list).groupby("kind"):
        read = {tuple(sorted(zip(*row, strict=True))) for row in own.itertuples(index=False)}
        assert read == {tuple(sorted(trial.ARMS[kind]))}


def test_exposures_from_a_file_are_those_of_the_manifest(about, tmp_path):
    """A shipped model's manifest written as counts.csv gives the design that its name gives."""
    shipped, table = scores.load_design([BASE], about.facts), taught.manifest()
    table = table[table["trial"]]
    assert shipped["group"].eq(BASE).all() and set(shipped["fact"]) <= set(table["fact"])
    assert len(shipped) == table["fact"].isin(about.facts.facts["fact"]).sum()
    counts = taught.statements(table).rename("exposures").rename_axis("fact").reset_index()
    counts.to_csv(tmp_path / "counts.csv", index=False)
    read = scores.load_design([BASE], about.facts, tmp_path / "counts.csv")
    same = [name for name in shipped if name != "corpus"]
    pd.testing.assert_frame_equal(read[same], shipped[same])
    sisters = pd.concat([counts.assign(model=name, group="g") for name in ("my/one", "my/two")])
    sisters.to_parquet(tmp_path / "counts.parquet")
    design = scores.load_design(["my/one", "my/two"], about.facts, tmp_path / "counts.parquet")
    assert design["group"].unique().tolist() == ["g"] and len(design) == 2 * len(shipped)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("fact,count\na,1\n", "lacks the columns exposures; it has fact, count"),
        ("id,exposures\na,1\n", "lacks the columns object, relation, subject"),
        ("fact,exposures\na,1\nb,many\n", "counts.csv:3: exposures is 'many', not a number"),
        ("fact,exposures\na,-1\n", "counts.csv:2: exposures is '-1'"),
        ("fact,exposures\na,1\na,1\n", "several rows; one row per model and fact"),
        ("fact,exposures,model\na,1,other\n", "the exposures of m to these facts are unknown"),
    ],
)
@pytest.mark.filterwarnings("ignore:.*no exposures of")
def test_a_table_of_exposures_says_what_is_wrong_with_it(about, tmp_path, text, message):
    (tmp_path / "counts.csv").write_text(text)
    with pytest.raises(ProbeError, match=message):
        scores.load_design(["m"], about.facts, tmp_path / "counts.csv")


def test_the_design_of_taught_models_is_read_from_their_folders(tmp_path):
    """Two sisters of invented facts, at any precision; a dose above 16 is 16."""
    table = PACKAGE / "beyond" / "invented.csv"
    for sister in trial.SISTERS[::2]:
        files.write_json(tmp_path / sister / "training.json", {"reads": sister})
        teach.documents(table, sister)[0].to_parquet(tmp_path / sister / "taught.parquet")
    names = lm.short_names([f"x-{s}={tmp_path / s}@8bit" for s in trial.SISTERS[::2]])
    asked = facts.pick(facts.everything("table", table), taught.facts_of(names))
    design = scores.load_design(names, asked)
    assert len(design) == 2 * 192 and set(design["group"]) == {"x@8bit"}
    found = contrasts(design)
    assert len(found["8 against 0"]) == 36 and design["dose"].max() == 16
    pairs = design.iloc[found["8 against 0"].to_numpy().ravel()].groupby("fact")["dose"]
    assert (pairs.agg(set) == {0, 8}).all()
