"""Facts as CSV, described by Croissant metadata (schema.org and MLCommons)."""

import hashlib
import json
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
    popularity = facts.entities.set_index("entity")["popularity"]
    rows = facts.facts.assign(
        subject_popularity=facts.facts["subject"].map(popularity),
        object_popularity=facts.facts["object"].map(popularity),
    )
    rows = rows.assign(subject=facts.label(rows["subject"]), object=facts.label(rows["object"]))
    return rows[list(COLUMNS)].to_csv(index=False)


def write_croissant(facts: Facts, folder: Path) -> Path:
    """Write ``facts.csv`` and ``croissant.json``; return the second one's path."""
    with extra("croissant"):
        import mlcroissant as mlc
    table = facts_csv(facts)
    files.write(folder / "facts.csv", table)
    source = lambda column: mlc.Source(file_object="facts.csv", extract=mlc.Extract(column=column))
    fields = [
        mlc.Field(
            id=f"facts/{name}",
            name=name,
            description=meaning,
            data_types=mlc.DataType.INTEGER if name.endswith("popularity") else mlc.DataType.TEXT,
            source=source(name),
        )
        for name, meaning in COLUMNS.items()
    ]
    digest = hashlib.sha256(table.encode()).hexdigest()
    metadata = mlc.Metadata(
        name="probelib-facts",
        description=f"{len(facts.facts)} facts of {len(facts.relations)} relations ({facts.source}, digest {facts.digest()}).",
        license="https://www.apache.org/licenses/LICENSE-2.0",
        url="https://www.wikidata.org/wiki/Wikidata:List_of_properties",
        version=__version__,
        cite_as="CITATION.cff of probelib",
        distribution=[
            mlc.FileObject(
                id="facts.csv", name="facts.csv", content_url="facts.csv", encoding_formats=["text/csv"], sha256=digest
            )
        ],
        record_sets=[mlc.RecordSet(id="facts", name="facts", fields=fields)],
    )
    text = json.dumps(metadata.to_json(), indent=1, ensure_ascii=False, default=str)
    return files.write(folder / "croissant.json", text + "\n")
