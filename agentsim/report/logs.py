"""The logs of a run, of all its programs, merged by time."""

from __future__ import annotations

import heapq
import os
import re
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

from rich.text import Text

from agentsim.logs import LEVELS, LogRecord, parse
from agentsim.results import RunDirectory
from agentsim.results.framing import is_being_written
from agentsim.results.storage import failure

PROGRAMS = ("orchestrator", "node", "worker", "server")
_OURS = re.compile(r"(orchestrator|node-\d+|worker-\d+)\.log")
_LOG = re.compile(r"(.+\.log)(?:\.(\d+))?")
_LOOK_S = 0.5
_BLOCK_BYTES = 1024 * 1024
_STYLES = {"DEBUG": "dim", "WARNING": "yellow", "ERROR": "red", "CRITICAL": "bold red"}


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a log.

    Attributes:
        time: of the record, UTC; of a line that is none: that of what stands before it.
        file: name of the log.
        raw: the line as it is.
        record: what it says; None when it is no record.
    """

    time: str
    file: str
    raw: str
    record: LogRecord | None

    @property
    def program(self) -> str:
        """Which kind of program wrote it, one of `PROGRAMS`."""
        if self.record is not None and self.record.program:
            return self.record.program
        found = _OURS.fullmatch(self.file)
        return found[1].partition("-")[0] if found else "server"

    def plain(self) -> str:
        """The line for a person."""
        if self.record is None:
            return f"{self.file}: {self.raw}"
        when = self.record.time[:23].replace("T", " ")
        return f"{when} {self.record.text()}"

    def rich(self) -> Text:
        """The same with colours."""
        text = self.plain()
        if self.record is None:
            return Text(text, style="dim")
        styled = Text(text, style=_STYLES.get(self.record.level, ""))
        styled.stylize("dim", 0, 23)
        return styled


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which lines are shown.

    Attributes:
        level: the lowest; lines that are no records have none and are shown.
        programs: of `PROGRAMS`; none: all.
    """

    level: str = "DEBUG"
    programs: frozenset[str] = frozenset()

    def has(self, line: Line) -> bool:
        """Whether a line is among them."""
        if self.programs and line.program not in self.programs:
            return False
        level = line.record.level if line.record is not None else ""
        return level not in LEVELS or LEVELS.index(level) >= LEVELS.index(self.level)


def read_logs(run: str | os.PathLike[str], wanted: Wanted | None = None) -> Iterator[Line]:
    """All lines of a run's logs in order of time, a few in memory at a time.

    Raises:
        ResultsError: there is no run, or a log cannot be read.
    """
    wanted = wanted or Wanted()
    logs = RunDirectory.open(Path(run)).logs
    merged = heapq.merge(
        *(_lines(name, files) for name, files in log_files(logs).items()),
        key=lambda line: line.time,
    )
    return filter(wanted.has, merged)


def follow_logs(run: str | os.PathLike[str], wanted: Wanted | None = None) -> Iterator[Line]:
    """All lines, and then what is added, until the run has ended.

    Raises:
        ResultsError: there is no run, or a log cannot be read.
    """
    wanted = wanted or Wanted()
    directory = RunDirectory.open(Path(run))
    tails: dict[str, _Tail] = {}
    try:
        while True:
            # In this order, so that nothing is missed that was written before the end.
            goes_on = directory.journal.exists() and is_being_written(directory.journal)
            fresh: list[Line] = []
            for name in log_files(directory.logs):
                fresh += tails.setdefault(name, _Tail(directory.logs / name)).more()
            yield from filter(wanted.has, sorted(fresh, key=lambda line: line.time))
            if not goes_on:
                return
            time.sleep(_LOOK_S)
    finally:
        for tail in tails.values():
            tail.close()


def log_files(folder: Path) -> dict[str, list[Path]]:
    """The files of each log, the oldest first, by the log's name.

    Raises:
        ResultsError: the folder cannot be read.
    """
    found: dict[str, list[tuple[int, Path]]] = {}
    try:
        for path in folder.iterdir():
            match = _LOG.fullmatch(path.name)
            if match and path.is_file():
                found.setdefault(match[1], []).append((int(match[2] or 0), path))
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise failure(folder, "cannot read the logs", error) from error
    return {
        name: [path for _, path in sorted(files, reverse=True)]
        for name, files in sorted(found.items())
    }


def _lines(name: str, files: Iterable[Path]) -> Iterator[Line]:
    """The lines of one log; those that are no records go with the one before."""
    before: list[str] = []
    when = ""
    for path in files:
        try:
            with path.open(errors="replace") as file:
                for raw in file:
                    raw = raw.rstrip("\n")
                    record = parse(raw)
                    if record is None and not when:
                        before.append(raw)
                        continue
                    when = when if record is None else record.time
                    yield from (Line(when, name, early, None) for early in before)
                    before = []
                    yield Line(when, name, raw, record)
        except FileNotFoundError:
            continue  # renamed meanwhile
        except OSError as error:
            raise failure(path, "cannot read the log", error) from error
    if before:
        when = _touched(path)
        yield from (Line(when, name, raw, None) for raw in before)


def _touched(path: Path) -> str:
    """When a file was written last, as records say it."""
    try:
        seconds = path.stat().st_mtime
    except OSError:
        return ""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")


@dataclass(slots=True)
class _Tail:
    """Reads one log on from where it was read to, also when it is renamed for another."""

    path: Path
    file: BinaryIO | None = None
    rest: bytes = b""
    when: str = ""
    _begun: bool = field(default=False)

    def more(self) -> Iterator[Line]:
        """The lines that were added."""
        if not self._begun:
            self._begun = True
            older = log_files(self.path.parent).get(self.path.name, [])[:-1]
            yield from _lines(self.path.name, older)
        while True:
            if self.file is None:
                try:
                    self.file = self.path.open("rb")
                except FileNotFoundError:
                    return
            yield from self._read(self.file)
            try:
                renamed = not os.path.samestat(os.fstat(self.file.fileno()), self.path.stat())
            except FileNotFoundError:
                renamed = True
            if not renamed:
                return
            yield from self._read(self.file)
            self.close()

    def close(self) -> None:
        """Read no more."""
        if self.file is not None:
            self.file.close()
        self.file = None

    def _read(self, file: BinaryIO) -> Iterator[Line]:
        while block := file.read(_BLOCK_BYTES):
            *whole, self.rest = (self.rest + block).split(b"\n")
            for line in whole:
                raw = line.decode(errors="replace")
                record = parse(raw)
                self.when = self.when if record is None else record.time
                yield Line(self.when or _touched(self.path), self.path.name, raw, record)
