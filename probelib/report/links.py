"""Links from the report's tables to the page of ``probelib.browse``, which shows the answers of every model about a fact.

A table names a fact in one cell ("France – capital – Paris"), or in three columns (relation, subject, object).
"""

import html
import json
import re
from collections.abc import Container
from urllib.parse import parse_qs, urlencode

from probelib import paths

PAGE = "browse.html"  # in runs/<profile>, beside report.html
WORDS = ("subject", "relation", "object")  # columns that name a fact, in the order of its name
CELL = re.compile(r'(<td[^>]* col(\d+)"[^>]*>)([^<]*)')
DATA = re.compile(r'<script type="application/json" id="data">(.*?)</script>', re.DOTALL)


def facts_on_page(profile: str) -> set[str]:
    """The names of the facts on the profile's page; empty if there is no page, or a damaged one."""
    try:
        page = (paths.RUNS / profile / PAGE).read_text(encoding="utf-8")
        about = json.loads(DATA.search(page)[1])
        names = about["relations"]
        return {f"{subject} – {names[relation]} – {obj}" for _, relation, subject, obj, *_ in about["facts"]}
    except (OSError, ValueError, TypeError, KeyError):  # no page, or a damaged one
        return set()


def link_facts(table: str, known: Container[str] | None = None) -> str:
    """Link the facts that an HTML table names: their cell, or the subject if three columns name them. A column "model" selects
    the model on the page.

    known   names of the facts to link (default: all)
    """
    columns = {name.lower(): number for number, name in re.findall(r'<th[^>]* col(\d+)"[^>]*>([^<]*)</th>', table)}

    def linked_row(row: re.Match) -> str:
        cells = {number: text for _, number, text in CELL.findall(row[0])}
        model, *words = (html.unescape(cells.get(columns.get(name), "")) for name in ("model", *WORDS))

        def linked_cell(cell: re.Match) -> str:
            start, number, text = cell.groups()
            by_words = all(words) and number == columns["subject"]
            fact = " – ".join(words) if by_words else html.unescape(text)
            if fact.count(" – ") < 2 or (known is not None and fact not in known):
                return cell[0]
            address = urlencode(({"model": model} if model else {}) | {"fact": fact})
            return f"{start}<a href='{PAGE}#{html.escape(address)}'>{text}</a>"

        return CELL.sub(linked_cell, row[0])

    return re.sub(r"<tr>.*?</tr>", linked_row, table, flags=re.DOTALL)


def linked_facts(page: str) -> set[str]:
    """The names of the facts that the links of an HTML page or table lead to."""
    addresses = re.findall(rf"href='{re.escape(PAGE)}#([^']*)'", page)
    return {parse_qs(html.unescape(address))["fact"][0] for address in addresses}
