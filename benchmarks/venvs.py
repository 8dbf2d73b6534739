"""Environments of the peers: one for each file in `requirements/`, made when first needed."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
REQUIREMENTS = HERE / "requirements"
VENVS = HERE / ".venvs"
_LIMIT_S = 600


def python(name: str) -> Path:
    """The Python of a peer's environment, with exactly what its file pins.

    Raises:
        subprocess.CalledProcessError: it could not be made; pip's words went to stderr.
    """
    pins = REQUIREMENTS / f"{name}.txt"
    folder = VENVS / name
    ready = folder / "ready"
    found = folder / "bin" / "python"
    digest = hashlib.sha256(pins.read_bytes()).hexdigest()
    if ready.exists() and ready.read_text() == digest:
        return found
    shutil.rmtree(folder, ignore_errors=True)
    print(f"making the environment {name}", file=sys.stderr)
    _run(sys.executable, "-m", "venv", folder)
    # --no-deps: the file is complete. AgentScope forgets to ask for tqdm.
    _run(found, "-m", "pip", "install", "--quiet", "--no-deps", "--requirement", pins)
    ready.write_text(digest)
    return found


def _run(*command: str | Path) -> None:
    subprocess.run(command, check=True, timeout=_LIMIT_S, stdout=sys.stderr)
