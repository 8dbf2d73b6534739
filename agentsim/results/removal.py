"""Removing runs and sweeps: what would go, and nothing that is no run or is being written."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentsim.errors import AgentsimError, UserError
from agentsim.results import lock
from agentsim.results.directory import TABLES, RunDirectory
from agentsim.results.framing import is_being_written
from agentsim.results.manifest import read_manifest
from agentsim.results.parts import table_rows
from agentsim.results.storage import failure
from agentsim.results.summary import run_end
from agentsim.results.sweep import SweepDirectory, is_sweep


@dataclass(frozen=True, slots=True)
class Doomed:
    """A run or a sweep that somebody wants removed.

    Attributes:
        path: its directory.
        name: of the scenario.
        state: as of `run_end`, or of a sweep.
        size_bytes: of all files in it.
        rows: of actions and requests.
        cells: of a sweep; None for a run.
    """

    path: Path
    name: str
    state: str
    size_bytes: int
    rows: int
    cells: int | None = None


def look_at(path: Path) -> Doomed:
    """What would be removed.

    Raises:
        UserError: no run or sweep is there, it is being written, or it cannot go alone.
        ResultsError: it cannot be read.
    """
    if path.is_symlink():
        raise UserError(f"{path}: is a link; name the directory itself")
    if not path.is_dir():
        what = "is not a directory" if path.exists() else "does not exist"
        raise UserError(f"{path}: no run is here: it {what}")
    sweep = _sweep_of(path)
    if sweep is not None:
        raise UserError(f"{path}: is a cell of the sweep {sweep}, which goes as a whole")
    if Path.cwd().is_relative_to(path.resolve()):
        raise UserError(f"{path}: is where you are; go elsewhere first")
    if is_sweep(path):
        return _sweep(path)
    return _run(path)


def remove(doomed: Doomed) -> None:
    """Remove it.

    Raises:
        ResultsError: it is being written by now, or cannot be removed.
    """
    path = doomed.path
    # Under another name first: what is half gone must not look like a run.
    away = path.resolve().with_name(f".{path.resolve().name}.{secrets.token_hex(3)}.removed")
    try:
        with _locked(doomed):
            path.rename(away)
        shutil.rmtree(away)
    except OSError as error:
        left = f"; what is left is in {away}" if away.exists() else ""
        raise failure(path, f"cannot be removed{left}", error) from error


def _locked(doomed: Doomed) -> contextlib.AbstractContextManager[None]:
    if doomed.cells is not None:
        return SweepDirectory(doomed.path).held()
    journal = RunDirectory(doomed.path).journal
    return lock.held(journal) if journal.exists() else contextlib.nullcontext()


def _run(path: Path) -> Doomed:
    directory = RunDirectory(path)
    manifest: dict[str, Any] = {}
    state, problem = "", "neither manifest.json nor journal.log is in it"
    # One of the two is enough: damaged runs can go.
    if directory.manifest.exists():
        try:
            manifest = read_manifest(path)
        except AgentsimError as error:
            problem = str(error)
    if directory.journal.exists():
        try:
            state = run_end(directory)[0]
        except AgentsimError as error:
            problem = str(error)
        if is_being_written(directory.journal):
            raise UserError(f"{path}: is being written; end the run first")
    if not state and not manifest.get("run_id"):
        raise UserError(f"{path}: no run is here, and nothing else is removed: {problem}")
    scenario = manifest.get("scenario") or {}
    return Doomed(
        path=path,
        name=str(scenario.get("name") or path.name),
        state=state or "unreadable",
        size_bytes=_size(path),
        rows=_rows(directory),
    )


def _sweep(path: Path) -> Doomed:
    directory = SweepDirectory(path)
    sweep = directory.read()
    if directory.is_being_written():
        raise UserError(f"{path}: is being written; end the sweep first")
    runs = [RunDirectory(path / run) for cell in sweep.cells for run in cell.runs]
    for run in runs:
        if run.journal.exists() and is_being_written(run.journal):
            raise UserError(f"{run.path}: is being written; end the run first")
    return Doomed(
        path=path,
        name=sweep.name,
        state=sweep.state,
        size_bytes=_size(path),
        rows=sum(_rows(run) for run in runs),
        cells=len(sweep.cells),
    )


def _sweep_of(path: Path) -> Path | None:
    """The sweep that a directory is a cell of."""
    whole = path.resolve().parent.parent
    return whole if path.resolve().parent.name == "cells" and is_sweep(whole) else None


def _rows(directory: RunDirectory) -> int:
    """Rows of actions and requests, as far as they can be told."""
    total = 0
    for name in TABLES[:2]:
        with contextlib.suppress(AgentsimError, OSError):
            total += table_rows(directory, name)
    return total


def _size(path: Path) -> int:
    return sum(_sizes(path))


def _sizes(path: Path) -> Iterator[int]:
    for folder, _, names in os.walk(path):
        for name in names:
            with contextlib.suppress(OSError):
                yield (Path(folder) / name).lstat().st_size
