"""KaRR's human ratings and the annotated verbalizations: small files of their form, and the real
ones."""

import json

import pytest

from probelib.errors import ProbeError
from probelib.facts.annotated import ERRORS, read_ratings, read_verbalizations
from tests.conftest import DATA

RATINGS = [
    [["Q361", "P276", "Q15"], 0.33],
    [["Q155", "P30", "Q18"], 1],
    [["Q155", "P30", "Q49"], 0.0],
]
TAXONOMY = """,triples_raw,context,verbalization,errors,correction
0,"('Q1', 'P31', 'Q2')",present,1951 by-election is a by-election,sub_deter,The 1951 by-election is
3,"('Q3', 'P828', 'Q4')",past,"On 1 January 2020, pyrotechnics caused El Dorado Fire",-,
4,"('Q5', 'P937', 'Q6')",present,He work in D.C.,"wrong_conjug, obj_unclear",He worked in D.C.
"""


def test_ratings_by_hand(tmp_path):
    path = tmp_path / "scores.json"
    path.write_text(json.dumps(RATINGS))
    assert read_ratings(path).values.tolist() == [
        ["P276:Q361:Q15", "P276", "Q361", "Q15", 0.33],
        ["P30:Q155:Q18", "P30", "Q155", "Q18", 1.0],
        ["P30:Q155:Q49", "P30", "Q155", "Q49", 0.0],
    ]


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        (RATINGS + RATINGS[:1], "entry 4: P276:Q361:Q15 is already rated"),
        ([[["Q1", "P2"], 0.5]], "entry 1: .*is needed"),
        ([[["Q1", "P2", ""], 0.5]], "entry 1: a fact must be a list of non-empty texts"),
        ([[["Q1", "P2", "Q3"], 1.01]], "entry 1: .*is needed"),
        ([[["Q1", "P2", "Q3"], True]], "entry 1: .*is needed"),
        ({}, "entry 1: .*is needed"),
    ],
)
def test_bad_ratings_are_named(tmp_path, bad, says):
    (tmp_path / "scores.json").write_text(json.dumps(bad))
    with pytest.raises(ProbeError, match=f"scores.json.*{says}"):
        read_ratings(tmp_path / "scores.json")


def test_verbalizations_by_hand(tmp_path):
    (tmp_path / "taxonomy.csv").write_text(TAXONOMY)
    frame = read_verbalizations(tmp_path / "taxonomy.csv")
    assert frame["context"].tolist() == ["present", "past", "present"]
    assert frame["errors"].tolist() == [("sub_deter",), (), ("wrong_conjug", "obj_unclear")]


@pytest.fixture
def real():
    """The folder of the real annotations."""
    if not (DATA / "human_ratings").is_dir() or not (DATA / "verbalization").is_dir():
        pytest.skip(f"no human ratings and verbalizations in {DATA} (set PROBELIB_TEST_DATA)")
    return DATA


def test_the_real_ratings(real):
    """Counts of the released file."""
    ratings = read_ratings(real / "human_ratings" / "wikidata_triples_to_human_scores.json")
    assert len(ratings) == 213 and ratings["relation"].nunique() == 46
    assert ratings["subject"].nunique() == 210 and ratings["object"].nunique() == 187
    assert ratings["rating"].mean() == pytest.approx(0.266, abs=5e-4)
    assert (ratings["rating"] == 0).sum() == 32 and (ratings["rating"] == 1).sum() == 4
    assert (ratings.groupby(["relation", "subject"]).size() == 2).sum() == 2
    ties = ratings["rating"].value_counts()
    assert (ties * (ties - 1)).sum() / (213 * 212) == pytest.approx(0.067, abs=5e-4)


def test_the_real_verbalizations(real):
    """Counts of the released file, and the paper's table 5."""
    frame = read_verbalizations(real / "verbalization" / "taxonomy.csv")
    assert frame["context"].value_counts().to_dict() == {"present": 77, "past": 75}
    n_errors = frame["errors"].map(len)
    assert (n_errors == 0).sum() == 92 and (n_errors > 1).sum() == 12
    flawed = frame[(frame["context"] == "present") & (n_errors > 0)]
    shares = flawed["errors"].explode().value_counts().reindex(ERRORS, fill_value=0) / 77 * 100
    assert shares.round(1).tolist() == [1.3, 3.9, 14.3, 13.0, 5.2, 5.2, 14.3, 0.0, 0.0]
