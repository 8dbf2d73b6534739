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
from agentsim.config import (
    Loaded,
    LoadedSweep,
    LoadedWorkflow,
    differences,
    load_recorded,
    load_runs,
)
from agentsim.errors import LimitReached, RunError, UserError
from agentsim.games import GAMES
from agentsim.orchestrator.observer import Silent
from agentsim.report.text import plain, render
from agentsim.results import RunDirectory, default_path, read_manifest, read_summary
from agentsim.results.sweep import Asked, is_sweep
from agentsim.run import run


def execute(
    file: Path,
    overrides: Sequence[tuple[str, str, str]],
    *,
    hosts: Path | None,
    workers: int | None,
    out: Path | None,
    resume: Path | None,
    quiet: bool,
    json: bool,
) -> int:
    """Load, run and show; the exit code.

    Raises:
        AgentsimError: the files are wrong, or the run failed.
    """
    asked = Asked(
        folder=str(Path.cwd()),
        file=str(file.absolute()),
        overrides=tuple(overrides),
        hosts=None if hosts is None else str(hosts.absolute()),
        workers=workers,
    )
    loaded = load_runs(file, games=GAMES, overrides=overrides, hosts=hosts, workers=workers)
    if isinstance(loaded, LoadedSweep):
        return _sweep(loaded, asked, out=out, resume=resume, quiet=quiet, json=json)
    if resume is None:
        path = out or default_path(loaded.scenario.name, datetime.now())
        return _carry_out(loaded, path, resume=False, quiet=quiet, json=json)
    if out is not None:
        raise UserError("--out and --resume: a run that goes on stays where it is")
    manifest = read_manifest(RunDirectory.open(resume).path)
    if isinstance(loaded, LoadedWorkflow):
        raise UserError(f"{file}: the run of a program cannot go on; start it again")
    if other := differences(manifest, loaded):
        listed = "".join(f"\n  {line}" for line in other)
        raise UserError(
            f"{resume}: was begun with another scenario, so it cannot go on with {file}:{listed}\n"
            f"To go on with what it was begun with: agentsim resume {resume}"
        )
    return _carry_out(loaded, resume, resume=True, quiet=quiet, json=json)


def _sweep(
    loaded: LoadedSweep,
    asked: Asked,
    *,
    out: Path | None,
    resume: Path | None,
    quiet: bool,
    json: bool,
) -> int:
    """Play a sweep, or go on with it."""
    # Its parts come when they are asked for: a single run does without.
    from agentsim.cli.sweeps import play_sweep, resume_sweep
    from agentsim.sweep import begin

    if resume is not None:
        return resume_sweep(resume, retry_failed=False, quiet=quiet, json=json, asked=loaded)
    path = out or default_path(loaded.name, datetime.now())
    directory = begin(loaded, path, asked, _command())
    return play_sweep(loaded, directory, quiet=quiet, json=json)


def go_on(
    path: Path,
    limits: Sequence[tuple[str, str, str]],
    *,
    hosts: Path | None,
    workers: int | None,
    retry_failed: bool,
    quiet: bool,
    json: bool,
) -> int:
    """Go on with a run, by what its own directory says; the exit code.

    Raises:
        AgentsimError: there is no such run, or it failed.
    """
    if is_sweep(path):
        from agentsim.cli.sweeps import resume_sweep
        from agentsim.sweep import Changes

        changes = Changes(tuple(limits), hosts, workers)
        return resume_sweep(
            path, retry_failed=retry_failed, quiet=quiet, json=json, changes=changes
        )
    manifest = read_manifest(RunDirectory.open(path).path)
    loaded = load_recorded(
        manifest, str(path), games=GAMES, limits=limits, hosts=hosts, workers=workers
    )
    return _carry_out(loaded, path, resume=True, quiet=quiet, json=json)


def _carry_out(
    loaded: Loaded | LoadedWorkflow, path: Path, *, resume: bool, quiet: bool, json: bool
) -> int:
    """Run and show."""
    if resume and _is_finished(path):
        print(f"{path}: has finished; there is nothing to go on with", file=sys.stderr)
    else:
        console = Console(stderr=True)
        work, live = _prepared(loaded, path, None if quiet or json else console, resume=resume)
        try:
            with live:
                code = uvloop.run(until_signal(work))
        except RunError as error:
            raise _with_next_step(error, loaded, path) from error
        if code:
            print(f"interrupted; what was completed is in {path}", file=sys.stderr)
            if isinstance(loaded, Loaded):
                print(f"to go on: agentsim resume {path}", file=sys.stderr)
            return code
    if json:
        sys.stdout.write((path / "summary.json").read_text())
    elif quiet:
        print(path)
    else:
        _show_end(loaded, path)
    return 0


def _is_finished(path: Path) -> bool:
    directory = RunDirectory(path)
    return directory.summary.exists() and read_summary(path)["run"]["state"] == "finished"


def _with_next_step(error: RunError, loaded: Loaded | LoadedWorkflow, path: Path) -> RunError:
    """The error of a run that can go on, with how."""
    if isinstance(loaded, LoadedWorkflow) or not RunDirectory(path).journal.exists():
        return error
    step = f"agentsim resume {path}"
    if isinstance(error, LimitReached):
        step += " --set KEY=VALUE, with another limit"
    error.args = (f"{error}\nto go on: {step}", *error.args[1:])
    return error


def _prepared(
    loaded: Loaded | LoadedWorkflow, path: Path, console: Console | None, *, resume: bool
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
    work = run(loaded, path, live or Silent(), _command(), resume=resume)
    return work, live or nullcontext()


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
