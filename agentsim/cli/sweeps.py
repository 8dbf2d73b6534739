"""Runs the cells of a sweep for the command line: progress, signals, the table at the end."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import uvloop
from rich.console import Console
from rich.text import Text

from agentsim.cli.signals import until_signal
from agentsim.config import Loaded, LoadedCell, LoadedSweep
from agentsim.orchestrator.observer import Silent, Watcher
from agentsim.report.sweep import one_line, plain_sweep, render_sweep
from agentsim.results.storage import read_json
from agentsim.results.sweep import SweepDirectory
from agentsim.sweep import Changes, read_again, refuse_other, run_sweep
from agentsim.workflow import Silent as SilentWorkflow


def play_sweep(
    loaded: LoadedSweep,
    directory: SweepDirectory,
    *,
    quiet: bool,
    json: bool,
    retry_failed: bool = False,
) -> int:
    """Play what is not finished of a sweep and show its table; the exit code.

    Raises:
        AgentsimError: it could not be played at all.
    """
    screen = CellsOnScreen(len(loaded.cells), None if quiet or json else Console(stderr=True))
    work = run_sweep(loaded, directory, screen, retry_failed=retry_failed)
    code = uvloop.run(until_signal(work))
    contents = read_json(directory.summary)
    if code:
        print(
            f"interrupted; what was completed is in {directory.path}, and "
            f"`agentsim resume {directory.path}` goes on",
            file=sys.stderr,
        )
        return code
    if json:
        sys.stdout.write(directory.summary.read_text())
    elif quiet:
        print(directory.path)
    elif sys.stdout.isatty():
        Console().print(render_sweep(contents, path=directory.path))
    else:
        sys.stdout.write(plain_sweep(contents, path=directory.path))
    return _failed(contents, directory.path, listed=not quiet and not json)


def resume_sweep(
    path: Path,
    *,
    retry_failed: bool,
    quiet: bool,
    json: bool,
    changes: Changes | None = None,
    asked: LoadedSweep | None = None,
) -> int:
    """Go on with a sweep; the exit code.

    Args:
        path: its directory.
        retry_failed: whether cells that failed are tried again.
        quiet, json: as for `play_sweep`.
        changes: what is other than before.
        asked: the scenario that the user named again, which must be the sweep's; it is played.

    Raises:
        AgentsimError: it could not be played at all.
    """
    directory = SweepDirectory(path)
    sweep = directory.read()
    if asked is not None:
        refuse_other(directory, sweep, asked)
    loaded = asked or read_again(directory, sweep, changes or Changes())
    return play_sweep(
        loaded,
        directory,
        quiet=quiet,
        json=json,
        retry_failed=retry_failed,
    )


def _failed(contents: dict[str, Any], path: Path, *, listed: bool) -> int:
    """Say at the end which cells failed and why; the exit code.

    Args:
        listed: whether the reasons were shown with the table.
    """
    failed = [row for row in contents["cells"] if row["state"] == "failed"]
    if not failed:
        return 0
    lines = (
        [] if listed else [f"  {row['number']} ({row['words']}): {row['reason']}" for row in failed]
    )
    lines.append(f"to try again: agentsim resume --retry-failed {path}")
    words = f"{len(failed)} of {len(contents['cells'])} cells failed"
    print("\n".join([f"agentsim: error: {words}", *lines]), file=sys.stderr)
    return 1


class CellsOnScreen:
    """A `sweep.Screen` for people.

    Args:
        cells: how many there are.
        console: where to show it; None: nowhere.
    """

    def __init__(self, cells: int, console: Console | None) -> None:
        self._cells = cells
        self._console = console

    @contextmanager
    def people(self, cell: LoadedCell) -> Iterator[Watcher]:
        """Around the making of people that this cell and later ones share."""
        if self._console is None:
            yield Silent()
            return
        from agentsim.cli.live import Live

        self._say(f"people of cell {cell.number}, for all cells that have the same", "bold")
        scenario = cell.loaded.scenario
        with Live(
            sessions=scenario.sessions, rounds=0, agents=scenario.agents, console=self._console
        ) as live:
            yield live

    @contextmanager
    def cell(self, cell: LoadedCell) -> Iterator[Any]:
        """Around a cell's run."""
        game = isinstance(cell.loaded, Loaded)
        if self._console is None:
            yield Silent() if game else SilentWorkflow()
            return
        self._say(f"cell {cell.number} of {self._cells}: {cell.words}", "bold")
        with self._live(cell, self._console) as live:
            yield live

    def ended(self, row: dict[str, Any]) -> None:
        """A cell has ended."""
        good = row["state"] == "finished"
        text = f"cell {row['number']} of {self._cells}: {one_line(row)}"
        self._say(text, "green" if good else "red")

    def _live(self, cell: LoadedCell, console: Console) -> Any:
        if isinstance(cell.loaded, Loaded):
            from agentsim.cli.live import Live

            scenario = cell.loaded.scenario
            return Live(
                sessions=scenario.sessions,
                rounds=scenario.rounds,
                agents=scenario.agents,
                console=console,
            )
        from agentsim.cli.live_workflow import LiveWorkflow

        return LiveWorkflow(console)

    def _say(self, text: str, style: str) -> None:
        if self._console is not None:
            self._console.print(Text(text, style), soft_wrap=True)
