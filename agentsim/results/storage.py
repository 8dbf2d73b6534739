"""Files that are written whole or not at all, and what their failures are called."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from agentsim.errors import ResultsError

_DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def failure(path: Path, what: str, error: OSError) -> ResultsError:
    """The error to raise for a file operation that failed.

    Args:
        path: the file or directory.
        what: what could not be done, e.g. `cannot write the journal`.
        error: what the operating system said.
    """
    cause = error.strerror or str(error)
    if error.errno in _DISK_FULL:
        cause = f"the disk is full ({cause}); what was completed is kept"
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
