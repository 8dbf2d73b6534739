"""Measurements as tables of at most 80 columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

_PARTS = {
    "startup": "start-up, with all imports",
    "create": "creation",
    "rounds": "rounds",
    "end": "end",
    "total": "in all",
}


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    """A table whose first column is words, and whose others are figures."""
    made = Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD)
    for i, name in enumerate(columns):
        made.add_column(name, justify="right" if i else "left", no_wrap=i > 0)
    for row in rows:
        made.add_row(*row)
    return made


def dummy_table(found: dict[str, Any]) -> RenderableType:
    """What `dummy.bench_dummy` found."""
    rows = [
        [words, *(_with_spread(found[name], figure) for figure in ("wall_s", "cpu_s"))]
        for name, words in _PARTS.items()
    ]
    who = "players" if found["what"] == "players" else "coroutines of a user's class"
    title = (
        f"{found['agents']:,} {who}, {found['rounds_played']} rounds, {found['workers']} workers"
    )
    memory, round = found["memory"], found["round"]
    lines = [
        f"one round: {round['wall_s']:.2f} s, {round['cpu_s']:.2f} CPU s; "
        f"{found['cpu_us_a_turn']:.2f} CPU us a turn, "
        f"{found['turns_per_cpu_s'] or 0:,.0f} turns a CPU second",
        f"memory: {memory['bytes_an_agent_idle']:,.0f} bytes an agent idle, "
        f"{memory['bytes_an_agent_in_flight']:,.0f} at the most; "
        f"{memory['peak_bytes'] / 1e9:.2f} GB in all",
    ]
    return Group(table(title, ["", "wall s", "CPU s"], rows), *_lines(found, lines))


def machine_line(machine: dict[str, Any]) -> str:
    """On what was measured."""
    return f"{machine['cores']} cores, {machine['cpu']}, load {machine['load']:.1f}"


def _lines(found: dict[str, Any], lines: Sequence[str]) -> list[Text]:
    how = f"medians of {found['repeats']}, with the least and the most; CPU of all processes"
    return [Text(line) for line in (*lines, how, machine_line(found["machine"]))]


def _with_spread(part: dict[str, float], figure: str) -> str:
    least, most = part[f"{figure}_min"], part[f"{figure}_max"]
    return f"{part[figure]:.2f} ({least:.2f} to {most:.2f})"
