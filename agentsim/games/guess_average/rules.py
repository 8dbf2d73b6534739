"""How a round ends: the target, who won, what is paid, what is announced.

Between groups the groups are the players: a group's number is the exact mean of its valid answers,
and mean, median and `n` of the target are over these numbers. A group without a valid answer has
none and cannot win, but is one of the `n`. What a group wins is shared equally by its agents with a
valid answer; several winning groups share the prize (`ties: split`), have it each, or one of them
is drawn.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from agentsim import draws, expressions
from agentsim.draws import Stream
from agentsim.games.guess_average.settlement import GroupSettlement, Settlement
from agentsim.games.guess_average.spec import GuessAverageSpec
from agentsim.models.rule import TARGET_NAMES

_CHUNK = 65_536


@dataclass(frozen=True, slots=True, eq=False)
class Sides:
    """The groups of a market.

    Attributes:
        names: in order.
        codes: `(rows,)` the group of each agent, as a place in `names`, in the order of agents.
    """

    names: Sequence[str]
    codes: NDArray[np.uint32]


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
    sides: Sides | None = None,
) -> Settlement:
    """End a round of one market.

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
        sides: the market's groups; None when there are none.

    Raises:
        ValueError: an agent occurs twice, or a valid guess lies outside the range.
    """
    agents, values, ok = _in_agent_order(agents, values, ok)
    low, high = spec.range
    valid = values[ok]
    if not np.all((valid >= low) & (valid <= high)):
        raise ValueError("a valid guess lies outside the game's range")
    tie = (seed, session, round)
    if spec.scope == "between" and sides is not None:
        numbers, shares = _between(spec, valid, Sides(sides.names, sides.codes[ok]), tie)
    else:
        numbers, shares = _contest(spec, agents[ok], valid, n, tie)
    won = np.zeros(agents.size, dtype=np.bool_)
    won[ok] = shares >= 0
    payoffs = np.zeros(agents.size)
    payoffs[won] = shares[shares >= 0]
    groups = () if sides is None else _groups(spec, sides, valid, ok, won, numbers)
    told: dict[str, float] = {name: numbers[name] for name in spec.told if name in numbers}
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
        {} if spec.tells_groups and groups else told,
        groups,
    )


def _contest(
    spec: GuessAverageSpec,
    players: NDArray[np.uint32],
    guesses: NDArray[np.float64],
    n: int,
    tie: tuple[int, int, int],
) -> tuple[dict[str, float], NDArray[np.float64]]:
    """Who of the players, or groups, is closest to the target.

    Args:
        spec: the game.
        players: `(valid,)` numbers of those with a valid guess.
        guesses: `(valid,)` theirs.
        n: players in the market.
        tie: seed, session and round.

    Returns:
        The numbers of the round as far as they exist, and `(valid,)` what each wins, -1 for those
        who do not.
    """
    numbers = _statistics(spec, guesses, n)
    shares = np.full(guesses.size, -1.0)
    if "target" in numbers:
        won = _winners(spec, players, guesses, numbers["target"], tie)
        numbers["winning_guess"] = _closest(spec, guesses[won], numbers["target"])
        prize = spec.winners.prize
        shares[won] = prize if spec.winners.ties == "each" else prize / np.count_nonzero(won)
    return numbers, shares


def _between(
    spec: GuessAverageSpec,
    guesses: NDArray[np.float64],
    sides: Sides,
    tie: tuple[int, int, int],
) -> tuple[dict[str, float], NDArray[np.float64]]:
    """Which group is closest to the target; as `_contest`, for the agents with a valid guess."""
    count = len(sides.names)
    members = _split(guesses, sides.codes, count)
    groups = np.flatnonzero([group.size for group in members]).astype(np.uint32)
    means = np.array([_sum(members[group]) / members[group].size for group in groups.tolist()])
    numbers, won = _contest(spec, groups, means, count, tie)
    shares = np.full(count, -1.0)
    shares[groups] = won
    sizes = np.bincount(sides.codes, minlength=count)
    each = np.where(shares < 0, -1.0, shares / np.maximum(sizes, 1))
    return numbers, each[sides.codes]


def _groups(
    spec: GuessAverageSpec,
    sides: Sides,
    valid: NDArray[np.float64],
    ok: NDArray[np.bool_],
    won: NDArray[np.bool_],
    numbers: Mapping[str, float],
) -> tuple[GroupSettlement, ...]:
    """How the round ended for each group; `numbers` are those of the market."""
    count = len(sides.names)
    n = np.bincount(sides.codes, minlength=count).tolist()
    winners = np.bincount(sides.codes[won], minlength=count).tolist()
    groups = []
    for code, guesses in enumerate(_split(valid, sides.codes[ok], count)):
        own = _averages(guesses)
        told: Mapping[str, float] = numbers
        if spec.tells_groups:
            told = {name: numbers[name] for name in numbers if name not in ("mean", "median")} | own
        groups.append(
            GroupSettlement(
                sides.names[code],
                n[code],
                own.get("mean"),
                own.get("median"),
                winners[code],
                {name: told[name] for name in spec.told if name in told},
            )
        )
    return tuple(groups)


def _split(
    values: NDArray[np.float64], codes: NDArray[np.uint32], count: int
) -> list[NDArray[np.float64]]:
    """The values of each group."""
    order = np.argsort(codes, kind="stable")
    bounds = np.searchsorted(codes[order], np.arange(1, count))
    return np.split(values[order], bounds)


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
    numbers = _averages(valid)
    if not numbers:
        return {}
    target = expressions.parse(spec.target, TARGET_NAMES).number({**numbers, "n": float(n)})
    return numbers if target is None else {**numbers, "target": target}


def _averages(valid: NDArray[np.float64]) -> dict[str, float]:
    if valid.size == 0:
        return {}
    return {"mean": _sum(valid) / valid.size, "median": float(np.median(valid))}


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
