"""GraphEval's own prompts: the request for a statement template (figure 9), and the check of what a model generates.

The instruction around a statement (table 6) is one of ``INSTRUCTIONS``; other packages use the same texts.
"""

from probelib.errors import unknown
from probelib.prompts import INSTRUCTION, RECALL

INSTRUCTIONS = {"at once": INSTRUCTION, "recalled": RECALL}  # name -> text with {statement}


def instruction_text(name: str) -> str:
    """The text of an instruction: "at once" requests only the verdict, "recalled" the object of the fact and then the verdict.

    >>> instruction_text("recalled")
    'Recall the fact, then judge: {statement}\\nAnswer:'
    """
    if name not in INSTRUCTIONS:
        raise unknown("instruction", name, list(INSTRUCTIONS))
    return INSTRUCTIONS[name]


def request_template(relation: str, triples: list[tuple[str, str]], examples: list[tuple]) -> str:
    """Return a prompt that requests a statement template for a relation, given sample triples (the words are the kit's).

    relation  its name
    triples   (head, tail) names of some of its triples
    examples  solved ones: (relation, triples, template with [X] and [Y])
    """
    lines = [
        "Write one English sentence that says what a relation of a knowledge graph means. "
        "Put {head} where the first name goes and {tail} where the second one goes, each once."
    ]
    for name, pairs, template in [*examples, (relation, triples, None)]:
        lines += ["", f"Relation: {name}", *(f"- {head} | {name} | {tail}" for head, tail in pairs)]
        sentence = "" if template is None else " " + template.replace("[X]", "{head}").replace("[Y]", "{tail}")
        lines.append(f"Sentence:{sentence}")
    return "\n".join(lines)


def check_template(text: str) -> tuple[str | None, str]:
    """Return the template in a generated text (None if there is none) and the verdict in words.

    >>> check_template(' "{tail} is the capital of {head}."\\nRelation: mayor')
    ('{tail} is the capital of {head}.', 'one {head} and one {tail}')
    >>> check_template(" Paris.")
    (None, '0 times {head}, 0 times {tail}: each is wanted once')
    """
    lines = text.strip().split("\n")
    template = lines[0].strip().strip("\"'“”‘’").strip()
    head, tail = template.count("{head}"), template.count("{tail}")
    if head == tail == 1:
        return template, "one {head} and one {tail}"
    return None, f"{head} times {{head}}, {tail} times {{tail}}: each is wanted once"
