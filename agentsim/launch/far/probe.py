"""Says what a host has, then waits for a connection from the orchestrator, to show that it can."""

import hashlib
import importlib.util
import json
import select
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path


def version_there() -> str:
    """Of agentsim; empty when it is not there."""
    try:
        from agentsim.version import __version__
    except Exception:  # noqa: BLE001 - whatever it is, it cannot be used
        return ""
    return str(__version__)


def digest() -> str:
    """Of agentsim's own code, so that two of one number are told apart; empty without any."""
    spec = importlib.util.find_spec("agentsim")
    if spec is None or not spec.submodule_search_locations:
        return ""
    folder = Path(next(iter(spec.submodule_search_locations)))
    found = hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        found.update(path.relative_to(folder).as_posix().encode() + b"\0" + path.read_bytes())
    return found.hexdigest()


def missing(modules: list) -> list:  # type: ignore[type-arg]
    """Those of these modules that are not there."""
    found = []
    for name in modules:
        try:
            there = importlib.util.find_spec(name) is not None
        except (ImportError, ValueError):
            there = False
        if not there:
            found.append(name)
    return found


def cannot_write(folder: str) -> str:
    """Why nothing can be written to a folder; empty when it can."""
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(b"x" * 2**20)
            file.flush()
    except OSError as error:
        return str(error.strerror or error)
    return ""


def free_bytes(folder: str) -> int:
    """What is free where a folder is; -1 when there is no telling."""
    try:
        return int(shutil.disk_usage(folder).free)
    except OSError:
        return -1


def gpus() -> int:
    """GPUs that the driver shows; the device files of NVIDIA's where there is no tool."""
    try:
        out = subprocess.run(
            ["nvidia-smi", "--query-gpu=index", "--format=csv,noheader"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=20,
            check=True,
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return len(list(Path("/dev").glob("nvidia[0-9]*")))
    return len(out.split())


def listener(ports: list) -> tuple:  # type: ignore[type-arg]
    """A listening socket on the first free port of a range, and why there is none."""
    first, last = ports
    why = "no port is free"
    for port in range(first, last + 1):
        for family, everywhere in ((socket.AF_INET6, "::"), (socket.AF_INET, "0.0.0.0")):
            try:
                sock = socket.socket(family, socket.SOCK_STREAM)
            except OSError:
                continue
            try:
                if family == socket.AF_INET6:
                    sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                sock.bind((everywhere, port))
                sock.listen(8)
            except OSError as error:
                why = str(error.strerror or error)
                sock.close()
            else:
                return sock, ""
    return None, why


def main() -> None:
    """Say it, and wait until stdin ends."""
    asked = json.loads(sys.argv[1])
    sock, why = listener(asked["ports"]) if asked["ports"] else (None, "")
    temporary = tempfile.gettempdir()
    facts = {
        "host": socket.gethostname(),
        "python": list(sys.version_info[:3]),
        "executable": sys.executable,
        "version": version_there(),
        "digest": digest(),
        "missing": missing(asked["modules"]),
        "time_s": time.time(),
        "folders": {
            folder: [free_bytes(folder), cannot_write(folder)]
            for folder in {temporary, str(Path.cwd())}
        },
        "gpus": gpus() if asked["gpus"] else 0,
        "port": sock.getsockname()[1] if sock else 0,
        "no_port": why,
    }
    print(asked["mark"] + json.dumps(facts), flush=True)
    deadline_s = time.monotonic() + asked["wait_s"]
    while sock and time.monotonic() < deadline_s:
        ready = select.select([sock, 0], [], [], 1.0)[0]
        if 0 in ready:
            break
        if sock in ready:
            connection = sock.accept()[0]
            connection.settimeout(2.0)
            try:
                connection.sendall(asked["token"].encode())
                connection.recv(1)  # it closes first
            except OSError:
                pass
            connection.close()


if __name__ == "__main__":
    main()
