"""How a round ends: the target, who won, what is paid, what is announced."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from agentsim import draws, expressions
from agentsim.draws import Stream
from agentsim.games.guess_average.spec import GuessAverageSpec
from agentsim.models.rule import TARGET_NAMES
from agentsim.rpc.messages import Settle

_CHUNK = 65_536


@dataclass(frozen=True, slots=True)
class Settlement:
    """How one round of one session ended. Columns are in the order of agents' numbers.

    Attributes:
        n: players in the market, whether they gave a valid answer or not.
        agents: `(rows,)` uint32, ascending.
        values: `(rows,)` float64, in the game's range; NaN where the answer was not valid.
        won: `(rows,)` bool.
        payoffs: `(rows,)` float64, in the unit of the prize; 0 for those who did not win.
        target: the number to be close to; None without a valid answer, or where its expression
            has no finite value.
        mean, median: over valid answers; None when there are none.
        winning_guess: the winners' guess that is closest to the target, the smaller of two.
        announced: what the next round's observation tells; names without a value are left out.
    """

    session: int
    round: int
    n: int
    agents: NDArray[np.uint32]
    values: NDArray[np.float64]
    won: NDArray[np.bool_]
    payoffs: NDArray[np.float64]
    target: float | None
    mean: float | None
    median: float | None
    winning_guess: float | None
    announced: dict[str, float]


def settle(
    spec: GuessAverageSpec,
    *,
    agents: NDArray[np.uint32],
    values: NDArray[np.float64],
    ok: NDArray[np.bool_],
    n: int,
    seed: int,
    session: int,
    round: int,
) -> Settlement:
    """End a round.

    The result depends on the set of answers alone, not on their order: the mean is the exact sum
    of the valid answers, rounded once.

    Args:
        spec: the game.
        agents: `(rows,)` agent numbers in any order, each at most once.
        values: `(rows,)` guesses; those that are not ok are not looked at.
        ok: `(rows,)` whether the answer is valid.
        n: players in the market. It is what players were told, and the target's `n`.
        seed: the scenario's seed, for drawing one of several winners.
        session, round: which round this is, from 1.

    Raises:
        ValueError: an agent occurs twice, or a valid guess lies outside the range.
    """
    agents, values, ok = _in_agent_order(agents, values, ok)
    low, high = spec.range
    valid = values[ok]
    if not np.all((valid >= low) & (valid <= high)):
        raise ValueError("a valid guess lies outside the game's range")
    numbers = _statistics(spec, valid, n)
    won = np.zeros(agents.size, dtype=np.bool_)
    if "target" in numbers:
        tie = (seed, session, round)
        won[ok] = _winners(spec, agents[ok], valid, numbers["target"], tie)
        numbers["winning_guess"] = _closest(spec, values[won], numbers["target"])
    payoffs = np.zeros(agents.size)
    if won.any():
        prize = spec.winners.prize
        payoffs[won] = prize if spec.winners.ties == "each" else prize / np.count_nonzero(won)
    return Settlement(
        session,
        round,
        n,
        agents,
        np.where(ok, values, np.nan),
        won,
        payoffs,
        numbers.get("target"),
        numbers.get("mean"),
        numbers.get("median"),
        numbers.get("winning_guess"),
        {name: numbers[name] for name in spec.announce if name in numbers},
    )


def to_settle(settlement: Settlement, *, statuses: Mapping[str, int], wall_s: float) -> Settle:
    """The journal's record of a round.

    Args:
        settlement: how the round ended.
        statuses: how many final actions have each status.
        wall_s: from asking to settling, seconds.
    """
    won = settlement.won
    return Settle(
        session=settlement.session,
        round=settlement.round,
        n=settlement.n,
        statuses={name: count for name, count in statuses.items() if count},
        target=settlement.target,
        mean=settlement.mean,
        median=settlement.median,
        winning_guess=settlement.winning_guess,
        winners=settlement.agents[won].tolist(),
        payoffs=settlement.payoffs[won].tolist(),
        announced=settlement.announced,
        wall_s=wall_s,
    )


def _in_agent_order(
    agents: NDArray[np.uint32], values: NDArray[np.float64], ok: NDArray[np.bool_]
) -> tuple[NDArray[np.uint32], NDArray[np.float64], NDArray[np.bool_]]:
    if np.all(agents[1:] > agents[:-1]):
        return agents, values, ok
    order = np.argsort(agents, kind="stable")
    agents = agents[order]
    if np.any(agents[1:] == agents[:-1]):
        raise ValueError("an agent answers twice in one round")
    return agents, values[order], ok[order]


def _statistics(spec: GuessAverageSpec, valid: NDArray[np.float64], n: int) -> dict[str, float]:
    """Mean, median and target, as far as they exist."""
    if valid.size == 0:
        return {}
    numbers = {"mean": _sum(valid) / valid.size, "median": float(np.median(valid))}
    target = expressions.parse(spec.target, TARGET_NAMES).number({**numbers, "n": float(n)})
    return numbers if target is None else {**numbers, "target": target}


def _sum(column: NDArray[np.float64]) -> float:
    """The exact sum, rounded once: the same in any order and on any processor."""
    parts = (column[i : i + _CHUNK].tolist() for i in range(0, column.size, _CHUNK))
    return math.fsum(chain.from_iterable(parts))


def _winners(
    spec: GuessAverageSpec,
    agents: NDArray[np.uint32],
    guesses: NDArray[np.float64],
    target: float,
    tie: tuple[int, int, int],
) -> NDArray[np.bool_]:
    """Who of the valid players won."""
    distance = np.abs(guesses - target)
    limit = distance.min() + spec.winners.band + _rounding(spec, target)
    won: NDArray[np.bool_] = distance <= limit
    if spec.winners.ties != "draw":
        return won
    seed, session, round = tie
    candidates = agents[won]
    lots = draws.integers(Stream.TIE, candidates, seed=seed, session=session, round=round)
    drawn: NDArray[np.bool_] = agents == candidates[np.argmin(lots)]
    return drawn


def _closest(spec: GuessAverageSpec, guesses: NDArray[np.float64], target: float) -> float:
    """The guess that is closest to the target, the smaller of two."""
    distance = np.abs(guesses - target)
    return float(guesses[distance <= distance.min() + _rounding(spec, target)].min())


def _rounding(spec: GuessAverageSpec, target: float) -> float:
    """Distances that differ by less are equal: 10 and 30 tie at a target of 2/3 * 30."""
    return 8 * float(np.spacing(max(abs(target), *map(abs, spec.range))))
