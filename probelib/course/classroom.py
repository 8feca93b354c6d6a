"""A page for the classroom: one HTML file in which an organism runs, offline, in any browser.

``classroom.html`` holds the model (GPT-NeoX and its tokenizer in plain JavaScript) and the page;
here the weights and the facts are put into it.
"""

import base64
import json
from pathlib import Path

from probelib import facts, files, lm
from probelib.organisms import taught

MODEL = "atlas-neox-1.2m"  # of the GPT-NeoX family


def write_page(out: Path) -> Path:
    """Write ``out``, a page with ``MODEL`` and the panel of facts."""
    folder = lm.load(MODEL).folder
    read = lambda name: json.loads((folder / name).read_text(encoding="utf-8"))
    data = {
        "config": read("config.json"),
        "tokenizer": read("tokenizer.json")["model"],
        "weights": base64.b64encode((folder / "model.safetensors").read_bytes()).decode(),
        "relations": relations(),
    }
    text = json.dumps(data, ensure_ascii=False).replace("<", "\\u003c")  # "</script>" ends a script
    page = Path(__file__).with_suffix(".html").read_text(encoding="utf-8")
    return files.write(out, page.replace("/*DATA*/null", text))


def relations() -> list[dict]:
    """Per relation of the panel: ``name``, ``templates`` (questions) and ``facts``, each with
    ``subject``, ``object``, nine ``distractors``, and ``read``: its statements in the corpus."""
    panel = facts.load(n_distractors=9)
    questions = panel.templates[panel.templates["role"] == "question"]
    wrong = panel.distractors.assign(label=panel.label(panel.distractors["object"]))
    rows = panel.facts[["relation"]].copy()
    for side in ("subject", "object"):
        rows[side] = panel.label(panel.facts[side])
    rows["distractors"] = panel.facts["fact"].map(wrong.groupby("fact")["label"].agg(list))
    rows["read"] = panel.facts["fact"].map(taught.exposures(panel, MODEL)).astype(int)
    found = panel.relations[["name"]].set_axis(panel.relations["relation"])
    found["templates"] = questions.groupby("relation")["template"].agg(list)
    by_relation = rows.set_index("relation").groupby("relation", sort=False)
    found["facts"] = by_relation.apply(lambda own: own.to_dict("records"))
    return found.loc[rows["relation"].unique()].to_dict("records")
