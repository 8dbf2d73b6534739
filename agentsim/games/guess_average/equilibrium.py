"""Equilibria: guesses from which nobody gains by moving alone, when everybody makes them.

In a large market one guess does not move the target, so an equilibrium is a number that is its own
target, or an end of the range with the target beyond it. With two players there is a dominant
guess instead (see `models.theory`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from agentsim import expressions
from agentsim.games.guess_average.parts import CountedGroups
from agentsim.games.guess_average.spec import GuessAverageSpec
from agentsim.games.guess_average.words import plain
from agentsim.models import theory
from agentsim.models.rule import TARGET_NAMES, Rule

_GRID = 2_001
_LARGE = 3


@dataclass(frozen=True, slots=True)
class Equilibrium:
    """What theory says of a game.

    Attributes:
        guesses: equilibrium guesses, ascending, in the game's range; empty when none was found, or
            when every number is one.
        words: one sentence for a report.
    """

    guesses: tuple[float, ...]
    words: str


def equilibrium(spec: GuessAverageSpec, agents: int) -> Equilibrium:
    """Equilibria in which everybody makes the same guess.

    Args:
        spec: the game.
        agents: of a session.
    """
    sizes = _sizes(spec, agents)
    found = {size: _of_market(spec, size) for size in sizes}
    first = found[sizes[0]]
    if all(each == first for each in found.values()):
        return first
    guesses = sorted({guess for each in found.values() for guess in each.guesses})
    words = "; ".join(f"in a group of {size}: {found[size].words}" for size in sizes)
    return Equilibrium(tuple(guesses), words)


def _sizes(spec: GuessAverageSpec, agents: int) -> list[int]:
    """How many players markets have, those that are known; between groups, these are the players.

    Groups by an attribute are taken for large ones.
    """
    if spec.scope in (None, "pooled"):
        return [agents]
    if not isinstance(spec.groups, CountedGroups):
        return [max(agents, _LARGE)]
    count = min(spec.groups.count, agents)
    if spec.scope == "between":
        return [count]
    return sorted({agents // count, -(-agents // count)})


def _of_market(spec: GuessAverageSpec, n: int) -> Equilibrium:
    """Equilibria of one market of n players."""
    # Between groups, the rule holds for the groups' numbers.
    rule = Rule.of(*spec.range, spec.target)
    if n == 1:
        return Equilibrium((), "with one player every guess wins")
    if n == 2 and (guess := theory.dominant(rule)) is not None:
        words = f"with two players {plain(guess)} is dominant: it never loses"
        return Equilibrium((guess,), words)
    target = expressions.parse(spec.target, TARGET_NAMES)
    pair = target.affine("mean", "median")
    low, high = spec.range
    if pair is not None:
        return _affine(*pair, low, high)
    guesses = _numeric(target, n, low, high)
    if not guesses:
        return Equilibrium((), "no equilibrium was found")
    return Equilibrium(guesses, f"{_listed(guesses)}, found by calculation")


def _affine(slope: float, intercept: float, low: float, high: float) -> Equilibrium:
    if slope == 1 and intercept == 0:
        return Equilibrium((), "every number is an equilibrium if all guess it")
    if slope == 1:
        end = high if intercept > 0 else low
        return Equilibrium((end,), f"{plain(end)}, an end of the range")
    fixed = intercept / (1 - slope)
    bounded = min(max(fixed, low), high)
    if slope < 1:
        words = plain(bounded) if fixed == bounded else f"{plain(bounded)}, an end of the range"
        if slope <= -1 and low < fixed < high:
            words += "; repeated best replies do not lead to it"
        return Equilibrium((bounded,), words)
    if fixed < low:
        return Equilibrium((high,), f"{plain(high)}, an end of the range")
    if fixed > high:
        return Equilibrium((low,), f"{plain(low)}, an end of the range")
    guesses = tuple(sorted({low, fixed, high}))
    words = _listed(guesses)
    return Equilibrium(guesses, f"{words}; best replies move away from {plain(fixed)}")


def _numeric(target: expressions.Expression, n: int, low: float, high: float) -> tuple[float, ...]:
    """Where the target crosses the common guess, by bisection in the cells of a grid."""

    def excess(guess: float) -> float:
        value = target.number({"mean": guess, "median": guess, "n": float(n)})
        return math.nan if value is None else value - guess

    grid = np.linspace(low, high, _GRID).tolist()
    heights = [excess(guess) for guess in grid]
    found = {guess for guess, height in zip(grid, heights, strict=True) if height == 0}
    for left, right, a, b in zip(grid, grid[1:], heights, heights[1:], strict=False):
        if a * b < 0 and (guess := _bisect(excess, left, right)) is not None:
            found.add(guess)
    if heights[0] < 0:
        found.add(low)
    if heights[-1] > 0:
        found.add(high)
    return tuple(sorted(found))


def _bisect(excess: Callable[[float], float], left: float, right: float) -> float | None:
    """Where a function changes its sign; None where it jumps over 0."""
    start = excess(left)
    tolerance = max(abs(start), abs(excess(right))) * 1e-6
    for _ in range(80):
        middle = (left + right) / 2
        height = excess(middle)
        if math.isnan(height):
            return None
        if (height < 0) == (start < 0):
            left = middle
        else:
            right = middle
    return middle if abs(excess(middle)) <= tolerance else None


def _listed(guesses: tuple[float, ...]) -> str:
    words = [plain(guess) for guess in guesses]
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
