"""Small sweeps whose cells are played by a stand-in."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from agentsim.config import LoadedCell, LoadedSweep, load_runs
from agentsim.games import GAMES
from agentsim.orchestrator.observer import Silent, Watcher
from agentsim.results import Journal, Kind, RunDirectory, RunEnd, to_json
from agentsim.results.sweep import Asked, SweepDirectory
from agentsim.sweep import begin, run_sweep, runner

SCENARIO = """\
name: small
agents: 4
rounds: 2
game: {type: guess_average}
model: {backend: random}
"""
POPULATION = "attributes: {gender: {categories: {female: 0.5, male: 0.5}}}\n"


class Shown:
    """A screen that remembers what it was told."""

    def __init__(self) -> None:
        self.people_of: list[int] = []
        self.cells: list[int] = []
        self.rows: list[dict[str, Any]] = []

    @contextmanager
    def people(self, cell: LoadedCell) -> Iterator[Watcher]:
        self.people_of.append(cell.number)
        yield Silent()

    @contextmanager
    def cell(self, cell: LoadedCell) -> Iterator[Any]:
        self.cells.append(cell.number)
        yield Silent()

    def ended(self, row: dict[str, Any]) -> None:
        self.rows.append(row)

    @property
    def states(self) -> list[str]:
        return [row["state"] for row in self.rows]


class Stand:
    """Plays cells in place of `run`: makes a directory, then does what it is told by seed."""

    def __init__(self) -> None:
        self.played: list[Path] = []
        self.resumed: list[bool] = []
        self.made: list[Any] = []
        self.faults: dict[int, BaseException] = {}

    async def run(self, loaded: Any, path: Path, *_: Any, **options: Any) -> None:
        self.played.append(path)
        self.resumed.append(options["resume"])
        self.made.append(loaded.made)
        await asyncio.sleep(0)
        fault = self.faults.get(loaded.scenario.seed)
        if not options["resume"]:
            directory = RunDirectory.create(path)
            directory.manifest.write_text("{}")
            journal = Journal.create(directory.journal)
        else:
            journal = Journal.open(RunDirectory(path).journal)
        cancelled = isinstance(fault, asyncio.CancelledError)
        state = "finished" if fault is None else "interrupted" if cancelled else "failed"
        with journal:
            journal.append(Kind.END, to_json(RunEnd(state, reason=str(fault or ""))))
        (path / "summary.json").write_text(json.dumps({"run": {"state": state}}))
        if fault is not None:
            raise fault


def read(folder: Path, sweep: str, *, more: str = "") -> LoadedSweep:
    """A scenario with a sweep in a folder, read."""
    path = folder / "small.yaml"
    path.write_text(SCENARIO + more + f"sweep: {sweep}\n")
    (folder / "people.yaml").write_text(POPULATION)
    loaded = load_runs(path, games=GAMES)
    assert isinstance(loaded, LoadedSweep)
    return loaded


def begun(loaded: LoadedSweep, folder: Path) -> SweepDirectory:
    """Its directory."""
    asked = Asked(folder=str(folder), file=str(folder / "small.yaml"))
    return begin(loaded, folder / "out", asked, "agentsim run small.yaml")


def play(loaded: LoadedSweep, directory: SweepDirectory, **options: Any) -> Shown:
    """Play what is not finished."""
    shown = Shown()
    asyncio.run(run_sweep(loaded, directory, shown, **options))
    return shown


@asynccontextmanager
async def no_nodes(*_: Any) -> AsyncIterator[None]:
    """In place of `held_locally`."""
    yield None


def stand_in(monkeypatch: pytest.MonkeyPatch, *, nodes: bool = False) -> Stand:
    """Let a stand-in play games, for which nodes are held only if wished: it needs none."""
    stand = Stand()
    monkeypatch.setattr(runner, "run", stand.run)
    if not nodes:
        monkeypatch.setattr(runner, "held_locally", no_nodes)
    return stand
