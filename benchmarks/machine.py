"""On what was measured."""

from __future__ import annotations

import os
import platform
import sys
from pathlib import Path

from benchmarks.venvs import REQUIREMENTS

_TOLD = ("agentscope", "ray", "uvloop", "grpcio")


def machine() -> dict[str, str]:
    """Words by what they are about."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return {
        "cores": f"{len(os.sched_getaffinity(0))} x {_cpu()}",
        "memory": f"{memory:.0f} GiB",
        "system": f"{platform.system()} {platform.release()}",
        "python": f"{platform.python_implementation()} {sys.version.split()[0]}",
        "peers": ", ".join(_pinned()),
    }


def _cpu() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _pinned() -> list[str]:
    pins = sorted(
        line.split("==")
        for file in REQUIREMENTS.glob("*.txt")
        for line in file.read_text().splitlines()
    )
    return [f"{name} {version}" for name, version in pins if name in _TOLD]
