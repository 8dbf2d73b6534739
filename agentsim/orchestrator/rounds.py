"""The rounds as a pure state machine: events in, commands out.

It reads no clock, no socket and no random source. A session's round is asked, filled with final
actions, settled when all are in, and asked again with what was announced. What belongs to no open
round, or answers for an agent twice, is dropped and counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agentsim.results import RoundGatherer
from agentsim.rpc.codec import agents_of
from agentsim.rpc.messages import Answers, Attempt, Observation


@dataclass(frozen=True, slots=True)
class Ask:
    """Command: all agents of the session are to act on the observation."""

    observation: Observation


@dataclass(frozen=True, slots=True)
class Settle:
    """Command: everybody has acted; settle the round and say what is announced."""

    board: Board


@dataclass(frozen=True, slots=True)
class Enrol:
    """Command: the agents of a session are to be made."""

    session: int


@dataclass(frozen=True, slots=True)
class Retire:
    """Command: a session has ended."""

    session: int


@dataclass(frozen=True, slots=True)
class Finish:
    """Command: all sessions have ended."""


Command = Enrol | Ask | Settle | Retire | Finish


@dataclass(slots=True)
class Board:
    """One open round of one session.

    Attributes:
        gatherer: its actions so far.
        final: agents that have acted.
    """

    session: int
    round: int
    gatherer: RoundGatherer
    final: int = 0


class Rounds:
    """All sessions of a run.

    Args:
        agents: players in each session.
        sessions, rounds: how many.
        at_once: sessions played side by side.

    Attributes:
        dropped: actions that came for no open round, or twice.
    """

    def __init__(self, *, agents: int, sessions: int, rounds: int, at_once: int) -> None:
        self.dropped = 0
        self._agents = agents
        self._sessions = sessions
        self._rounds = rounds
        self._at_once = at_once
        self._boards: dict[int, Board] = {}
        self._settling: set[int] = set()
        self._begun = 0
        self._ended = 0

    def start(self) -> list[Command]:
        """Begin the first sessions."""
        return self._begin_sessions()

    def answered(self, answers: Answers) -> tuple[int, list[Command]]:
        """Final actions of scripted players have arrived.

        Returns:
            How many of them count, and what is to be done.
        """
        board = self._open(answers.session, answers.round)
        if board is not None:
            board.gatherer.add_answers(answers)
        return self._advance(board, len(agents_of(answers.agents)))

    def attempted(self, attempts: Sequence[Attempt]) -> tuple[int, list[Command]]:
        """Attempts of players that ask a language model have arrived, all of one round.

        Returns:
            How many final actions among them count, and what is to be done.
        """
        board = self._open(attempts[0].session, attempts[0].round)
        if board is not None:
            board.gatherer.add_attempts(attempts)
        return self._advance(board, sum(attempt.final for attempt in attempts))

    def settled(self, session: int, announced: dict[str, float]) -> list[Command]:
        """The session's full round was settled; go on with the next one."""
        board = self._boards.pop(session)
        self._settling.discard(session)
        if board.round < self._rounds:
            return [self._ask(session, board.round + 1, announced)]
        self._ended += 1
        if self._ended == self._sessions:
            return [Retire(session), Finish()]
        return [Retire(session), *self._begin_sessions()]

    def _begin_sessions(self) -> list[Command]:
        commands: list[Command] = []
        while self._begun < self._sessions and self._begun - self._ended < self._at_once:
            self._begun += 1
            commands += [Enrol(self._begun), self._ask(self._begun, 1, {})]
        return commands

    def _ask(self, session: int, round: int, announced: dict[str, float]) -> Ask:
        self._boards[session] = Board(session, round, RoundGatherer(self._agents))
        return Ask(Observation(session, round, self._agents, announced))

    def _open(self, session: int, round: int) -> Board | None:
        board = self._boards.get(session)
        if board is None or board.round != round or session in self._settling:
            return None
        return board

    def _advance(self, board: Board | None, sent: int) -> tuple[int, list[Command]]:
        """Count the actions that were new; settle when none is missing."""
        if board is None:
            self.dropped += sent
            return 0, []
        new = board.gatherer.final - board.final
        board.final += new
        self.dropped += sent - new
        if not new or board.final < self._agents:
            return new, []
        self._settling.add(board.session)
        return new, [Settle(board)]
