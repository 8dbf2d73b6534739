"""Ends a node, sends its logs and takes its folder away."""

import contextlib
import io
import json
import os
import shutil
import signal
import sys
import tarfile
import time
from pathlib import Path


def is_node(pid: int) -> bool:
    """Whether a process is a node and not another one that got its number later."""
    try:
        return b"agentsim.node" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except FileNotFoundError:
        return not Path("/proc/self").is_dir() and runs(pid)
    except OSError:
        return False


def runs(pid: int) -> bool:
    """Whether there is such a process."""
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    return True


def end(pid: int, grace_s: float) -> None:
    """End the node with all that it has started."""
    os.kill(pid, signal.SIGTERM)
    deadline_s = time.monotonic() + grace_s
    while is_node(pid) and time.monotonic() < deadline_s:
        time.sleep(0.02)
    if is_node(pid):
        # It leads a session of its own, unless it was just begun.
        if os.getpgid(pid) == pid:
            os.killpg(pid, signal.SIGKILL)
        else:
            os.kill(pid, signal.SIGKILL)


def send(folder: Path, most: int) -> None:
    """Write the ends of all logs to stdout, as a tar file."""
    with tarfile.open(fileobj=sys.stdout.buffer, mode="w|") as archive:
        for path in sorted(folder.iterdir()):
            if path.is_symlink() or not path.is_file():
                continue
            with path.open("rb") as file:
                file.seek(max(0, path.stat().st_size - most))
                data = file.read(most)
            entry = tarfile.TarInfo(path.name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))


def main() -> None:
    """Do all of it; what is not there is done already."""
    asked = json.loads(sys.argv[1])
    folder = Path(asked["folder"])
    if is_node(asked["pid"]):
        with contextlib.suppress(ProcessLookupError):
            end(asked["pid"], asked["grace_s"])
    sys.stdout.write(asked["mark"])
    sys.stdout.flush()
    if (folder / "logs").is_dir():
        send(folder / "logs", asked["most_bytes"])
    if folder.name.startswith("agentsim-"):
        shutil.rmtree(str(folder), ignore_errors=True)


main()
