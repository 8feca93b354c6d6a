"""Figures, tables and pages: the artifacts of a notebook, and how they are saved and shown."""

from probelib.lm.names import family
from probelib.report.charts import (
    COLUMN,
    SMALL,
    TWO_COLUMNS,
    bands,
    dot_rows,
    heat,
    lines,
    literal,
    marks,
    model_style,
    style_at,
    subplots,
    use_style,
)
from probelib.report.claims import cases, check, interval
from probelib.report.section import Artifact, Section, lacking, parameters_of
from probelib.report.shown import PAPERS, say
