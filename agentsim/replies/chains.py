"""Reads on from a number: does the reply leave it alone, list another one, or calculate with it?

An expression is not worked out for the player. Where the player has done it (`2/3 * 33 = 22`), the
one bare number of the equation is what it says.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from agentsim.replies import vocabulary as words
from agentsim.replies.quantities import RANGE, RULE, Item, Quantity
from agentsim.replies.tokens import Kind, Token
from agentsim.replies.vocabulary import word_set

EXPRESSION = "an expression is not worked out for the player"
LIST = "several numbers stand together"

_CALCULATING: Final = word_set("times plus minus multiplied divided squared cubed mod")
_JOINING: Final = frozenset([",", ";", "or", "and", "to", "&", "→", "~", "/", "then", "through"])
_HEDGES: Final = word_set(
    "maybe perhaps even possibly rather about around up also like roughly say the a an "
    "approximately probably ~ ≈"
)
_NEARLY: Final = frozenset(["so", "thereabouts"])
_LONGEST: Final = 60  # items that an equation may have
_NO_RIVAL: Final = frozenset([RANGE, RULE, "label", "count", "age", "ordinal", "name"])


@dataclass(frozen=True, slots=True)
class Chain:
    """What a number and its neighbours say together.

    Attributes:
        value: the one number; None where `doubt` says why there is none.
        doubt: why there is no one number.
        end: index of the last item that belongs to it.
        is_softly_doubtful: whether a clear answer further on settles it (an expression, a limit).
    """

    value: float | None
    doubt: str
    end: int
    is_softly_doubtful: bool = False


def follow(items: list[Item], i: int) -> Chain:
    """The chain that starts with the quantity at index `i`."""
    first = items[i]
    assert isinstance(first, Quantity)
    segments: list[Quantity | None] = []
    at = i
    while True:
        quantity = items[at]
        assert isinstance(quantity, Quantity)
        after = at + 1
        rival = _rival(items, after) or _contradiction(items, at)
        if rival:
            return Chain(None, rival, after)
        end = _expression_end(items, after)
        segments.append(quantity if end == after else None)
        following = _next_segment(items, end, is_bare=end == after)
        if following is None or following - i > _LONGEST:
            return _evaluate(segments, end - 1)
        at = following


def _evaluate(segments: list[Quantity | None], end: int) -> Chain:
    bare = [segment for segment in segments if segment is not None]
    doubts = [segment.doubt for segment in bare if segment.value is None]
    if doubts:
        is_soft = any(bit in doubts[0] for bit in ("rule", "limit", "worked out", "comparison"))
        return Chain(None, doubts[0], end, is_soft)
    values = {segment.value for segment in bare}
    if len(values) == 1:
        return Chain(values.pop(), "", end)
    if not values:
        return Chain(None, EXPRESSION, end, is_softly_doubtful=True)
    return Chain(None, "an equation with several numbers", end)


def _item(items: list[Item], i: int) -> Item | None:
    return items[i] if i < len(items) else None


def _text(items: list[Item], i: int) -> str:
    item = _item(items, i)
    return item.text if isinstance(item, Token) else ""


def _rival(items: list[Item], at: int) -> str:
    """Whether another number is offered beside the one before `at`."""
    item = _item(items, at)
    if isinstance(item, Quantity):
        return "" if item.role in _NO_RIVAL and item.role != RULE else LIST
    text = _text(items, at)
    if text == "(" and _text(items, at + 1) == "or":
        return LIST
    if text == "or" and _text(items, at + 1) not in _NEARLY:
        return LIST
    is_ellipsis = item is not None and item.kind is Kind.END and item.text not in {".", "!", "?"}
    if text not in _JOINING and not is_ellipsis:
        return ""
    at += 1
    for _ in range(4):
        if _text(items, at) not in _HEDGES:
            break
        at += 1
    other = _item(items, at)
    return LIST if isinstance(other, Quantity) and other.role not in _NO_RIVAL else ""


def _contradiction(items: list[Item], at: int) -> str:
    """`twenty (30)`: the parenthesis holds nothing but another number."""
    own, other = items[at], _item(items, at + 2)
    if not isinstance(own, Quantity) or not isinstance(other, Quantity):
        return ""
    is_alone = _text(items, at + 1) == "(" and _text(items, at + 3) == ")"
    return LIST if is_alone and other.role == "" and other.value != own.value else ""


def _expression_end(items: list[Item], at: int) -> int:
    """`at` where no calculation follows; else the index after it."""
    if not _calculates(items, at):
        return at
    end = at + 1
    while end < len(items) and end - at < _LONGEST:
        item = items[end]
        if isinstance(item, Token) and (
            item.kind in {Kind.END, Kind.LINE, Kind.EQUALS}
            or item.text in {",", ";", ":", "→", "which", "is", "equals", "gives"}
            or item.text in words.CLAUSE_BREAKS
        ):
            break
        end += 1
    return end


def _calculates(items: list[Item], at: int) -> bool:
    item = _item(items, at)
    if not isinstance(item, Token):
        return False
    following = _item(items, at + 1)
    if item.kind in {Kind.OPERATOR, Kind.BOUND}:
        return True
    if item.kind is Kind.DASH or item.text in {"x", "~"}:
        return isinstance(following, Quantity)
    if item.text == "of":
        return _text(items, at + 1) != "course"
    return item.text in _CALCULATING


def _next_segment(items: list[Item], at: int, *, is_bare: bool) -> int | None:
    """Index of the quantity on the other side of an equals sign at `at`."""
    item = _item(items, at)
    if not isinstance(item, Token):
        return None
    if item.text == "," and _text(items, at + 1) == "which":
        at += 1
    if _text(items, at) == "which" and _text(items, at + 1) in {"is", "equals", "gives"}:
        at += 2
    elif (
        item.kind is Kind.EQUALS
        or item.text in {"equals", "→"}
        or (item.text in {"is", "gives"} and not is_bare)
    ):
        at += 1
    else:
        return None
    for _ in range(4):
        if _text(items, at) not in _HEDGES and _text(items, at) != "=":
            break
        at += 1
    return at if isinstance(_item(items, at), Quantity) else None
