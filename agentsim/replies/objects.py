"""JSON objects in a reply: where they are, whether they are whole, and what their field says.

An object that is cut or broken is never repaired, and never read as prose. Numbers keep the text
that the reply has, so that one of a million digits costs no more than reading it.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from agentsim.replies.vocabulary import word_set

FIELD: Final = "number"
"""The field of the schema that model servers are asked to enforce."""

_SAME_MEANING: Final = word_set(
    "answer final_answer guess my_guess choice my_choice pick my_number my_answer "
    "chosen_number selected_number final_number"
)
"""Read where the field is missing: models that know no schema use these for the same thing."""

_WRAPPERS: Final = word_set(
    "answer final_answer response result output arguments parameters decision action"
)
"""An object under one of these keys may hold the field."""

_STARTS: Final = re.compile(r"\{\s*(?:[\"'“‘}{\[/]|[A-Za-z_][\w-]{0,60}\s*:|$)")
_QUOTED: Final = re.compile(r"\{\s*\"")
_OUTSIDE: Final = re.compile(r"[\"{}\[\]]")
_INSIDE: Final = re.compile(r"[\"\\]")
_DEEPEST: Final = 100


class Shape(Enum):
    """What became of an object in the text."""

    WHOLE = auto()
    BROKEN = auto()
    CUT = auto()


@dataclass(frozen=True, slots=True)
class Literal:
    """A JSON number as the reply writes it; `NaN`, `Infinity` and `-Infinity` included."""

    text: str


class Members(list[tuple[str, object]]):
    """The members of an object, in order, with every repeated key."""


@dataclass(frozen=True, slots=True)
class Found:
    """One object in a text.

    Attributes:
        shape: whether it is whole.
        end: where the text goes on after it.
        members: what it holds; empty unless it is whole.
    """

    shape: Shape
    end: int
    members: Members


def starts_object(text: str, at: int) -> bool:
    """Whether the brace at `at` opens something that is meant as a JSON object.

    LaTeX groups (`\\text{…}`, `x_{1}`) and braces around plain text are none.
    """
    if _STARTS.match(text, at) is None:
        return False
    before = text[at - 1 : at]
    command = re.search(r"\\[A-Za-z]+$", text[max(0, at - 24) : at])
    if command is not None or before in {"^", "_"}:
        return False
    return _QUOTED.match(text, at) is not None or not (before.isalpha() or before in {"}", "\\"})


def scan(text: str, start: int) -> Found:
    """The object that starts at `start`. Linear, and never recursive beyond a small depth."""
    end, deepest = _find_end(text, start)
    if end is None:
        return Found(Shape.CUT, len(text), Members())
    if deepest > _DEEPEST:
        return Found(Shape.BROKEN, end, Members())
    try:
        value = _DECODER.decode(text[start:end])
    except (ValueError, RecursionError):
        return Found(Shape.BROKEN, end, Members())
    assert isinstance(value, Members)
    return Found(Shape.WHOLE, end, value)


def _find_end(text: str, start: int) -> tuple[int | None, int]:
    """Where the brackets are even again (None where never), and how deep they went."""
    depth = deepest = 0
    at, in_string = start, False
    while mark := (_INSIDE if in_string else _OUTSIDE).search(text, at):
        char, at = mark.group(), mark.end()
        if char == "\\":
            at += 1
        elif char == '"':
            in_string = not in_string
        elif char in "{[":
            depth += 1
            deepest = max(deepest, depth)
        else:
            depth -= 1
            if depth == 0:
                return at, deepest
    return None, deepest


_DECODER: Final = json.JSONDecoder(
    object_pairs_hook=Members,
    parse_int=Literal,
    parse_float=Literal,
    parse_constant=Literal,
    strict=False,
)


def field_values(members: Members) -> list[object]:
    """Everything that an object gives as the answer, in order.

    Returns:
        The values of the field, of keys with the same meaning, or of the field inside a wrapper;
        empty where there is none of them.
    """
    by_key = [(_key(name), value) for name, value in members]
    exact = [value for key, value in by_key if key == FIELD]
    others: list[object] = [
        value
        for key, value in by_key
        if key in _SAME_MEANING
        and isinstance(value, Literal | str | list)
        and not isinstance(value, Members)
    ]
    if exact:
        return exact + [value for value in others if isinstance(value, Literal)]
    if others:
        return others
    found: list[object] = []
    for key, value in by_key:
        if key in _WRAPPERS and isinstance(value, Members):
            found += field_values(value)
    return found


def _key(name: str) -> str:
    return re.sub(r"[\s_-]+", "_", name.strip()).casefold()
