"""Drives a worker's language-model players: a bounded number of requests, no task an agent."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Awaitable, Callable, Sequence

from agentsim.games.guess_average import MarketContext, Membership, Player
from agentsim.rpc.codec import agents_of
from agentsim.rpc.control import Enrol
from agentsim.rpc.envelope import Kind
from agentsim.rpc.messages import Attempt, Completion, Groups, Observation, Request


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
        self._waiting: deque[tuple[Player, Observation]] = deque()
        self._in_flight = 0

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

    async def ask(self, observation: Observation) -> None:
        """All players that the observation is for are to act."""
        players = self._players[observation.session]
        if observation.group:
            players = self._groups[observation.session][observation.group]
        self._waiting.extend((player, observation) for player in players)
        await self._pump([])

    async def digest(self, completions: list[Completion]) -> None:
        """Give replies to their players; what they ask next goes out at once."""
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
            player, observation = self._waiting.popleft()
            requests.append(player.prepare(observation))
            self._in_flight += 1
        if requests:
            await self._send(Kind.REQUESTS, requests)
