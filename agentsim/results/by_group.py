"""What summary.json says of groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agentsim.ids import Round
from agentsim.replies import STATUSES, Status
from agentsim.results.statistics import moments

_OK = STATUSES.index(Status.OK)


def group_rows(
    key: Round,
    statuses: NDArray[np.uint8],
    values: NDArray[np.float64],
    names: Sequence[str],
    codes: NDArray[np.int64],
    told: Mapping[str | None, Mapping[str, Any]],
) -> list[dict[str, Any]]:
    """The groups of one round of one session, in the order of `announcements`.

    Args:
        key: which round.
        statuses: `(n,)` indices in `replies.STATUSES`, of the final actions.
        values: `(n,)` in the game's range.
        names: of groups, in any order.
        codes: `(n,)` the group of each action, as a place in `names`.
        told: the round's rows of `announcements`, by group.
    """
    order = np.argsort(codes, kind="stable")
    ends = np.searchsorted(codes[order], np.arange(len(names) + 1))
    rows = {}
    for code, (start, end) in enumerate(pairwise(ends.tolist())):
        if start < end:
            members = order[start:end]
            name = names[code]
            rows[name] = _group(key, name, statuses[members], values[members], told.get(name, {}))
    places = {name: place for place, name in enumerate(told)}
    return sorted(rows.values(), key=lambda row: places.get(row["group"], len(places)))


def _group(
    key: Round,
    name: str,
    statuses: NDArray[np.uint8],
    values: NDArray[np.float64],
    announced: Mapping[str, Any],
) -> dict[str, Any]:
    """One group in one round of one session.

    session, round, group · n, valid, missing · mean, sd, min, q1, median, q3, max of its valid
    values · target and winning_guess of its market, winners among its agents · statuses (final) ·
    wall_s.
    """
    valid = values[statuses == _OK]
    return {
        "session": key.session,
        "round": key.round,
        "group": name,
        "n": statuses.size,
        "valid": valid.size,
        "missing": statuses.size - valid.size,
        **moments(valid),
        "target": announced.get("target"),
        "winning_guess": announced.get("winning_guess"),
        "winners": announced.get("winners"),
        "statuses": named(np.bincount(statuses, minlength=len(STATUSES))),
        "wall_s": announced.get("wall_s"),
    }


def of_session(announced: Mapping[str | None, dict[str, Any]]) -> dict[str, Any]:
    """Of the whole session. Where each group is a market, there is no target for all."""
    if None in announced or not announced:
        return announced.get(None, {})
    return {
        "winners": sum(row["winners"] for row in announced.values()),
        "wall_s": max(row["wall_s"] for row in announced.values()),
    }


def rule_of_session(
    rule: Mapping[str, Any] | None, announced: Mapping[str | None, object]
) -> Mapping[str, Any] | None:
    """The rule as far as it is about the whole session: without a target for all, its range."""
    if rule is None or None in announced or not announced:
        return rule
    return {**rule, "slope": None, "intercept": None}


def named(counts: NDArray[np.int64]) -> dict[str, int]:
    """Counts by status, those with none left out."""
    return {str(s): int(count) for s, count in zip(STATUSES, counts, strict=True) if count}
