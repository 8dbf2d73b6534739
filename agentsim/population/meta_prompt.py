"""The meta-prompt: how a language model is asked to write one person.

It is made of a person's attributes and of the population's language, and of nothing else: no
function here takes a scenario or a game, so that no persona can be written towards a result. The
system message is the same for everybody, so that a server can keep it; the person comes last.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Literal

from agentsim.population import wording
from agentsim.population.facts import Fact
from agentsim.rpc.messages import Message

Format = Literal["json", "text"]
FIELDS = ("name", "age", "gender", "job", "description")
"""What a written person consists of, in this order."""

# The paragraph is called a description: a small model takes a `character` for a name.
_TASK = """\
You invent people. You get facts about one person as JSON and describe this person. All facts are \
true: repeat each one, word for word, and contradict none. What the facts leave open you choose, \
so that it goes with them.

{form}
- {name}: first and last name
- {age}: a whole number
- {gender}: as in the facts
- {job}: as in the facts
- {description}: a paragraph of five sentences that {begins} and tells who this \
person is, how this person lives and how this person decides. It states every fact.

{language}"""
_ENGLISH = "Write in plain English."
_OTHER = (
    "Write name and description in {language}. Words and numbers that come from the facts stay as "
    "the JSON has them."
)
_FORMS: dict[Format, str] = {
    "json": "Reply with a JSON object and nothing else:",
    "text": "Reply with these five lines and nothing else. Keep their labels as they are:",
}


def system(language: str, format: Format) -> Message:
    """What everybody's writer is told.

    Args:
        language: of the paragraph.
        format: `json` where the server enforces a schema, else `text`.
    """
    english = is_english(language)
    where = _ENGLISH if english else _OTHER.format(language=language)
    begins = 'begins with "You are"' if english else "speaks to the person"
    labels = {name: f'"{name}"' if format == "json" else name.capitalize() for name in FIELDS}
    return Message(
        "system", _TASK.format(form=_FORMS[format], language=where, begins=begins, **labels)
    )


def question(facts: Sequence[Fact], reminder: str = "") -> Message:
    """The facts of one person.

    Args:
        facts: in the population's order.
        reminder: what was wrong with the last reply; empty at first.
    """
    told = json.dumps({fact.name: fact.value for fact in facts}, ensure_ascii=False)
    text = f"The facts: {told}"
    if elsewhere := [fact for fact in facts if fact.role == "other"]:
        text += f"\nThe description states: {_listed(elsewhere, '{} {}')}."
    return Message("user", f"{text}\n\n{reminder}" if reminder else text)


def reminder(absent: Sequence[Fact], contradicted: Sequence[Fact], *, english: bool = True) -> str:
    """What to say when facts are missing from a reply, or something else stands there.

    In English it gives the first words of a description that states what has no part of its own:
    a small model takes them up where it does not follow the request.
    """
    parts = []
    if absent:
        parts.append(f"does not state {_listed(absent)}")
    if contradicted:
        parts.append(f"contradicts {_listed(contradicted)}")
    text = f"An earlier reply was not used, since it {' and '.join(parts)}. Write a new one."
    elsewhere = [fact for fact in (*absent, *contradicted) if fact.role == "other"]
    if not english or not elsewhere:
        return f"{text} It states these facts word for word."
    start = ", your ".join(f"{wording.plain(f.name)} is {f.value}" for f in elsewhere)
    return f'{text} Its description begins with: "Your {start}."'


UNREADABLE = (
    "An earlier reply was not used, since it did not have the five parts in the form that was "
    "asked for. Write a new one."
)
TOO_LONG = "An earlier reply was not used, since it was cut: it was too long. Write a shorter one."


def schema() -> dict[str, Any]:
    """JSON schema of a reply. It has types alone: a value that a decoder is made to write says
    nothing about whether the model has taken it in."""
    types: dict[str, dict[str, Any]] = {name: {"type": "string"} for name in FIELDS}
    types["age"] = {"type": "integer"}
    return {
        "type": "object",
        "properties": types,
        "required": list(FIELDS),
        "additionalProperties": False,
    }


def is_english(language: str) -> bool:
    """Whether texts are checked word by word: the rules know English."""
    return "english" in language.casefold().split() or language.casefold() == "en"


def _listed(facts: Sequence[Fact], form: str = "{} ({})") -> str:
    *first, last = (form.format(fact.name, fact.value) for fact in facts)
    return f"{', '.join(first)} and {last}" if first else last
