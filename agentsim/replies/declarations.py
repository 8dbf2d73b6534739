"""What declares a number to be the answer, and what excludes it. The patterns are in `patterns`."""

from __future__ import annotations

from enum import IntEnum

from agentsim.replies import patterns
from agentsim.replies.context import WIDTH, Context, line_after, line_before
from agentsim.replies.quantities import Item
from agentsim.replies.tokens import Kind, Token


class Strength(IntEnum):
    """How a number is declared."""

    NOT = 0
    CONDITIONAL = 1  # "if everyone picks 50, I choose 33"
    WEAK = 2  # "I could pick 33"
    STRONG = 3  # "my answer is 33"


def strength(items: list[Item], i: int, context: Context) -> Strength:
    """How the number at index `i` is declared."""
    if not _may_be_declared(items, i):
        return Strength.NOT
    before, after = line_before(items, i), line_after(items, i)
    found = _match(before, after)
    if found is Strength.NOT or context.negated[i] or patterns.REJECTED.match(after):
        return Strength.NOT
    if patterns.OTHERS_THINK.search(before) or patterns.ABOUT_OTHERS.match(after):
        return Strength.NOT
    if context.conditional[i] or patterns.ONLY_IF.match(after) or _is_question(items, i):
        return Strength.CONDITIONAL
    return found


def _match(before: str, after: str) -> Strength:
    by_verb = patterns.VERB_BEFORE.search(before) is not None
    is_subject = by_verb and patterns.SUBJECT.match(after)
    if any(pattern.match(after) for pattern in patterns.AFTERWARDS):
        return Strength.STRONG
    if any(pattern.search(before) for pattern in patterns.LABELS):
        return Strength.STRONG
    if not is_subject:
        if any(pattern.search(before) for pattern in patterns.VERBS) and not patterns.LAST.search(
            after
        ):
            return Strength.STRONG
        if any(pattern.search(before) for pattern in patterns.WEAK) and not patterns.PAST.search(
            f"{before} {after} "
        ):
            return Strength.WEAK
    return Strength.NOT


def _may_be_declared(items: list[Item], i: int) -> bool:
    """Whether a word that a pattern needs is nearby; keeps long lists of numbers fast."""
    first, second = (items[k] if k < len(items) else None for k in (i + 1, i + 2))
    if isinstance(first, Token) and first.text in {",", "-", "–", "—"}:
        first = second
    if isinstance(first, Token) and first.text in patterns.CUES_AFTER:
        return True
    return any(
        isinstance(item, Token) and item.text in patterns.CUES for item in items[max(0, i - 9) : i]
    )


def _is_question(items: list[Item], i: int) -> bool:
    for item in items[i + 1 : i + 1 + WIDTH]:
        if isinstance(item, Token) and item.kind in {Kind.END, Kind.LINE}:
            return "?" in item.text
    return False
