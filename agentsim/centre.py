"""The centre of the actor runtime: carries calls to workers, and their results back."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager

import msgspec

from agentsim.actors.agent import Agent
from agentsim.actors.batches import batches
from agentsim.actors.caller import Caller
from agentsim.actors.codec import Codec
from agentsim.actors.messages import (
    CENTRE,
    ActorMessage,
    Done,
    DoneMany,
    Lost,
    Setup,
    Value,
    read_messages,
)
from agentsim.actors.proxy import Group, Proxy, proxy_of
from agentsim.actors.refs import AgentRef, GroupRef
from agentsim.errors import PeerLost
from agentsim.nodes import Nodes
from agentsim.rpc.envelope import Envelope, Kind

_log = logging.getLogger(__name__)
_RESULTS = (Done, DoneMany, Value)


class Centre:
    """Speaks with all workers of a cluster; on the loop in which it is made.

    Args:
        nodes: with the workers.
        workers: how many there are.
        codec: of values.
        find: class path → class, in the allowed modules alone.
        setup: what a worker is told first.

    Attributes:
        nodes: the same.
        caller: makes calls, also from other threads.
        workers: numbers of workers that were given so far.
        gone: workers that were lost or ended, and why.
    """

    def __init__(
        self,
        nodes: Nodes,
        workers: int,
        codec: Codec,
        find: Callable[[str], type[Agent]],
        setup: Callable[[], Setup],
    ) -> None:
        loop = asyncio.get_running_loop()
        self.nodes = nodes
        self.workers = workers
        self.gone: dict[int, str] = {}
        self.caller = Caller(CENTRE, loop, codec, self._post, proxy=self._proxy)
        self._find = find
        self._setup = setup
        self._reserving = threading.Lock()
        self._outbox: asyncio.Queue[tuple[int, list[ActorMessage]]] = asyncio.Queue()

    @asynccontextmanager
    async def running(
        self, other: Callable[[Envelope], Awaitable[None]] | None, lost: Callable[[PeerLost], None]
    ) -> AsyncIterator[asyncio.Future[None]]:
        """Carry messages; see `Cluster.attached`."""
        for worker in range(self.workers):
            await self.nodes.send(worker, Kind.ACTORS, [self._setup()])
        tasks = [
            asyncio.ensure_future(self._send()),
            asyncio.ensure_future(self._read(other, lost)),
        ]
        broken = asyncio.ensure_future(_first(tasks))
        try:
            yield broken
        finally:
            for task in (*tasks, broken):
                task.cancel()
            results = await asyncio.gather(*tasks, broken, return_exceptions=True)
            error = next((r for r in results if isinstance(r, Exception)), None)
            reason = "the cluster was closed" if error is None else str(error)
            for worker in range(self.workers):
                self.caller.lose(Lost(worker, reason))

    def reserve(self, count: int) -> list[int]:
        """Numbers for further workers, which `begin` starts; from any thread that makes agents."""
        with self._reserving:
            first = self.workers
            self.workers += count
        return list(range(first, first + count))

    async def begin(self, host: int, workers: list[int]) -> None:
        """Start further workers on a host, by its place in the plan."""
        await self.nodes.spawn(host, workers)
        lost = [Lost(worker, reason) for worker, reason in self.gone.items()]
        for worker in workers:
            await self.nodes.send(worker, Kind.ACTORS, [self._setup(), *lost])

    async def end(self, workers: list[int]) -> None:
        """End workers whose agents were released."""
        self._lose(workers, "the agent was released")
        await self.nodes.end(workers)

    def _post(self, to: int, messages: Sequence[ActorMessage]) -> None:
        if 0 <= to < self.workers:
            self._outbox.put_nowait((to, list(messages)))
        else:
            self.caller.lose(Lost(to, f"there is no worker {to}"))

    async def _send(self) -> None:
        while True:
            worker, messages = await self._outbox.get()
            for batch in batches(messages):
                try:
                    await self.nodes.send(worker, Kind.ACTORS, batch)
                except PeerLost as error:
                    self._lose(error.workers, str(error))
                    break

    async def _read(
        self, other: Callable[[Envelope], Awaitable[None]] | None, lost: Callable[[PeerLost], None]
    ) -> None:
        while True:
            try:
                envelope = await self.nodes.receive()
            except PeerLost as error:
                if not error.workers:
                    raise
                self._lose(error.workers, str(error))
                lost(error)
                continue
            if envelope.kind is not Kind.ACTORS:
                if other is not None:
                    await other(envelope)
                continue
            try:
                messages = read_messages(envelope.body)
            except msgspec.DecodeError as error:
                _log.warning("dropped a message of worker %d: %s", envelope.sender, error)
                continue
            for message in messages:
                if isinstance(message, _RESULTS):
                    self.caller.take(message)
            self.caller.notify()

    def _lose(self, workers: Iterable[int], reason: str) -> None:
        """Workers are gone: tell everybody who may wait for them."""
        for worker in workers:
            if worker in self.gone:
                continue
            self.gone[worker] = reason
            lost = Lost(worker, reason)
            self.caller.lose(lost)
            for other in range(self.workers):
                if other not in self.gone:
                    self._post(other, [lost])

    def _proxy(self, reference: AgentRef | GroupRef) -> Proxy | Group:
        return proxy_of(reference, self.caller, self._find)


async def _first(tasks: Sequence[asyncio.Task[None]]) -> None:
    """Wait for the first task to end, and raise what it raised."""
    done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in done:
        task.result()
