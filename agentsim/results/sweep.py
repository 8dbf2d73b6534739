"""The directory of a sweep: which runs it is made of, and how far each is.

sweep.json     what was asked for, and each cell with what it sets, its state and its runs
cells/         a run's directory for each cell; one that was begun anew has a second
personas/      people that several cells share
logs/          of nodes that stay over the cells
summary.json   a row a cell; sweep.csv has the same
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import msgspec

from agentsim.errors import ResultsError
from agentsim.results import lock
from agentsim.results.directory import SWEEP, RunDirectory
from agentsim.results.manifest import without_secrets
from agentsim.results.storage import failure, read_json, write_json
from agentsim.results.summary import run_end
from agentsim.version import __version__

FORMAT = 1
"""Version of the layout."""
State = Literal["waiting", "running", "finished", "failed", "interrupted"]
_NAME = 56
_SAFE = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._")


class Cell(msgspec.Struct, frozen=True, kw_only=True):
    """One cell of a sweep.

    Attributes:
        number: from 1.
        name: of its run's directory in `cells`.
        words: what it sets, for people.
        set: the same as data: values by dotted key.
        scenario: what is played, as its model dumps it.
        people: digest of its population, or of where its people come from; empty for none.
        state: how far it is.
        reason: why it failed; else empty.
        runs: directories of its runs within the sweep's, the last one last.
    """

    number: int
    name: str
    words: str
    set: dict[str, Any]
    scenario: dict[str, Any]
    people: str = ""
    state: State = "waiting"
    reason: str = ""
    runs: tuple[str, ...] = ()


class Sweep(msgspec.Struct, frozen=True, kw_only=True):
    """The contents of sweep.json.

    Attributes:
        id: tells sweeps apart.
        name: the scenario's.
        created: UTC, ISO 8601.
        command: what the user asked for.
        asked: how the scenario was read, so that it can be read again.
        cells: in order.
        files: resolved path of each file → its sha256 and text.
    """

    format: int
    agentsim: str
    id: str
    name: str
    created: str
    command: str
    asked: Asked
    cells: tuple[Cell, ...]
    files: dict[str, dict[str, str]]

    @property
    def keys(self) -> tuple[str, ...]:
        """What the cells set, in the order in which it was written."""
        return tuple(dict.fromkeys(key for cell in self.cells for key in cell.set))

    def count(self, state: State) -> int:
        """Cells of a state."""
        return sum(cell.state == state for cell in self.cells)

    @property
    def state(self) -> State:
        """Of the whole: what some cell still needs comes first."""
        for state in ("running", "interrupted", "waiting", "failed"):
            if self.count(state):
                return "interrupted" if state == "waiting" else state
        return "finished"


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """How a scenario was read.

    Attributes:
        folder: the current directory, absolute.
        file: absolute path of the scenario.
        overrides: dotted key, YAML text and flag of each value of the command line.
        hosts: absolute path of the hostfile of the command line.
        workers: for each host, of the command line.
    """

    folder: str
    file: str
    overrides: tuple[tuple[str, str, str], ...] = ()
    hosts: str | None = None
    workers: int | None = None


@dataclass(frozen=True, slots=True)
class SweepDirectory:
    """Paths of one sweep.

    Attributes:
        path: the directory.
    """

    path: Path

    @property
    def manifest(self) -> Path:
        """What was asked for, and how far it is: JSON."""
        return self.path / SWEEP

    @property
    def cells(self) -> Path:
        """Directory of the runs."""
        return self.path / "cells"

    @property
    def personas(self) -> Path:
        """Directory of people that several cells share."""
        return self.path / "personas"

    @property
    def logs(self) -> Path:
        """Directory of the logs of nodes that stay over the cells."""
        return self.path / "logs"

    @property
    def summary(self) -> Path:
        """A row a cell: JSON."""
        return self.path / "summary.json"

    @property
    def table(self) -> Path:
        """A row a cell: CSV."""
        return self.path / "sweep.csv"

    @property
    def _lock(self) -> Path:
        return self.path / "sweep.held"

    def create(self, sweep: Sweep) -> None:
        """Make the directory of a new sweep, and its parents.

        Raises:
            ResultsError: it exists, or cannot be made.
        """
        try:
            self.path.mkdir(parents=True)
            for folder in (self.cells, self.personas, self.logs):
                folder.mkdir()
            self._lock.touch()
        except FileExistsError:
            message = f"{self.path}: exists already; a sweep's directory is never overwritten"
            raise ResultsError(message) from None
        except OSError as error:
            raise failure(self.path, "cannot make the sweep's directory", error) from error
        self.write(sweep)

    def write(self, sweep: Sweep) -> None:
        """Write sweep.json, whole or not at all.

        Raises:
            ResultsError: it could not be written.
        """
        write_json(self.manifest, without_secrets(msgspec.to_builtins(sweep)))

    def read(self, *, held: bool = False) -> Sweep:
        """What sweep.json says, put right where a process was killed before it could.

        Args:
            held: whether the caller itself keeps others from running it.

        Raises:
            ResultsError: no sweep is there, or it cannot be read.
        """
        try:
            sweep = msgspec.convert(read_json(self.manifest), Sweep)
        except msgspec.ValidationError as error:
            raise ResultsError(f"{self.manifest}: is not a sweep's: {error}") from error
        if sweep.format != FORMAT:
            raise ResultsError(f"{self.manifest}: is of another version ({sweep.format})")
        if not held and self.is_being_written():
            return sweep
        cells = tuple(self._found(cell) for cell in sweep.cells)
        return msgspec.structs.replace(sweep, cells=cells)

    def _found(self, cell: Cell) -> Cell:
        """A cell that is said to run while nobody runs it, as its last run says."""
        if cell.state != "running":
            return cell
        state, reason = "interrupted", ""
        try:
            if cell.runs:
                state, end = run_end(RunDirectory(self.path / cell.runs[-1]))
                reason = end.reason if end else ""
        except ResultsError:
            pass  # it had hardly begun
        return msgspec.structs.replace(cell, state=state, reason=reason)

    def is_being_written(self) -> bool:
        """Whether a process runs the sweep, on this machine or another."""
        try:
            with self._lock.open("rb") as file:
                return lock.is_held(self._lock, file)
        except OSError:
            return False

    def held(self) -> AbstractContextManager[None]:
        """Keep other processes from running the same sweep.

        Raises:
            ResultsError: one does; the message says which.
        """
        return lock.held(self._lock)


def is_sweep(path: Path) -> bool:
    """Whether the directory of a sweep is at a path."""
    return SweepDirectory(path).manifest.is_file()


def make_sweep(
    name: str, cells: Sequence[Cell], asked: Asked, files: Mapping[str, str], command: str = ""
) -> Sweep:
    """The contents of a new sweep.json."""
    return Sweep(
        format=FORMAT,
        agentsim=__version__,
        id=secrets.token_hex(8),
        name=name,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        command=command,
        asked=asked,
        cells=tuple(cells),
        files={
            path: {"sha256": hashlib.sha256(text.encode()).hexdigest(), "text": text}
            for path, text in files.items()
        },
    )


def directory_name(number: int, settings: Mapping[str, str]) -> str:
    """A short and safe name for a cell's directory: `0001-prompt-direct+temperature-0.05`.

    There is no `=` in it: readers of Parquet take that for a column.

    Args:
        number: from 1.
        settings: values as they were written, by dotted key.
    """
    last = [key.rpartition(".")[2] for key in settings]
    parts = []
    for key, short in zip(settings, last, strict=True):
        own = short if last.count(short) == 1 else key
        parts.append(f"{_safe(own)}-{_safe(settings[key])}")
    words = "+".join(parts)
    if len(words) > _NAME:
        words = words[:_NAME].rstrip("-+.")
    return f"{number:04d}-{words}" if words else f"{number:04d}"


def _safe(text: str) -> str:
    kept = "".join(char if char in _SAFE else "-" for char in text)
    return "-".join(part for part in kept.split("-") if part) or "x"
