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
    kinds = ["" if kind == "mark" else kind for kind, _ in parts]
    texts = [text for _, text in parts]
    found: set[Fraction] = set()
    for i, kind in enumerate(kinds):
        number = exact(texts[i]) if kind == "number" else None
        if number is None:
            continue
        before, after = texts[i - 1] if i else "", texts[i + 1] if i + 1 < len(texts) else ""
        if before == "*" or after == "*":
            found.add(number)
        if before == "/" and i >= 2 and number:
            found |= _ratios(texts, kinds, i, number)
    return frozenset(found)


def _ratios(texts: list[str], kinds: list[str], i: int, divisor: Fraction) -> set[Fraction]:
    """The ratios that end in the division by part `i`."""
    if kinds[i - 2] == "number":
        dividend = exact(texts[i - 2])
        return set() if dividend is None else {dividend / divisor}
    found = {1 / divisor}
    if i >= 4 and texts[i - 3] == "*" and kinds[i - 4] == "number":
        dividend = exact(texts[i - 4])
        if dividend is not None:
            found.add(dividend / divisor)
    return found
