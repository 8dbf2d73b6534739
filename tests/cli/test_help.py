"""`agentsim --help` answers at once: nothing heavy is imported for it."""

from __future__ import annotations

import re
import subprocess
import sys

HEAVY = frozenset(
    {
        "aiohttp",
        "duckdb",
        "grpc",
        "httpx",
        "jinja2",
        "matplotlib",
        "numpy",
        "pandas",
        "psutil",
        "pyarrow",
        "pydantic",
        "scipy",
        "uvloop",
        "xllamacpp",
        "yaml",
    }
)


def imported(*arguments: str) -> tuple[str, set[str]]:
    """Stdout of a Python that ran with these arguments, and the top-level names it imported."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    modules = re.findall(r"^import time:\s*\d+ \|\s*\d+ \|\s*(\S+)$", done.stderr, re.MULTILINE)
    return done.stdout, {module.split(".")[0] for module in modules}


def test_help_imports_nothing_heavy() -> None:
    out, modules = imported("-m", "agentsim", "--help")
    assert "Usage: agentsim" in out
    assert "run" in out
    assert "typer" in modules
    assert modules & HEAVY == set()


def test_the_help_of_run_imports_nothing_heavy() -> None:
    out, modules = imported("-m", "agentsim", "run", "--help")
    assert "Usage: agentsim run" in out
    # Typer itself reads a command's parameters with pydantic.
    assert modules & HEAVY <= {"pydantic"}


def test_heavy_imports_would_be_seen() -> None:
    _, modules = imported("-c", "import pydantic, numpy.linalg")
    assert {"pydantic", "numpy"} <= modules & HEAVY
