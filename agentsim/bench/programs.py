"""Starts measurements, each in a process of its own: `python -m agentsim.bench NAME SETTINGS`.

A measurement is a module of this package with `measure(settings) -> result`, both plain data. Its
process ends when its stdin does, so that nothing outlives the command.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

from agentsim.errors import RunError


def measured(name: str, settings: dict[str, Any]) -> dict[str, Any]:
    """The result of one measurement.

    Args:
        name: its module.
        settings: what it takes.

    Raises:
        RunError: it failed; what it said went to stderr.
    """
    command = [sys.executable, "-P", "-m", "agentsim.bench", name, json.dumps(settings)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            out = process.stdout.read()
            code = process.wait()
        except BaseException:
            assert process.stdin is not None
            process.stdin.close()  # it ends, and its nodes with it
            process.wait()
            raise
    if code:
        raise RunError(f"the measurement `{name}` ended with exit {code}")
    result: dict[str, Any] = json.loads(out)
    return result
