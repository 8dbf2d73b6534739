"""The rounds as a pure state machine: events in, commands out.

It reads no clock, no socket and no random source. What goes on by itself is a market: who plays
with whom in one session, all of it or one group. A market's round is asked, filled with final
actions, settled when all are in, and asked again with what was announced; it waits for no other.
What belongs to no open round, or answers for an agent twice, is dropped and counted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import compress

import numpy as np
from numpy.typing import NDArray

from agentsim.results import Grouping, RoundGatherer
from agentsim.rpc.codec import agents_of, values_of
from agentsim.rpc.messages import Answers, Attempt, Observation


@dataclass(frozen=True, slots=True)
class Enrol:
    """Command: the agents of a session are to be made; `Rounds.enrolled` tells that they are."""

    session: int


@dataclass(frozen=True, slots=True)
class Ask:
    """Command: the agents that the observation is for are to act on it."""

    observation: Observation


@dataclass(frozen=True, slots=True)
class Settle:
    """Command: everybody in a market has acted; settle its round and say what is announced."""

    board: Board


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
    """One open round of one market.

    Attributes:
        market: which one of the session, from 0.
        gatherer: its actions so far.
        n: agents of the market.
        final: agents that have acted.
        settling: whether all have, and the round is being settled.
    """

    session: int
    market: int
    round: int
    gatherer: RoundGatherer
    n: int
    final: int = 0
    settling: bool = False


@dataclass(slots=True)
class _Session:
    """A session that is being played.

    Attributes:
        boards: the open round of each market; None when it has played all.
        playing: markets that have rounds left.
    """

    grouping: Grouping
    boards: list[Board | None]
    playing: int


class Rounds:
    """All sessions of a run.

    Args:
        sessions, rounds: how many.
        at_once: sessions played side by side.

    Attributes:
        dropped: actions that came for no open round, or twice.
    """

    def __init__(self, *, sessions: int, rounds: int, at_once: int) -> None:
        self.dropped = 0
        self._count = sessions
        self._rounds = rounds
        self._at_once = at_once
        self._sessions: dict[int, _Session] = {}
        self._begun = 0
        self._ended = 0

    def start(self) -> list[Command]:
        """Begin the first sessions."""
        return self._begin_sessions()

    def enrolled(self, session: int, grouping: Grouping) -> list[Command]:
        """The agents of a session have been made; ask all of its markets."""
        markets = grouping.markets
        self._sessions[session] = _Session(grouping, [None] * markets, markets)
        commands: list[Command] = []
        for market in range(markets):
            commands += self._ask(session, market, 1, {})
        return commands

    def answered(self, answers: Answers) -> tuple[int, list[Command]]:
        """Final actions of scripted players have arrived.

        Returns:
            How many of them count, and what is to be done.
        """
        agents, values = agents_of(answers.agents), values_of(answers.values)
        counted, commands = 0, list[Command]()
        for board, rows in self._open(answers.session, answers.round, agents):
            if board is not None:
                texts = list(compress(answers.texts, rows))
                board.gatherer.add_values(agents[rows], values[rows], texts)
            new, todo = self._advance(board, int(np.count_nonzero(rows)))
            counted += new
            commands += todo
        return counted, commands

    def attempted(self, attempts: Sequence[Attempt]) -> tuple[int, list[Command]]:
        """Attempts of players that ask a language model have arrived, all of one round.

        Returns:
            How many final actions among them count, and what is to be done.
        """
        agents = np.array([attempt.agent for attempt in attempts], dtype=np.uint32)
        counted, commands = 0, list[Command]()
        for board, rows in self._open(attempts[0].session, attempts[0].round, agents):
            of_market = list(compress(attempts, rows))
            if board is not None:
                board.gatherer.add_attempts(of_market)
            new, todo = self._advance(board, sum(attempt.final for attempt in of_market))
            counted += new
            commands += todo
        return counted, commands

    def settled(self, board: Board, announced: Mapping[int, dict[str, float]]) -> list[Command]:
        """A market's full round was settled; go on with its next one.

        Args:
            board: the round.
            announced: what is told, by group from 1; 0: to everybody in the market.
        """
        session = self._sessions[board.session]
        if board.round < self._rounds:
            return self._ask(board.session, board.market, board.round + 1, announced)
        session.boards[board.market] = None
        session.playing -= 1
        if session.playing:
            return []
        del self._sessions[board.session]
        self._ended += 1
        if self._ended == self._count:
            return [Retire(board.session), Finish()]
        return [Retire(board.session), *self._begin_sessions()]

    def open(self, session: int) -> list[Board]:
        """The open rounds of a session's markets."""
        return [board for board in self._sessions[session].boards if board is not None]

    def _begin_sessions(self) -> list[Command]:
        commands: list[Command] = []
        while self._begun < self._count and self._begun - self._ended < self._at_once:
            self._begun += 1
            commands.append(Enrol(self._begun))
        return commands

    def _ask(
        self, session: int, market: int, round: int, announced: Mapping[int, dict[str, float]]
    ) -> list[Command]:
        """Open a market's round, and ask all of it at once, or by group where that tells other
        numbers."""
        grouping = self._sessions[session].grouping
        gatherer = RoundGatherer(grouping, market)
        n = len(gatherer.values)
        self._sessions[session].boards[market] = Board(session, market, round, gatherer, n)
        if grouping.separate:
            announced = {market + 1: announced.get(0, {})}
        return [
            Ask(Observation(session, round, n, told, group))
            for group, told in (announced or {0: {}}).items()
        ]

    def _open(
        self, session: int, round: int, agents: NDArray[np.uint32]
    ) -> list[tuple[Board | None, NDArray[np.bool_]]]:
        """The open boards that agents act on, each with which of them it is; None: on no one."""
        known = self._sessions.get(session)
        if known is None:
            return [(None, np.ones(agents.size, np.bool_))]
        found: list[tuple[Board | None, NDArray[np.bool_]]] = []
        for market, rows in known.grouping.split(agents):
            board = known.boards[market]
            if board is not None and (board.round != round or board.settling):
                board = None
            found.append((board, rows))
        return found

    def _advance(self, board: Board | None, sent: int) -> tuple[int, list[Command]]:
        """Count the actions that were new; settle when none is missing."""
        if board is None:
            self.dropped += sent
            return 0, []
        new = board.gatherer.final - board.final
        board.final += new
        self.dropped += sent - new
        if not new or board.final < board.n:
            return new, []
        board.settling = True
        return new, [Settle(board)]
