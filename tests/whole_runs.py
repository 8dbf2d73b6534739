"""Runs the whole program, and reads what it wrote."""

import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent


class Program:
    """Runs `agentsim` so that every process that comes of it can be found again.

    Children inherit a mark in their environment; `left` looks for it.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._mark = f"AGENTSIM_TEST_MARK={secrets.token_hex(8)}"
        name, value = self._mark.split("=")
        self.env = {**os.environ, name: value, "COLUMNS": "80"}
        self._begun: list[subprocess.Popen[str]] = []

    def begin(self, *args: str | Path, **options: Any) -> subprocess.Popen[str]:
        """Start it and go on."""
        return self._begin(["-m", "agentsim", *map(str, args)], **options)

    def begin_python(self, code: str, *args: str) -> subprocess.Popen[str]:
        """Start a program of a test's own."""
        return self._begin(["-c", code, *args], env={"PYTHONPATH": str(ROOT)})

    def _begin(self, args: Sequence[str], **options: Any) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, *args],
            env={**self.env, **options.pop("env", {})},
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            **options,
        )
        self._begun.append(process)
        return process

    def run(
        self, *args: str | Path, code: int = 0, timeout_s: float = 60, **options: Any
    ) -> tuple[str, str]:
        """Run it to the end; what it wrote to stdout and stderr."""
        process = self.begin(*args, **options)
        out, err = process.communicate(timeout=timeout_s)
        assert process.returncode == code, f"exit {process.returncode}\n{out}\n{err}"
        return out, err

    def processes(self, *words: str) -> list[int]:
        """Ids of running processes that came of this program and have the words in their command.

        A zombie is no running process.
        """
        found = []
        for folder in Path("/proc").iterdir():
            if not folder.name.isdigit():
                continue
            try:
                environment = (folder / "environ").read_bytes()
                command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                state = (folder / "stat").read_text().rpartition(")")[2].split()[0]
            except OSError:
                continue
            ours = self._mark.encode() in environment and state != "Z"
            if ours and all(word in command for word in words):
                found.append(int(folder.name))
        return sorted(found)

    def wait_for(self, condition: Callable[[], Any], timeout_s: float = 30) -> Any:
        """Wait until the condition holds, and give its value."""
        deadline = time.monotonic() + timeout_s
        while not (value := condition()):
            assert time.monotonic() < deadline, "the condition did not come true in time"
            time.sleep(0.02)
        return value

    def reach_play(self, run: str = "R", timeout_s: float = 60) -> None:
        """Wait until a run has all of its workers and places its agents."""
        log = self.folder / run / "logs" / "orchestrator.log"
        self.wait_for(lambda: log.exists() and '"placing ' in log.read_text(), timeout_s)

    def assert_nothing_left(self, timeout_s: float = 15) -> None:
        """Every process that came of this program has ended, or ends in time."""
        self.wait_for(lambda: not self.processes(), timeout_s)

    def end(self) -> None:
        """End what is left, whatever it is."""
        for pid in self.processes():
            os.kill(pid, signal.SIGKILL)
        for process in self._begun:
            process.communicate()


def table(run: Path) -> Sequence[tuple[Any, ...]]:
    """(session, round, agent, status, value) of a run, sorted."""
    import pyarrow.parquet as pq

    columns = ["session", "round", "agent", "status", "value"]
    rows = pq.read_table(run / "actions", columns=columns).to_pylist()
    return sorted(tuple(row[name] for name in columns) for row in rows)
