"""A runtime in one process: a centre and workers, joined by links that deliver when they are told.

Messages of one (sender, receiver) link arrive in order; links wait as long as the test likes.
"""

import asyncio
from collections import defaultdict, deque
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from agentsim.actors.caller import Caller
from agentsim.actors.codec import Codec
from agentsim.actors.find import find_agent
from agentsim.actors.messages import (
    CENTRE,
    ActorMessage,
    Create,
    Done,
    DoneMany,
    Drop,
    Lost,
    Setup,
    Value,
)
from agentsim.actors.proxy import Group, Proxy
from agentsim.actors.refs import AgentRef
from agentsim.rpc.codec import decode, encode
from agentsim.worker.actors import Actors


class Network:
    """The parts of a runtime and the links between them. Make it inside a running loop."""

    def __init__(self, workers: int, module: str) -> None:
        self.links: defaultdict[tuple[int, int], deque[bytes]] = defaultdict(deque)
        self.dead: set[int] = set()
        self.module = module
        self.loop = asyncio.get_running_loop()
        self.centre = Caller(
            CENTRE, self.loop, Codec([module]), self._post_of(CENTRE), proxy=self._proxy
        )
        setup = Setup([module], {}, [f"host{i}" for i in range(workers)], 4)
        self.workers = {
            i: Actors(i, setup, Path("unused"), self._post_of(i)) for i in range(workers)
        }
        self.groups = 0

    def group(self, kind: str, arguments: list[tuple[Any, ...]], sizes: dict[int, int]) -> Group:
        """Agents of a class: so many on each worker, in order."""
        self.groups += 1
        path = f"{self.module}:{kind}"
        bodies = [Codec([self.module]).encode((args, {})) for args in arguments]
        parts, first = [], 0
        for worker, count in sizes.items():
            some = bodies[first : first + count]
            self.centre.send(worker, Create(self.groups, path, first, count, some))
            parts.append((worker, first, count))
            first += count
        return Group(self.groups, path, parts, self.centre, self._find)

    def drop(self, group: Group) -> None:
        number, workers = group._whereabouts()
        for worker in workers:
            self.centre.send(worker, Drop(number))

    def waiting(self) -> list[tuple[int, int]]:
        """Links with something to deliver, in a fixed order."""
        return sorted(link for link, messages in self.links.items() if messages)

    def deliver(self, link: tuple[int, int]) -> None:
        """Deliver what was sent in one breath."""
        _, to = link
        messages = decode(self.links[link].popleft(), list[ActorMessage])
        if to == CENTRE:
            for message in messages:
                assert isinstance(message, Done | DoneMany | Value), message
                self.centre.take(message)
            self.centre.notify()
        else:
            self.workers[to].take(messages)

    async def kill(self, worker: int, arrives: int) -> None:
        """A worker dies: of what it sent, so many envelopes of each link still arrive."""
        self.dead.add(worker)
        actors = self.workers.pop(worker)
        actors.host.close()
        for (sender, to), messages in self.links.items():
            if to == worker:
                messages.clear()
            elif sender == worker:
                while len(messages) > arrives:
                    messages.pop()
        lost = Lost(worker, f"worker {worker} died")
        self.centre.lose(lost)
        for other in self.workers:
            self._post_of(CENTRE)(other, [lost])

    async def breathe(self, times: int = 1) -> None:
        """Let the loop come round."""
        for _ in range(times):
            await asyncio.sleep(0)

    async def settle(self) -> None:
        """Deliver everything, until nothing more comes."""
        await self.rest()
        while links := self.waiting():
            for link in links:
                while self.links[link]:
                    self.deliver(link)
            await self.rest()

    async def rest(self) -> None:
        """Let the loop come round until it has nothing to do."""
        await asyncio.sleep(0)
        while self.loop._ready:  # type: ignore[attr-defined]  # noqa: ASYNC110
            await asyncio.sleep(0)

    def leftovers(self) -> dict[str, Any]:
        """What the living parts still hold, by place; empty when nothing is kept or under way."""
        found: dict[str, Any] = {}
        parts = {"centre": self.centre}
        for number, actors in self.workers.items():
            parts[f"caller {number}"] = actors.caller
            parts[f"host {number}"] = actors.host
            parts[f"outcomes {number}"] = actors.host._outcomes
            parts[f"fetches {number}"] = actors.host._fetches
            parts[f"outbox {number}"] = actors.host._outbox
        lasting = {"_lost", "lost", "_seen"}
        for name, part in parts.items():
            for attribute, value in vars(part).items():
                if attribute in lasting:
                    continue
                if isinstance(value, dict | list | set | deque) and value:
                    found[f"{name}.{attribute}"] = value
        return found

    def _find(self, path: str) -> Any:
        return find_agent(path, frozenset([self.module]))

    def _proxy(self, reference: AgentRef) -> Proxy:
        return Proxy(reference, self.centre, self._find)

    def _post_of(self, sender: int) -> Any:
        def post(to: int, messages: Sequence[ActorMessage]) -> None:
            if to not in self.dead and sender not in self.dead:
                self.links[sender, to].append(encode(list(messages)))

        return post
