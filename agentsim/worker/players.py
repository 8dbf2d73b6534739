"""Drives a worker's language-model players: a bounded number of requests, no task an agent."""

from __future__ import annotations

import asyncio
import itertools
import math
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable, Sequence

from agentsim.games.guess_average import MarketContext, Membership, Player
from agentsim.replies import Status
from agentsim.rpc.codec import agents_of, values_of
from agentsim.rpc.control import Ask, Enrol, Recall, Tried
from agentsim.rpc.envelope import Kind
from agentsim.rpc.messages import Attempt, Completion, Groups, Observation, Request

_READ_AT_ONCE = 128


class Players:
    """The players of all sessions that one worker hosts.

    Args:
        context: what all of them share.
        window: most requests in flight.
        send: sends a message, by kind.
    """

    def __init__(
        self,
        context: MarketContext,
        window: int,
        send: Callable[[Kind, object], Awaitable[None]],
    ) -> None:
        self._context = context
        self._window = window
        self._send = send
        self._players: dict[int, list[Player]] = {}
        self._groups: dict[int, dict[int, list[Player]]] = defaultdict(lambda: defaultdict(list))
        self._first: dict[int, int] = {}
        self._waiting: deque[tuple[Player, Observation, Tried | None]] = deque()
        self._in_flight = 0

    @property
    def count(self) -> int:
        """Players of all sessions that go on."""
        return sum(map(len, self._players.values()))

    def enrol(self, enrol: Enrol) -> None:
        """Make the players of one session."""
        backgrounds: Sequence[str | None] = enrol.backgrounds or [None] * enrol.count
        players = self._players.setdefault(enrol.session, [])
        self._first.setdefault(enrol.session, enrol.first)
        for agent, background in enumerate(backgrounds, enrol.first):
            group = None
            if enrol.groups is not None:
                group = self._membership(enrol.groups, agent - enrol.first)
            player = Player(self._context, enrol.session, agent, background, group)
            players.append(player)
            if group is not None:
                self._groups[enrol.session][group.number].append(player)

    def _membership(self, groups: Groups, place: int) -> Membership:
        """The group of the agent at a place of the message, made once for all of its agents."""
        number = int(agents_of(groups.codes)[place]) + 1
        known = self._groups[groups.session][number]
        if known and (group := known[0].group) is not None:
            return group
        return Membership(number, groups.names, groups.sizes)

    def retire(self, session: int) -> None:
        """Forget the players of a session that has ended."""
        del self._players[session], self._first[session]
        self._groups.pop(session, None)

    def recall(self, recall: Recall) -> None:
        """Take in a round that was played before, to rebuild players."""
        told = {observation.group: observation for observation in recall.observations}
        for observation in recall.observations:
            if known := self._told(observation):
                known[0].observe(observation)
        session = recall.observations[0].session
        texts = recall.texts or itertools.repeat("")
        values = values_of(recall.values).tolist()
        for agent, value, text in zip(agents_of(recall.agents).tolist(), values, texts):  # noqa: B905 texts may go on for ever
            player = self._players[session][agent - self._first[session]]
            group = player.group.number if player.group is not None and 0 not in told else 0
            player.recall(told[group], None if math.isnan(value) else value, text)

    async def ask(self, ask: Ask) -> None:
        """All players that the observation is for are to act, but those that have."""
        observation = ask.observation
        done = set(agents_of(ask.done).tolist())
        tried = {one.agent: one for one in ask.tried}
        for player in self._told(observation):
            if player.agent not in done:
                self._waiting.append((player, observation, tried.get(player.agent)))
        await self._pump([])

    def _told(self, observation: Observation) -> list[Player]:
        """The players that an observation is for."""
        if observation.group:
            return self._groups[observation.session][observation.group]
        return self._players[observation.session]

    async def digest(self, completions: list[Completion]) -> None:
        """Give replies to their players; what they ask next goes out at once."""
        for start in range(0, len(completions), _READ_AT_ONCE):
            await self._digest(completions[start : start + _READ_AT_ONCE])
            # Reading takes up to a millisecond a reply: the loop's signs of life go between.
            await asyncio.sleep(0)

    async def _digest(self, completions: list[Completion]) -> None:
        again: list[Request] = []
        attempts: dict[tuple[int, int], list[Attempt]] = defaultdict(list)
        for completion in completions:
            index = completion.agent - self._first[completion.session]
            player = self._players[completion.session][index]
            attempt, request = player.digest(completion)
            attempts[completion.session, completion.round].append(attempt)
            self._in_flight -= 1
            if request is not None:
                again.append(request)
        for of_round in attempts.values():
            await self._send(Kind.ATTEMPTS, of_round)
        await self._pump(again)

    async def _pump(self, requests: list[Request]) -> None:
        """Fill the window, those that are asked again first."""
        self._in_flight += len(requests)
        while self._waiting and self._in_flight < self._window:
            requests.append(_begin(*self._waiting.popleft()))
            self._in_flight += 1
        if requests:
            await self._send(Kind.REQUESTS, requests)


def _begin(player: Player, observation: Observation, tried: Tried | None) -> Request:
    """A player's next request in a round."""
    if tried is None:
        return player.prepare(observation)
    refused = Status(tried.refused) if tried.refused else None
    return player.prepare(observation, tried.attempts, refused)
