"""Puts agentsim on a host: its wheel comes on stdin, what it needs from the host's own index."""

import contextlib
import fcntl
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

MINIMUM = (3, 11)


def tell(asked: dict, **said: str) -> None:  # type: ignore[type-arg]
    """Say what came of it, and end."""
    sys.stdout.write(asked["mark"] + json.dumps(said) + "\n")
    sys.stdout.flush()
    sys.exit(0)


def read(size: int) -> bytes:
    """So many bytes of stdin."""
    data = b""
    while len(data) < size:
        part = os.read(0, size - len(data))
        if not part:
            break
        data += part
    return data


def run(*command: str) -> str:
    """Run a command, its output on our stderr; what is wrong when it fails."""
    sys.stderr.write("+ " + " ".join(command) + "\n")
    sys.stderr.flush()
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=sys.stderr, check=False)
    except OSError as error:
        return str(error)
    return "" if done.returncode == 0 else f"it ended with status {done.returncode}"


def main() -> None:
    """Take the wheel, and install it when nobody else installs there."""
    asked = json.loads(sys.argv[1])
    version = ".".join(map(str, sys.version_info[:3]))
    here = f"{sys.executable} (Python {version})"
    if sys.version_info[:2] < MINIMUM:
        tell(asked, failed=here + " is too old: agentsim needs 3.11 or newer; name one by `python`")
    wheel = read(asked["size"])
    if len(wheel) < asked["size"]:
        tell(asked, failed="the connection ended before all had come")
    venv = Path(asked["venv"]).expanduser() if asked["venv"] else None
    if asked["dry_run"]:
        install(asked, here, venv, wheel)
    with alone(venv or Path(sys.prefix)):
        install(asked, here, venv, wheel)


@contextlib.contextmanager
def alone(folder: Path):  # type: ignore[no-untyped-def]
    """While others wait who install there: hosts may share a disk."""
    try:
        lock = folder.with_name(folder.name + ".lock").open("w")
    except OSError:
        yield
        return
    with lock:
        with contextlib.suppress(OSError):  # a file system without locks
            fcntl.lockf(lock, fcntl.LOCK_EX)
        yield


def install(asked: dict, here: str, venv, wheel: bytes) -> None:  # type: ignore[no-untyped-def,type-arg]
    """Install, or say what would be done.

    Args:
        here: the Python that runs this, in words.
        venv: where to; None: into the Python that runs this.
        wheel: of agentsim.
    """
    python, made = sys.executable, ""
    stamp = (venv or Path(sys.prefix)) / "agentsim-installed"
    if venv:
        python = str(venv / "bin" / "python")
        there = Path(python).exists()
        made = "" if there else f"make {venv} from {here}, then "
        if there and stamp.exists() and stamp.read_text() == asked["stamp"]:
            tell(asked, did=f"nothing: it is in {venv} already")
        if not there and not asked["dry_run"]:
            failed = run(sys.executable, "-m", "venv", str(venv))
            if failed:
                tell(
                    asked,
                    failed=f"{here} cannot make virtual environments ({failed}); on Debian: "
                    "apt-get install python3-venv, or name a Python that has pip by `python`",
                )
    what = f"{made}install {asked['what']} with pip of {python}"
    if asked["dry_run"]:
        tell(asked, would=what)
    with tempfile.TemporaryDirectory(prefix="agentsim-") as folder:
        path = Path(folder) / asked["wheel"]
        path.write_bytes(wheel)
        pip = [python, "-m", "pip", "install", "--disable-pip-version-check", "--no-input"]
        # Its number may be the same while its code is not.
        failed = run(*pip, "--quiet", "--force-reinstall", "--no-deps", str(path))
        failed = failed or run(*pip, str(path) + asked["extras"])
    if failed:
        tell(asked, failed=f"pip could not {what}: {failed}")
    if venv:
        stamp.write_text(asked["stamp"])
    tell(asked, did=what)


if __name__ == "__main__":
    main()
