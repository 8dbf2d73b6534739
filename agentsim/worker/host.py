"""What a worker does with the messages that it receives."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from agentsim.actors.batches import batches
from agentsim.actors.messages import ActorMessage, Create, Drop, Lost, Setup, read_messages
from agentsim.config.models import LANGUAGE_MODELS
from agentsim.config.scenario import Scenario
from agentsim.games.guess_average import GuessAverageSpec, MarketContext
from agentsim.models import scripted
from agentsim.rpc.codec import agents_of, decode, encode
from agentsim.rpc.control import Ask, Enrol, Recall, Retire, WorkerSetup
from agentsim.rpc.envelope import NODE, ORCHESTRATOR, Envelope, Kind
from agentsim.rpc.messages import Completion
from agentsim.worker.players import Players
from agentsim.worker.scripted import Shard, act

if TYPE_CHECKING:
    from agentsim.chat import Client
    from agentsim.worker.actors import Actors

_log = logging.getLogger(__name__)
# What only the orchestrator says.
_OF_THE_CENTRE = (Setup, Create, Drop, Lost)


class Host:
    """Hosts a worker's agents.

    Args:
        worker: index of the worker over all hosts.
        put: sends an envelope, waiting while too many wait.
        folder: a private one, for sources of users' modules.
    """

    def __init__(
        self, worker: int, put: Callable[[Envelope], Awaitable[None]], folder: Path
    ) -> None:
        self._worker = worker
        self._put = put
        self._folder = folder
        self._actors: Actors | None = None
        self._chat: Client | None = None
        self._posted: asyncio.Queue[Envelope] = asyncio.Queue()
        self._posting: asyncio.Task[None] | None = None
        self._scripted: scripted.Scripted | None = None
        self._players: Players | None = None
        self._shards: dict[int, Shard] = {}
        self._work: asyncio.Queue[Envelope] = asyncio.Queue()
        self._acting: set[asyncio.Task[None]] = set()

    @property
    def agents(self) -> int:
        """Agents that live here now."""
        if self._actors is not None:
            return self._actors.host.agents
        if self._players is not None:
            return self._players.count
        return sum(shard.count for shard in self._shards.values())

    def receive(self, envelope: Envelope) -> None:
        """Take a message; `play` deals with it."""
        self._work.put_nowait(envelope)

    async def play(self) -> None:
        """Deal with messages, in order, for as long as the worker lives."""
        while True:
            await self._handle(await self._work.get())
            for task in [task for task in self._acting if task.done()]:
                self._acting.discard(task)
                task.result()

    async def _handle(self, envelope: Envelope) -> None:
        match envelope.kind:
            case Kind.SETUP:
                self._set_up(decode(envelope.body, WorkerSetup))
            case Kind.ENROL:
                self._enrol(decode(envelope.body, Enrol))
            case Kind.RETIRE:
                self._retire(decode(envelope.body, Retire).session)
            case Kind.ASK:
                await self._ask(decode(envelope.body, Ask))
            case Kind.RECALL if self._players is not None:
                self._players.recall(decode(envelope.body, Recall))
            case Kind.ACTORS:
                self._act_on(envelope)
            case Kind.COMPLETIONS if self._players is not None:
                await self._players.digest(decode(envelope.body, list[Completion]))
            case Kind.COMPLETIONS if self._chat is not None:
                self._chat.take(decode(envelope.body, list[Completion]))
            case _:
                raise ValueError(f"a worker has no use for a message of kind {envelope.kind.name}")

    def _act_on(self, envelope: Envelope) -> None:
        """Deal with messages of the actor runtime; what is refused disturbs nobody else."""
        try:
            messages = read_messages(envelope.body)
        except msgspec.DecodeError as error:
            _log.warning("refused messages of %d that cannot be read: %s", envelope.sender, error)
            return
        if envelope.sender != ORCHESTRATOR:
            refused = [type(m).__name__ for m in messages if isinstance(m, _OF_THE_CENTRE)]
            if refused:
                _log.warning("refused %s of worker %d", ", ".join(refused), envelope.sender)
                messages = [m for m in messages if not isinstance(m, _OF_THE_CENTRE)]
        if self._actors is None and messages and isinstance(messages[0], Setup):
            from agentsim.worker.actors import Actors  # built-in games do without

            self._actors = Actors(self._worker, messages[0], self._folder, self._post)
            self._chat = self._open_chat()
            messages = messages[1:]
        if self._actors is not None:
            self._actors.take(messages)
        elif messages:
            _log.warning("refused messages of %d, for there are no agents here", envelope.sender)

    def _open_chat(self) -> Client:
        """What carries out the agents' calls of language models."""
        from agentsim.chat import Client, use

        client = Client(
            self._worker,
            asyncio.get_running_loop(),
            lambda requests: self._post_later(Kind.REQUESTS, NODE, requests),
            lambda attempts: self._post_later(Kind.ATTEMPTS, ORCHESTRATOR, attempts),
        )
        use(client)  # here, where all of the agents' calls begin
        return client

    def _post(self, to: int, messages: Sequence[ActorMessage]) -> None:
        for batch in batches(messages):
            self._post_later(Kind.ACTORS, to, batch)

    def _post_later(self, kind: Kind, to: int, message: object) -> None:
        """Send with the next breath, in order, however many wait."""
        self._posted.put_nowait(Envelope(kind, to, self._worker, encode(message)))
        if self._posting is None or self._posting.done():
            self._posting = asyncio.ensure_future(self._post_all())

    async def _post_all(self) -> None:
        while not self._posted.empty():
            await self._put(self._posted.get_nowait())

    def _set_up(self, setup: WorkerSetup) -> None:
        scenario = Scenario.model_validate_json(setup.scenario, strict=True)
        game = GuessAverageSpec.model_validate_json(msgspec.json.encode(scenario.game), strict=True)
        if isinstance(scenario.model, LANGUAGE_MODELS):
            context = MarketContext(
                spec=game,
                prompt=scenario.prompt,
                memory=scenario.memory,
                format=setup.format,
                attempts=scenario.replies.attempts,
                seed=scenario.seed,
                worker=self._worker,
            )
            self._players = Players(context, setup.window, self._send)
        else:
            self._scripted = scripted.build(scenario.model, game.rule, seed=scenario.seed)

    def _enrol(self, enrol: Enrol) -> None:
        if self._players is not None:
            self._players.enrol(enrol)
            return
        codes = None if enrol.groups is None else agents_of(enrol.groups.codes)
        known = self._shards.get(enrol.session, Shard(enrol.first, 0))
        self._shards[enrol.session] = known.with_more(enrol.count, codes)

    def _retire(self, session: int) -> None:
        if self._players is not None:
            self._players.retire(session)
        else:
            del self._shards[session]

    async def _ask(self, ask: Ask) -> None:
        if self._players is not None:
            await self._players.ask(ask)
            return
        # Sessions think side by side.
        self._acting.add(asyncio.ensure_future(self._act(ask)))

    async def _act(self, ask: Ask) -> None:
        assert self._scripted is not None
        shard, done = self._shards[ask.observation.session], agents_of(ask.done)
        async for answers in act(self._scripted, shard, ask.observation, self._worker, done):
            await self._send(Kind.ANSWERS, answers)

    async def _send(self, kind: Kind, message: object) -> None:
        to = NODE if kind is Kind.REQUESTS else ORCHESTRATOR
        await self._put(Envelope(kind, to, self._worker, encode(message)))
