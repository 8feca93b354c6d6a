"""Names that take "the" inside a sentence."""

import re

NAMES = """
Abbasid Caliphate|African Union|Austrian Empire|Aztec Empire|Bahamas|British Empire|British Virgin Islands|
Byzantine Empire|Cayman Islands|Central African Republic|Comoros|Congo|Cook Islands|Czech Republic|
Democratic Republic of the Congo|Dominican Republic|European Union|Falkland Islands|Faroe Islands|Gambia|
German Empire|Han dynasty|Holy Roman Empire|Inca Empire|Isle of Man|Kingdom of Italy|Maldives|
Marshall Islands|Ming dynasty|Mongol Empire|Mughal Empire|Netherlands|Netherlands Antilles|
Northern Mariana Islands|Ottoman Empire|Papal States|Persian Empire|Philippines|Qing dynasty|
Republic of Genoa|Republic of Ireland|Republic of Venice|Republic of the Congo|Roman Empire|Roman Republic|
Russian Empire|Seychelles|Solomon Islands|Song dynasty|Soviet Union|Tang dynasty|Turks and Caicos Islands|
Umayyad Caliphate|United Arab Emirates|United Kingdom|United Nations|United States|
United States Virgin Islands|Vatican|Weimar Republic|Yuan dynasty
"""
THE = set(NAMES.replace("\n", "").split("|"))
# after these words a name is quoted or introduced, and takes no article
BARE = re.compile(r"(called|named|name|country of|team|film|city of) $")


def with_article(before: str, name: str) -> str:
    """A name as it is written in a sentence after the words ``before``.

    >>> with_article("The capital of ", "Netherlands"), with_article("", "Netherlands"), with_article("", "France")
    ('the Netherlands', 'The Netherlands', 'France')
    >>> with_article("in the country called ", "Netherlands")
    'Netherlands'
    """
    if name not in THE or BARE.search(before):
        return name
    return f"The {name}" if not before.strip() else f"the {name}"
