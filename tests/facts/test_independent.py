"""The atlas against sources that had no part in it: Unicode's CLDR (babel) and the time zones
of the world (pytz). Names of territories are matched as they are; what has no match is left out."""

import pytest
import pytz
from babel import Locale
from babel.languages import get_official_languages
from babel.numbers import get_territory_currencies

from probelib.facts import atlas
from probelib.facts.model import current

pytestmark = pytest.mark.fast
ENGLISH = Locale("en")
CODES = {name: code for code, name in ENGLISH.territories.items() if len(code) == 2}
# subject -> (what the atlas says, what CLDR says): two names of one thing, each read by a person
SAME = {
    "Bermuda": ("Bermudian dollar", "Bermudan Dollar"),
    "Botswana": ("Botswana pula", "Botswanan Pula"),
    "China": ("renminbi", "Chinese Yuan"),
    "Guyana": ("Guyanese dollar", "Guyanaese Dollar"),
    "Kyrgyzstan": ("Kyrgyz som", "Kyrgystani Som"),
    "Laos": ("Lao kip", "Laotian Kip"),
    "Mongolia": ("Mongolian tögrög", "Mongolian Tugrik"),
    "Paraguay": ("Paraguayan guaraní", "Paraguayan Guarani"),
    "Poland": ("Polish złoty", "Polish Zloty"),
    "Samoa": ("Samoan tālā", "Samoan Tala"),
    "United Kingdom": ("pound sterling", "British Pound"),
    "Uzbekistan": ("Uzbekistani sum", "Uzbekistani Som"),
    "Bulgaria": ("euro", "Bulgarian Lev"),  # since 2026; CLDR is older
    "Bangladesh": ("Bengali", "Bangla"),
    "Greenland": ("Greenlandic", "Kalaallisut"),
    "Maldives": ("Dhivehi", "Divehi"),
    "Montenegro": ("Montenegrin", "sr_Latn"),
    "Slovenia": ("Slovene", "Slovenian"),
    "Taiwan": ("Mandarin Chinese", "Traditional Chinese"),
}
CHINESE = ("Mandarin Chinese", "Chinese")  # the second name of China's row


def stated(relation: str) -> dict[str, set[str]]:
    """Territory -> all its objects by label, of the facts that hold now."""
    known = current(atlas())
    rows = known.facts[known.facts["relation"] == relation]
    named = rows.assign(s=known.label(rows["subject"]), o=known.label(rows["object"]))
    return {s: set(own) for s, own in named.groupby("s")["o"] if s in CODES}


def disagreeing(found: dict[str, set[str]], source) -> dict[str, tuple[set, set]]:
    """Territories none of whose objects ``source(code)`` names, ignoring case."""
    wrong = {}
    for subject, own in found.items():
        theirs = {name.casefold() for name in source(CODES[subject])}
        spelled = {there for here, there in (SAME.get(subject, ("", "")), CHINESE) if here in own}
        if theirs and not {name.casefold() for name in own | spelled} & theirs:
            wrong[subject] = (own, theirs)
    return wrong


def currencies(code: str) -> list[str]:
    names = [ENGLISH.currencies[each] for each in get_territory_currencies(code)]
    return names + [name.replace("US Dollar", "United States dollar") for name in names]


def languages(code: str) -> list[str]:
    found = get_official_languages(code, regional=True, de_facto=True)
    return [ENGLISH.languages.get(each, each) for each in found]


@pytest.mark.parametrize("relation, source", [
    ("P78", lambda code: [".uk" if code == "GB" else f".{code}"]),  # .uk alone is no ISO code
    ("P38", currencies), ("P37", languages),
])  # fmt: skip
def test_no_territory_disagrees(relation, source):
    found = stated(relation)
    assert len(found) > 150 and disagreeing(found, source) == {}


def test_a_wrong_fact_is_seen():
    assert disagreeing({"France": {"Spanish"}}, languages).keys() == {"France"}


def test_cities_lie_in_the_countries_of_their_time_zones():
    zones = {
        zone.rsplit("/", 1)[1].replace("_", " "): country
        for country, own in pytz.country_timezones.items()
        for zone in own
    }
    known = current(atlas())
    rows = known.facts[known.facts["relation"] == "P17"]
    pairs = zip(known.label(rows["subject"]), known.label(rows["object"]), strict=True)
    compared = [(s, o) for s, o in pairs if s in zones and o in CODES]
    assert len(compared) > 20 and [(s, o) for s, o in compared if zones[s] != CODES[o]] == []
