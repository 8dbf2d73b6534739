"""Logs of the programs of a run: JSON lines, bounded in size, with nothing secret in them.

One line a record: `time` (UTC), `level`, `run`, `program` (orchestrator, node or worker), `index`,
`host`, `pid`, `logger`, `message` and, of an exception, `traceback`. What else a program writes to
its stderr stands in the same file, as it is. A file that has grown too large is renamed to NAME.1,
that one to NAME.2, and so on; the oldest goes.

Logging never ends a run: lines for which the disk has no room are dropped and counted.
"""

from __future__ import annotations

import contextlib
import io
import logging
import os
import platform
import sys
import traceback
from collections import deque
from collections.abc import Iterable
from contextvars import ContextVar
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any

import msgspec
from msgspec import Struct

LEVEL_VARIABLE = "AGENTSIM_LOG_LEVEL"
LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
MASK = "***"
# Shorter values than this stand for no secret, and would blacken words.
_SECRET_LENGTH = 6
_TAIL_BYTES = 64 * 1024
# They tell of every request at the level INFO.
_CHATTY = ("httpx", "httpcore")
_MESSAGE_CHARACTERS = 32 * 1024

run: ContextVar[str] = ContextVar("run", default="")
"""The run that is worked for, in a program that serves several; empty: the program's own."""

_hidden: set[str] = set()
_current: Log | None = None


class LogSettings(Struct, frozen=True):
    """How a program logs; travels in its configuration.

    Attributes:
        path: the file; empty: lines go to stderr, and whoever reads it bounds them.
        run: id of the run.
        host: the host's name in the hostfile.
        level: the lowest that is written.
        max_bytes: size at which the file is renamed and another one is begun.
        older: renamed files that are kept.
    """

    path: str = ""
    run: str = ""
    host: str = ""
    level: str = "INFO"
    max_bytes: int = 8 * 1024 * 1024
    older: int = 3


class LogRecord(Struct, frozen=True, omit_defaults=True):
    """One line of a log. `time` is UTC, ISO 8601; the others are as the module says."""

    time: str
    level: str
    run: str = ""
    program: str = ""
    index: int | None = None
    host: str = ""
    pid: int = 0
    logger: str = ""
    message: str = ""
    traceback: str = ""

    @property
    def who(self) -> str:
        """The program in words, e.g. `worker 3 on localhost`."""
        name = self.program if self.index is None else f"{self.program} {self.index}"
        return f"{name} on {self.host}" if self.host else name

    def text(self) -> str:
        """The record for a person, without its time; a traceback is indented below it."""
        lines = [f"{self.level} {self.who}: {self.message}"]
        lines += [f"    {line}" for line in self.traceback.splitlines()]
        return "\n".join(lines)


def hide(secrets: Iterable[str]) -> None:
    """Keep values out of every line that this process logs from now on."""
    _hidden.update(secret for secret in secrets if len(secret) >= _SECRET_LENGTH)


def masked(text: str) -> str:
    """A text without the values that are hidden."""
    for secret in _hidden:
        text = text.replace(secret, MASK)
    return text


def settings_for(path: Path, host: str = "") -> LogSettings:
    """Settings for a program that this one starts: its run and level, unless they are told apart.

    Args:
        path: the file that the program logs to.
        host: where it runs; empty: where this one does.
    """
    own = _current.settings if _current is not None else LogSettings(level=_level())
    return msgspec.structs.replace(
        own, path=str(path.absolute()), run=run.get() or own.run, host=host or own.host
    )


def begin(
    settings: LogSettings, program: str, index: int | None = None, *, logger: str = ""
) -> Log:
    """Log as a program from now on.

    Args:
        index: of a node or worker.
        logger: whose records are taken; empty: all, and exceptions that end the program.
    """
    global _current
    _current = log = Log(settings, program, index, logger)
    if not logger:
        sys.excepthook = log.died
        for library in _CHATTY:
            logging.getLogger(library).setLevel(max(log.level, logging.WARNING))
    return log


def forgive_prints() -> None:
    """Let `print` never fail: what has no room on the disk is lost, like a log line."""
    sys.stdout = _forgiving(1)
    sys.stderr = _forgiving(2)


def _forgiving(fd: int) -> io.TextIOWrapper:
    stream = io.BufferedWriter(_Sink(fd))
    return io.TextIOWrapper(stream, "utf-8", "backslashreplace", line_buffering=True)


class _Sink(io.RawIOBase):
    """Writes to a descriptor what can be written."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._fd

    def write(self, data: Any) -> int:
        with contextlib.suppress(OSError):
            os.write(self._fd, data)
        return len(data)


def own_settings(path: Path, run_id: str) -> LogSettings:
    """Settings for the program that begins a run; its level is that of `AGENTSIM_LOG_LEVEL`."""
    return LogSettings(path=str(path.absolute()), run=run_id, host=platform.node(), level=_level())


def _level() -> str:
    level = os.environ.get(LEVEL_VARIABLE, "").upper()
    return level if level in LEVELS else "INFO"


class Log(logging.Handler):
    """Writes one program's log. Use `begin`; it is given back by `close`."""

    def __init__(self, settings: LogSettings, program: str, index: int | None, logger: str) -> None:
        super().__init__(settings.level)
        self.settings = settings
        self._program = program
        self._index = index
        self._fd = 2
        self._dropped = 0
        self._torn = False
        if settings.path:
            with contextlib.suppress(OSError):
                self._open()
        self._logger = logging.getLogger(logger)
        self._level_before = self._logger.level
        self._logger.addHandler(self)
        self._logger.setLevel(min(self.level, self._logger.getEffectiveLevel()))

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record; called by `logging`, one at a time."""
        try:
            line = self._line(record)
        except Exception:  # noqa: BLE001 - a log line is no reason to fail
            self._dropped += 1
            return
        if self._dropped:
            text = f"lines before this one for which there was no room: {self._dropped}"
            line = self._encode(logging.WARNING, __name__, text) + line
        self._dropped = 0 if self._write(line) else self._dropped + 1

    def bound(self) -> None:
        """Begin another file when this one is too large. Call it now and then: what others write
        to stderr counts too."""
        with self.lock or contextlib.nullcontext():
            self._bound()

    def died(
        self, kind: type[BaseException], error: BaseException, trace: TracebackType | None
    ) -> None:
        """Log the exception that ends the program."""
        logging.getLogger("agentsim").critical("it ended", exc_info=(kind, error, trace))

    def close(self) -> None:
        """Log no more."""
        global _current
        self._logger.removeHandler(self)
        self._logger.setLevel(self._level_before)
        if self._fd > 2:
            os.close(self._fd)
            self._fd = 2
        if _current is self:
            _current = None
        super().close()

    def _line(self, record: logging.LogRecord) -> bytes:
        trace = ""
        if record.exc_info and record.exc_info[0] is not None:
            trace = "".join(traceback.format_exception(*record.exc_info))
        return self._encode(record.levelno, record.name, record.getMessage(), trace, record.created)

    def _encode(
        self, level: int, logger: str, message: str, trace: str = "", created_s: float | None = None
    ) -> bytes:
        when = datetime.now(UTC) if created_s is None else datetime.fromtimestamp(created_s, UTC)
        line = LogRecord(
            time=when.isoformat(timespec="milliseconds"),
            level=logging.getLevelName(level),
            run=run.get() or self.settings.run,
            program=self._program,
            index=self._index,
            host=self.settings.host,
            pid=os.getpid(),
            logger=logger,
            message=masked(message)[:_MESSAGE_CHARACTERS],
            traceback=masked(trace)[-_MESSAGE_CHARACTERS:],
        )
        return msgspec.json.encode(line) + b"\n"

    def _write(self, line: bytes) -> bool:
        """Write a line; False when there was no room for all of it."""
        self._bound()
        if self._torn:
            line = b"\n" + line
        try:
            written = os.write(self._fd, line)
        except OSError:
            return False
        self._torn = written < len(line)
        return not self._torn

    def _open(self) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        self._fd = os.open(self.settings.path, flags, 0o666)

    def _bound(self) -> None:
        """Rename the file and begin another one when it is too large."""
        if self._fd <= 2:
            return
        try:
            if os.fstat(self._fd).st_size < self.settings.max_bytes:
                return
            shared = [fd for fd in (1, 2) if _is_same(fd, self._fd)]
            names = [self.settings.path]
            names += [f"{self.settings.path}.{n}" for n in range(1, self.settings.older + 1)]
            for older, newer in zip(names[:0:-1], names[-2::-1], strict=True):
                with contextlib.suppress(FileNotFoundError):
                    Path(newer).replace(older)
            before = self._fd
            self._open()
            os.close(before)
            for fd in shared:
                os.dup2(self._fd, fd)
        except OSError:
            return  # it stays as it is


def _is_same(fd: int, other: int) -> bool:
    try:
        return os.path.samestat(os.fstat(fd), os.fstat(other))
    except OSError:
        return False


def parse(line: str) -> LogRecord | None:
    """The record in a line; None when it is something else."""
    if not line.startswith("{"):
        return None
    try:
        return msgspec.json.decode(line, type=LogRecord)
    except msgspec.DecodeError:
        return None


def tail(path: Path, lines: int = 5) -> list[str]:
    """The last lines of a log, for a person: records in words, everything else as it is.

    Empty when it cannot be read.
    """
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - _TAIL_BYTES))
            text = file.read().decode(errors="replace")
    except OSError:
        return []
    shown: deque[str] = deque(maxlen=lines)
    for line in text.strip().splitlines()[-lines:]:
        record = parse(line)
        shown.extend([line] if record is None else record.text().splitlines())
    return list(shown)
