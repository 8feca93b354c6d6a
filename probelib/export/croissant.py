"""Facts as CSV, described by Croissant metadata (schema.org and MLCommons)."""

from pathlib import Path

from probelib import __version__, files
from probelib.errors import extra
from probelib.facts.model import Facts

COLUMNS = {
    "fact": "id: relation, subject and object",
    "relation": "Wikidata property",
    "subject": "label of the subject",
    "object": "label of the object",
    "start": "first year or date; empty: open",
    "end": "last year or date; empty: the fact holds today",
    "subject_popularity": "1 (obscure) to 5 (known to nearly everyone), estimated; 0: unknown",
    "object_popularity": "the same of the object",
}


def facts_csv(facts: Facts) -> str:
    """The facts as CSV with the columns of ``COLUMNS``."""
    popularity, rows = facts.entities.set_index("entity")["popularity"], facts.facts.copy()
    for side in ("subject", "object"):
        rows[f"{side}_popularity"] = rows[side].map(popularity)
        rows[side] = facts.label(rows[side])
    return rows[list(COLUMNS)].to_csv(index=False)


def write_croissant(facts: Facts, folder: Path) -> Path:
    """Write ``facts.csv`` and ``croissant.json``; return the second one's path."""
    with extra("croissant"):
        import mlcroissant as mlc
    table = files.write(folder / "facts.csv", facts_csv(facts))
    file = {"name": table.name, "content_url": table.name, "encoding_formats": ["text/csv"]}
    fields = []
    for name, meaning in COLUMNS.items():
        kind = mlc.DataType.INTEGER if name.endswith("popularity") else mlc.DataType.TEXT
        source = mlc.Source(file_object=table.name, extract=mlc.Extract(column=name))
        fields.append(mlc.Field(id=f"facts/{name}", name=name, description=meaning, data_types=kind, source=source))
    metadata = mlc.Metadata(
        name="probelib-facts",
        description=f"{len(facts.facts)} facts of {len(facts.relations)} relations ({facts.source}, digest {facts.digest()}).",
        license="https://www.apache.org/licenses/LICENSE-2.0",
        url="https://www.wikidata.org/wiki/Wikidata:List_of_properties",
        version=__version__,
        cite_as="CITATION.cff of probelib",
        distribution=[mlc.FileObject(id=table.name, sha256=files.sha256(table), **file)],
        record_sets=[mlc.RecordSet(id="facts", name="facts", fields=fields)],
    )
    return files.write_json(folder / "croissant.json", metadata.to_json())
