"""A number as a reader sees it, with what speaks against it.

A quantity has a value, or a reason why it has none (`doubt`); and it may have a `role`, when it
plainly is something else than an answer: a label (`round 3`), a count (`67 players`), an age, an
ordinal, part of a name, the game's range or the rule restated.
"""

from __future__ import annotations

from dataclasses import dataclass

from agentsim.replies.numbers import to_float
from agentsim.replies.rule import Rule, exact
from agentsim.replies.tokens import Token

RANGE = "range"
RULE = "rule"
PAIR = "several numbers in brackets"
NAME = "the number is part of a name"
FACTOR = "a fraction equal to the rule's own factor restates the rule"


@dataclass(frozen=True, slots=True)
class Quantity:
    """One number in a reply.

    Attributes:
        value: its value; None where `doubt` says why it has none.
        doubt: why there is no one value; empty where there is.
        role: what it is instead of a candidate; empty for a candidate.
        start: where it starts in the cleaned text.
        end: where it ends there.
        in_words: whether it is written in words.
        literal: the plain digits, where there are any.
    """

    value: float | None
    doubt: str
    role: str
    start: int
    end: int
    in_words: bool = False
    literal: str = ""


Item = Token | Quantity


def fraction_doubt(upper: str, lower: str, rule: Rule) -> str:
    """Why `upper/lower` is not simply `upper`; empty where it is `upper` on the game's scale."""
    if not upper or not lower:
        return "a fraction is not worked out"
    above, below = exact(upper), exact(lower)
    if above is None or below is None or not below:
        return "a fraction is not worked out"
    if above / below in rule.factors:
        return FACTOR
    if rule.low == 0 and to_float(lower) == rule.high:
        return ""
    return "a fraction is not worked out"


def divide(upper: float, lower: float) -> tuple[float | None, str]:
    """The quotient, or None and why there is none."""
    if lower == 0 or upper - upper != 0 or lower - lower != 0:
        return None, "a fraction without a value"
    return upper / lower, ""
