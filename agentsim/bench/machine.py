"""On what was measured."""

from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import Any

import psutil

from agentsim.version import __version__


def machine() -> dict[str, Any]:
    """cpu, cores (that this process may use), memory_bytes, system, python, agentsim, load (mean
    number of processes that wanted a core over the last minute; figures of a busy machine differ).
    """
    return {
        "cpu": _cpu(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_bytes": psutil.virtual_memory().total,
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "agentsim": __version__,
        "load": round(os.getloadavg()[0], 2),
    }


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor())
