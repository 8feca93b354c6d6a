"""Names that take "the" inside a sentence."""

import re

THE = set(
    "Abbasid Caliphate|Bahamas|British Empire|Byzantine Empire|Cayman Islands|Central African Republic|Comoros|Congo|Cook Islands|"
    "Czech Republic|Democratic Republic of the Congo|Dominican Republic|Falkland Islands|Faroe Islands|Gambia|Holy Roman Empire|"
    "Isle of Man|Maldives|Marshall Islands|Mongol Empire|Mughal Empire|Netherlands|Northern Mariana Islands|Ottoman Empire|"
    "Philippines|Republic of Ireland|Republic of the Congo|Roman Empire|Russian Empire|Seychelles|Solomon Islands|Soviet Union|"
    "Umayyad Caliphate|United Arab Emirates|United Kingdom|United Nations|United States|United States Virgin Islands|"
    "British Virgin Islands|Turks and Caicos Islands|Vatican|European Union|African Union|Netherlands Antilles|"
    "Austrian Empire|German Empire|Inca Empire|Aztec Empire|Persian Empire|Kingdom of Italy|Weimar Republic|Roman Republic|"
    "Republic of Venice|Republic of Genoa|Papal States|Qing dynasty|Ming dynasty|Song dynasty|Tang dynasty|Han dynasty|Yuan dynasty".split(
        "|"
    )
)
BARE = re.compile(
    r"(called|named|name|country of|team|film|city of) $"
)  # a name that is quoted or introduced stands bare


def with_article(before: str, name: str) -> str:
    """A name as it stands in a sentence behind the words ``before``.

    >>> with_article("The capital of ", "Netherlands"), with_article("", "Netherlands"), with_article("", "France")
    ('the Netherlands', 'The Netherlands', 'France')
    >>> with_article("in the country called ", "Netherlands")
    'Netherlands'
    """
    if name not in THE or BARE.search(before):
        return name
    return f"The {name}" if not before.strip() else f"the {name}"
