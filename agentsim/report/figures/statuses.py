"""Statuses of the final actions, a bar a round and group."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from agentsim.replies import STATUSES, Status
from agentsim.report.figures import style
from agentsim.report.figures.drawn import Material, Sketch, chosen
from agentsim.report.words import count

_MOST_BARS = 24
_WORST_BARS = 8
_LABELLED_FROM = 8.0
_WITH_UNIT_FROM = 16.0
_OK = STATUSES.index(Status.OK)

Bar = tuple[int, int]


def statuses_by_round(material: Material) -> Sketch | None:
    """Shares of every status, told by colour, hatch and number."""
    counts = material.counts
    totals = counts.statuses.sum(axis=2)
    bars: list[Bar] = [(int(i), int(j)) for i, j in zip(*np.nonzero(totals), strict=True)]
    if not bars:
        return None
    shares = np.array([100 * counts.statuses[i, j] / totals[i, j] for i, j in bars])
    kept = _kept(shares[:, _OK])
    shown, shares = [bars[k] for k in kept], shares[kept]
    figure, (axis,) = style.new(1.25 + 0.36 * len(shown))
    present = [k for k in range(len(STATUSES)) if counts.statuses[:, :, k].any()]
    left = np.zeros(len(shown))
    handles = []
    for k in present:
        handles.append(_segments(axis, str(STATUSES[k]), shares[:, k], left))
        left = left + shares[:, k]
    labels = []
    for i, j in shown:
        group = f", {style.short(counts.groups[j])}" if counts.groups[j] else ""
        labels.append(f"round {counts.rounds[i]}{group}  (n {count(int(totals[i, j]))})")
    axis.set_yticks(range(len(shown)), labels)
    axis.set_ylim(len(shown) - 0.5, -0.5)
    axis.set_xlim(0, 100)
    axis.set_xlabel("% of final actions")
    axis.grid(axis="y", visible=False)
    axis.tick_params(axis="y", length=0)
    names = [str(STATUSES[k]) for k in present]
    style.legend_below(figure, handles, names, columns=min(3, len(names)))
    return figure, _caption(material, len(shown), len(bars))


def _kept(ok: NDArray[np.float64]) -> list[int]:
    """Which bars are shown when they are too many: the worst, and others evenly between."""
    if len(ok) <= _MOST_BARS:
        return list(range(len(ok)))
    worst = [int(k) for k in np.argsort(ok, kind="stable")[:_WORST_BARS] if ok[k] < 100]
    others = [k for k in range(len(ok)) if k not in worst]
    return sorted([*worst, *chosen(others, _MOST_BARS - len(worst))])


def _segments(axis: Any, name: str, shares: NDArray[np.float64], left: NDArray[np.float64]) -> Any:
    """One status in all bars, with its share where there is room."""
    bars = axis.barh(
        range(len(shares)),
        shares,
        left=left,
        height=0.72,
        facecolor=style.COLOURS[name],
        edgecolor=style.COLOURS["edge"],
        hatch=style.HATCHES[name],
        linewidth=0.5,
    )
    for row, share in enumerate(shares):
        if share < _LABELLED_FROM:
            continue
        axis.text(
            left[row] + share / 2,
            row,
            f"{share:.0f} %" if share >= _WITH_UNIT_FROM else f"{share:.0f}",
            ha="center",
            va="center",
            fontsize=8,
            color=style.COLOURS["edge"],
            bbox={
                "boxstyle": "round,pad=0.1",
                "facecolor": style.COLOURS[name],
                "edgecolor": "none",
            },
        )
    return bars


def _caption(material: Material, shown: int, bars: int) -> str:
    words = "How the final actions of each round ended; only ok has a value. n: actions"
    words += ", over all sessions." if len(material.counts.sessions) > 1 else "."
    if shown < bars:
        words += (
            f" {shown} of {count(bars)} bars, those with most missing among them; "
            "tables/statuses.csv has all."
        )
    return words
