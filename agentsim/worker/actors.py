"""A worker's side of the actor runtime: both halves, and the users' modules."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from pathlib import Path

from agentsim.actors.agent import Agent
from agentsim.actors.bell import Bell
from agentsim.actors.caller import Caller
from agentsim.actors.codec import Codec
from agentsim.actors.find import find_agent, unpack
from agentsim.actors.host import ActorHost, current_chain
from agentsim.actors.messages import ActorMessage, Done, DoneMany, Lost, Setup, Value
from agentsim.actors.proxy import Group, Proxy, proxy_of
from agentsim.actors.refs import AgentRef, GroupRef
from agentsim.actors.threads import Threads

_log = logging.getLogger(__name__)


class Actors:
    """Takes the actor messages of a worker.

    Args:
        worker: index over all hosts.
        setup: the run's modules and hosts.
        folder: where the modules' sources go.
        post: sends messages to a worker or the centre.
    """

    def __init__(
        self,
        worker: int,
        setup: Setup,
        folder: Path,
        post: Callable[[int, Sequence[ActorMessage]], None],
    ) -> None:
        self._worker = worker
        self._post_away = post
        self._modules = frozenset(setup.modules)
        unpack(setup.sources, folder)
        loop = asyncio.get_running_loop()
        codec = Codec(setup.modules)
        where = f"worker {worker} on {setup.workers[worker]}"
        self._loop = loop
        threads = Threads(setup.threads)
        self.caller = Caller(
            worker,
            loop,
            codec,
            self._post,
            proxy=self._proxy,
            chain=current_chain,
            bell=Bell(threads.waiting),
        )
        self.host = ActorHost(
            worker,
            where,
            codec,
            self.find,
            self._post,
            proxy=self._proxy,
            threads=threads,
            abandon=self.caller.cancel_made_by,
        )

    def take(self, messages: Sequence[ActorMessage]) -> None:
        """Do what the messages say."""
        for message in messages:
            if type(message) is Done or type(message) is DoneMany:
                self.caller.take(message)
                continue
            if type(message) is Value:
                self.caller.take(message)
            elif type(message) is Lost:
                self.caller.lose(message)
            elif type(message) is Setup:
                _log.warning("refused a second setup")
                continue
            self.host.take(message)
        self.caller.notify()

    def find(self, path: str) -> type[Agent]:
        """The class of a path, in the run's modules alone.

        Raises:
            LookupError: its module is not one of them, or it is no agent.
        """
        return find_agent(path, self._modules)

    def _proxy(self, reference: AgentRef | GroupRef) -> Proxy | Group:
        return proxy_of(reference, self.caller, self.find)

    def _post(self, to: int, messages: Sequence[ActorMessage]) -> None:
        if to == self._worker:
            self._loop.call_soon(self.take, messages)
        else:
            self._post_away(to, messages)
