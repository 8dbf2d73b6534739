"""The model servers of one machine, shared by all of its runs."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path

from agentsim.config.models import LanguageModel
from agentsim.serving import ModelServer, server_key, start

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class Held:
    """A server that runs.

    Attributes:
        name: of its model.
        users: the runs that use it.
        since_s: when it was started, on the monotonic clock.
    """

    name: str
    server: ModelServer
    since_s: float
    users: set[str] = field(default_factory=set)


class Servers:
    """Starts model servers when they are first needed, and stops them when they are not.

    Args:
        log_dir: where servers log.
        keep: a server that nobody uses stays until another model is to start; else it is stopped
            at once.
    """

    def __init__(self, log_dir: Path, *, keep: bool = False) -> None:
        self._log_dir = log_dir
        self._keep = keep
        self._held: dict[str, Held] = {}
        # One start or stop at a time: what is stopped has given its memory back by then.
        self._changing = asyncio.Lock()

    def held(self) -> dict[str, Held]:
        """The servers that run, by what tells them apart."""
        return dict(self._held)

    async def acquire(self, user: str, spec: LanguageModel) -> ModelServer:
        """The server of a model, running; `user` uses it until it is released.

        Raises:
            RunError: it did not start.
            UserError: a package or a model file is missing.
        """
        key = server_key(spec)
        assert key is not None, "a model of somebody else's server"
        async with self._changing:
            held = self._held.get(key)
            if held is not None and held.server.poll() is not None:
                _log.warning("the server of %s has ended by itself; starting it anew", held.name)
                await self._stop([key])
                held = None
            if held is None:
                await self._stop([key for key, held in self._held.items() if not held.users])
                server = await start(spec, log_dir=self._log_dir)
                held = self._held[key] = Held(spec.name, server, time.monotonic())
            held.users.add(user)
            return held.server

    async def release(self, user: str, *, but: Collection[str | None] = ()) -> None:
        """A user needs no servers any more, but those of the keys `but`."""
        async with self._changing:
            idle = []
            for key, held in self._held.items():
                if key not in but and user in held.users:
                    held.users.discard(user)
                    if not held.users:
                        idle.append(key)
            if not self._keep:
                await self._stop(idle)

    async def stop(self) -> None:
        """Stop all servers, whoever uses them."""
        async with self._changing:
            await self._stop(list(self._held))

    async def _stop(self, keys: list[str]) -> None:
        for key in keys:
            await self._held.pop(key).server.stop()
