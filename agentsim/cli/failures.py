"""How errors reach a person: on stderr, without a traceback unless it is our bug."""

from __future__ import annotations

import json
import platform
import re
import sys
import tempfile
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import Any

from agentsim.errors import AgentsimError, ConfigError, Finding
from agentsim.version import __version__


class ErrorFormat(StrEnum):
    """How errors are written to stderr."""

    TEXT = "text"
    JSON = "json"


@contextmanager
def told_as(format: ErrorFormat) -> Iterator[None]:
    """Tell errors in a format of the user's choice; as text, that is left to whoever called."""
    try:
        yield
    except AgentsimError as error:
        if format is ErrorFormat.TEXT:
            raise
        print(json.dumps(as_data(error), indent=2), file=sys.stderr)
        sys.exit(error.exit_code)


def as_data(error: AgentsimError) -> Any:
    """An error for programs: a list of findings, or a map for any other error.

    Source lines are left out of findings: a program has the file.
    """
    if isinstance(error, ConfigError):
        return [_finding(item) for item in error.findings]
    kind = re.sub(r"(?<=[a-z])(?=[A-Z])", "-", type(error).__name__).lower()
    return {"error": kind, "message": str(error), "exit_code": error.exit_code}


def _finding(item: Finding) -> dict[str, Any]:
    data = asdict(item)
    for place in (data, *data["related"]):
        del place["source"]
    return data


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
