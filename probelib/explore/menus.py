"""Three fields (model, relation, fact) above the board, in a notebook with widgets."""

import base64
import html
import re
from pathlib import Path

from probelib import facts, lm
from probelib.errors import ProbeError, unknown
from probelib.explore.board import board
from probelib.explore.seen import FactPool, Look, facts_of, load_model, look
from probelib.facts.names import fold
from probelib.report.shown import escaped_html, picture


def menu(model_name: str, fact: str, folder: Path, widgets: bool, pool: FactPool) -> dict[str, str]:
    """Show three fields and, below them, the board and the table of measures of what they hold.

    All are text fields with suggestions: in a <select> JupyterLab treats letters and arrows as its
    own shortcuts, which change the notebook (``m`` turns the cell into Markdown).

    widgets   False: show nothing
    returns   {"model_name": ..., "fact": ...}: the current choice, which the fields update
    """
    chosen = {"model_name": model_name, "fact": fact}
    if not widgets:
        return chosen
    import ipywidgets
    from IPython.display import display

    ids = pool.now.relations["relation"]
    relations = dict(sorted(zip(pool.now.relations["name"] + " (" + ids + ")", ids, strict=True)))
    first = facts.pick(pool.now, [fact]).facts["relation"].iloc[0]
    names = {"model": {name: name for name in lm.organisms()}, "relation": relations}
    names["fact"] = facts_of(pool, first)
    look_of = {"layout": {"width": "24em"}, "style": {"description_width": "5em"}}
    shown, boxes = ipywidgets.HTML(), {}
    for kind, known in (("model", model_name), ("relation", first), ("fact", fact)):
        value = next((name for name, each in names[kind].items() if each == known), known)
        settings = look_of | {"options": list(names[kind]), "description": kind, "value": value}
        boxes[kind] = ipywidgets.Combobox(continuous_update=False, **settings)

    def update(kind: str) -> None:
        typed, model, one = (boxes[name].value for name in (kind, "model", "fact"))
        try:
            if kind != "model" and typed and typed not in names[kind]:
                boxes[kind].value = find(kind, typed, names[kind])  # sends an event of its own
            elif kind == "relation" and typed:
                names["fact"] = facts_of(pool, relations[typed])
                boxes["fact"].options = list(names["fact"])
                for value in ("", next(iter(names["fact"]))):  # a value that stays sends no event
                    boxes["fact"].value = value
            elif model and one:
                shown.value = f"<p>prompting {html.escape(model)} …</p>"
                seen = look(pool, load_model(model), names["fact"][one], folder)
                shown.value = as_html(seen)
                chosen.update(model_name=model, fact=seen.fact)
        except ProbeError as error:
            shown.value = f"<p><b>{html.escape(str(error))}</b></p>"

    row = ipywidgets.HBox(list(boxes.values()), layout={"flex_flow": "row wrap"})
    display(ipywidgets.VBox([row, shown]))
    update("fact")
    for kind, box in boxes.items():
        box.observe(lambda change, kind=kind: update(kind), "value")
    return chosen


def as_html(seen: Look) -> str:
    """The board and the table of measures as HTML."""
    import matplotlib.pyplot as plt

    figure = board(seen)
    data = base64.b64encode(picture(figure, "png", dpi=192)).decode()
    plt.close(figure)
    alt = html.escape(f"{seen.title}: the measures of {seen.model}")
    table = seen.measures.style.format(precision=3, na_rep="–").hide(axis="index")
    image = f'<img style="width: 1056px; max-width: 100%" alt="{alt}" '
    return f'{image}src="data:image/png;base64,{data}">{escaped_html(table)}'


def find(kind: str, typed: str, names: dict[str, str]) -> str:
    """The entry of ``names`` (label -> id) that matches the typed text, ignoring case and kinds of
    dashes: by its label or id, its subject ("France" of "France – Paris"), or a part of them. Raise
    ProbeError, which names at most three, if none or several match."""
    plain = lambda text: fold(re.sub(r"\s*[-–—]\s*", "-", text.strip()))
    wanted = plain(typed)
    texts = {name: [plain(x) for x in (name, names[name], name.split(" – ")[0])] for name in names}
    fits = [name for name, own in texts.items() if wanted in own]
    fits = fits or [x for x, own in texts.items() if wanted and any(wanted in y for y in own)]
    if len(fits) == 1:
        return fits[0]
    if fits:
        more = f" and {len(fits) - 3} more" if len(fits) > 3 else ""
        found = f"{len(fits)} {kind}s match {typed!r}: {', '.join(fits[:3])}{more}"
        raise ProbeError(f"{found}. Type more of the name.")
    raise unknown(kind, typed, names)
