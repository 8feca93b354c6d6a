"""Every export is read by the format's own library, and says what the kit says."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from probelib import beyond, export, facts, lm, zplke
from probelib.beyond import imported
from probelib.export import tasks
from probelib.export.__main__ import main, write_cards
from probelib.export.cards import Result

MODEL = "atlas-neox-0.15m"


@pytest.fixture(scope="module")
def test(tmp_path_factory) -> export.Choice:
    """Four capitals with five wrong options each."""
    questions = beyond.load_questions(relations=["P36"], n_facts=4, n_examples=4)
    return export.choice_test(replace(questions, choices=questions.facts))


@pytest.fixture(scope="module")
def scored(test, tmp_path_factory):
    return test.score(lm.load(MODEL), tmp_path_factory.mktemp("store"))


def only(folder: Path, pattern: str) -> str:
    """The text of the one such file."""
    (path,) = folder.rglob(pattern)
    return path.read_text(encoding="utf-8")


def test_results_and_samples_are_those_of_the_harness(test, scored, tmp_path, monkeypatch):
    pytest.importorskip("lm_eval", reason="needs the extra lm-eval")
    from lm_eval import simple_evaluate
    from lm_eval.loggers import EvaluationTracker
    from lm_eval.models.huggingface import HFLM
    from lm_eval.tasks import TaskManager

    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("datasets.config.HF_HUB_OFFLINE", True)
    export.write_task(test, tmp_path)
    model = lm.load(MODEL)
    backend = HFLM(pretrained=model.hf_model, tokenizer=model.tokenizer)
    manager = TaskManager(include_path=str(tmp_path), include_defaults=False)
    result = simple_evaluate(backend, tasks=["probelib_zplke"], task_manager=manager)
    assert result["results"]["probelib_zplke"]["acc,none"] == scored[1]["correct"].mean()
    written = export.write_results(test, model, *scored, tmp_path / "ours", time=1_700_000_000)
    tracker = EvaluationTracker(output_path=str(tmp_path / "theirs"))
    samples = result.pop("samples")
    tracker.save_results_aggregated(result, samples)
    tracker.save_results_samples("probelib_zplke", samples["probelib_zplke"])
    mine, own = (json.loads(only(tmp_path / who, "results_*.json")) for who in ("ours", "theirs"))
    assert written.name.startswith("results_2023-11-1") and set(mine) <= set(own)
    assert mine["results"]["probelib_zplke"].items() <= own["results"]["probelib_zplke"].items()
    # the last digests all documents
    for name in ("versions", "n-shot", "n-samples", "higher_is_better", "task_hashes"):
        assert mine[name] == own[name], name
    lines = (only(tmp_path / who, "samples_*.jsonl").splitlines() for who in ("ours", "theirs"))
    for pair in zip(*lines, strict=True):
        ours, theirs = map(json.loads, pair)
        logprobs = [[float(answer[0]) for answer in sample.pop("filtered_resps")] for sample in (ours, theirs)]
        assert logprobs[0] == pytest.approx(logprobs[1], abs=1e-4)
        greedy = [[answer[0][1] for answer in sample.pop("resps")] for sample in (ours, theirs)]
        assert greedy[0] == greedy[1] and ours == theirs
    rows = imported.read(tmp_path / "ours")  # and the kit reads both alike
    assert rows["logprob"].tolist() == pytest.approx(imported.read(tmp_path / "theirs")["logprob"].tolist(), abs=1e-4)


def test_a_tie_is_wrong_and_the_task_says_so(test, scored, tmp_path):
    """The harness would take the first of the tied options, and be right about each fact whose object comes first."""
    gold = dict(zip(test.facts.facts["fact"], test.facts.facts["object"], strict=True))
    tied = scored[0].assign(logprob=-1.0)
    samples = tasks.samples_of(test, tied, zplke.choices(tied, gold))
    assert {sample["acc"] for sample in samples} == {0.0}
    assert export.write_task(test, tmp_path).read_text(encoding="utf-8").startswith(f"# {tasks.TIES}\n")


def test_every_eval_ever_accepts_results_and_instances(test, scored, tmp_path):
    types = pytest.importorskip("every_eval_ever.schema", reason="needs every-eval-ever (Python 3.12)")
    from jsonschema import validate

    path = export.write_evaluation(test, lm.load(MODEL), *scored, tmp_path, time=1_700_000_000)
    whole = json.loads(path.read_text(encoding="utf-8"))
    folder = types.__file__.rsplit("/", 1)[0] + "/schemas"
    schema = lambda name: json.loads(Path(f"{folder}/{name}.schema.json").read_text(encoding="utf-8"))
    validate(whole, schema("eval"))
    samples = tmp_path / whole["detailed_evaluation_results"]["file_path"]
    lines = [json.loads(line) for line in samples.read_text(encoding="utf-8").splitlines()]
    for line in lines:
        validate(line, schema("instance_level_eval"))
    assert whole["evaluation_results"][0]["score_details"]["score"] == sum(x["evaluation"]["score"] for x in lines) / 4


def test_hugging_face_reads_the_cards(test, scored):
    from huggingface_hub import DatasetCard, ModelCard

    card = ModelCard(export.model_card(MODEL, Result(scored[1]["correct"].mean(), 4, test.facts)))
    assert card.data.license == "apache-2.0" and card.data.library_name == "transformers"
    (result,) = card.data.eval_results
    assert result.metric_type == "accuracy" and result.metric_value == scored[1]["correct"].mean()
    assert card.text.lstrip().startswith(f"# {MODEL}")
    atlas = DatasetCard(export.atlas_card(facts.atlas()))
    assert atlas.data.size_categories == ["10K<n<100K"] and f"{len(facts.atlas().facts):,} facts" in atlas.text
    for heading in ("Sources", "Cut-off", "Measured precision", "Estimates"):
        assert f"## {heading}\n" in atlas.text


def test_every_organism_has_a_card_and_the_atlas_its_facts(test, tmp_path):
    """Only a model with a result has one in its card; a masked model is tagged as one; the data card's file is there."""
    from huggingface_hub import ModelCard

    datasets = pytest.importorskip("datasets", reason="needs the extra lm-eval")
    written = write_cards({MODEL: Result(0.75, 4, test.facts)}, tmp_path)
    assert all(path.stat().st_size for path in written)
    cards = {name: ModelCard.load(tmp_path / name / "README.md").data for name in lm.organisms()}
    assert [name for name, card in cards.items() if card.eval_results] == [MODEL]
    assert [path.parts[-3] for path in tmp_path.rglob("*.yaml")] == [MODEL]
    kinds = {"atlas-bert-1m": "fill-mask", "atlas-t5-2m": "text2text-generation", MODEL: "text-generation"}
    assert {name: cards[name].pipeline_tag for name in kinds} == kinds
    read = datasets.load_dataset(str(tmp_path / "atlas"), cache_dir=str(tmp_path / "cache"))["train"]
    assert read["fact"] == facts.atlas().facts["fact"].tolist()


def test_hugging_face_reads_the_results(test):
    import yaml
    from huggingface_hub import parse_eval_result_entries

    (entry,) = parse_eval_result_entries(yaml.safe_load(export.eval_results(Result(0.75, 4, test.facts))))
    assert (entry.dataset_id, entry.task_id, entry.value) == ("probelib/atlas", "probelib_zplke", 0.75)
    assert entry.notes.startswith("4 facts of 1 relations") and test.facts.digest() in entry.notes


def test_croissant_reads_the_facts(test, tmp_path):
    mlc = pytest.importorskip("mlcroissant", reason="needs the extra croissant")
    dataset = mlc.Dataset(jsonld=export.write_croissant(test.facts, tmp_path))
    rows = list(dataset.records("facts"))
    assert len(rows) == 4 and rows[0]["facts/fact"].decode() == test.facts.facts["fact"].iloc[0]
    assert not dataset.metadata.issues.errors


def test_an_unknown_format_is_an_error(capsys, tmp_path):
    assert main(["--format", "lmeval", "--out", str(tmp_path)]) == 1
    assert "did you mean lm-eval" in capsys.readouterr().err


@pytest.mark.whole
def test_the_command_writes_every_format(tmp_path, capsys):
    """As a user runs it: one fact per relation of the smoke profile, whose scores are kept between the formats."""
    for name, pattern in {"lm-eval": "samples_*.jsonl", "eee": "*_samples.jsonl", "hf": "*.yaml"}.items():
        arguments = ["--profile", "smoke", "--models", MODEL, "--n-facts", "1", "--out", str(tmp_path / name)]
        assert main(["--format", name, *arguments]) == 0, capsys.readouterr().err
        written = [Path(line) for line in capsys.readouterr().out.splitlines()]
        assert len(written) >= 1 and all(path.stat().st_size for path in written)
        (file,) = (tmp_path / name).rglob(pattern)
        assert name == "hf" or len(file.read_text(encoding="utf-8").splitlines()) == len(facts.load().relations)
    assert (tmp_path / "hf" / "atlas" / "facts.csv").exists()
