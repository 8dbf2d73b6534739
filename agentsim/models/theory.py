"""Players of behavioural theory for guessing games: cognitive hierarchy and level k.

Level 0 does not reason. It guesses uniformly over the range in round 1, and later uniformly around
a centre: the mean that was announced, or the mean that follows from the announced target (Nagel
1995). A player of level k >= 1 gives the best reply to what it believes of the others:

- *cognitive hierarchy* (Camerer, Ho, Chong 2004): the others are of the levels below k, in the
  proportions of a Poisson distribution, which is also how levels are distributed in truth;
- *level k* (Nagel 1995): the others are all of level k - 1.

**Best reply.** A player who expects the others' guesses to have mean m, in a market of n, counts
its own guess g: the target is p((n-1)m + g)/n + b, and it is hit by g = (p(n-1)m + nb)/(n-p),
bounded to the range. This needs a target p * mean + b, and p < n.

**Two players.** With n = 2 the guess that is closer to the target is the one on the target's side
of the two guesses' mean, whatever the distance. For p < 1 this is the one closer to the fixed point
b/(1-p), bounded to the range: it is dominant (0 for 2/3 * mean), and every level from 1 on plays
it. For p >= 1 an end of the range is dominant if the target lies on one side of every mean; else
there is no derivation.

**One player.** Its guess is the mean, and every guess wins; the formula gives the fixed point.

Everything here is a plain function of numbers; players are drawn in `models.scripted`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from agentsim.errors import UserError
from agentsim.models.rule import Rule

MAX_LEVEL = 100


class NoBestReplyError(UserError):
    """The theory has no best reply for this game; the message says why."""


@dataclass(frozen=True, slots=True)
class Levels:
    """A distribution over levels, and what each level believes.

    Attributes:
        shares: `(n_levels,)` float64, share of each level from 0; they sum to 1.
        mixing: True: level k believes in all levels below, by their shares (cognitive hierarchy);
            False: in level k - 1 alone (level k).
        spread: half-width of level 0's guesses after round 1, in the game's unit.
    """

    shares: NDArray[np.float64]
    mixing: bool
    spread: float

    def expected_belief(self, means: list[float]) -> float:
        """The mean guess that the next level expects, given the means of the levels below."""
        if not self.mixing:
            return means[-1]
        below = self.shares[: len(means)]
        return float(below @ np.asarray(means) / below.sum())


def poisson_levels(tau: float, spread: float) -> Levels:
    """Levels of the cognitive hierarchy.

    The distribution is cut where its tail is below the resolution of a draw, at level 100 at most.
    """
    log_shares = [k * math.log(tau) - tau - math.lgamma(k + 1) for k in range(MAX_LEVEL + 1)]
    shares = np.exp(np.asarray(log_shares))
    beyond = 1 - np.cumsum(shares)
    last = int(np.argmax(beyond < 2.0**-50)) if np.any(beyond < 2.0**-50) else MAX_LEVEL
    shares = shares[: last + 1]
    return Levels(shares / shares.sum(), mixing=True, spread=spread)


def given_levels(shares: Mapping[str, float], spread: float) -> Levels:
    """Levels with the given shares, keyed by the level's number.

    Raises:
        UserError: a key is not a whole number from 0 to 100, or the shares do not sum to 1.
    """
    for key in shares:
        if not (key.isascii() and key.isdecimal() and int(key) <= MAX_LEVEL):
            raise UserError(f"level `{key}` is not a whole number from 0 to {MAX_LEVEL}")
    if not math.isclose(math.fsum(shares.values()), 1, abs_tol=1e-6):
        raise UserError(f"the shares of the levels sum to {math.fsum(shares.values()):g}, not 1")
    column = np.zeros(max(map(int, shares)) + 1)
    for key, share in shares.items():
        column[int(key)] += share
    return Levels(column / column.sum(), mixing=False, spread=spread)


def check(rule: Rule, n: int) -> None:
    """Make sure that there is a best reply in this game.

    Raises:
        NoBestReplyError: there is none.
    """
    best_reply(rule, rule.middle, n)


def best_reply(rule: Rule, mean: float, n: int) -> float:
    """The guess that hits the target, own guess counted.

    Args:
        rule: the game.
        mean: expected mean of the others' guesses.
        n: players in the market, the one who replies counted.

    Raises:
        NoBestReplyError: the rule is not p * mean + b, or p is not below n.
    """
    if rule.slope is None or rule.intercept is None:
        raise NoBestReplyError(
            f"best replies need a target of the form p * mean + b, not {rule.target}"
        )
    if n == 2:
        guess = dominant(rule)
        if guess is None:
            raise NoBestReplyError(
                "with 2 players this target has no best guess: it depends on luck"
            )
        return guess
    if rule.slope >= n:
        raise NoBestReplyError(f"best replies need a factor of the mean below the {n} players")
    reply = (rule.slope * (n - 1) * mean + n * rule.intercept) / (n - rule.slope)
    return rule.bounded(reply)


def dominant(rule: Rule) -> float | None:
    """The guess that is never worse than another in a market of two, None if there is none."""
    if rule.slope is None or rule.intercept is None:
        return None
    if rule.slope < 1:
        return rule.bounded(rule.intercept / (1 - rule.slope))
    # How far the target lies above the mean, for the smallest and the largest mean. It grows with
    # the mean, so the two ends tell.
    least = (rule.slope - 1) * rule.low + rule.intercept
    most = (rule.slope - 1) * rule.high + rule.intercept
    if least >= 0 and most > 0:
        return rule.high
    if most <= 0 and least < 0:
        return rule.low
    return None


def level_means(levels: Levels, rule: Rule, n: int, centre: float) -> NDArray[np.float64]:
    """Mean guess of each level.

    Args:
        levels: who plays.
        rule: the game.
        n: players in the market.
        centre: mean guess of level 0.

    Returns:
        `(n_levels,)` float64, in the game's range.

    Raises:
        NoBestReplyError: there is no best reply in this game.
    """
    means = [centre]
    while len(means) < levels.shares.size:
        means.append(best_reply(rule, levels.expected_belief(means), n))
    return np.asarray(means)


def centre(rule: Rule, announced: Mapping[str, float]) -> float | None:
    """The mean guess of level 0 after an announcement.

    Returns:
        The announced mean, else the mean that gives the announced target; None when the
        announcement tells neither (as in round 1): level 0 then guesses over the whole range.
    """
    if "mean" in announced:
        return rule.bounded(announced["mean"])
    if "target" in announced and rule.slope and rule.intercept is not None:
        return rule.bounded((announced["target"] - rule.intercept) / rule.slope)
    return None


def half_width(levels: Levels, rule: Rule, around: float | None) -> float:
    """Half-width of level 0's uniform guesses: they keep their mean and stay in the range."""
    if around is None:
        return (rule.high - rule.low) / 2
    return min(levels.spread, around - rule.low, rule.high - around)


def expected_means(levels: Levels, rule: Rule, n: int, rounds: int) -> list[float]:
    """Mean guess of each round, if every announcement is the one that theory expects.

    Args:
        levels: who plays.
        rule: the game; its `announce` says what is told.
        n: players in the market.
        rounds: how many rounds.

    Raises:
        NoBestReplyError: there is no best reply in this game.
    """
    result: list[float] = []
    announced: dict[str, float] = {}
    for _ in range(rounds):
        around = centre(rule, announced)
        start = rule.middle if around is None else around
        mean = float(levels.shares @ level_means(levels, rule, n, start))
        result.append(mean)
        assert rule.slope is not None
        assert rule.intercept is not None
        told = {"mean": mean, "target": rule.slope * mean + rule.intercept}
        announced = {name: told[name] for name in rule.announce if name in told}
    return result
