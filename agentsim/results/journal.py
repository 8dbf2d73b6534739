"""The journal's writing end: an append-only log that one process at a time holds."""

from __future__ import annotations

import contextlib
import fcntl
import os
import threading
import time
from pathlib import Path

from agentsim.errors import ResultsError
from agentsim.results.framing import Kind, good_end, header, pack
from agentsim.results.storage import failure, sync_directory

_LOCK_TRIES = 5
_LOCK_PAUSE_S = 0.02


class Journal:
    """The writing end of a journal. One process at a time holds it.

    `append` is for one thread; `sync` may be called from another.

    Attributes:
        path: the file.
        cut_bytes: length of the torn tail that `open` cut off, 0 when there was none.
    """

    def __init__(self, path: Path, fd: int, end: int, cut_bytes: int) -> None:
        """Use `create` or `open`."""
        self.path = path
        self.cut_bytes = cut_bytes
        self._fd = fd
        self._end = end
        self._failed = ""
        self._torn = False
        self._sync_lock = threading.Lock()

    @classmethod
    def create(cls, path: Path) -> Journal:
        """Begin a new journal.

        Raises:
            ResultsError: the file exists, or cannot be written.
        """
        try:
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o666)
        except FileExistsError:
            raise ResultsError(f"{path}: there is a journal already") from None
        except OSError as error:
            raise failure(path, "cannot create the journal", error) from error
        try:
            _lock(path, fd)
            journal = cls(path, fd, 0, 0)
            journal._write(header())
            sync_directory(path.parent)
        except BaseException:
            os.close(fd)
            raise
        return journal

    @classmethod
    def open(cls, path: Path) -> Journal:
        """Go on with a journal that was written before. A torn tail is cut at the last good frame.

        Raises:
            ResultsError: there is no journal, another process is writing it, it is of another
                version, or a frame before the last good one is damaged.
        """
        try:
            fd = os.open(path, os.O_RDWR | os.O_APPEND)
        except OSError as error:
            raise failure(path, "cannot open the journal", error) from error
        try:
            _lock(path, fd)
            size = os.fstat(fd).st_size
            end = good_end(path)
            if end < size:
                os.ftruncate(fd, end)
                os.fdatasync(fd)
            journal = cls(path, fd, end, size - end)
            if end == 0:
                journal._write(header())
        except OSError as error:
            os.close(fd)
            raise failure(path, "cannot recover the journal", error) from error
        except BaseException:
            os.close(fd)
            raise
        return journal

    def append(self, kind: Kind, body: bytes | memoryview) -> int:
        """Write one frame; it is with the operating system when this returns.

        When writing fails, the file is cut back at the last whole frame, and the same frame may be
        tried again.

        Args:
            kind: what the body is.
            body: at most `framing.MAX_BODY_BYTES`.

        Returns:
            The offset of the frame.

        Raises:
            DiskFull: there is no room; nothing was appended.
            ResultsError: the file could not be written, or the body is too large.
        """
        if self._failed:
            raise ResultsError(f"{self.path}: no more is written after: {self._failed}")
        offset = self._end
        self._write(*pack(kind, body))
        return offset

    def sync(self) -> None:
        """Force to disk what was appended.

        Raises:
            ResultsError: the disk did not take it; nothing more can be appended.
        """
        with self._sync_lock:
            if self._fd < 0:
                return
            try:
                os.fdatasync(self._fd)
            except OSError as error:
                # Pages that failed to reach the disk are marked clean: a second try would
                # succeed without having written them.
                self._failed = f"fdatasync failed: {error.strerror}"
                raise failure(self.path, "cannot force the journal to disk", error) from error

    def close(self) -> None:
        """Force to disk and let others write. Closing twice is harmless."""
        try:
            if not self._failed:
                self.sync()
        finally:
            with self._sync_lock:
                if self._fd >= 0:
                    os.close(self._fd)
                    self._fd = -1

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _write(self, *parts: bytes | memoryview) -> None:
        if self._fd < 0:
            raise ResultsError(f"{self.path}: the journal is closed")
        left = [memoryview(part) for part in parts if len(part)]
        total = sum(len(part) for part in left)
        try:
            if self._torn:
                self._cut_back()
            while left:
                written = os.writev(self._fd, left)
                while left and written >= len(left[0]):
                    written -= len(left.pop(0))
                if written:
                    left[0] = left[0][written:]
        except OSError as error:
            self._tear()
            raise failure(self.path, "cannot write the journal", error) from error
        except BaseException:
            self._tear()
            raise
        self._end += total

    def _tear(self) -> None:
        """Cut off the part of a frame that was written; some file systems need room even for that,
        and then it is cut before the next frame."""
        self._torn = True
        with contextlib.suppress(OSError):
            self._cut_back()

    def _cut_back(self) -> None:
        os.ftruncate(self._fd, self._end)
        self._torn = False


def _lock(path: Path, fd: int) -> None:
    # Readers take the lock for a moment to learn whether anybody writes: hence several tries.
    for left in reversed(range(_LOCK_TRIES)):
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if not left:
                raise ResultsError(f"{path}: another process is writing this run") from None
            time.sleep(_LOCK_PAUSE_S)
        except OSError as error:
            raise failure(path, "cannot lock the journal", error) from error
        else:
            return
