"""Statuses of the final actions, a bar a round and group."""

from __future__ import annotations

import numpy as np

from agentsim.replies import STATUSES
from agentsim.report.figures import style
from agentsim.report.figures.drawn import Material, Sketch, chosen
from agentsim.report.words import count

_MOST_BARS = 24
_LABELLED_FROM = 10.0


def statuses_by_round(material: Material) -> Sketch | None:
    """Shares of every status, told by colour, hatch and number."""
    counts = material.counts
    totals = counts.statuses.sum(axis=2)
    bars = [(int(i), int(j)) for i, j in zip(*np.nonzero(totals), strict=True)]
    if not bars:
        return None
    shown = [bars[i] for i in chosen(list(range(len(bars))), _MOST_BARS)]
    figure, (axis,) = style.new(1.25 + 0.36 * len(shown))
    present = [k for k in range(len(STATUSES)) if counts.statuses[:, :, k].any()]
    shares = np.array([100 * counts.statuses[i, j] / totals[i, j] for i, j in shown])
    left = np.zeros(len(shown))
    handles = []
    for k in present:
        name = str(STATUSES[k])
        handles.append(
            axis.barh(
                range(len(shown)),
                shares[:, k],
                left=left,
                height=0.72,
                facecolor=style.COLOURS[name],
                edgecolor=style.COLOURS["edge"],
                hatch=style.HATCHES[name],
                linewidth=0.5,
            )
        )
        for row, share in enumerate(shares[:, k]):
            if share >= _LABELLED_FROM:
                axis.text(
                    left[row] + share / 2,
                    row,
                    f"{share:.0f} %",
                    ha="center",
                    va="center",
                    fontsize=8,
                    color=style.COLOURS["edge"],
                    bbox={
                        "boxstyle": "round,pad=0.15",
                        "facecolor": style.COLOURS[name],
                        "edgecolor": "none",
                    },
                )
        left = left + shares[:, k]
    labels = []
    for i, j in shown:
        group = f", {counts.groups[j]}" if counts.groups[j] else ""
        labels.append(f"round {counts.rounds[i]}{group}  (n {count(int(totals[i, j]))})")
    axis.set_yticks(range(len(shown)), labels)
    axis.set_ylim(len(shown) - 0.5, -0.5)
    axis.set_xlim(0, 100)
    axis.set_xlabel("% of final actions")
    axis.grid(axis="y", visible=False)
    axis.tick_params(axis="y", length=0)
    names = [str(STATUSES[k]) for k in present]
    style.legend_below(figure, handles, names, columns=min(4, len(names)))
    return figure, _caption(material, len(shown), len(bars))


def _caption(material: Material, shown: int, bars: int) -> str:
    words = "How the final actions of each round ended; only ok has a value. n: actions"
    words += ", over all sessions." if len(material.counts.sessions) > 1 else "."
    if shown < bars:
        words += f" {shown} of {count(bars)} bars; tables/statuses.csv has all."
    return words
