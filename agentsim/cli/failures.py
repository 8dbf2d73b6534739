"""How errors reach a person: on stderr, without a traceback unless it is our bug."""

from __future__ import annotations

import platform
import sys
import tempfile
import traceback
from pathlib import Path

from agentsim.errors import AgentsimError, ConfigError
from agentsim.version import __version__


def show(error: AgentsimError) -> None:
    """Tell of an error of the user's or of the run's."""
    if isinstance(error, ConfigError):
        from agentsim.cli.findings import print_findings

        print_findings(error)
        return
    print(f"agentsim: error: {error}", file=sys.stderr)


def show_bug() -> None:
    """Tell of the exception that is being handled, and keep its traceback in a file."""
    text = f"agentsim {__version__}, python {platform.python_version()}\n{traceback.format_exc()}"
    print(text, file=sys.stderr)
    where = ""
    try:
        with tempfile.NamedTemporaryFile(
            "w", prefix="agentsim-bug-", suffix=".log", delete=False
        ) as file:
            file.write(text)
        where = f" The text above is also in {Path(file.name)}."
    except OSError:
        pass
    print(f"agentsim: this is a bug in agentsim; please report it.{where}", file=sys.stderr)
