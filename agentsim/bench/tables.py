"""Measurements as tables of at most 80 columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
    ]
    if memory is not None:
        lines.append(
            f"memory: {memory['bytes_an_agent_idle']:,.0f} bytes an agent idle, "
            f"{memory['bytes_an_agent_in_flight']:,.0f} at the most; "
            f"{memory['peak_bytes'] / 1e9:.2f} GB in all"
        )
    return Group(table(title, ["", "wall s", "CPU s"], rows), *_lines(found, lines))


def scaling_tables(found: dict[str, Any]) -> RenderableType:
    """What `scaling.bench_scaling` found."""

    def rows(name: str) -> list[list[str]]:
        return [
            [f"{line['agents']:,}", f"{line['wall_s']:.3f}", _with_spread(line, "cpu_s", 3)]
            for line in found[name]
        ]

    def by_workers(title: str, name: str) -> Table:
        lines = [
            [f"{line['workers']}", *row, f"{line['cpu_us_a_turn']:.2f}"]
            for row, line in zip(rows(name), found[name], strict=True)
        ]
        return table(title, ["workers", *columns, "us a turn"], lines)

    columns = ["agents", "s a round", "CPU s a round"]
    sizes = [
        [*row, _with_spread(line, "slope_us") if "slope_us" in line else ""]
        for row, line in zip(rows("sizes"), found["sizes"], strict=True)
    ]
    return Group(
        by_workers("agents a worker fixed (weak scaling)", "weak"),
        by_workers("agents fixed (strong scaling)", "strong"),
        table(
            f"more agents, workers: {found['sizes'][0]['workers']}",
            [*columns, "one more, us"],
            sizes,
        ),
        *_lines(found, ["one more: the CPU of one more agent's turn, since the line above"]),
    )


def messages_table(found: dict[str, Any], kinds: Mapping[str, str]) -> RenderableType:
    """What `messages.bench_messages` found."""
    rows = [
        [words, *(_with_spread(found[name], figure) for figure in ("cpu_us", "wall_us"))]
        for name, words in kinds.items()
    ]
    title = f"{found['calls']:,} calls, workers: {found['workers']}"
    return Group(table(title, ["", "CPU us", "wall us"], rows), *_lines(found, []))


def models_table(found: dict[str, Any]) -> RenderableType:
    """What `models.bench_models` found."""
    rows = [
        [
            f"{line['window']:,}",
            f"{line['requests_per_s']:,.0f}",
            _with_spread(line, "ours_ms", 3),
            _with_spread(line, "server_ms", 3),
        ]
        for line in found["windows"]
    ]
    columns = ["under way", "requests/s", "our CPU ms", "the server's"]
    title = f"{found['requests']:,} requests, each answered after {found['delay_s']:g} s"
    return Group(table(title, columns, rows), *_lines(found, []))


def results_table(found: dict[str, Any]) -> RenderableType:
    """What `results.bench_results` found."""
    names = {
        "players": "actions of players",
        "attempts_of_models": "attempts of a model",
    }
    rows = [
        [
            words,
            *(f"{found[name][f'{step}_cpu_s']:.2f}" for step in ("journal", "gather", "parquet")),
            _with_spread(found[name], "cpu_s"),
            f"{found[name]['journal_bytes']:,.0f} + {found[name]['parquet_bytes']:,.0f}",
        ]
        for name, words in names.items()
    ]
    columns = ["CPU s a million rows", "journal", "gather", "Parquet", "journal + Parquet", "B/row"]
    title = f"{found['rows']:,} actions, {found['attempts']:,} attempts"
    return Group(table(title, columns, rows), *_lines(found, []))


def machine_line(machine: dict[str, Any]) -> str:
    """On what was measured."""
    return f"{machine['cores']} cores, {machine['cpu']}, load {machine['load']:.1f}"


def _lines(found: dict[str, Any], lines: Sequence[str]) -> list[Text]:
    how = f"medians of {found['repeats']}, with the least and the most; CPU of all processes"
    return [Text(line) for line in (*lines, how, machine_line(found["machine"]))]


def _with_spread(part: Mapping[str, float], figure: str, digits: int = 2) -> str:
    least, most = part[f"{figure}_min"], part[f"{figure}_max"]
    return f"{part[figure]:.{digits}f} ({least:.{digits}f} to {most:.{digits}f})"
