"""Plays the cells of a sweep one after the other; what is in its directory says how far it is."""

from __future__ import annotations

import asyncio
import contextlib
from contextlib import AbstractContextManager, AsyncExitStack
from pathlib import Path
from typing import Any, Protocol

import msgspec

from agentsim.config import Hostfile, Loaded, LoadedCell, LoadedSweep, LoadedWorkflow
from agentsim.errors import AgentsimError, DiskFull
from agentsim.launch import MakeLauncher, held_locally
from agentsim.orchestrator.observer import Watcher
from agentsim.results import RunDirectory
from agentsim.results.sweep import Cell, State, SweepDirectory
from agentsim.results.sweep_table import row, write_table
from agentsim.run import run
from agentsim.sweep.begin import api_keys, command_of
from agentsim.sweep.people import SharedPeople
from agentsim.workflow.pipeline import run_workflow


class Screen(Protocol):
    """Shows how a sweep goes."""

    def people(self, cell: LoadedCell) -> AbstractContextManager[Watcher]:
        """Around the making of people that this cell and later ones share."""

    def cell(self, cell: LoadedCell) -> AbstractContextManager[Any]:
        """Around a cell's run: gives the observer of a game or of a workflow."""

    def ended(self, row: dict[str, Any]) -> None:
        """A cell has ended; `row` is as of `results.sweep_table`."""


async def run_sweep(
    loaded: LoadedSweep,
    directory: SweepDirectory,
    screen: Screen,
    *,
    retry_failed: bool = False,
) -> None:
    """Play what is not finished of a sweep, and write its table.

    A cell that fails does not end the others. What was finished before is not played again.

    Args:
        loaded: its cells.
        directory: was made before; see `begin`.
        screen: shows how it goes.
        retry_failed: whether cells that failed before are tried again.

    Raises:
        UserError: a key is missing.
        ResultsError: another process runs the same sweep.
        DiskFull: there is no room for this cell or any other.
        asyncio.CancelledError: it was interrupted; so says the cell that was played.
    """
    keys = api_keys(loaded)
    with directory.held():
        runner = _Runner(loaded, directory, screen)
        try:
            async with _Nodes(directory.logs, keys) as nodes:
                for cell in loaded.cells:
                    if runner.wants(cell.number, retry_failed=retry_failed):
                        await runner.play(cell, nodes)
        except BaseException:
            with contextlib.suppress(AgentsimError):  # what ended the sweep is the news
                runner.write_table()
            raise
        runner.write_table()


class _Runner:
    """Plays cells and keeps sweep.json."""

    def __init__(self, loaded: LoadedSweep, directory: SweepDirectory, screen: Screen) -> None:
        self._directory = directory
        self._sweep = directory.read(held=True)
        self._screen = screen
        self._people = SharedPeople(directory, loaded)

    def wants(self, number: int, *, retry_failed: bool) -> bool:
        """Whether a cell is to be played."""
        state = self._sweep.cells[number - 1].state
        return state != "finished" and (state != "failed" or retry_failed)

    async def play(self, cell: LoadedCell, nodes: _Nodes) -> None:
        """Play one cell; that it failed is noted, not raised."""
        path, resume = self._begin(cell)
        command = command_of(self._sweep.asked, cell)
        try:
            launcher = await nodes.launcher(cell.loaded.hostfile)
            loaded = await self._people.given_to(cell, lambda: self._screen.people(cell), launcher)
            with self._screen.cell(cell) as observer:
                if isinstance(loaded, LoadedWorkflow):
                    await run_workflow(loaded, path, observer, command, launcher=launcher)
                else:
                    await run(loaded, path, observer, command, launcher=launcher, resume=resume)
        except (asyncio.CancelledError, KeyboardInterrupt, DiskFull):
            self._end(cell.number, "interrupted")
            raise
        except AgentsimError as error:
            self._end(cell.number, "failed", str(error).partition("\n")[0])
            await nodes.end()
        except BaseException as error:
            self._end(cell.number, "failed", f"a bug: {type(error).__name__}: {error}")
            raise
        else:
            self._end(cell.number, "finished")

    def write_table(self) -> None:
        """Write the table as it stands."""
        write_table(self._directory, self._sweep)

    def _begin(self, cell: LoadedCell) -> tuple[Path, bool]:
        """Note that a cell is played.

        Returns:
            The directory of its run, and whether a run is there to go on with: of a game that was
            begun. A program of the user's cannot go on; it has a new directory each time.
        """
        record = self._sweep.cells[cell.number - 1]
        path = self._directory.cells / record.name
        if record.runs:
            last = self._directory.path / record.runs[-1]
            if isinstance(cell.loaded, Loaded) and RunDirectory(last).manifest.exists():
                self._set(cell.number, state="running", reason="")
                return last, True
        again = 1
        while path.exists():
            again += 1
            path = self._directory.cells / f"{record.name}.{again}"
        inside = str(path.relative_to(self._directory.path))
        runs = (*(name for name in record.runs if name != inside), inside)
        self._set(cell.number, state="running", reason="", runs=runs)
        return path, False

    def _end(self, number: int, state: State, reason: str = "") -> None:
        record = self._set(number, state=state, reason=reason)
        self._screen.ended(row(self._directory, record))

    def _set(self, number: int, **changes: Any) -> Cell:
        cells = list(self._sweep.cells)
        cells[number - 1] = msgspec.structs.replace(cells[number - 1], **changes)
        self._sweep = msgspec.structs.replace(self._sweep, cells=tuple(cells))
        self._directory.write(self._sweep)
        return cells[number - 1]


class _Nodes:
    """Nodes that stay from cell to cell while the hostfile is the same and nothing fails.

    Args:
        logs: where they log.
        keys: of all cells' model endpoints.
    """

    def __init__(self, logs: Path, keys: dict[str, str]) -> None:
        self._logs = logs
        self._keys = keys
        self._hostfile: Hostfile | None = None
        self._launcher: MakeLauncher | None = None
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> _Nodes:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.end()

    async def launcher(self, hostfile: Hostfile) -> MakeLauncher | None:
        """What makes the launcher of a run; None: each run looks at its hosts and starts nodes.

        Nodes on this machine are held over all cells; a cluster's stay by themselves.
        """
        if hostfile != self._hostfile:
            await self.end()
            if hostfile.launcher == "local" and hostfile.cluster is None:
                held = held_locally(hostfile, self._logs, self._keys)
                self._launcher = await self._stack.enter_async_context(held)
            self._hostfile = hostfile
        return self._launcher

    async def end(self) -> None:
        """End the nodes; the next cell has new ones."""
        self._hostfile = self._launcher = None
        await self._stack.aclose()
