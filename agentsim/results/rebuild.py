"""Makes the tables again from the journal alone."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from agentsim.errors import ResultsError
from agentsim.ids import Round
from agentsim.results.directory import TABLES, RunDirectory
from agentsim.results.framing import Frame, Kind, frames
from agentsim.results.parts import replace_tables, scratch_directory
from agentsim.results.recorded import RecordedAttempts
from agentsim.results.records import RunStart, from_json
from agentsim.results.rounds import RoundGatherer
from agentsim.results.tables import TableWriter
from agentsim.rpc import codec
from agentsim.rpc.messages import Answers, Attempt, Settle


def rebuild(directory: RunDirectory) -> None:
    """Write actions, requests and announcements of all settled rounds anew.

    The rows are those that the run wrote. Prompts are not held in memory: they are read again when
    their round is settled. Not for a run that another process is writing.

    Raises:
        ResultsError: the journal cannot be read, or the disk is full; the tables are as they were.
    """
    scratch = scratch_directory(directory)
    _Rebuild(directory.journal, TableWriter(scratch)).run()
    replace_tables(directory, scratch, list(TABLES))


class _Rebuild:
    def __init__(self, journal: Path, writer: TableWriter) -> None:
        self._journal = journal
        self._writer = writer
        self._start: RunStart | None = None
        self._open: dict[Round, tuple[RoundGatherer, RecordedAttempts]] = {}
        self._settled: set[Round] = set()

    def run(self) -> None:
        for frame in frames(self._journal):
            try:
                self._take(frame)
            except (ValueError, IndexError, KeyError) as error:
                raise ResultsError(
                    f"{self._journal}: the record at byte {frame.offset} does not make sense: "
                    f"{error}"
                ) from error
        self._writer.flush()

    def _take(self, frame: Frame) -> None:
        match frame.kind:
            case Kind.RUN:
                self._start = self._start or from_json(frame.body, RunStart)
            case Kind.ANSWERS:
                self._take_answers(codec.decode(frame.body, Answers))
            case Kind.ATTEMPTS:
                self._take_attempts(codec.decode(frame.body, list[Attempt]), frame.offset)
            case Kind.SETTLE:
                self._settle(codec.decode(frame.body, Settle))
            case Kind.END:
                pass

    def _take_answers(self, answers: Answers) -> None:
        key = Round(answers.session, answers.round)
        if key not in self._settled:
            self._round(key)[0].add_answers(answers)

    def _take_attempts(self, attempts: list[Attempt], offset: int) -> None:
        for key, batch in _by_round(attempts):
            if key not in self._settled:
                gatherer, recorded = self._round(key)
                gatherer.add_attempts(batch)
                recorded.add(offset, len(batch))

    def _settle(self, settle: Settle) -> None:
        key = Round(settle.session, settle.round)
        if key in self._settled:
            return
        gatherer, recorded = self._round(key)
        columns = gatherer.columns(settle, model=self._started().model)
        self._writer.write(columns, recorded, settle)
        self._settled.add(key)
        del self._open[key]

    def _round(self, key: Round) -> tuple[RoundGatherer, RecordedAttempts]:
        if key not in self._open:
            recorded = RecordedAttempts(self._journal, key)
            self._open[key] = (RoundGatherer(self._started().agents), recorded)
        return self._open[key]

    def _started(self) -> RunStart:
        if self._start is None:
            raise ResultsError(f"{self._journal}: does not begin with a run's record")
        return self._start


def _by_round(attempts: list[Attempt]) -> Iterator[tuple[Round, list[Attempt]]]:
    def key(attempt: Attempt) -> Round:
        return Round(attempt.session, attempt.round)

    for round, batch in groupby(sorted(attempts, key=key), key):
        yield round, list(batch)
