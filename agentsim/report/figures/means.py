"""Means by round, with what they are to be compared with."""

from __future__ import annotations

from typing import Any

import numpy as np

from agentsim.report.figures import style
from agentsim.report.figures.drawn import Data, Material, Sketch
from agentsim.report.rounds import by_round, mean_over
from agentsim.report.words import count

_MOST_SESSIONS_DRAWN = 30
_MANY_ROUNDS = 25


def means_by_round(material: Material) -> Sketch | None:
    """The mean guess of each round with target, people, equilibrium and bounds."""
    groups = by_round(material.summary["rounds"])
    over = [row for row in material.summary["over_sessions"] if row["mean_of_means"] is not None]
    if not over:
        return None
    figure, (axis,) = style.new(3.6)
    handles: dict[str, Any] = {}
    one = len(material.counts.sessions) == 1
    marker = "o" if len(groups) <= _MANY_ROUNDS else ""
    _bounds(axis, groups, handles)
    if not one:
        _sessions(axis, material.summary["rounds"], len(material.counts.sessions), handles)
    for guess in material.equilibria:
        handles["equilibrium"] = axis.axhline(
            guess, color=style.COLOURS["equilibrium"], linestyle=":"
        )
    _series(axis, groups, handles, marker)
    _people(axis, material.summary, list(groups), handles)
    _mean(axis, over, handles, "mean" if one else "mean of session means, 95 % interval")
    _axes(axis, list(groups), material)
    names = sorted(handles, key=lambda name: not name.startswith("mean"))
    columns = 2 if max(map(len, names)) < 30 else 1
    style.legend_below(figure, [handles[name] for name in names], names, columns)
    return figure, _caption(material, one)


def _mean(axis: Any, over: list[Data], handles: dict[str, Any], label: str) -> None:
    x, y = [row["round"] for row in over], [row["mean_of_means"] for row in over]
    ends = None
    if all(row["low"] is not None for row in over):
        ends = [
            [row["mean_of_means"] - row["low"] for row in over],
            [row["high"] - row["mean_of_means"] for row in over],
        ]
    handles[label] = axis.errorbar(
        x,
        y,
        yerr=ends,
        color=style.COLOURS["mean"],
        marker="o" if len(x) <= _MANY_ROUNDS else "",
        capsize=3 if len(x) <= _MANY_ROUNDS else 0,
        elinewidth=1.2,
        zorder=4,
    )


def _series(axis: Any, groups: dict[int, list[Data]], handles: dict[str, Any], marker: str) -> None:
    x = [round for round, rows in groups.items() if mean_over(rows, "target") is not None]
    if x:
        (handles["target"],) = axis.plot(
            x,
            [mean_over(groups[round], "target") for round in x],
            color=style.COLOURS["target"],
            linestyle="--",
            marker="s" if marker else "",
            markersize=4,
            zorder=3,
        )


def _people(axis: Any, summary: Data, rounds: list[int], handles: dict[str, Any]) -> None:
    people = summary["people"] or {}
    published = dict(enumerate(people.get("means") or [], 1))
    x = [round for round in rounds if published.get(round) is not None]
    if x:
        (handles[f"people: {people.get('source', 'published')}"],) = axis.plot(
            x,
            [published[round] for round in x],
            color=style.COLOURS["people"],
            linestyle="-.",
            marker="D",
            markersize=4.5,
            markerfacecolor="none",
            zorder=3,
        )


def _bounds(axis: Any, groups: dict[int, list[Data]], handles: dict[str, Any]) -> None:
    """Where the mean could be, had those who are missing answered: a box a round with missing."""
    boxes = []
    for round, rows in groups.items():
        bounds = [row["bounds"] for row in rows if row["bounds"]]
        if bounds and any(row["missing"] for row in rows):
            boxes.append((round, *(mean_over(bounds, key) for key in ("mean_low", "mean_high"))))
    if not boxes:
        return
    x, low, high = (np.array(column, np.float64) for column in zip(*boxes, strict=True))
    handles["could be, had the missing answered"] = axis.bar(
        x,
        high - low,
        0.3 if len(groups) <= _MANY_ROUNDS else 1.0,
        low,
        facecolor=style.COLOURS["band"],
        edgecolor=style.COLOURS["one"],
        linewidth=0.6,
        zorder=1,
    )


def _sessions(axis: Any, rounds: list[Data], sessions: int, handles: dict[str, Any]) -> None:
    """A thin line a session, where they are few enough to be seen."""
    if sessions > _MOST_SESSIONS_DRAWN:
        return
    lines: dict[int, list[tuple[int, float]]] = {}
    for row in rounds:
        if row["mean"] is not None:
            lines.setdefault(row["session"], []).append((row["round"], row["mean"]))
    for points in lines.values():
        (handles["one session each"],) = axis.plot(
            *zip(*points, strict=True),
            color=style.COLOURS["one"],
            linewidth=0.8,
            marker="." if len(points) == 1 else "",
            zorder=1,
        )


def _axes(axis: Any, rounds: list[int], material: Material) -> None:
    axis.set_xlabel("round")
    axis.set_ylabel(material.unit)
    style.round_axis(axis, rounds)
    axis.grid(axis="x", visible=False)
    low, high = axis.get_ylim()
    least, most = material.limits
    # Hardly wider than the game's range; so little that a line at its end can be seen.
    margin = 0.03 * (high - low)
    axis.set_ylim(max(low, least - margin), min(high, most + margin))


def _caption(material: Material, one: bool) -> str:
    actions = material.summary["actions"]
    agents = max(row["n"] for row in material.summary["rounds"])
    words = f"{count(agents)} agents in each session; "
    words += f"{count(actions['valid'])} of {count(actions['settled'])} actions are valid. "
    if one:
        return words + "One session: no interval between sessions."
    sessions = len(material.counts.sessions)
    return words + (
        f"Intervals: Student's t, 95 %, over the means of {count(sessions)} sessions, which are "
        "the independent units."
    )
