"""Runs a loaded scenario for the command line: progress, signals, the end."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Coroutine, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime
from pathlib import Path

import uvloop
from rich.console import Console

from agentsim.cli.live import Live
from agentsim.cli.signals import until_signal
from agentsim.config import Loaded, LoadedSweep, LoadedWorkflow, load_runs
from agentsim.games import GAMES
from agentsim.orchestrator.observer import Silent
from agentsim.report.text import plain, render
from agentsim.results import default_path, read_manifest, read_summary
from agentsim.run import run


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
    loaded = load_runs(file, games=GAMES, overrides=overrides, hosts=hosts, workers=workers)
    if isinstance(loaded, LoadedSweep):
        # Its parts come when they are asked for: a single run does without.
        from agentsim.cli.sweeps import play_sweep
        from agentsim.results.sweep import Asked
        from agentsim.sweep import begin

        asked = Asked(
            folder=str(Path.cwd()),
            file=str(file.absolute()),
            overrides=tuple(overrides),
            hosts=None if hosts is None else str(hosts.absolute()),
            workers=workers,
        )
        path = out or default_path(loaded.name, datetime.now())
        directory = begin(loaded, path, asked, _command())
        return play_sweep(loaded, directory, command=_command(), quiet=quiet, json=json)
    path = out or default_path(loaded.scenario.name, datetime.now())
    console = Console(stderr=True)
    work, live = _prepared(loaded, path, None if quiet or json else console)
    with live:
        code = uvloop.run(until_signal(work))
    if code:
        print(f"interrupted; what was completed is in {path}", file=sys.stderr)
        return code
    if json:
        sys.stdout.write((path / "summary.json").read_text())
    elif quiet:
        print(path)
    else:
        _show_end(loaded, path)
    return 0


def _prepared(
    loaded: Loaded | LoadedWorkflow, path: Path, console: Console | None
) -> tuple[Coroutine[None, None, None], AbstractContextManager[object]]:
    """The run, and the live view around it; no console: nothing is shown."""
    if isinstance(loaded, LoadedWorkflow):
        # Their parts come when they are asked for: games do without.
        from agentsim.cli.live_workflow import LiveWorkflow
        from agentsim.workflow import Silent as Unseen
        from agentsim.workflow.pipeline import run_workflow

        seen = LiveWorkflow(console) if console else None
        return run_workflow(loaded, path, seen or Unseen(), _command()), seen or nullcontext()
    scenario = loaded.scenario
    live = None
    if console:
        live = Live(
            sessions=scenario.sessions,
            rounds=scenario.rounds,
            agents=scenario.agents,
            console=console,
        )
    return run(loaded, path, live or Silent(), _command()), live or nullcontext()


def _command() -> str:
    """What the user typed, as a shell would take it."""
    return shlex.join(["agentsim", *sys.argv[1:]])


def _show_end(loaded: Loaded | LoadedWorkflow, path: Path) -> None:
    summary = read_summary(path)
    if isinstance(loaded, LoadedWorkflow):
        from agentsim.report.workflow import plain_workflow, render_workflow

        end, text = render_workflow(summary, path=path), plain_workflow(summary, path=path)
    else:
        manifest = read_manifest(path)
        end, text = render(summary, manifest, path=path), plain(summary, manifest, path=path)
    if sys.stdout.isatty():
        Console().print(end)
    else:
        sys.stdout.write(text)
