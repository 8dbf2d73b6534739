"""Runs that are killed on purpose, and what is left of them."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from whole_runs import Program

from agentsim.results import Kind, frames, load_run
from agentsim.rpc.codec import decode
from agentsim.rpc.messages import Attempt

KILLED_RUN = Path(__file__).parent / "killed_run.py"


def killed(program: Program, point: str, *args: str | Path) -> int:
    """Run a command that is killed at a point; its exit code: 0 when it ended before."""
    process = subprocess.run(
        [sys.executable, KILLED_RUN, point, *map(str, args)],
        env=program.env,
        cwd=program.folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert process.returncode in (0, -9), process.stderr.decode()
    return process.returncode


def actions(path: Path) -> pd.DataFrame:
    """A run's actions without what time has a part in."""
    frame = load_run(path).actions
    return frame.drop(columns=[name for name in ("latency_s",) if name in frame])


def announcements(path: Path) -> pd.DataFrame:
    return load_run(path).announcements.drop(columns="wall_s")


def assert_equal_tables(path: Path, other: Path) -> None:
    """Two runs have the same tables, value by value."""
    pd.testing.assert_frame_equal(actions(path), actions(other))
    pd.testing.assert_frame_equal(announcements(path), announcements(other))


def journaled(path: Path) -> list[Attempt]:
    """The attempts that stand in a run's journal."""
    found: list[Attempt] = []
    for frame in frames(path / "journal.log", only=(Kind.ATTEMPTS,)):
        found += decode(frame.body, list[Attempt])
    return found


def chain(
    program: Program, file: Path, out: str, points: Sequence[str], *options: str
) -> dict[str, Any]:
    """Run a scenario, killed at each point in turn, then to its end; the summary's part `run`."""
    command: tuple[str | Path, ...] = ("run", file, "--out", out, *options)
    for point in points:
        if killed(program, point, *command, "--quiet") == 0:
            break
        command = ("resume", out)
    else:
        program.run(*command, "--quiet", timeout_s=120)
    run: dict[str, Any] = load_run(program.folder / out).summary["run"]
    assert run["state"] == "finished"
    return run
