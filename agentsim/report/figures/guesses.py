"""The distribution of guesses, a panel a round."""

from __future__ import annotations

from typing import Any

import numpy as np

from agentsim.report.figures import style
from agentsim.report.figures.drawn import Material, Sketch, chosen
from agentsim.report.rounds import by_round, mean_over
from agentsim.report.words import count

_MOST_PANELS = 8


def guesses_by_round(material: Material) -> Sketch | None:
    """Histograms of valid guesses with mean, target and equilibrium."""
    counts = material.counts
    filled = [
        round for round, row in zip(counts.rounds, counts.histogram, strict=True) if row.any()
    ]
    if not filled:
        return None
    shown = chosen(filled, _MOST_PANELS)
    figure, axes = style.new(0.75 + 1.15 * len(shown), len(shown), sharex=True, sharey=True)
    groups = by_round(material.summary["rounds"])
    handles: dict[str, Any] = {}
    for axis, round in zip(axes, shown, strict=True):
        row = counts.histogram[counts.rounds.index(round)]
        axis.stairs(
            100 * row / row.sum(),
            counts.edges,
            fill=True,
            facecolor=style.COLOURS["bar"],
            edgecolor=style.COLOURS["bar"],
            linewidth=0,
        )
        settled = sum(each["n"] for each in groups[round])
        title = f"round {round}: n = {count(int(row.sum()))}"
        if settled != row.sum():
            title += f" valid of {count(settled)}"
        axis.set_title(title)
        axis.set_ylabel("% of guesses")
        axis.grid(axis="x", visible=False)
        _lines(axis, material, groups[round], handles)
    axes[-1].set_xlabel(material.unit)
    # A margin, so that a line at the end of the range is not hidden by the axis.
    margin = 0.015 * (counts.edges[-1] - counts.edges[0])
    axes[-1].set_xlim(counts.edges[0] - margin, counts.edges[-1] + margin)
    axes[0].set_ylim(bottom=0)
    style.legend_below(figure, list(handles.values()), list(handles), columns=len(handles))
    return figure, _caption(material, shown, len(filled))


def _lines(axis: Any, material: Material, rows: list[Any], handles: dict[str, Any]) -> None:
    for guess in material.equilibria:
        handles["equilibrium"] = axis.axvline(
            guess, color=style.COLOURS["equilibrium"], linestyle=":"
        )
    for name, dash in (("target", "--"), ("mean", "-")):
        if (value := mean_over(rows, name)) is not None:
            handles[name] = axis.axvline(value, color=style.COLOURS[name], linestyle=dash)


def _caption(material: Material, shown: list[int], rounds: int) -> str:
    counts = material.counts
    width = material.number(float(np.diff(counts.edges)[0]))
    words = f"Valid guesses by round, in bins of {width}; missing ones are left out."
    if len(counts.sessions) > 1:
        words += (
            f" Guesses of {count(len(counts.sessions))} sessions together; mean and target are "
            "means over sessions."
        )
    if len(shown) < rounds:
        words += f" {len(shown)} of {count(rounds)} rounds; tables/histogram.csv has all."
    return words
