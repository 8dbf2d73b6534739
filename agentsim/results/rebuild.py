"""Makes the tables again from the journal alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import compress, groupby
from pathlib import Path

import numpy as np

from agentsim.errors import ResultsError
from agentsim.ids import Round
from agentsim.results.directory import TABLES, RunDirectory
from agentsim.results.framing import Frame, Kind, frames
from agentsim.results.grouping import Grouping
from agentsim.results.lock import held
from agentsim.results.parts import replace_tables, scratch_directory
from agentsim.results.persona_stage import PERSONA_ROUND, write_persona_requests
from agentsim.results.recorded import RecordedAttempts
from agentsim.results.records import RunStart, from_json
from agentsim.results.rounds import RoundGatherer
from agentsim.results.tables import TableWriter
from agentsim.results.workflow import write_workflow_tables
from agentsim.rpc import codec
from agentsim.rpc.messages import Answers, Attempt, Groups, Settle


def rebuild(directory: RunDirectory) -> None:
    """Write actions, requests and announcements of all settled rounds anew, or the tables of a
    user's program.

    The rows are those that the run wrote. Prompts are not held in memory: they are read again when
    their round is settled.

    Raises:
        ResultsError: the journal cannot be read, somebody writes it, or the disk is full; the
            tables are as they were.
    """
    with held(directory.journal):
        if _is_workflow(directory.journal):
            write_workflow_tables(directory)
            return
        scratch = scratch_directory(directory)
        again = _Rebuild(directory.journal, TableWriter(scratch))
        again.run()
        write_persona_requests(scratch, again.personas)
        replace_tables(directory, scratch, list(TABLES))


def _is_workflow(journal: Path) -> bool:
    """Whether a user's program was run: it has no rounds that are settled."""
    first = next(frames(journal), None)
    try:
        return (
            first is not None
            and first.kind is Kind.RUN
            and from_json(first.body, RunStart).rounds == 0
        )
    except ValueError:
        return False


@dataclass(frozen=True, slots=True)
class _Open:
    """A round with markets that are not settled yet.

    Attributes:
        gatherers: of those markets.
        recorded: the attempts of all markets.
    """

    grouping: Grouping
    gatherers: dict[int, RoundGatherer]
    recorded: RecordedAttempts


class _Rebuild:
    def __init__(self, journal: Path, writer: TableWriter) -> None:
        self._journal = journal
        self._writer = writer
        self._start: RunStart | None = None
        self._groupings: dict[int, Grouping] = {}
        self._open: dict[Round, _Open] = {}
        self.personas: dict[int, RecordedAttempts] = {}
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
        self._writer.finish()

    def _take(self, frame: Frame) -> None:
        match frame.kind:
            case Kind.RUN:
                self._start = self._start or from_json(frame.body, RunStart)
            case Kind.ANSWERS:
                self._take_answers(codec.decode(frame.body, Answers))
            case Kind.ATTEMPTS:
                self._take_attempts(codec.decode(frame.body, list[Attempt]), frame.offset)
            case Kind.GROUPS:
                groups = codec.decode(frame.body, Groups)
                self._groupings[groups.session] = Grouping.of(groups)
            case Kind.SETTLE:
                self._settle(codec.decode(frame.body, Settle))
            case Kind.END | Kind.ROW | Kind.EVENT:
                pass

    def _take_answers(self, answers: Answers) -> None:
        key = Round(answers.session, answers.round)
        if key in self._settled:
            return
        round = self._round(key)
        agents, values = codec.agents_of(answers.agents), codec.values_of(answers.values)
        for market, rows in round.grouping.split(agents):
            if market in round.gatherers:
                texts = list(compress(answers.texts, rows))
                round.gatherers[market].add_values(agents[rows], values[rows], texts)

    def _take_attempts(self, attempts: list[Attempt], offset: int) -> None:
        for key, batch in _by_round(attempts):
            if key in self._settled:
                continue
            if key.round == PERSONA_ROUND:
                recorded = RecordedAttempts(self._journal, key)
                self.personas.setdefault(key.session, recorded).add(offset, len(batch))
                continue
            round = self._round(key)
            round.recorded.add(offset, len(batch))
            agents = np.array([attempt.agent for attempt in batch], np.uint32)
            for market, rows in round.grouping.split(agents):
                if market in round.gatherers:
                    round.gatherers[market].add_attempts(compress(batch, rows))

    def _settle(self, settle: Settle) -> None:
        key = Round(settle.session, settle.round)
        if key in self._settled:
            return
        round = self._round(key)
        gatherer = round.gatherers.pop(settle.market, None)
        if gatherer is None:
            return
        columns = gatherer.columns(settle, model=self._started().model)
        self._writer.write(columns, round.recorded, settle)
        if not round.gatherers:
            self._settled.add(key)
            del self._open[key]

    def _round(self, key: Round) -> _Open:
        if key not in self._open:
            grouping = self._groupings.get(key.session) or Grouping(self._started().agents)
            gatherers = {m: RoundGatherer(grouping, m) for m in range(grouping.markets)}
            recorded = RecordedAttempts(self._journal, key)
            self._open[key] = _Open(grouping, gatherers, recorded)
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
