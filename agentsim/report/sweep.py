"""What the terminal shows of a sweep: a line a cell, plain ASCII but for what users wrote."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from agentsim.report.words import NOTHING, Number, count, duration, printable, share

_WIDTH = 80
_INDENT = (0, 0, 0, 2)
_REASON = 200
_GAP = 2
_MOST_CELLS = 100

Data = Mapping[str, Any]


def render_sweep(contents: Data, *, path: Path) -> RenderableType:
    """The end of a sweep, for `Console.print`.

    Args:
        contents: of the sweep's summary.json.
        path: the sweep's directory.
    """
    whole, cells = contents["sweep"], contents["cells"]
    good = whole["state"] == "finished"
    title = Text.assemble(
        (printable(whole["name"]), "bold"),
        ": ",
        (whole["state"], "bold green" if good else "bold red"),
        f", {progress(whole['states'])}",
    )
    shown, more = cells[:_MOST_CELLS], len(cells) - _MOST_CELLS
    blocks = [*_table({**contents, "cells": shown})]
    if more > 0:
        blocks.append(Text(f"... and {count(more)} cells more; sweep.csv has all", "dim"))
    blocks += [Text(), *_failures(cells), *_files(cells, path)]
    return Group(title, Text(), *(Padding(block, _INDENT) for block in blocks))


def plain_sweep(contents: Data, *, path: Path, width: int = _WIDTH) -> str:
    """The same as text without colours, for files and pipes."""
    out = io.StringIO()
    console = Console(file=out, width=width, color_system=None, force_terminal=False)
    console.print(render_sweep(contents, path=path))
    return "".join(line.rstrip() + "\n" for line in out.getvalue().splitlines())


def progress(states: Mapping[str, int]) -> str:
    """How far a sweep is: `6 of 8 cells finished, 1 failed, 1 waiting`.

    Args:
        states: how many cells there are of each state.
    """
    parts = [f"{count(states.get('finished', 0))} of {count(sum(states.values()))} cells finished"]
    others = {state: number for state, number in sorted(states.items()) if state != "finished"}
    return ", ".join([*parts, *(f"{count(number)} {state}" for state, number in others.items())])


def one_line(row: Data) -> str:
    """How a cell ended: `finished in 3.1 s, mean 33.52 to 10.13, 100 % valid`."""
    parts = [row["state"]]
    if row["wall_s"] is not None:
        parts[0] += f" in {duration(row['wall_s'])}"
    if row["first"] and row["first"]["mean"] is not None and row["last"]["mean"] is not None:
        number = _number([row])
        parts.append(f"mean {number(row['first']['mean'])} to {number(row['last']['mean'])}")
    if row["settled"]:
        parts.append(f"{share(row['valid'], row['settled'])} valid")
    if row["reason"]:
        parts.append(printable(row["reason"]))
    return ", ".join(parts)


@dataclass(frozen=True, slots=True)
class Column:
    """One column of the table.

    Attributes:
        title: above it.
        cells: one for each cell of the sweep.
        words: whether they stand to the left.
        key: the dotted key whose values they are; empty for numbers.
    """

    title: str
    cells: list[str]
    words: bool = False
    key: str = ""

    @property
    def width(self) -> int:
        """In characters."""
        return max(map(len, (self.title, *self.cells)))


def columns(contents: Data) -> list[Column]:
    """The table of a sweep."""
    cells = contents["cells"]
    number = _number(cells)
    result = [Column("cell", [str(row["number"]) for row in cells]), *_settings(contents)]
    result.append(Column("state", [row["state"] for row in cells], words=True))
    if any(row["means"] for row in cells):
        with_sd = any(item["sd"] is not None for row in cells for item in row["means"])
        for which in ("first", "last"):
            result.append(Column(which, [number((row[which] or {}).get("mean")) for row in cells]))
            if with_sd:
                result.append(Column("sd", [number((row[which] or {}).get("sd")) for row in cells]))
        shares = [share(row["valid"] or 0, row["settled"] or 0) for row in cells]
        result.append(Column("valid", shares))
    if any(row["tokens"] is not None for row in cells):
        result.append(Column("tokens", [count(row["tokens"]) for row in cells]))
    walls = [row["wall_s"] for row in cells]
    shown = [NOTHING if wall is None else duration(wall) for wall in walls]
    return [*result, Column("wall", shown)]


def _settings(contents: Data) -> Iterator[Column]:
    """What the cells set; a key by its last part where that says enough."""
    keys = list(contents["sweep"]["keys"])
    short = [key.rpartition(".")[2] for key in keys]
    for key, name in zip(keys, short, strict=True):
        values = [_value(row["set"][key]) if key in row["set"] else "" for row in contents["cells"]]
        yield Column(
            printable(name if short.count(name) == 1 else key),
            [printable(value) for value in values],
            words=True,
            key=key,
        )


def _table(contents: Data) -> Iterator[RenderableType]:
    """All columns if they fit; else what a cell sets on a line of its own, below its numbers."""
    shown = columns(contents)
    wide = sum(column.width for column in shown) + _GAP * (len(shown) - 1)
    if wide <= _WIDTH - _INDENT[3]:
        yield from _lines(shown)
        return
    head, *rows = _lines([column for column in shown if not column.key])
    yield head
    for line, row in zip(rows, contents["cells"], strict=True):
        yield line
        for words in textwrap.wrap(printable(row["words"]), _WIDTH - _INDENT[3] - 6):
            yield Text(f"      {words}", "dim")


def _lines(shown: Sequence[Column]) -> Iterator[Text]:
    yield Text(_line([column.title for column in shown], shown), "bold")
    for row in zip(*(column.cells for column in shown), strict=True):
        yield Text(_line(row, shown), "")


def _line(cells: Sequence[str], shown: Sequence[Column]) -> str:
    padded = (
        cell.ljust(column.width) if column.words else cell.rjust(column.width)
        for cell, column in zip(cells, shown, strict=True)
    )
    return (" " * _GAP).join(padded).rstrip()


def _failures(cells: Sequence[Data]) -> Iterator[RenderableType]:
    failed = [row for row in cells if row["reason"]]
    for row in failed:
        reason = printable(row["reason"])[:_REASON]
        yield Text(
            f"cell {row['number']} ({printable(row['words'])}) {row['state']}: {reason}", "red"
        )
    if failed:
        yield Text()


def _files(cells: Sequence[Data], path: Path) -> Iterator[RenderableType]:
    if any(row["means"] for row in cells):
        yield Text(
            "first, last: means of these rounds over sessions; sd: between sessions",
            "dim",
        )
    yield Text.assemble("files: ", (str(path), "bold"), overflow="fold")


def _number(cells: Sequence[Data]) -> Number:
    """As many decimals as the largest mean needs."""
    means = [item["mean"] for row in cells for item in row["means"] if item["mean"] is not None]
    top = max(map(abs, means), default=0)
    return Number.of({"low": 0, "high": top}) if 0 < top < 10 else Number()


def _value(value: Any) -> str:
    """A value as YAML has it."""
    from agentsim.config import flow

    return flow(value)
