"""Runs a loaded scenario for the command line: progress, signals, the end."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from datetime import datetime
from pathlib import Path

import uvloop
from rich.console import Console

from agentsim.cli.live import Live
from agentsim.config import Loaded, load
from agentsim.games import GAMES
from agentsim.orchestrator.observer import Observer, Silent
from agentsim.report.text import plain, render
from agentsim.results import default_path, read_manifest, read_summary
from agentsim.run import run

_EXIT_CODES = {signal.SIGINT: 130, signal.SIGTERM: 143}


def execute(
    file: Path,
    overrides: Sequence[tuple[str, str, str]],
    *,
    hosts: Path | None,
    workers: int | None,
    out: Path | None,
    quiet: bool,
    json: bool,
) -> int:
    """Load, run and show; the exit code.

    Raises:
        AgentsimError: the files are wrong, or the run failed.
    """
    loaded = load(file, games=GAMES, overrides=overrides, hosts=hosts, workers=workers)
    path = out or default_path(loaded.scenario.name, datetime.now())
    console = Console(stderr=True)
    live = None if quiet or json else _live(loaded, console)
    with live or nullcontext():
        code = uvloop.run(_until_signal(loaded, path, live or Silent()))
    if code:
        print(f"interrupted; what was completed is in {path}", file=sys.stderr)
        return code
    if json:
        sys.stdout.write((path / "summary.json").read_text())
    elif quiet:
        print(path)
    else:
        shown = read_summary(path), read_manifest(path)
        if sys.stdout.isatty():
            Console().print(render(*shown, path=path))
        else:
            sys.stdout.write(plain(*shown, path=path))
    return 0


def _live(loaded: Loaded, console: Console) -> Live:
    scenario = loaded.scenario
    return Live(
        sessions=scenario.sessions,
        rounds=scenario.rounds,
        agents=scenario.agents,
        console=console,
    )


async def _until_signal(loaded: Loaded, path: Path, observer: Observer) -> int:
    """Run to the end, or in good order to an early end at Ctrl-C or SIGTERM."""
    loop = asyncio.get_running_loop()
    task = asyncio.ensure_future(run(loaded, path, observer))
    got: list[signal.Signals] = []

    def stop(number: signal.Signals) -> None:
        got.append(number)
        task.cancel()
        # A second one ends the program at once; its nodes notice and end by themselves.
        loop.remove_signal_handler(number)

    for number in _EXIT_CODES:
        loop.add_signal_handler(number, stop, number)
    try:
        await task
    except asyncio.CancelledError:
        if not got:
            raise
        return _EXIT_CODES[got[0]]
    return 0
