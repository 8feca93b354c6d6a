"""Three menus (model, relation, fact) above the board."""

import difflib
import html
import re
from pathlib import Path

from probelib import lm, report
from probelib.errors import ProbeError
from probelib.explore.details import details, details_as_html
from probelib.explore.drawing import board_as_html
from probelib.explore.seen import FactPool, Look, facts_of, load_model, load_pool, look, relation_of
from probelib.facts.names import fold


def menu(
    model_name: str, fact: str, folder: Path, widgets: bool = True, pool: FactPool | None = None
) -> dict[str, str]:
    """Show the board and the details below it, with three menus: a model (any name can be typed), a relation, a fact.

    widgets   False (or if ipywidgets is missing): board and details of the given model and fact, without menus
    returns   {"model_name": ..., "fact": ...}: the current choice, updated by the menus
    """
    pool = pool or load_pool()
    chosen = {"model_name": model_name, "fact": fact}
    try:
        import ipywidgets
    except ImportError:
        widgets = False
    if widgets:
        _menu(ipywidgets, pool, chosen, folder)
    else:
        _show(look(pool, load_model(model_name), fact, folder))
    return chosen


def find(kind: str, typed: str, names: dict[str, str]) -> str:
    """The entry of ``names`` (label -> id) that matches the typed text, ignoring case and kinds of dashes: by its label or id,
    its subject ("France" of "France – Paris"), or a part of them. Raise ProbeError, which names at most three, if none or several
    match."""
    wanted = _plain(typed)
    texts = {name: (_plain(name), _plain(names[name]), _plain(name.split(" – ")[0])) for name in names}
    same = [name for name, own in texts.items() if wanted in own]
    fits = same or [name for name, own in texts.items() if wanted and any(wanted in text for text in own)]
    if len(fits) == 1:
        return fits[0]
    if fits:
        more = f" and {len(fits) - 3} more" if len(fits) > 3 else ""
        raise ProbeError(f"{len(fits)} {kind}s match {typed!r}: {', '.join(fits[:3])}{more}. Type more of the name.")
    parts = {_plain(part): name for name in names for part in (name, *re.split(r" – | \(|\)", name))}
    near = dict.fromkeys(parts[part] for part in difflib.get_close_matches(wanted, parts, n=3))
    hint = f"; did you mean {' or '.join(near)}?" if near else "."
    raise ProbeError(f"unknown {kind} {typed!r}{hint} There are {len(names)}: empty the field to see them.")


def _plain(text: str) -> str:
    """A name in the form in which it is compared with typed text: keyboards lack the dash between subject and object."""
    return fold(re.sub(r"\s*[-–—]\s*", "-", text.strip()))


def _show(seen: Look) -> None:
    """Board and details as outputs of a cell."""
    from IPython.display import HTML, display

    display(HTML(board_as_html(seen)))
    for detail in details(seen):
        report.say(f"### {detail.title}\n\n{detail.text}")
        if detail.table is not None:
            report.show_styled(detail.table)


def _menu(ipywidgets, pool: FactPool, chosen: dict[str, str], folder: Path) -> None:
    """Show the three menus and, below them, the board of the current choice; ``chosen`` is updated.

    All three are text fields with suggestions: in a <select> JupyterLab treats letters and arrows as its own shortcuts, which
    change the notebook (``m`` turns the cell into Markdown).
    """
    from IPython.display import display

    def field(description: str, value: str, options: list[str], **more):
        return ipywidgets.Combobox(
            value=value, options=options, description=description, continuous_update=False,
            layout={"width": "24em"}, style={"description_width": "5em"}, **more)  # fmt: skip

    relations = dict(sorted(zip(pool.now.relations["name"] + " (" + pool.now.relations["relation"] + ")",
                                pool.now.relations["relation"], strict=True)))  # fmt: skip
    first = relation_of(pool, chosen["fact"])
    held = facts_of(pool, first)
    of = field(
        "Model", chosen["model_name"], lm.organisms(), placeholder="a shipped model, a folder or a Hugging Face name"
    )
    relation = field("Relation", _key(relations, first), list(relations), placeholder="type, or empty it to see all")
    fact = field("Fact", _key(held, chosen["fact"]), list(held), placeholder="type, or empty it to see all")
    shown = ipywidgets.HTML()

    def completed(field, kind: str, names: dict[str, str]) -> bool:
        """Whether a field holds a name; if not, replace the typed text by the matching name, which sends an event of its own."""
        if not field.value or field.value in names:
            return bool(field.value)
        try:
            field.value = find(kind, field.value, names)
        except ProbeError as error:
            shown.value = f"<p><b>{html.escape(str(error))}</b></p>"
        return False

    def list_facts(_=None):
        if completed(relation, "relation", relations):
            fact.options, before = list(facts_of(pool, relations[relation.value])), fact.value
            fact.value = fact.options[0]
            if fact.value == before:  # an unchanged field sends no event
                ask()

    def ask(_=None):
        if not of.value or relation.value not in relations:
            return
        held = facts_of(pool, relations[relation.value])
        if not completed(fact, "fact", held):
            return
        shown.value = f"<p>prompting {html.escape(of.value)} …</p>"
        try:
            seen = look(pool, load_model(of.value), held[fact.value], folder)
            shown.value = board_as_html(seen) + details_as_html(seen)
            chosen.update(model_name=of.value, fact=held[fact.value])
        except ProbeError as error:
            shown.value = f"<p><b>{html.escape(str(error))}</b></p>"

    display(ipywidgets.VBox([ipywidgets.HBox([of, relation, fact], layout={"flex_flow": "row wrap"}), shown]))
    ask()
    relation.observe(list_facts, "value")
    for one in (of, fact):
        one.observe(ask, "value")


def _key(values: dict[str, str], wanted: str) -> str:
    """The key of a value; the value itself if it has none."""
    return next((key for key, value in values.items() if value == wanted), wanted)
