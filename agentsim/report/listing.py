"""The runs of a folder, each with its state and headline figures. Tables are hardly read: what a
line needs stands in the manifest, the last record of the journal and the announcements."""

from __future__ import annotations

import math
import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa

from agentsim.errors import AgentsimError, UserError
from agentsim.report.sweep import progress
from agentsim.report.words import NOTHING, Number, count, printable, share
from agentsim.results import RunDirectory, load_run
from agentsim.results.parts import parts, read_part
from agentsim.results.sweep import SweepDirectory, is_sweep

_WIDTH = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """One directory.

    Attributes:
        path: of the run.
        state: finished, failed, interrupted, running; unreadable when it cannot be read.
        reason: why it cannot be read; else empty.
        name: of the scenario.
        started: UTC, ISO 8601; empty when unknown.
        agents, rounds, sessions: as the scenario says.
        rounds_settled: over all sessions.
        settled, valid: final actions of the settled rounds, and how many are valid.
        round: the last round that is settled in some session; None without any.
        mean, target: of it, averaged over its sessions.
        rule: of the game, to write numbers by.
        cells: of a sweep: how many there are of each state; None for a run.
    """

    path: Path
    state: str
    reason: str = ""
    name: str = ""
    started: str = ""
    agents: int | None = None
    rounds: int | None = None
    sessions: int | None = None
    rounds_settled: int = 0
    settled: int = 0
    valid: int = 0
    round: int | None = None
    mean: float | None = None
    target: float | None = None
    rule: dict[str, Any] | None = None
    cells: dict[str, int] | None = None


def list_runs(folder: Path) -> list[Listed]:
    """The runs and sweeps in a folder, the newest first, what cannot be read last.

    Args:
        folder: holds run directories, or is one; of a sweep, its cells' are listed.

    Raises:
        UserError: there is no such folder.
    """
    if not folder.is_dir():
        raise UserError(f"{folder}: there is no such folder")
    if (folder / "manifest.json").exists():
        return [_listed(folder)]
    if is_sweep(folder):
        return [_listed(folder), *_cells_of(folder)]
    try:
        found = [
            _listed(path)
            for path in sorted(folder.iterdir())
            if path.is_dir() and not path.name.startswith(".")
        ]
    except OSError as error:
        raise UserError(f"{folder}: cannot be read: {error.strerror}") from error
    readable = [run for run in found if run.state != "unreadable"]
    readable.sort(key=lambda run: (run.started, run.path.name), reverse=True)
    return readable + [run for run in found if run.state == "unreadable"]


def listing(runs: Sequence[Listed], folder: Path) -> str:
    """The list as text of 80 columns: a line a run with its path below."""
    if not runs:
        return f"no runs in {folder}\n"
    titles = ("name", "started", "state", "valid", "mean", "target")
    rows = [_cells(run) for run in runs]
    widths = [max(map(len, column)) for column in zip(titles, *rows, strict=True)]
    widths[0] = min(widths[0], _WIDTH - sum(widths[1:]) - 2 * (len(widths) - 1))
    lines = [_line(titles, widths)]
    for run, row in zip(runs, rows, strict=True):
        size = f"{progress(run.cells)}  " if run.cells else _size(run)
        lines += [_line(row, widths), f"  {size}{printable(str(run.path))}"]
        if run.reason:
            lines += textwrap.wrap(
                printable(run.reason), _WIDTH, initial_indent="  ", subsequent_indent="  "
            )
    if any(run.agents is not None for run in runs):
        lines.append("40x3x1: agents x rounds x sessions; mean, target: last round, over sessions")
    return "\n".join(lines) + "\n"


def as_data(run: Listed) -> dict[str, Any]:
    """The same for JSON."""
    return {
        "name": run.name or None,
        "started": run.started or None,
        "state": run.state,
        "reason": run.reason or None,
        "agents": run.agents,
        "rounds": run.rounds,
        "sessions": run.sessions,
        "rounds_settled": run.rounds_settled,
        "settled": run.settled,
        "valid": run.valid,
        "valid_share": run.valid / run.settled if run.settled else None,
        "last_round": run.round,
        "mean": run.mean,
        "target": run.target,
        "cells": run.cells,
        "path": str(run.path),
    }


def _listed(path: Path) -> Listed:
    try:
        return _read(path)
    except (AgentsimError, OSError) as error:
        reason = str(error).partition("\n")[0]
        reason = reason.removeprefix(f"{path}: ").removeprefix(f"{path}/")
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        # A file of somebody else's that happens to have our name.
        reason = f"its files are no run's: {type(error).__name__}: {error}"
    return Listed(path=path, state="unreadable", reason=reason)


def _cells_of(folder: Path) -> list[Listed]:
    """The runs of a sweep's cells, in order; of a cell that was begun anew, the last one."""
    cells = SweepDirectory(folder).read().cells
    return [_listed(folder / cell.runs[-1]) for cell in cells if cell.runs]


def _read(path: Path) -> Listed:
    if is_sweep(path):
        return _read_sweep(path)
    directory = RunDirectory.open(path)
    run = load_run(path)
    manifest = run.manifest
    scenario = manifest.get("scenario") or {}
    rows = [row for part in parts(directory, "announcements") for row in _rounds(read_part(part))]
    last = max((row["round"] for row in rows), default=None)
    of_last = [row for row in rows if row["round"] == last]
    return Listed(
        path=path,
        state=run.state,
        name=str(scenario.get("name") or ""),
        started=str(manifest.get("created") or ""),
        agents=scenario.get("agents"),
        rounds=scenario.get("rounds"),
        sessions=scenario.get("sessions"),
        rounds_settled=len(rows),
        settled=sum(row["n"] for row in rows),
        valid=sum(row["ok"] for row in rows),
        round=last,
        mean=_mean(of_last, "mean"),
        target=_mean(of_last, "target"),
        rule=manifest.get("rule"),
    )


def _read_sweep(path: Path) -> Listed:
    sweep = SweepDirectory(path).read()
    return Listed(
        path=path,
        state=sweep.state,
        name=sweep.name,
        started=sweep.created,
        cells=dict(Counter(cell.state for cell in sweep.cells)),
    )


def _rounds(announcements: pa.Table) -> Iterator[dict[str, Any]]:
    """A row for each (session, round): of the session, or its groups together."""
    by_round: dict[tuple[int, int], list[dict[str, Any]]] = {}
    for row in announcements.to_pylist():
        by_round.setdefault((row["session"], row["round"]), []).append(row)
    for rows in by_round.values():
        whole = [row for row in rows if row.get("group") is None]
        if whole:
            yield from whole
            continue
        ok = sum(row["ok"] for row in rows)
        total = math.fsum(row["ok"] * row["mean"] for row in rows if row["mean"] is not None)
        yield {
            "session": rows[0]["session"],
            "round": rows[0]["round"],
            "n": sum(row["n"] for row in rows),
            "ok": ok,
            "mean": total / ok if ok else None,
            # Each group is a market of its own: there is no target for all.
            "target": None,
        }


def _mean(rows: Sequence[dict[str, Any]], key: str) -> float | None:
    values = [row[key] for row in rows if row[key] is not None]
    return math.fsum(values) / len(values) if values else None


def _cells(run: Listed) -> tuple[str, ...]:
    if run.state == "unreadable":
        return (printable(run.path.name), NOTHING, run.state, *[NOTHING] * 3)
    number = Number.of(run.rule)
    return (
        printable(run.name) or NOTHING,
        _when(run.started),
        run.state,
        share(run.valid, run.settled),
        number(run.mean),
        number(run.target),
    )


def _size(run: Listed) -> str:
    if run.agents is None or run.rounds is None or run.sessions is None:
        return ""
    return "x".join(map(count, (run.agents, run.rounds, run.sessions))) + "  "


def _when(started: str) -> str:
    """Local time, to the minute."""
    try:
        return f"{datetime.fromisoformat(started).astimezone():%Y-%m-%d %H:%M}"
    except ValueError:
        return NOTHING


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    """Words to the left, numbers to the right."""
    shown = []
    for i, (cell, width) in enumerate(zip(cells, widths, strict=True)):
        cell = cell if len(cell) <= width else cell[: max(width - 1, 1)] + "~"
        shown.append(cell.ljust(width) if i < 3 else cell.rjust(width))
    return "  ".join(shown).rstrip()
