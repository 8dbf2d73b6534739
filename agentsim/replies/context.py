"""What stands around a number: how far negations and conditions reach, and the words beside it.

The words before and after a number are laid out as one short line, with `#` for a number and `§`
for a bound of the game's range. The lines are bounded, so that the work per number is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from agentsim.replies import vocabulary as words
from agentsim.replies.quantities import RANGE, Item, Quantity
from agentsim.replies.tokens import Kind, Token

SAME: Final = "#="
"""In a line of words: a number equal to the one that is looked at."""

WIDTH: Final = 18
"""Items looked at on each side of a number."""

_EVEN_IF: Final = frozenset({"even", "as"})


@dataclass(frozen=True, slots=True)
class Context:
    """What is known about every item of a reply, by its index; made in one pass.

    Attributes:
        negated: a negation stands before it in its clause.
        conditional: an `if` stands before it in its sentence.
    """

    negated: list[bool]
    conditional: list[bool]


def contexts(items: list[Item]) -> Context:
    """Negations and conditions that reach each item."""
    negated, conditional = [], []
    reach = _Reach()
    for i, item in enumerate(items):
        negated.append(reach.is_negated)
        conditional.append(reach.is_conditional)
        if isinstance(item, Quantity):
            reach.previous = ""
        else:
            reach.take(item, items, i)
    return Context(negated, conditional)


class _Reach:
    """How far the last negation and the last condition reach, while the items go by."""

    def __init__(self) -> None:
        self.previous = ""
        self.is_negated = self.is_conditional = False
        self.is_about_others = False  # "people are not rational I choose 12" negates no choice
        self.is_soft = False

    def take(self, item: Token, items: list[Item], i: int) -> None:
        text, previous = item.text, self.previous
        self.previous = text
        if item.kind in {Kind.END, Kind.LINE}:
            self.is_negated = self.is_conditional = self.is_about_others = False
        elif text in words.CLAUSE_BREAKS or text in {",", ";", ":", "(", ")", "→", "—"}:
            self.is_negated = self.is_about_others = False
        elif text in words.OWN_SUBJECTS:
            self.is_negated = self.is_negated and not self.is_soft
            self.is_about_others = False
        elif text in words.SUBJECTS_OF_OTHERS:
            self.is_about_others = True
        elif text in words.NEGATIONS or text.endswith("n't"):
            following = items[i + 1] if i + 1 < len(items) else None
            is_partial = isinstance(following, Token) and following.text in words.PARTIAL
            self.is_soft = self.is_about_others or is_partial
            self.is_negated = True
        elif text == "than" and previous == "rather":
            self.is_negated, self.is_soft = True, False
        elif text in words.CONDITIONS and previous not in _EVEN_IF and not _had_to(items, i):
            self.is_conditional = True


def _had_to(items: list[Item], i: int) -> bool:
    """`if I had to choose, I'd …` is polite and no condition."""
    following = [item.text for item in items[i + 1 : i + 4] if isinstance(item, Token)]
    return following[:1] == ["i"] and following[1:2] in (["had"], ["have"], ["must"], ["may"])


def line_before(items: list[Item], i: int) -> str:
    """The words before item `i` in its sentence; the sentence may run over lines."""
    parts: list[str] = []
    own = items[i]
    for item in reversed(items[max(0, i - WIDTH) : i]):
        if isinstance(item, Token) and item.kind is Kind.END:
            break
        parts.append(SAME if _is_same(item, own) else _show(item))
    return "".join(f"{part} " for part in reversed(parts))


def line_after(items: list[Item], i: int) -> str:
    """The words after item `i` up to the end of its line or sentence."""
    parts: list[str] = []
    for item in items[i + 1 : i + 1 + WIDTH]:
        if isinstance(item, Token) and item.kind in {Kind.END, Kind.LINE}:
            parts.append(item.text)
            break
        parts.append(_show(item))
    return " ".join(parts)


def _is_same(item: Item, own: Item) -> bool:
    if not isinstance(item, Quantity) or not isinstance(own, Quantity):
        return False
    return item.role == "" and item.value is not None and item.value == own.value


def _show(item: Item) -> str:
    if isinstance(item, Token):
        return item.text
    return "§" if item.role == RANGE else "#"
