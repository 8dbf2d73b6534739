"""The journal's writing end: an append-only log that one process at a time holds."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator
from pathlib import Path

from agentsim.errors import ResultsError
from agentsim.results.framing import Kind, good_end, header, pack
from agentsim.results.lock import RunLock
from agentsim.results.storage import failure, sync_directory


class Journal:
    """The writing end of a journal. One process at a time holds it.

    All methods may be called from several threads.

    Attributes:
        path: the file.
        cut_bytes: length of the torn tail that `open` cut off, 0 when there was none.
        took_over: from which dead process `open` has taken over, in words; empty: from none.
    """

    def __init__(self, path: Path, fd: int, lock: RunLock, end: int, cut_bytes: int) -> None:
        """Use `create` or `open`."""
        self.path = path
        self.cut_bytes = cut_bytes
        self.took_over = lock.took_over
        self._lock = lock
        self._fd = fd
        self._end = end
        self._failed = ""
        self._torn = False
        self._write_lock = threading.Lock()
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
        with _closed_on_failure(path, fd) as lock:
            journal = cls(path, fd, lock, 0, 0)
            journal._write(header())
            sync_directory(path.parent)
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
        with _closed_on_failure(path, fd) as lock:
            size = os.fstat(fd).st_size
            end = good_end(path)
            if end < size:
                os.ftruncate(fd, end)
                os.fdatasync(fd)
            journal = cls(path, fd, lock, end, size - end)
            if end == 0:
                journal._write(header())
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
        head_and_body = pack(kind, body)
        with self._write_lock:
            offset = self._end
            self._write(*head_and_body)
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
                    self._lock.release()
                    os.close(self._fd)
                    self._fd = -1

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _write(self, *parts: bytes | memoryview) -> None:
        if self._fd < 0:
            raise ResultsError(f"{self.path}: the journal is closed")
        self._lock.check()
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


@contextlib.contextmanager
def _closed_on_failure(path: Path, fd: int) -> Iterator[RunLock]:
    """A journal's lock for who opens it; both are given back when that fails."""
    lock: RunLock | None = None
    try:
        lock = RunLock.take(path, fd)
        yield lock
    except BaseException as error:
        if lock is not None:
            lock.release()
        os.close(fd)
        if isinstance(error, OSError):
            raise failure(path, "cannot open the journal", error) from error
        raise
