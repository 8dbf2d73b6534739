"""The table by round: of one session as it was, of several by what they have in common."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agentsim.report.words import NOTHING, Number, count, width_of

Data = Mapping[str, Any]
Columns = dict[str, list[str]]

_LEAST = ("won by", "median", "sessions", "sd", "people", "target")


def by_round(rounds: Sequence[Data]) -> dict[int, list[Data]]:
    """The summary's rounds of all sessions, grouped by round, in order."""
    groups: dict[int, list[Data]] = {}
    for row in rounds:
        groups.setdefault(row["round"], []).append(row)
    return dict(sorted(groups.items()))


def is_one_session(summary: Data) -> bool:
    """Whether all settled rounds are of one session."""
    return len({row["session"] for row in summary["rounds"]}) == 1


def fitting_columns(summary: Data, number: Number, width: int) -> Columns:
    """The columns that fit: with fewer decimals, then without those that matter least."""
    for decimals in range(number.decimals, -1, -1):
        cells = columns(summary, Number(decimals))
        if width_of(cells) <= width:
            return cells
    for title in _LEAST:
        cells.pop(title, None)
        if width_of(cells) <= width:
            break
    return cells


def columns(summary: Data, number: Number) -> Columns:
    """Title → cells, one a round. `could be` is there when actions are missing, `people` when the
    run is compared with people."""
    one = is_one_session(summary)
    cells = _one_session(summary, number) if one else _several_sessions(summary, number)
    if not any(row["missing"] for row in summary["rounds"]):
        del cells["could be"]
    if summary.get("groups") and all(row["target"] is None for row in summary["rounds"]):
        # Each group is a market of its own: there is nothing of the kind for all.
        for title in ("target", "won by"):
            cells.pop(title, None)
    if means := (summary["people"] or {}).get("means"):
        published = dict(enumerate(means, 1))
        cells["people"] = [number(published.get(round)) for round in by_round(summary["rounds"])]
    return cells


def notes(summary: Data, manifest: Data) -> Iterator[str]:
    """What the columns mean, where it is not plain."""
    if summary["actions"]["missing"]:
        yield "could be: the mean if those missing had answered anything in the range"
    if is_one_session(summary):
        yield "one session: no interval between sessions"
    else:
        yield "mean: of the sessions' means, the independent units; sd: between these means"
        yield "interval: 95 % for the mean, Student's t"
    if people := summary["people"]:
        yield f"people: {people['source']}, {people['note']}"
    if words := (manifest.get("equilibrium") or {}).get("words"):
        yield f"equilibrium: {words}"


def first_and_final(summary: Data, number: Number) -> Columns:
    """First attempts beside final actions, by round, over all sessions."""
    groups = by_round(summary["rounds"])
    cells: Columns = {"round": [str(round) for round in groups]}
    for title, key in (("first", "first_attempt"), ("final", "final")):
        parts = [[row[key] for row in group] for group in groups.values()]
        cells[f"{title} valid"] = [count(sum(part["n"] for part in group)) for group in parts]
        cells[f"{title} mean"] = [number(_pooled_mean(group)) for group in parts]
    return cells


def mean_over(group: Sequence[Data], key: str) -> float | None:
    """The mean of one field over the rows that have it."""
    values = [row[key] for row in group if row[key] is not None]
    return math.fsum(values) / len(values) if values else None


def _one_session(summary: Data, number: Number) -> Columns:
    rows = summary["rounds"]
    return {
        "round": [str(row["round"]) for row in rows],
        "valid": [count(row["valid"]) for row in rows],
        "mean": [number(row["mean"]) for row in rows],
        "could be": [_could_be([row], number) for row in rows],
        "sd": [number(row["sd"]) for row in rows],
        "median": [number(row["median"]) for row in rows],
        "target": [number(row["target"]) for row in rows],
        "won by": [_won_by(row, number) for row in rows],
    }


def _several_sessions(summary: Data, number: Number) -> Columns:
    rows = summary["over_sessions"]
    groups = list(by_round(summary["rounds"]).values())
    return {
        "round": [str(row["round"]) for row in rows],
        "sessions": [count(row["sessions"]) for row in rows],
        "valid": [count(sum(row["valid"] for row in group)) for group in groups],
        "mean": [number(row["mean_of_means"]) for row in rows],
        "interval": [number.span(row["low"], row["high"]) for row in rows],
        "could be": [_could_be(group, number) for group in groups],
        "sd": [number(row["sd_between_sessions"]) for row in rows],
        "target": [number(mean_over(group, "target")) for group in groups],
    }


def _won_by(row: Data, number: Number) -> str:
    """The winning guess, and how many made it when it was not one."""
    if not row["winners"] or row["winning_guess"] is None:
        return NOTHING
    times = f" x{row['winners']:,}" if row["winners"] > 1 else ""
    return number(row["winning_guess"]) + times


def _could_be(group: Sequence[Data], number: Number) -> str:
    """Bounds on the mean, averaged over sessions."""
    bounds = [row["bounds"] for row in group]
    if None in bounds or not any(row["missing"] for row in group):
        return NOTHING
    low, high = (
        math.fsum(each[key] for each in bounds) / len(bounds) for key in ("mean_low", "mean_high")
    )
    return number.span(low, high)


def _pooled_mean(parts: Sequence[Data]) -> float | None:
    """The mean over all values, from counts and means of parts."""
    n = sum(part["n"] for part in parts)
    return math.fsum(part["n"] * part["mean"] for part in parts if part["n"]) / n if n else None
