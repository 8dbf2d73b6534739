"""Puts agentsim on a host: its wheel comes on stdin, what it needs from the host's own index."""

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
    """Install, or say what would be done."""
    asked = json.loads(sys.argv[1])
    version = ".".join(map(str, sys.version_info[:3]))
    here = f"{sys.executable} (Python {version})"
    if sys.version_info[:2] < MINIMUM:
        tell(asked, failed=here + " is too old: agentsim needs 3.11 or newer; name one by `python`")
    wheel = read(asked["size"])
    if len(wheel) < asked["size"]:
        tell(asked, failed="the connection ended before all had come")
    python, made = sys.executable, ""
    if asked["venv"]:
        venv = Path(asked["venv"]).expanduser()
        python = str(venv / "bin" / "python")
        there = Path(python).exists()
        made = "" if there else f"make {venv} from {here}, then "
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
    tell(asked, did=what)


main()
