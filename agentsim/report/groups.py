"""Means by round and group, with intervals that come from sessions alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agentsim.results.statistics import over_sessions

Data = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class GroupMean:
    """One group in one round.

    Attributes:
        group: its name.
        round: from 1.
        n: agents, over all sessions.
        valid: valid guesses, over all sessions.
        mean: of the sessions' means; None without any.
        target: of its market, averaged over sessions; None without any.
        low, high: ends of Student's 95 % interval; None for fewer than two sessions.
    """

    group: str
    round: int
    n: int
    valid: int
    mean: float | None
    target: float | None
    low: float | None
    high: float | None


def group_names(summary: Data) -> list[str]:
    """The names of all groups, in their order; none without groups."""
    return list(dict.fromkeys(row["group"] for row in summary.get("groups") or []))


def group_means(summary: Data, names: Sequence[str]) -> list[GroupMean]:
    """The means of the named groups, by round, then in the order of the names."""
    found: dict[tuple[int, str], list[Data]] = {}
    for row in summary.get("groups") or []:
        found.setdefault((row["round"], row["group"]), []).append(row)
    rounds = sorted({round for round, _ in found})
    return [
        _mean(found[round, name], name, round)
        for round in rounds
        for name in names
        if (round, name) in found
    ]


def _mean(rows: Sequence[Data], name: str, round: int) -> GroupMean:
    over = over_sessions([row["mean"] for row in rows if row["mean"] is not None])
    targets = over_sessions([row["target"] for row in rows if row["target"] is not None])
    return GroupMean(
        name,
        round,
        sum(row["n"] for row in rows),
        sum(row["valid"] for row in rows),
        over["mean_of_means"],
        targets["mean_of_means"],
        over["low"],
        over["high"],
    )
