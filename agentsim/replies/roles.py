"""What a number is when it is no candidate: a label, a count, an age, a bound of the range, …"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from agentsim.replies import vocabulary as words
from agentsim.replies.numbers import to_float
from agentsim.replies.quantities import FACTOR, NAME, RANGE, RULE, Item, Quantity
from agentsim.replies.rule import Rule
from agentsim.replies.tokens import Kind, Token


def role_of(quantity: Quantity, before: list[Item], after: Sequence[Token]) -> str:
    """The role of a quantity; empty for a candidate.

    Args:
        quantity: the number.
        before: everything before it.
        after: at most the next two tokens.
    """
    last = _text(before, 1)
    following, second = ([token.text for token in after] + ["", ""])[:2]
    is_tight = bool(after) and after[0].start == quantity.end
    if is_tight and following in words.ORDINAL_ENDINGS:
        return "ordinal"
    is_hyphened = len(after) > 1 and following == "-" and after[0].end == after[1].start
    if is_tight and is_hyphened and second[:1].isalpha():
        return "age" if second.startswith("year") else "name"
    if last in words.LABELLED and quantity.value is not None:
        return "label"
    if last in words.AGES or following in {"yo", "y"} or "year" in following:
        return "age"
    is_adjective = following in words.COUNT_ADJECTIVES
    if following in words.COUNTED or (is_adjective and second in words.COUNTED):
        return "count"
    if quantity.doubt == FACTOR:
        return RULE
    if quantity.doubt == NAME:
        return "name"
    if last == "of" and _is_label(before):
        return "label"
    return ""


def _text(items: list[Item], back: int) -> str:
    item = items[-back] if len(items) >= back else None
    return item.text if isinstance(item, Token) else ""


def _is_label(before: list[Item]) -> bool:
    """`day 1 of 12`."""
    item = before[-2] if len(before) >= 2 else None
    return isinstance(item, Quantity) and item.role == "label"


def mark_range(items: list[Item], text: str, rule: Rule) -> None:
    """Gives the last two quantities their role where they restate the game's range.

    `between 0 and 100`, `[0, 100]` and `0-100` are no pairs of candidates.
    """
    if len(items) < 3:
        return
    lower, link, upper = items[-3:]
    if not isinstance(upper, Quantity) or not isinstance(lower, Quantity):
        return
    if not isinstance(link, Token):
        return
    if _bare(lower) != rule.low or _bare(upper) != rule.high:
        return
    is_bracketed = text[lower.start - 1 : lower.start] in {"[", "("}
    is_named = _text(items, 4) in {"between", "from", "range", "of"}
    if link.text in {"to", "-", "–"} or is_bracketed or (link.text == "and" and is_named):
        items[-3] = replace(lower, role=RANGE)
        items[-1] = replace(upper, role=RANGE)


def _bare(quantity: Quantity) -> float | None:
    """The value of plain digits, also where `between` before them makes them doubtful."""
    if quantity.value is not None or not quantity.literal:
        return quantity.value
    return to_float(quantity.literal)


def without_numbering(items: list[Item]) -> list[Item]:
    """Takes the numbers of a list that counts 1., 2., … at line starts out of the candidates."""
    places = [i for i in range(len(items) - 2) if _may_number(items, i)]
    values = [item.value for item in (items[i] for i in places) if isinstance(item, Quantity)]
    if len(values) >= 2 and values == [1.0 + i for i in range(len(values))]:
        for i in places:
            item = items[i]
            assert isinstance(item, Quantity)
            items[i] = replace(item, role="label")
    return items


def _may_number(items: list[Item], i: int) -> bool:
    """Whether item `i` opens a line, has a point or parenthesis, and text after it."""
    item = items[i]
    if not isinstance(item, Quantity) or item.value is None or item.in_words:
        return False
    previous, mark, follower = (items[i - 1] if i else None), items[i + 1], items[i + 2]
    starts_line = previous is None or _is_line(previous)
    is_marked = isinstance(mark, Token) and mark.text in {".", ")"} and mark.start == item.end
    return starts_line and is_marked and not _is_line(follower)


def _is_line(item: Item) -> bool:
    return isinstance(item, Token) and item.kind is Kind.LINE
