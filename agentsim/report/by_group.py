"""The table by round and group, for the terminal: of one session as it was, of several by what
they have in common."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agentsim.report.groups import GroupMean, group_means, group_names
from agentsim.report.rounds import is_one_session, mean_over
from agentsim.report.words import Number, count, printable, width_of

Data = Mapping[str, Any]
Columns = dict[str, list[str]]

_LONGEST_NAME = 24
_LEAST = ("sd", "agents", "target")
_SCOPES = {
    "pooled": "by group; all groups play in one market",
    "separate": "by group; each group is a market of its own",
    "between": "by group; the group whose mean is closest to the target wins",
}


def title(manifest: Data) -> str:
    """What the table is about."""
    groups = (manifest.get("game") or {}).get("groups") or {}
    return _SCOPES.get(str(groups.get("scope")), "by group")


def fitting_columns(summary: Data, number: Number, width: int) -> Columns:
    """Title → cells, one a round and group; without the columns that matter least where all do not
    fit. Nothing without groups."""
    names = group_names(summary)
    means = group_means(summary, names)
    if not means:
        return {}
    for decimals in range(number.decimals, -1, -1):
        cells = _columns(summary, means, Number(decimals))
        if width_of(cells) <= width:
            return cells
    for name in _LEAST:
        cells.pop(name, None)
        if width_of(cells) <= width:
            break
    return cells


def notes(summary: Data) -> Iterator[str]:
    """What the columns mean, where it is not plain."""
    groups = len(group_names(summary))
    of_all = "" if is_one_session(summary) else ", over all sessions"
    yield f"{count(groups)} groups; won: how many of a group's agents won{of_all}"


def _columns(summary: Data, means: Sequence[GroupMean], number: Number) -> Columns:
    rows: dict[tuple[int, str], list[Data]] = {}
    for row in summary["groups"]:
        rows.setdefault((row["round"], row["group"]), []).append(row)
    found = [rows[mean.round, mean.group] for mean in means]
    one = is_one_session(summary)
    cells = {
        "round": [str(mean.round) for mean in means],
        "group": [_short(mean.group) for mean in means],
        "agents": [count(mean.n) for mean in means],
        "valid": [count(mean.valid) for mean in means],
        "mean": [number(mean.mean) for mean in means],
    }
    if one:
        cells["sd"] = [number(mean_over(group, "sd")) for group in found]
    else:
        cells["interval"] = [number.span(mean.low, mean.high) for mean in means]
    cells["target"] = [number(mean.target) for mean in means]
    cells["won"] = [count(sum(row["winners"] or 0 for row in group)) for group in found]
    return cells


def _short(name: str) -> str:
    text = printable(name)
    return text if len(text) <= _LONGEST_NAME else text[: _LONGEST_NAME - 3] + "..."
