"""CPU and memory of a program: of this process, and of all that it has started."""

from __future__ import annotations

import resource
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil

_SAMPLE_S = 0.2
_QUIET_S = 0.05
_QUIET_LOOKS = 3
_QUIET_CPU_S = 0.004


def cpu_s() -> float:
    """CPU seconds of this process and of everything it has started, those that ended included."""
    own = time.process_time()
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return own + ended.ru_utime + ended.ru_stime + sum(map(_cpu_s, children()))


def children() -> list[psutil.Process]:
    """All running processes below this one."""
    return psutil.Process().children(recursive=True)


def cpu_s_of(pid: int) -> float:
    """CPU seconds of one process, and of its own children that have ended."""
    return _cpu_s(psutil.Process(pid))


def _cpu_s(process: psutil.Process) -> float:
    """CPU seconds of another process, and of its own children that have ended."""
    try:
        ended = process.cpu_times()
        own = ended.user + ended.system
        # Linux numbers the CPU clock of a process by its id; it is finer than a tick of 10 ms.
        with suppress(OSError):
            own = time.clock_gettime((~process.pid << 3) | 2)
        return own + ended.children_user + ended.children_system
    except psutil.Error:
        return 0.0


def wait_until_quiet(limit_s: float) -> None:
    """Wait until this program and all that it has started have nothing to do.

    On a busy machine nothing moves for a moment now and then: hence several looks.

    Args:
        limit_s: seconds after which the wait ends anyhow.
    """
    deadline = time.monotonic() + limit_s
    before, quiet = cpu_s(), 0
    while time.monotonic() < deadline and quiet < _QUIET_LOOKS:
        time.sleep(_QUIET_S)
        now, programs = cpu_s(), children()
        idle = now - before < _QUIET_CPU_S * (1 + len(programs))
        quiet = quiet + 1 if idle and not any(map(_wants_cpu, programs)) else 0
        before = now


def _wants_cpu(process: psutil.Process) -> bool:
    try:
        return process.status() in (psutil.STATUS_RUNNING, psutil.STATUS_DISK_SLEEP)
    except psutil.Error:
        return False


def memory() -> dict[str, int]:
    """Bytes in memory (proportional set size), by program: orchestrator, nodes, workers, others."""
    found: dict[str, int] = {"orchestrator": _pss("self")}
    for process in children():
        try:
            command = process.cmdline()
        except psutil.Error:
            continue
        name = next((name for name in ("node", "worker") if f"agentsim.{name}" in command), "other")
        found[f"{name}s"] = found.get(f"{name}s", 0) + _pss(str(process.pid))
    return found


def _pss(pid: str) -> int:
    """Bytes of a process; what it shares with others is divided between them."""
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:
        return 0
    line = next(line for line in text.splitlines() if line.startswith("Pss:"))
    return int(line.split()[1]) * 1024


@dataclass(slots=True)
class Phases:
    """Wall and CPU seconds of the parts of a program, from the start of its process.

    Attributes:
        parts: name → (wall, CPU) in seconds, in order.
    """

    parts: dict[str, tuple[float, float]] = field(default_factory=dict)
    _before_s: float = field(default_factory=lambda: time.time() - psutil.Process().create_time())
    _now_s: float = field(default_factory=time.monotonic)
    _cpu_s: float = 0.0

    def end(self, name: str) -> None:
        """A part ends here, and the next begins."""
        wall_s = time.monotonic() - self._now_s
        if not self.parts:
            wall_s += self._before_s  # since the process began, until this object was made
        self.parts[name] = (wall_s, cpu_s() - self._cpu_s)
        self.go_on()

    def go_on(self) -> None:
        """Leave out what was done since the last part ended."""
        self._now_s, self._cpu_s = time.monotonic(), cpu_s()


class Sampler:
    """The most memory that a program takes while something goes on. Use `watching`."""

    def __init__(self) -> None:
        self.most: dict[str, int] = {}
        self.most_bytes = 0
        self._stop = threading.Event()

    def sample(self) -> None:
        """Look once."""
        now = memory()
        self.most_bytes = max(self.most_bytes, sum(now.values()))
        for name, size in now.items():
            self.most[name] = max(self.most.get(name, 0), size)

    def work(self) -> None:
        """Look again and again."""
        while not self._stop.wait(_SAMPLE_S):
            self.sample()

    def stop(self) -> None:
        """Look no more."""
        self._stop.set()


@contextmanager
def watching(enabled: bool) -> Iterator[Sampler]:
    """Watch memory from a thread, if at all: it costs CPU, so figures of time are taken without."""
    sampler = Sampler()
    thread = threading.Thread(target=sampler.work, name="memory", daemon=True)
    if enabled:
        thread.start()
    try:
        yield sampler
    finally:
        sampler.stop()
        if enabled:
            thread.join()
