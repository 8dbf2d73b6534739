"""What a reading needs to know about the game: its range and the factor in its rule."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

_PART = re.compile(r"(?P<number>\d++(?:\.\d*+)?|\.\d++)|(?P<name>[^\W\d]\w*+)|(?P<mark>[-+*/()])")
_LONGEST_LITERAL = 40  # digits; a longer one is no factor that a player would restate


@dataclass(frozen=True, slots=True)
class Rule:
    """The part of a game that decides how a reply is read.

    Attributes:
        low: smallest number that may be chosen.
        high: largest number that may be chosen.
        factors: the ratios in the rule's text, e.g. {2/3} for `2/3 * mean`.
    """

    low: float
    high: float
    factors: frozenset[Fraction]

    @property
    def is_percent_scale(self) -> bool:
        """Whether 60 % and 60 are the same choice."""
        return self.low == 0 and self.high == 100

    def contains(self, value: float) -> bool:
        """Whether a number may be chosen (bounds included)."""
        return self.low <= value <= self.high


def exact(text: str) -> Fraction | None:
    """A decimal literal as a fraction; None where it is no literal of a size worth comparing."""
    if len(text) > _LONGEST_LITERAL or text in {"", "."} or "e" in text:
        return None
    return Fraction(text)


@lru_cache(maxsize=256)
def factors(target: str) -> frozenset[Fraction]:
    """The ratios that a rule multiplies with.

    Found by a scan over neighbours, not by evaluating: `a/b`, `a * …`, `… * a`, `name / b` and
    `a * name / b` are each a ratio. The rule itself was checked when the scenario was loaded.

    Args:
        target: the rule's text, e.g. `5 + mean / 2`.

    Returns:
        Every ratio in it; empty where there is none.
    """
    parts = [(str(match.lastgroup), match.group()) for match in _PART.finditer(target)]
    # padded on both sides, so that every part has neighbours
    kinds = [*[""] * 5, *(kind for kind, _ in parts), *[""] * 5]
    texts = [*[""] * 5, *(text for _, text in parts), *[""] * 5]
    found: set[Fraction] = set()
    for i in range(5, len(texts) - 5):
        number = exact(texts[i]) if kinds[i] == "number" else None
        if number is None:
            continue
        if texts[i - 1] == "/":
            found |= {_dividend(texts, kinds, i) / number} if number else set()
        elif texts[i + 1] != "/" and "*" in {texts[i - 1], texts[i + 1]}:
            is_divided_later = kinds[i + 2] == "name" and texts[i + 3] == "/"
            found |= set() if is_divided_later else {number}
    return frozenset(found)


def _dividend(texts: list[str], kinds: list[str], i: int) -> Fraction:
    """What the division by part `i` divides, apart from names and parentheses."""
    if kinds[i - 2] == "number":
        return exact(texts[i - 2]) or Fraction(0)
    if texts[i - 3] == "*" and kinds[i - 4] == "number":
        return exact(texts[i - 4]) or Fraction(0)
    return Fraction(1)
