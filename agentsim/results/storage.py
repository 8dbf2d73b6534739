"""Files that are written whole or not at all, and what their failures are called."""

from __future__ import annotations

import errno
import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from agentsim.errors import DiskFull, ResultsError

_NO_ROOM = {errno.ENOSPC: "the disk is full", errno.EDQUOT: "the disk quota is used up"}


def failure(path: Path, what: str, error: OSError) -> ResultsError:
    """The error to raise for a file operation that failed; `DiskFull` where room would help.

    Args:
        path: the file or directory.
        what: what could not be done, e.g. `cannot write the journal`.
        error: what the operating system said.
    """
    cause = error.strerror or str(error)
    if error.errno in _NO_ROOM:
        cause = f"{_NO_ROOM[error.errno]} ({cause}); what was completed is kept"
        quota = error.errno == errno.EDQUOT
        return DiskFull(f"{path}: {what}: {cause}", path.parent, quota=quota)
    if error.errno == errno.EFBIG:
        cause += ": this system or `ulimit -f` allows no larger file; what was completed is kept"
    return ResultsError(f"{path}: {what}: {cause}")


def write_atomic(path: Path, content: bytes) -> None:
    """Replace a file: a reader, or a crash at any moment, sees the old content or the new one.

    Raises:
        ResultsError: it could not be written; the old content is as it was.
    """
    temporary = temporary_path(path)
    try:
        with temporary.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
        sync_directory(path.parent)
    except OSError as error:
        discard(temporary)
        raise failure(path, "cannot write the file", error) from error


def temporary_path(path: Path) -> Path:
    """Where a file is written before it is renamed to `path`: beside it, hidden from globs."""
    return path.with_name(f".{path.name}.{os.getpid()}.tmp")


def discard(path: Path) -> None:
    """Remove a temporary file if it is there; a failure to do so does not matter."""
    try:
        path.unlink(missing_ok=True)
    except OSError:
        return


def sync_directory(path: Path) -> None:
    """Force a directory's entries to disk, so that a new or renamed file survives a crash."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def write_json(path: Path, data: Any) -> None:
    """Write a JSON file, indented. Numbers that JSON does not know (nan, infinity) become null.

    Raises:
        ResultsError: it could not be written.
    """
    text = json.dumps(_plain(data), indent=2, ensure_ascii=False, allow_nan=False)
    write_atomic(path, text.encode() + b"\n")


def read_json(path: Path) -> dict[str, Any]:
    """The object in a JSON file.

    Raises:
        ResultsError: it is not there, or not a JSON object.
    """
    try:
        data = json.loads(path.read_bytes())
    except OSError as error:
        raise failure(path, "cannot read the file", error) from error
    except ValueError as error:
        raise ResultsError(f"{path}: not a JSON file: {error}") from error
    if not isinstance(data, dict):
        raise ResultsError(f"{path}: not a JSON object")
    return data


def _plain(data: Any) -> Any:
    if isinstance(data, Mapping):
        return {str(key): _plain(value) for key, value in data.items()}
    if isinstance(data, list | tuple | np.ndarray):
        return [_plain(value) for value in data]
    if isinstance(data, np.generic):
        return _plain(data.item())
    if isinstance(data, float) and not math.isfinite(data):
        return None
    return data
