"""Cuts a reply into thinking, JSON objects and prose, from left to right in one pass."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from agentsim.replies.objects import Found, scan, starts_object

_MARK: Final = re.compile(
    r"<(?P<close>/?)(?:think|thinking|thought|thoughts|reasoning|analysis|reflection|scratchpad)"
    r"(?:\s[^<>]{0,60})?>|\{",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Segments:
    """A reply without its thinking.

    Attributes:
        prose: what is neither thinking nor a JSON object.
        objects: the JSON objects, in order.
        is_thinking: whether the reply ends inside its thinking.
    """

    prose: str
    objects: tuple[Found, ...]
    is_thinking: bool


def split(text: str) -> Segments:
    """The parts of a reply.

    A tag inside a JSON string is text of that string, and an object inside the thinking is
    thinking. A closing tag without an opening one ends thinking that the prompt had opened.
    """
    prose: list[str] = []
    objects: list[Found] = []
    start = at = 0
    is_thinking = False
    while mark := _MARK.search(text, at):
        if mark.group() == "{":
            at = mark.end()
            if not starts_object(text, mark.start()):
                continue
            found = scan(text, mark.start())
            prose.append(text[start : mark.start()])
            objects.append(found)
            start = at = found.end
        elif mark.group("close"):
            prose.clear()
            objects.clear()
            start = at = mark.end()
        else:
            prose.append(text[start : mark.start()])
            end = _closing(text, mark.end())
            is_thinking = end is None
            start = at = len(text) if end is None else end
    prose.append(text[start:])
    return Segments("\n".join(part for part in prose if part), tuple(objects), is_thinking)


def _closing(text: str, start: int) -> int | None:
    """Where the thinking that begins at `start` has ended; None where it has not."""
    for mark in _MARK.finditer(text, start):
        if mark.group("close"):
            return mark.end()
    return None
