"""The multiple choice after a list of examples [zplke, Eq. 3] as a task of lm-evaluation-harness, with results in its format."""

import json
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

import pandas as pd
import yaml

from probelib import __version__, files, prompts, store, zplke
from probelib.beyond.questions import Questions
from probelib.facts.model import Facts

NAME = "probelib_zplke"
VERSION = 1.0  # of the task
TIES = "A tie: probelib counts it as wrong; lm-evaluation-harness takes the first of the tied options."


class Choice(NamedTuple):
    """The test: facts with their wrong options, a frame of prompts, and the options of every fact in their order."""

    facts: Facts
    prompts: pd.DataFrame
    options: pd.DataFrame

    def score(self, model, folder: Path) -> tuple[pd.DataFrame, pd.DataFrame]:
        """(rows of ``store.score``, rows of ``zplke.choices``: one per fact)."""
        scores = store.score(model, self.prompts, self.options, folder)
        gold = dict(zip(self.facts.facts["fact"], self.facts.facts["object"], strict=True))
        return scores, zplke.choices(scores, gold)


def choice_test(questions: Questions) -> Choice:
    """The test of some questions, one list of examples per relation."""
    asked = questions.choices
    return Choice(asked, prompts.many_shots(asked, questions.examples), prompts.options(asked, questions.seed))


def rows_of(test: Choice) -> list[dict]:
    """One document per fact: ``fact``, ``relation``, ``text``, ``options`` (each after its blank), ``answer`` (index)."""
    gold = dict(zip(test.facts.facts["fact"], test.facts.facts["object"], strict=True))
    options = {fact: own[["candidate", "label"]].to_numpy().T.tolist() for fact, own in test.options.groupby("fact")}
    rows = []
    for fact, relation, text in test.prompts[["fact", "relation", "text"]].itertuples(index=False):
        candidates, labels = options[fact]
        choices = [f" {label}" for label in labels]
        row = {"fact": fact, "relation": relation, "text": text, "options": choices}
        rows.append(row | {"answer": candidates.index(gold[fact])})
    return rows


def write_task(test: Choice, folder: Path) -> Path:
    """Write ``probelib_zplke.yaml`` and its documents; return the YAML's path.

    The YAML names the documents by their absolute path, because the harness resolves relative paths in its working directory:

        lm_eval run --include_path FOLDER --tasks probelib_zplke --model hf --model_args pretrained=gpt2

    Its accuracy is that of ``Choice.score`` except for ties, which the kit counts as wrong, while the harness chooses the
    first of the tied options. A comment in the YAML says so.
    """
    documents = files.write_lines(folder / f"{NAME}.jsonl", rows_of(test))
    task = {
        "task": NAME,
        "dataset_path": "json",
        "dataset_kwargs": {"data_files": {"test": str(documents.resolve())}},
        "test_split": "test",
        "output_type": "multiple_choice",
        "doc_to_text": "text",
        "doc_to_choice": "options",
        "doc_to_target": "answer",
        "target_delimiter": "",  # every option begins with its blank
        "metric_list": [{"metric": "acc", "aggregation": "mean", "higher_is_better": True}],
        "metadata": {"version": VERSION, "facts": test.facts.digest()},
    }
    text = yaml.safe_dump(task, sort_keys=False, allow_unicode=True)
    return files.write(folder / f"{NAME}.yaml", f"# {TIES}\n{text}")


def write_results(test: Choice, model, scores: pd.DataFrame, chosen: pd.DataFrame, folder: Path, time: int) -> Path:
    """Write ``<model>/results_<date>.json`` and ``<model>/samples_probelib_zplke_<date>.jsonl``, the files of ``lm_eval run
    --log_samples``; return the first one's path.

    scores, chosen   see ``Choice.score``; a tie counts as wrong
    time             of the evaluation, seconds since 1970
    """
    folder, date = folder / files.slug(model.name), datetime.fromtimestamp(time).isoformat().replace(":", "-")
    samples = samples_of(test, scores, chosen)
    files.write_lines(folder / f"samples_{NAME}_{date}.jsonl", samples)
    right, n = chosen["correct"].astype(float), len(chosen)
    whole = {
        "results": {NAME: {"alias": NAME, "acc,none": right.mean(), "acc_stderr,none": right.sem()}},
        "group_subtasks": {NAME: []},
        "configs": {NAME: {"task": NAME, "output_type": "multiple_choice", "metadata": {"facts": test.facts.digest()}}},
        "versions": {NAME: VERSION},
        "n-shot": {NAME: 0},
        "higher_is_better": {NAME: {"acc": True}},
        "n-samples": {NAME: {"original": n, "effective": n}},
        "config": {"model": "probelib", "model_args": {"model": model.name}, "probelib_version": __version__},
        "date": time,
        "task_hashes": {NAME: _digest("".join(s["doc_hash"] + s["prompt_hash"] + s["target_hash"] for s in samples))},
        "model_source": "probelib",
        "model_name": model.name,
    }
    return files.write(folder / f"results_{date}.json", json.dumps(whole, indent=2, ensure_ascii=False) + "\n")


def samples_of(test: Choice, scores: pd.DataFrame, chosen: pd.DataFrame) -> list[dict]:
    """One sample per document, with the fields that the harness logs.

    A tie counts as wrong here; the harness chooses the first of the tied options.
    """
    said = scores.set_index(["fact", "label"], verify_integrity=True)[["logprob", "greedy"]]
    right, samples = chosen.set_index("fact")["correct"], []
    for number, row in enumerate(rows_of(test)):
        own = [said.loc[row["fact"], option.strip()] for option in row["options"]]
        answers = [[str(float(each["logprob"])), str(bool(each["greedy"]))] for each in own]
        requests = [{"arg_0": row["text"], "arg_1": option} for option in row["options"]]
        sample = {
            "doc_id": number,
            "doc": row,
            "target": str(row["answer"]),
            "arguments": {f"gen_args_{i}": request for i, request in enumerate(requests)},
            "resps": [[answer] for answer in answers],
            "filtered_resps": answers,
            "filter": "none",
            "metrics": ["acc"],
            "doc_hash": _digest(json.dumps(row, indent=2, ensure_ascii=False)),
            "prompt_hash": _digest(row["text"]),
            "target_hash": _digest(str(row["answer"])),
            "acc": float(right[row["fact"]]),
        }
        samples.append(sample)
    return samples


def _digest(text: str) -> str:
    return files.sha256(text.encode())
