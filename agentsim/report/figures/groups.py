"""Means by round and group."""

from __future__ import annotations

from typing import Any

from agentsim.report.figures import style
from agentsim.report.figures.drawn import Material, Sketch
from agentsim.report.groups import GroupMean, group_means, group_names
from agentsim.report.words import count

_MOST_GROUPS = 6
_MANY_ROUNDS = 25
_LOOKS = (
    ("mean", "o", "-"),
    ("target", "s", "--"),
    ("people", "D", "-."),
    ("no_answer", "^", ":"),
    ("truncated", "v", (0, (5, 1))),
    ("faint", "P", (0, (1, 1))),
)


def means_by_group(material: Material) -> Sketch | None:
    """A line a group, told by colour, marker and dashes; intervals from sessions alone."""
    names = group_names(material.summary)
    if not names:
        return None
    shown = names[:_MOST_GROUPS]
    means = group_means(material.summary, shown)
    if not any(mean.mean is not None for mean in means):
        return None
    figure, (axis,) = style.new(3.6)
    handles = []
    rounds = sorted({mean.round for mean in means})
    for place, (name, look) in enumerate(zip(shown, _LOOKS, strict=False)):
        mine = [mean for mean in means if mean.group == name and mean.mean is not None]
        # A little beside each other, so that intervals can be seen.
        shift = (place - (len(shown) - 1) / 2) * 0.06 if len(rounds) <= _MANY_ROUNDS else 0.0
        handles.append(_line(axis, mine, look, shift, marked=len(rounds) <= _MANY_ROUNDS))
    axis.set_xlabel("round")
    axis.set_ylabel(material.unit)
    axis.grid(axis="x", visible=False)
    style.round_axis(axis, rounds)
    style.legend_below(figure, handles, [style.short(name) for name in shown], columns=2)
    return figure, _caption(material, len(shown), len(names))


def _line(axis: Any, means: list[GroupMean], look: Any, shift: float, *, marked: bool) -> Any:
    colour, marker, dashes = look
    middle = [mean.mean for mean in means if mean.mean is not None]
    ends = None
    if means and all(mean.low is not None for mean in means):
        ends = [
            [m.mean - m.low for m in means if m.mean is not None and m.low is not None],
            [m.high - m.mean for m in means if m.mean is not None and m.high is not None],
        ]
    return axis.errorbar(
        [mean.round + shift for mean in means],
        middle,
        yerr=ends,
        color=style.COLOURS[colour],
        linestyle=dashes,
        marker=marker if marked else "",
        capsize=2 if marked else 0,
        elinewidth=1.0,
    )


def _caption(material: Material, shown: int, groups: int) -> str:
    words = "Mean of the valid guesses of each group."
    if len(material.counts.sessions) == 1:
        words += " One session: no interval between sessions."
    else:
        words += " Mean of the sessions' means; lines: Student's 95 % interval, from sessions."
    if shown < groups:
        words += f" {shown} of {count(groups)} groups; tables/groups.csv has all."
    return words
