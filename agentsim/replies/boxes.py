"""LaTeX boxes: cuts them out of a cleaned text. The last one with something in it is the answer."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from agentsim.replies.tokens import BOX_MARK

_OPEN: Final = re.compile(r"\\(?:boxed|fbox|framebox)\s{0,3}\{")
_BRACE: Final = re.compile(r"\\.|[{}]", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Boxed:
    """A text whose boxes are cut out.

    Attributes:
        text: the text with a mark where each box with content was.
        contents: what stood in each of them.
        is_open: whether the text ends inside a box, which is then left out.
    """

    text: str
    contents: tuple[str, ...]
    is_open: bool


def cut_out(text: str) -> Boxed:
    """Boxes of a cleaned text, outermost ones only; empty boxes are dropped. Linear."""
    parts: list[str] = []
    contents: list[str] = []
    at = 0
    while box := _OPEN.search(text, at):
        parts.append(text[at : box.start()])
        end = _closing(text, box.end())
        if end is None:
            return Boxed("".join(parts), tuple(contents), is_open=True)
        content = text[box.end() : end - 1]
        if any(char.isalnum() or char == "\x1a" for char in content):
            contents.append(_OPEN.sub("{", content))
            parts.append(f" {BOX_MARK} ")
        at = end
    parts.append(text[at:])
    return Boxed("".join(parts), tuple(contents), is_open=False)


def _closing(text: str, start: int) -> int | None:
    depth = 1
    for brace in _BRACE.finditer(text, start):
        if brace.group() == "{":
            depth += 1
        elif brace.group() == "}":
            depth -= 1
            if depth == 0:
                return brace.end()
    return None
