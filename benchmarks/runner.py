"""Runs a program to its end and sees, from outside, what it and all that came of it cost."""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.peers.measure import PROC, descendants

_PR_SET_CHILD_SUBREAPER = 36
_SAMPLE_S = 0.5
_END_S = 15.0
_TICKS = os.sysconf("SC_CLK_TCK")


class Failed(Exception):
    """A program did not do its work; says why."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a program said, and what was seen of it.

    Attributes:
        said: the JSON that it printed.
        wall_s, cpu_s: from its start until all its processes had ended; CPU of all of them.
        peak_pss_bytes: the most memory of all its processes together, pages that they share counted
            once; looked at twice a second.
        busy_cpu_s: CPU that everybody took on this machine meanwhile.
    """

    said: dict[str, Any]
    wall_s: float
    cpu_s: float
    peak_pss_bytes: int
    busy_cpu_s: float


def run(command: Sequence[str], *, cwd: Path, timeout_s: float) -> Outcome:
    """Run a program that prints JSON.

    Its orphans become children of this process, and none of them lives on.

    Raises:
        Failed: it took too long, ended with an error, left processes, or printed no JSON.
    """
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    with tempfile.TemporaryDirectory(prefix="peer-", ignore_cleanup_errors=True) as folder:
        out, err = Path(folder, "out"), Path(folder, "err")
        busy_s, began_s = _busy_s(), time.monotonic()
        with out.open("wb") as stdout, err.open("wb") as stderr:
            process = subprocess.Popen(
                command,
                cwd=cwd,
                env={**os.environ, "TMPDIR": folder, "PYTHONPATH": str(cwd)},
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                start_new_session=True,
            )
        try:
            watch = _Watch(process, began_s + timeout_s)
            watch.until_it_ends()
        finally:
            left = _end_all()
        wall_s = time.monotonic() - began_s
        busy_s = _busy_s() - busy_s
        words = _last_words(err.read_text("utf-8", "replace"), folder)
        if watch.code is None:
            raise Failed(f"not done after {timeout_s:.0f} s. {words}")
        if watch.code:
            raise Failed(f"exit {watch.code}. {words}")
        if left:
            raise Failed(f"{left} of its processes lived on")
        try:
            said = json.loads(out.read_text())
        except ValueError:
            raise Failed(f"no JSON. {words}") from None
    return Outcome(said, wall_s, watch.cpu_s, watch.peak_pss_bytes, busy_s)


class _Watch:
    """Waits for a process and its orphans, and adds up what they took."""

    def __init__(self, process: subprocess.Popen[bytes], deadline_s: float) -> None:
        self.process = process
        self.deadline_s = deadline_s
        self.cpu_s = 0.0
        self.peak_pss_bytes = 0
        self.code: int | None = None

    def until_it_ends(self) -> None:
        next_look_s = 0.0
        while self._reap():
            now_s = time.monotonic()
            if now_s > self.deadline_s:
                return
            if now_s >= next_look_s:
                self.peak_pss_bytes = max(self.peak_pss_bytes, _pss_bytes())
                next_look_s = time.monotonic() + _SAMPLE_S
            time.sleep(0.02)

    def _reap(self) -> bool:
        """Take what has ended; whether anything is left."""
        while True:
            try:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            self.cpu_s += usage.ru_utime + usage.ru_stime
            if pid == self.process.pid:
                self.code = self.process.returncode = os.waitstatus_to_exitcode(status)
                # What it left has a little time to end.
                self.deadline_s = min(self.deadline_s, time.monotonic() + _END_S)


def _last_words(text: str, folder: str) -> str:
    """The last line that a program wrote, without where its files were."""
    lines = text.strip().replace(f"{folder}/", "").splitlines()
    return lines[-1] if lines else ""


def _end_all() -> int:
    """End every process that came of this one; how many there were."""
    left = descendants(os.getpid())
    found = len(left)
    until = time.monotonic() + _END_S
    while left and time.monotonic() < until:
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            break
        time.sleep(0.1)
        left = descendants(os.getpid())
    return found


def _pss_bytes() -> int:
    total = 0
    for pid in descendants(os.getpid()):
        try:
            text = (PROC / str(pid) / "smaps_rollup").read_text()
        except OSError:
            continue
        total += sum(int(row.split()[1]) for row in text.splitlines() if row.startswith("Pss:"))
    return total * 1024


def _busy_s() -> float:
    """CPU seconds that this machine has worked, steal included."""
    user, nice, system, _, _, irq, softirq, steal = map(
        int, (PROC / "stat").read_text().split()[1:9]
    )
    return (user + nice + system + irq + softirq + steal) / _TICKS
