"""Reads back a journal into the state of a run, so that the run goes on where it was cut."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
from msgspec import structs

from agentsim.errors import ResultsError
from agentsim.ids import Round
from agentsim.orchestrator.course import Course
from agentsim.orchestrator.rounds import (
    Ask,
    Board,
    Command,
    Enrol,
    Finish,
    Retire,
    Settle,
)
from agentsim.results import Event, Frame, Kind, RecordedAttempts, RoundColumns, from_json
from agentsim.results.persona_stage import PERSONA_ROUND
from agentsim.rpc import messages
from agentsim.rpc.codec import decode
from agentsim.rpc.messages import Answers, Attempt, Groups


@dataclass(slots=True)
class Past:
    """What a journal says of the time before.

    Attributes:
        todo: what is left to be carried out: full rounds that were not settled.
        finished: whether all sessions have ended.
        grouped: sessions whose groups stand in the journal.
        settled: rounds of markets, without their winners.
        personas: attempts of the stage that writes personas, by session.
    """

    todo: list[Command] = field(default_factory=list)
    finished: bool = False
    grouped: set[int] = field(default_factory=set)
    settled: list[messages.Settle] = field(default_factory=list)
    personas: dict[int, RecordedAttempts] = field(default_factory=dict)


Closed = Callable[[RoundColumns, RecordedAttempts, messages.Settle], None]


def recover(course: Course, frames: Iterable[Frame], journal: Path, closed: Closed) -> Past:
    """Feed a course with a journal; with none, it is at its start.

    Args:
        course: that nothing was fed to.
        frames: of the journal, in order.
        journal: how errors call it.
        closed: takes each settled round of a market.

    Raises:
        ResultsError: a frame is damaged, or does not fit what stands before it.
        LimitReached: a settled round is beyond a limit.
    """
    reader = _Reader(course, journal, closed)
    reader.carry_out(course.start())
    for frame in frames:
        try:
            reader.take(frame)
        except (ValueError, IndexError, KeyError, msgspec.DecodeError) as error:
            raise ResultsError(
                f"{journal}: the record at byte {frame.offset} does not make sense: {error}"
            ) from error
    reader.past.todo = [Settle(board) for board in reader.full.values()]
    course.check_tokens()
    return reader.past


class _Reader:
    """Takes one frame after the other."""

    def __init__(self, course: Course, journal: Path, closed: Closed) -> None:
        self.past = Past()
        self.full: dict[tuple[int, int, int], Board] = {}
        self._course = course
        self._journal = journal
        self._closed = closed
        self._personas: set[tuple[int, int, int]] = set()

    def take(self, frame: Frame) -> None:
        match frame.kind:
            case Kind.ANSWERS:
                _, commands = self._course.answered(decode(frame.body, Answers))
                self.carry_out(commands)
            case Kind.ATTEMPTS:
                self._attempts(decode(frame.body, list[Attempt]), frame.offset)
            case Kind.SETTLE:
                self._settle(decode(frame.body, messages.Settle))
            case Kind.GROUPS:
                self.past.grouped.add(decode(frame.body, Groups).session)
            case Kind.EVENT:
                self._course.tokens += from_json(frame.body, Event).tokens

    def carry_out(self, commands: Iterable[Command]) -> None:
        """What the live run does at its workers is here a note that it was done."""
        todo = deque(commands)
        while todo:
            match todo.popleft():
                case Enrol(session):
                    todo.extendleft(reversed(self._course.enrol(session)))
                case Ask(observation):
                    self._course.tell(observation)
                case Settle(board):
                    self.full[board.session, board.market, board.round] = board
                case Retire(session):
                    self._course.retire(session)
                case Finish():
                    self.past.finished = True

    def _attempts(self, attempts: list[Attempt], offset: int) -> None:
        if attempts[0].round != PERSONA_ROUND:
            self.carry_out(self._course.attempted(attempts, offset))
            return
        for session, count in Counter(attempt.session for attempt in attempts).items():
            recorded = RecordedAttempts(self._journal, Round(session, PERSONA_ROUND))
            self.past.personas.setdefault(session, recorded).add(offset, count)
        for attempt in attempts:
            key = (attempt.session, attempt.agent, attempt.attempt)
            if key not in self._personas:
                self._personas.add(key)
                self._course.tokens += attempt.prompt_tokens + attempt.completion_tokens

    def _settle(self, record: messages.Settle) -> None:
        key = record.session, record.market, record.round
        board = self.full.pop(key, None)
        if board is None:
            raise ValueError(
                f"round {record.round} of session {record.session} is settled, and not all have "
                "acted, or it was settled before"
            )
        self._closed(*self._course.close(board, record), record)
        self._course.check(record)
        self.past.settled.append(structs.replace(record, winners=[], payoffs=[]))
        self.carry_out(self._course.go_on(board, record))
