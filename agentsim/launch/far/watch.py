"""Waits until a node has ended."""

import json
import os
import select
import sys
from pathlib import Path


def runs(pid: int) -> bool:
    """Whether there is such a process, and it is a node."""
    try:
        os.kill(pid, 0)
        return b"agentsim.node" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except FileNotFoundError:
        return not Path("/proc/self").is_dir()
    except OSError:
        return False


def main() -> None:
    """Say that it has ended; end without that when stdin does."""
    asked = json.loads(sys.argv[1])
    while runs(asked["pid"]):
        if select.select([0], [], [], 0.5)[0]:
            return
    print(asked["mark"], flush=True)


main()
