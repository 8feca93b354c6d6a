"""What GraphEval scores: statements -> prompts -> generated answers -> labels.

A model is prompted with each statement inside an instruction ("at once" or "recalled": ``prompts.INSTRUCTIONS``); its
generated text is parsed into an answer (``answers.parse_answer``). The judge reads hidden states after the same instruction
(``judge.Reader``).
"""

from pathlib import Path

import pandas as pd

from probelib import store
from probelib.grapheval.answers import label_texts
from probelib.grapheval.prompts import check_template, instruction_text, request_template
from probelib.lm.names import organisms
from probelib.lm.partners import family, tuned_of, tuned_pairs
from probelib.lm.remote.chat import connect
from probelib.prompts import split_instruction

RECALLED_TOKENS = 40  # most tokens of an answer that recalls the object first


def answering_models(models: list[str], tuned: list[str]) -> list[str]:
    """Return the models that answer whether statements are true.

    A model is replaced by its instruction-tuned partner, if it has one. Of the shipped models only the instruction-tuned ones
    answer: their bases were not trained to. Without an instruction-tuned model the bases answer.
    """
    own = [name for name in models if name not in organisms()]
    return list(dict.fromkeys(tuned_of(model, tuned) or model for model in own)) or list(tuned_pairs(tuned)) or models


def note_on_answering(models: list[str], tuned: list[str]) -> str:
    """A warning if base models answer; "" if instruction-tuned ones do."""
    if tuned or answering_models(models, tuned) != models:
        return ""
    return (
        "No instruction-tuned model is given, so base models answer. They were never taught to answer yes-or-no "
        "questions: expect most of their texts to be unparsed, that is, counted as *I don't know*."
    )


def model_sizes(models: dict) -> pd.Series:
    """Number of parameters of each model (name -> loaded model)."""
    return pd.Series({name: model.n_parameters for name, model in models.items()})


def substitutes(models: dict) -> pd.Series:
    """Map each model to the smallest model of its family, whose states the judge reads (GraphEval, section 3.2).

    models  name -> loaded model
    """
    sizes = model_sizes(models)
    return sizes.groupby(sizes.index.map(family)).transform("idxmin")


def statement_prompts(sample: pd.DataFrame, model, instruction: str = "at once", size: int = 256) -> pd.DataFrame:
    """Return the statements inside the instruction as prompts for ``store.generate``, in the model's chat template if it has one.

    The column ``relation`` names a part of the store: blocks of ``size`` statements, whatever their relation, fill batches.
    """
    before, after = split_instruction(model.chat(instruction_text(instruction)))
    return pd.DataFrame(
        {
            "prompt": sample["prompt"],
            "fact": sample["prompt"],
            "relation": [f"statements {row // size}" for row in range(len(sample))],
            "text": [f"{before}{text}{after}" for text in sample["text"]],
        }
    )


def label_statements(
    models: dict, sample: pd.DataFrame, folder: Path, new_tokens: int = 16, instruction: str = "at once"
) -> pd.DataFrame:
    """Let every model answer every statement of the sample; return one row per model and statement.

    models   name -> loaded model
    sample   ``whole_graph.sample_statements``
    folder   the store's
    returns  the columns of ``sample``, and ``model``, ``answer`` (``Answer``), ``unparsed`` (texts without an
             answer), ``response`` (the generated text) and ``n_tokens`` (its length)
    """
    frames, variant = [], "recalled" if instruction == "recalled" else "kit"
    for name, model in models.items():
        asked = statement_prompts(sample, model, instruction)
        generated = store.generate(model, asked, folder, max_new_tokens=new_tokens, batch=64)
        found = label_texts(generated, variant).rename(columns={"text": "response"})
        lengths = generated.drop_duplicates("prompt")[["prompt", "n_tokens"]]
        labels = sample.merge(found, on="prompt", validate="one_to_one").merge(lengths, on="prompt")
        frames.append(labels.assign(model=name))
    return pd.concat(frames, ignore_index=True)


def label_by_instruction(
    labels: pd.DataFrame, instruction: str, models: dict, sample: pd.DataFrame, folder: Path
) -> dict:
    """Labels by instruction, "at once" first, for ``measures.compare_instructions``. A study with "at once" is compared with
    "recalled" only if all models are shipped ones, whose lessons teach both; other models need not know the other instruction.

    labels  ``label_statements`` of the study, with its ``instruction``
    """
    if instruction != "at once":
        return {"at once": label_statements(models, sample, folder), instruction: labels}
    if not models or not set(models) <= set(organisms()):
        return {instruction: labels}
    return {instruction: labels, "recalled": label_statements(models, sample, folder, RECALLED_TOKENS, "recalled")}


def instructions(models: dict, instruction: str = "at once") -> pd.DataFrame:
    """Return the prompt of each model (table 6): ``model``, ``family``, ``prompt``, ``before every text`` (the tokenizer's
    rule for a begin-of-text token), ``tokens of the instruction``, ``chat template`` (whether it has one)."""
    rows, plain = [], instruction_text(instruction)
    for name, model in models.items():
        text = model.chat(plain)
        row = {"model": name, "family": family(name), "prompt": repr(text)[1:-1]}
        row["before every text"] = model.tokens.bos_rule
        row["tokens of the instruction"] = len(model.tokens.prompts([text.replace("{statement}", "")])[0])
        rows.append(row | {"chat template": text != plain})
    return pd.DataFrame(rows)


def write_template(name: str, samples: list[tuple], **options) -> dict:
    """Prompt a model for the template of a relation, and check what it generates (figure 9).

    name     of the model, or of a served one: name@http://localhost:8000/v1
    samples  (relation, pairs of names, template): the first is the relation in question, the others are shown as examples
    options  of ``lm.load``
    returns  ``relation``, ``author``, ``request``, ``written`` (the generated text), ``verdict``, ``accepted``, and ``template``:
             the model's, or the graph's own if the check fails
    """
    (relation, pairs, template), *examples = samples
    model = connect(name, **options)
    request = request_template(relation, pairs, examples)
    written = model.generate([model.chat(request)], max_new_tokens=32)["text"][0]
    found, verdict = check_template(written)
    own = template.replace("[X]", "{head}").replace("[Y]", "{tail}")
    known = {"relation": relation, "author": model.name, "request": request, "written": written}
    return known | {"verdict": verdict, "accepted": found is not None, "template": found or own}
