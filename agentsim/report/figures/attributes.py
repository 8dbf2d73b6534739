"""Means by attribute: a panel an attribute, a row a cell."""

from __future__ import annotations

from typing import Any

import numpy as np

from agentsim.report.attributes import CellMean, cell_means
from agentsim.report.figures import style
from agentsim.report.figures.drawn import Material, Sketch
from agentsim.report.words import count

_MOST_PANELS = 12
_ROW_IN = 0.3


def means_by_attribute(material: Material) -> Sketch | None:
    """The mean of round 1 and of the last round in each cell; intervals from sessions alone."""
    counts = material.counts
    panels = [each for each in counts.attributes if len(each.attribute.cells) > 1][:_MOST_PANELS]
    if not panels or not counts.rounds or not any(each.n.any() for each in panels):
        return None
    rows = [len(each.attribute.cells) for each in panels]
    height = 0.9 + sum(rows) * _ROW_IN + len(rows) * 0.42
    figure, axes = style.new(height, len(panels), sharex=True, height_ratios=rows)
    handles: dict[str, Any] = {}
    rounds = sorted({counts.rounds[0], counts.rounds[-1]})
    for axis, each in zip(axes, panels, strict=True):
        means = cell_means(each, counts.rounds)
        for place, round in enumerate(rounds):
            found = [mean for mean in means if mean.round == round]
            _points(axis, found, place, len(rounds), handles)
        first = [mean for mean in means if mean.round == rounds[0]]
        labels = [f"{style.short(mean.cell)}  (n {count(mean.n)})" for mean in first]
        axis.set_yticks(range(len(labels)), labels)
        axis.set_ylim(len(labels) - 0.5, -0.5)
        axis.set_title(style.short(each.attribute.name), fontweight="bold")
        axis.grid(axis="y", visible=False)
        axis.tick_params(axis="y", length=0)
    axes[-1].set_xlabel(material.unit)
    _limits(axes[-1], material)
    style.legend_below(figure, list(handles.values()), list(handles), columns=2)
    return figure, _caption(material, rounds, len(panels))


def _points(
    axis: Any, means: list[CellMean], place: int, places: int, handles: dict[str, Any]
) -> None:
    """One round's means; two rounds stand a little above each other."""
    shift = 0.0 if places == 1 else (-0.13, 0.13)[place]
    look = (("mean", "o"), ("target", "s"))[place]
    colour = style.COLOURS[look[0]]
    rows = [(i, mean) for i, mean in enumerate(means) if mean.mean is not None]
    for i, mean in rows:
        if mean.low is not None:
            axis.plot([mean.low, mean.high], [i + shift] * 2, color=colour, linewidth=1.2)
    if rows:
        (handles[f"round {means[0].round}"],) = axis.plot(
            [mean.mean for _, mean in rows],
            [i + shift for i, _ in rows],
            color=colour,
            marker=look[1],
            linestyle="",
            markerfacecolor=colour if place == 0 else "none",
        )


def _limits(axis: Any, material: Material) -> None:
    low, high = axis.get_xlim()
    least, most = material.limits
    axis.set_xlim(max(low, least - 0.02 * (most - least)), min(high, most + 0.02 * (most - least)))


def _caption(material: Material, rounds: list[int], panels: int) -> str:
    counts = material.counts
    words = "Mean of the valid guesses of those with each attribute; n: valid guesses in round "
    words += f"{rounds[0]}."
    if len(counts.sessions) == 1:
        words += " One session: no interval between sessions."
    else:
        cells = np.concatenate([each.n[:, 0].ravel() for each in counts.attributes])
        words += (
            " Mean of the sessions' means; lines: Student's 95 % interval for it, from sessions "
            "alone."
        )
        if (cells == 0).any():
            words += " Where a session has nobody of a kind, the others count."
    if panels < len(counts.attributes):
        words += " tables/means_by_attribute.csv has every attribute."
    return words
