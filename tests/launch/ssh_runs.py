"""What the tests of runs on SSH hosts share."""

from __future__ import annotations

import base64
import os
from pathlib import Path
from typing import Any

from beds.ssh_hosts import SshHosts
from whole_runs import ROOT, Program

THEORY = ROOT / "scenarios" / "guess_two_thirds_theory.yaml"
# A machine with other work to do takes its time.
PATIENCE_S = 240
_HZ = os.sysconf("SC_CLK_TCK")


def reach_play(program: Program, run: str = "R") -> None:
    """Wait until a run has placed its agents."""
    log = program.folder / run / "logs" / "orchestrator.log"
    program.wait_for(lambda: log.exists() and '"placing ' in log.read_text(), PATIENCE_S)


def cpu_s(pids: list[int]) -> float:
    """CPU seconds of processes and of their children that have ended."""
    ticks = 0
    for pid in pids:
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        ticks += sum(map(int, fields[11:15]))
    return ticks / _HZ


def all_pids(bed: SshHosts) -> list[int]:
    """All processes on all hosts of a bed, their sshd with them."""
    found = []
    for host in bed.hosts:
        found += [host.sshd, *bed.left(host.name, sshd=True)]
    return sorted(set(found))


def what_processes_show(pids: list[int]) -> bytes:
    """Argument lists and environments of processes."""
    shown = b""
    for pid in pids:
        for what in ("cmdline", "environ"):
            try:
                shown += Path(f"/proc/{pid}/{what}").read_bytes()
            except OSError:
                continue
    return shown


def secrets_in(shown: bytes) -> list[bytes]:
    """Beginnings of private keys, as they are and as JSON carries bytes."""
    begin = b"-----BEGIN PRIVATE KEY-----"
    marks = [begin, base64.b64encode(begin)[:30]]
    return [mark for mark in marks if mark in shown]


def tree(folder: Path) -> list[str]:
    """All that is in a folder, by path."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def contents(folder: Path) -> bytes:
    """All files of a folder, one behind the other."""
    parts: list[Any] = [p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()]
    return b"\n".join(parts)
