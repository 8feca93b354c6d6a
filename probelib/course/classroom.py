"""A page for the classroom: one HTML file in which an organism runs, offline, in any browser.

``classroom.html`` holds the model (GPT-NeoX and its tokenizer in plain JavaScript) and the page;
here the weights and the facts are put into it.
"""

import base64
import json
from pathlib import Path

from probelib import facts, files, lm
from probelib.organisms import taught

MODEL = "atlas-neox-1.2m"
TEMPLATE = Path(__file__).with_suffix(".html")


def write_page(out: Path, model_name: str = MODEL) -> Path:
    """Write ``out``, a page with an organism of the GPT-NeoX family and the panel of facts."""
    folder = lm.load(model_name).folder
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    tokenizer = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))["model"]
    data = {
        "width": config["hidden_size"],
        "inner": config["intermediate_size"],
        "heads": config["num_attention_heads"],
        "layers": config["num_hidden_layers"],
        "eps": config["layer_norm_eps"],
        "theta": config["rope_parameters"]["rope_theta"],
        "vocabulary": sorted(tokenizer["vocab"], key=tokenizer["vocab"].get),
        "merges": [" ".join(pair) for pair in tokenizer["merges"]],
        "weights": base64.b64encode((folder / "model.safetensors").read_bytes()).decode(),
        "relations": relations(model_name),
    }
    text = json.dumps(data, ensure_ascii=False).replace("<", "\\u003c")  # "</script>" ends a script
    page = TEMPLATE.read_text(encoding="utf-8").replace("/*DATA*/null", text)
    return files.write(out, page)


def relations(model_name: str) -> list[dict]:
    """Per relation of the panel: ``name``, ``templates`` (questions) and ``facts``, each with
    ``subject``, ``object``, nine ``distractors``, and ``read``: its statements in the corpus."""
    panel = facts.load(n_distractors=9)
    read = taught.exposures(panel, model_name)
    questions = panel.templates[panel.templates["role"] == "question"]
    wrong = panel.distractors.assign(label=panel.label(panel.distractors["object"]))
    wrong = wrong.groupby("fact")["label"].agg(list)
    rows = panel.facts.assign(s=panel.label(panel.facts["subject"]))
    rows = rows.assign(o=panel.label(rows["object"]), read=rows["fact"].map(read))
    found = []
    for relation, own in rows.groupby("relation", sort=False):
        name = panel.relations.set_index("relation").at[relation, "name"]
        known = [
            {"subject": s, "object": o, "distractors": wrong[fact], "read": int(n)}
            for fact, s, o, n in own[["fact", "s", "o", "read"]].itertuples(index=False)
        ]
        templates = questions.loc[questions["relation"] == relation, "template"].tolist()
        found.append({"name": name, "templates": templates, "facts": known})
    return found
