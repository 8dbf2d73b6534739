"""Means by round of a sweep's cells, a small panel each."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from agentsim.report.figures import style
from agentsim.report.figures.drawn import Figure, Sketch
from agentsim.report.words import count, printable

_MOST_CELLS = 24
_COLUMNS = 3
_ROW_IN = 1.15
_LINE_IN = 0.12
_LINE = 21
_MOST_LINES = 3

Data = Mapping[str, Any]


def draw_cells(contents: Data) -> list[Figure]:
    """The figure of a sweep; none if no cell has settled a round.

    Args:
        contents: of the sweep's summary.json.
    """
    style.prepare()
    name, title = "means_by_cell", "Means by round, a panel a cell"
    with style.style():
        sketch = means_by_cell(contents)
        if sketch is None:
            return []
        figure, caption = sketch
        return [Figure(name, title, caption, style.files(figure, title, caption))]


def means_by_cell(contents: Data) -> Sketch | None:
    """A panel for each cell that has means, all with the same axes."""
    rows = [row for row in contents["cells"] if _points(row)]
    shown = rows[:_MOST_CELLS]
    if not shown:
        return None
    columns = min(_COLUMNS, len(shown))
    lines = math.ceil(len(shown) / columns)
    titles = max(_title(row).count("\n") + 1 for row in shown)
    height_in = 0.5 + lines * (_ROW_IN + _LINE_IN * titles)
    figure, axes = style.new(height_in, lines, columns, sharex=True, sharey=True)
    for axis, row in zip(axes, shown, strict=False):
        _panel(axis, row)
    rounds = sorted({n for row in shown for n, _, _ in _points(row)})
    style.round_axis(axes[0], rounds)
    for axis in axes[len(shown) :]:
        axis.set_visible(False)
    for axis in axes[: len(shown)][-columns:]:
        axis.tick_params(labelbottom=True)
    figure.supxlabel("round", fontsize=9)
    figure.supylabel("mean guess", fontsize=9)
    return figure, _caption(shown, len(rows))


def _panel(axis: Any, row: Data) -> None:
    points = _points(row)
    spread = [sd for _, _, sd in points]
    axis.errorbar(
        [round for round, _, _ in points],
        [mean for _, mean, _ in points],
        yerr=None if None in spread else spread,
        color=style.COLOURS["mean"],
        marker="." if len(points) <= 25 else "",
        capsize=2,
        elinewidth=1.0,
    )
    axis.set_title(_title(row), fontsize=6.5)
    axis.grid(axis="x", visible=False)


def _points(row: Data) -> list[tuple[int, float, float | None]]:
    return [(m["round"], m["mean"], m["sd"]) for m in row["means"] if m["mean"] is not None]


def _title(row: Data) -> str:
    """What a cell sets, a line each, keys by their last part."""
    from agentsim.config import flow

    settings = []
    for key, value in row["set"].items():
        # Of a map, what it holds: `model level_k`.
        words = ", ".join(map(flow, value.values())) if isinstance(value, dict) else flow(value)
        settings.append(f"{key.rpartition('.')[2]} {words}")
    lines = settings[:_MOST_LINES] or ["as it is"]
    lines[0] = f"{row['number']}: {lines[0]}"
    return "\n".join(
        line if len(line) <= _LINE else f"{line[: _LINE - 1]}…" for line in map(printable, lines)
    )


def _caption(shown: Sequence[Data], cells: int) -> str:
    words = "Mean of the valid guesses of each round"
    if any(sd is not None for row in shown for _, _, sd in _points(row)):
        words += ", over sessions; lines: the standard deviation between sessions"
    words += "."
    if len(shown) < cells:
        words += f" {len(shown)} of {count(cells)} cells; tables/sweep.csv has all."
    return words
