"""Numbers and targets in words that a person would use."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction

from agentsim import expressions
from agentsim.models.rule import TARGET_NAMES

_COUNTS = ("", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_PARTS = {2: ("half", "halves"), 3: ("third", "thirds"), 4: ("quarter", "quarters")}
_PARTS |= {5: ("fifth", "fifths"), 10: ("tenth", "tenths")}
MEANINGS = {
    "mean": "the average of all numbers",
    "median": "the median of all numbers (the middle one when they are sorted)",
    "n": "the number of players",
}


def plain(number: float, decimals: int = 2) -> str:
    """A number without needless digits: 33.333… is `33.33`, 100.0 is `100`."""
    text = f"{number:.{decimals}f}"
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def decimals_for(low: float, high: float) -> int:
    """Decimals that tell guesses of this range apart: 2, and more for ranges narrower than 10."""
    width = high - low
    return 2 if width >= 10 else 3 - math.floor(math.log10(width))


GROUP_MEANINGS = {
    "mean": "the average of the groups' numbers",
    "median": "the median of the groups' numbers (the middle one when they are sorted)",
    "n": "the number of groups",
}
"""In a game between groups."""


def target_in_words(target: str, meanings: Mapping[str, str] = MEANINGS) -> str:
    """The rule as a noun phrase, e.g. `two thirds of the average of all numbers`.

    Args:
        target: an expression of mean, median and n.
        meanings: what these are.

    Raises:
        ExpressionError: the target is not an expression of mean, median and n.
    """
    expression = expressions.parse(target, TARGET_NAMES)
    for name in ("mean", "median"):
        pair = expression.affine(name)
        if pair is not None:
            return _affine(*pair, meanings[name])
    used = [f"{name} is {meanings[name]}" for name in meanings if name in expression.names]
    listed = used[0] if len(used) == 1 else ", ".join(used[:-1]) + f" and {used[-1]}"
    return f"{target.strip()}, where {listed}"


def _affine(slope: float, intercept: float, noun: str) -> str:
    if slope == 0:
        return f"the number {_number(intercept)}"
    part = _share(abs(slope), noun)
    if slope < 0:
        return f"{_number(intercept)} minus {part}"
    if intercept == 0:
        return part
    if intercept > 0:
        return f"{_number(intercept)} plus {part}"
    return f"{part}, minus {_number(-intercept)}"


def _share(slope: float, noun: str) -> str:
    """A positive multiple of a thing."""
    if slope == 1:
        return noun
    fraction = Fraction(slope).limit_denominator(1000)
    if float(fraction) != slope or fraction.denominator == 1:
        return f"{_number(slope)} times {noun}"
    count, parts = fraction.numerator, fraction.denominator
    if parts not in _PARTS or count >= len(_COUNTS):
        return f"{count}/{parts} of {noun}"
    if (count, parts) == (1, 2):
        return f"half of {noun}"
    return f"{_COUNTS[count]} {_PARTS[parts][count > 1]} of {noun}"


def _number(number: float) -> str:
    """A number of the rule, with all its digits as far as they are short."""
    return f"{number:.10g}"
