"""The rule of a guessing game, as far as models need to know it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agentsim import expressions

TARGET_NAMES = frozenset({"mean", "median", "n"})


@dataclass(frozen=True, slots=True)
class Rule:
    """A guessing game: everybody picks a number in a range, the closest to the target wins.

    Attributes:
        low: smallest guess.
        high: largest guess.
        target: the number to be close to, an expression of mean, median and n.
        announce: what is told after a round: mean, median, target, winning_guess.
        slope: p, where the target is p * mean + b; None where it has another form.
        intercept: b, in the unit of the guesses; None where `slope` is.
    """

    low: float
    high: float
    target: str
    announce: tuple[str, ...]
    slope: float | None
    intercept: float | None

    @classmethod
    def of(cls, low: float, high: float, target: str, announce: Sequence[str] = ()) -> Rule:
        """The rule with its slope and intercept worked out.

        Raises:
            ExpressionError: the target is not an expression of mean, median and n.
        """
        pair = expressions.parse(target, TARGET_NAMES).affine("mean")
        slope, intercept = pair if pair is not None else (None, None)
        return cls(low, high, target, tuple(announce), slope, intercept)

    @property
    def middle(self) -> float:
        """The middle of the range."""
        return self.low + (self.high - self.low) / 2

    def bounded(self, guess: float) -> float:
        """The closest number of the range."""
        return min(max(guess, self.low), self.high)
