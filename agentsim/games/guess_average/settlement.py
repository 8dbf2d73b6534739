"""What a settled round is, and its record in the journal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from agentsim.rpc.messages import GroupOutcome, Settle


@dataclass(frozen=True, slots=True)
class GroupSettlement:
    """How a round ended for one group.

    Attributes:
        name: of the group.
        n: its agents.
        mean, median: over its valid answers; None when there are none.
        winners: how many of its agents won.
        announced: what the next round's observation tells them.
    """

    name: str
    n: int
    mean: float | None
    median: float | None
    winners: int
    announced: dict[str, float]


@dataclass(frozen=True, slots=True)
class Settlement:
    """How one round of one market ended. Columns are in the order of agents' numbers.

    Attributes:
        n: players in the market, whether they gave a valid answer or not.
        agents: `(rows,)` uint32, ascending.
        values: `(rows,)` float64, in the game's range; NaN where the answer was not valid.
        won: `(rows,)` bool.
        payoffs: `(rows,)` float64, in the unit of the prize; 0 for those who did not win.
        target: the number to be close to; None without a valid answer, or where its expression
            has no finite value.
        mean, median: over valid answers, between groups over groups; None when there are none.
        winning_guess: the winners' guess that is closest to the target, the smaller of two;
            between groups, the winning group's mean.
        announced: what the next round's observation tells everybody; names without a value are
            left out. Empty where each group is told its own numbers.
        groups: in order; empty when there are none.
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
    groups: tuple[GroupSettlement, ...] = ()


def to_settle(
    settlement: Settlement,
    *,
    statuses: Mapping[str, int],
    wall_s: float,
    group_statuses: Sequence[Mapping[str, int]] = (),
    market: tuple[int, int] = (0, 1),
) -> Settle:
    """The journal's record of a round of one market.

    Args:
        settlement: how the round ended.
        statuses: how many final actions have each status.
        wall_s: from asking to settling, seconds.
        group_statuses: the same for each of the market's groups.
        market: which one of the session, from 0, and how many it has.
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
        market=market[0],
        markets=market[1],
        groups=[
            GroupOutcome(
                name=group.name,
                n=group.n,
                statuses={name: count for name, count in counts.items() if count},
                mean=group.mean,
                median=group.median,
                winners=group.winners,
                announced=group.announced,
            )
            for group, counts in zip(settlement.groups, group_statuses, strict=True)
        ],
    )
