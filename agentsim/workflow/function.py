"""Finds a user's function, and tells of what it raised."""

from __future__ import annotations

import importlib
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from agentsim.errors import UserError, WorkflowFailed

_OURS = str(Path(__file__).parents[1])


def find_function(path: str, folder: Path) -> Callable[..., Any]:
    """The function of `module:function`; its module is imported.

    Args:
        path: as the scenario has it.
        folder: is looked into first, now and by everything that the module imports.

    Raises:
        UserError: importing the module raised, or it has no such function.
    """
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    name, _, function = path.partition(":")
    importlib.invalidate_caches()
    try:
        found = getattr(importlib.import_module(name), function, None)
    except Exception as error:
        raise UserError(f"module {name} cannot be imported: {_told(error)}") from error
    if not callable(found):
        raise UserError(f"module {name} has no function {function}")
    return found  # type: ignore[no-any-return]


def failure(path: str, error: BaseException) -> WorkflowFailed | None:
    """What to tell of an exception that left a user's function; None for `sys.exit(0)`."""
    if isinstance(error, SystemExit):
        if error.code in (None, 0):
            return None
        return WorkflowFailed(f"workflow {path} called sys.exit({error.code!r})")
    return WorkflowFailed(f"workflow {path} failed: {_told(error)}")


def _told(error: BaseException) -> str:
    """The exception on one line, and its traceback on further ones, without our frames."""
    told = traceback.TracebackException.from_exception(error)
    _trim(told)
    first = "".join(told.format_exception_only()).strip().partition("\n")[0]
    return f"{first}\n\n{''.join(told.format()).rstrip()}"


def _trim(told: traceback.TracebackException) -> None:
    """Leave out frames of agentsim and of the machinery that imports modules."""
    seen: TraceChain = told
    while seen is not None:
        frames = [f for f in seen.stack if not f.filename.startswith((_OURS, "<frozen importlib"))]
        seen.stack = traceback.StackSummary.from_list(frames)
        seen = seen.__cause__ or seen.__context__


TraceChain = traceback.TracebackException | None
