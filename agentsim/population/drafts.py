"""From a model's reply to a person's five parts, or to why there are none. Nothing is guessed."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agentsim.population.meta_prompt import FIELDS

_LONGEST_NAME = 100
_SHORTEST_DESCRIPTION = 20
_LONGEST_DESCRIPTION = 4_000
_OLDEST = 130
_LABEL = re.compile(rf"^[\s*#>_-]*({'|'.join(FIELDS)})[\s*_]*[:：][\s*_]*", re.IGNORECASE)
_WHOLE = re.compile(r"\d{1,3}")


@dataclass(frozen=True, slots=True)
class Draft:
    """A person as a model wrote it.

    Attributes:
        name, gender, job: one line each.
        age: in years.
        description: one paragraph.
    """

    name: str
    age: int
    gender: str
    job: str
    description: str

    @property
    def background(self) -> str:
        """The text that stands for the person: one line of data, in no language, then the
        paragraph."""
        return f"{self.name}, {self.age}, {self.gender}, {self.job}.\n{self.description}"


def read_draft(text: str) -> Draft | str:
    """The person in a reply, in JSON or in labelled lines; or why it cannot be read.

    Linear in the text's length.
    """
    parts = _of_json(text)
    if parts is None:
        parts = _of_lines(text)
    missing = [name for name in FIELDS if name not in parts]
    if missing:
        return f"no {', '.join(missing)}"
    age = _age(parts["age"])
    if age is None:
        return "age is not a whole number of years"
    said = {name: _one_line(parts[name]) for name in FIELDS if name != "age"}
    said |= {name: said[name].strip("*_\"' .,;:") for name in ("name", "gender", "job")}
    for name, value in said.items():
        if not any(char.isalnum() for char in value):
            return f"no {name}"
        if name != "description" and len(value) > _LONGEST_NAME:
            return f"{name} is not a word but a text"
    if len(said["description"]) < _SHORTEST_DESCRIPTION:
        return "description is not a paragraph"
    if len(said["description"]) > _LONGEST_DESCRIPTION:
        return f"description is longer than {_LONGEST_DESCRIPTION:,} characters"
    return Draft(said["name"], age, said["gender"], said["job"], said["description"])


def _of_json(text: str) -> dict[str, Any] | None:
    """The members of the first JSON object; None when there is none."""
    start = text.find("{")
    if start < 0:
        return None
    try:
        found, _ = json.JSONDecoder().raw_decode(text, start)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, Mapping):
        return None
    return {key.strip().casefold(): value for key, value in found.items()}


def _of_lines(text: str) -> dict[str, Any]:
    """Parts by their labels. A part goes on until the next label, and stands once."""
    parts: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in text.splitlines():
        label = _LABEL.match(line)
        if label and label[1].casefold() not in parts:
            lines = parts[label[1].casefold()] = [line[label.end() :]]
        else:
            lines.append(line)
    return {name: " ".join(part) for name, part in parts.items()}


def _age(value: Any) -> int | None:
    if isinstance(value, str):
        numbers = _WHOLE.findall(value[:_LONGEST_NAME])
        value = int(numbers[0]) if len(numbers) == 1 else None
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    is_age = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _OLDEST
    return value if is_age else None


def _one_line(value: Any) -> str:
    """A part as text on one line; what is no text is none."""
    if not isinstance(value, str):
        return ""
    visible = (char if char.isprintable() else " " for char in value)
    return " ".join("".join(visible).split())
