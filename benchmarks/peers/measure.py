"""What a program and all processes that come of it cost. Standard library only."""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import platform
import random
import time
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

PROC = Path("/proc")
_TICKS = os.sysconf("SC_CLK_TCK")
_PR_SET_CHILD_SUBREAPER = 36


def arguments(description: str | None, agents: int) -> argparse.ArgumentParser:
    """The arguments that all peers have; `agents` is the default number of them."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--agents", type=int, default=agents, help="how many (%(default)s)")
    parser.add_argument("--rounds", type=int, default=1, help="calls of each (%(default)s)")
    parser.add_argument("--think", type=float, default=1.0, help="seconds a call (%(default)s)")
    parser.add_argument(
        "--jitter", type=float, default=0.1, help="seconds more or less, by agent (%(default)s)"
    )
    return parser


def thinking(options: argparse.Namespace) -> list[float]:
    """Seconds that each agent thinks about a call."""
    draw = random.Random(1)
    jitter = min(options.jitter, options.think)
    return [options.think + draw.uniform(-jitter, jitter) for _ in range(options.agents)]


class Cost:
    """Wall time and CPU time of a program, stage by stage, over all its processes.

    Orphans of its children become its own children, so that their time is not lost.
    """

    def __init__(self) -> None:
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        self.stages: dict[str, dict[str, float]] = {}
        started = int(_stat(PROC / "self")[19]) / _TICKS
        uptime = float((PROC / "uptime").read_text().split()[0])
        self._wall = time.monotonic() - (uptime - started)
        self._cpu = 0.0

    def stage(self, name: str) -> None:
        """Say that a stage ends here; the first one began with the process."""
        wall, cpu = time.monotonic(), self.cpu_s()
        self.stages[name] = {"wall_s": wall - self._wall, "cpu_s": cpu - self._cpu}
        self._wall, self._cpu = time.monotonic(), cpu

    def cpu_s(self) -> float:
        """Seconds of CPU so far, user and system, of this process and all that came of it."""
        own = time.process_time()
        ended = os.times()  # children that were waited for
        others = sum(_cpu_s(pid) for pid in descendants(os.getpid()))
        return own + ended.children_user + ended.children_system + others

    def report(
        self, peer: str, answers: Sequence[float], options: argparse.Namespace, *packages: str
    ) -> None:
        """Print the line of JSON.

        Raises:
            SystemExit: if an answer is missing.
        """
        calls = options.agents * options.rounds
        if len(answers) != calls or not all(0 <= answer <= 100 for answer in answers):
            raise SystemExit(f"{peer}: {len(answers)} answers to {calls} calls")
        pids = [os.getpid(), *descendants(os.getpid())]
        print(
            json.dumps(
                {
                    "peer": peer,
                    "python": platform.python_version(),
                    "versions": {name: version(name) for name in packages},
                    "options": vars(options),
                    "agents": options.agents,
                    "calls": calls,
                    "wall_s": sum(stage["wall_s"] for stage in self.stages.values()),
                    "cpu_s": sum(stage["cpu_s"] for stage in self.stages.values()),
                    **self.stages,
                    "processes": len(pids),
                    # Pages that processes share count in each of them here, and once below.
                    "peak_rss_bytes": sum(_kib(pid, "status", "VmHWM:") for pid in pids) * 1024,
                    "pss_bytes": sum(_kib(pid, "smaps_rollup", "Pss:") for pid in pids) * 1024,
                }
            ),
            flush=True,
        )


def descendants(pid: int) -> list[int]:
    """Ids of the processes that came of a process."""
    children: dict[int, list[int]] = {}
    for folder in PROC.glob("[0-9]*"):
        try:
            children.setdefault(int(_stat(folder)[1]), []).append(int(folder.name))
        except (FileNotFoundError, ProcessLookupError):
            continue
    found: list[int] = []
    waiting = [pid]
    while waiting:
        below = children.get(waiting.pop(), [])
        found += below
        waiting += below
    return found


def _stat(folder: Path) -> list[str]:
    """Fields of /proc/PID/stat from the third, which is the state."""
    return (folder / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()


def _cpu_s(pid: int) -> float:
    """CPU seconds of a process, and of its children that it waited for."""
    try:
        return sum(map(int, _stat(PROC / str(pid))[11:15])) / _TICKS
    except (FileNotFoundError, ProcessLookupError):
        return 0.0


def _kib(pid: int, file: str, field: str) -> int:
    """A field in kB of a file of a process; 0 if the process has ended."""
    try:
        text = (PROC / str(pid) / file).read_text()
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return 0
    return sum(int(line.split()[1]) for line in text.splitlines() if line.startswith(field))
