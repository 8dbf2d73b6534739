"""A node's language model: its server, and all calls to it."""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter

from agentsim.config.models import LanguageModel, LlamaCpp
from agentsim.models.endpoint_pool import EndpointEvent, EndpointPool
from agentsim.rpc.codec import decode, encode
from agentsim.rpc.envelope import NODE, Envelope, Kind
from agentsim.rpc.messages import Completion, Request
from agentsim.serving import ModelServer, start

_log = logging.getLogger(__name__)
# Completions that arrive within this time travel to their worker in one message.
_FLUSH_S = 0.005


@dataclass(frozen=True, slots=True)
class Endpoints:
    """What a node's model servers can do. See `control.NodeReady`."""

    urls: list[str]
    structured: bool
    in_flight: int


def _note(event: EndpointEvent) -> None:
    _log.warning("%s %s: %s", event.endpoint, event.kind, event.message)


class Models:
    """Makes the calls that workers ask for.

    Args:
        send: delivers an envelope to a worker of this node.
    """

    def __init__(self, send: Callable[[Envelope], Awaitable[None]]) -> None:
        self._send = send
        self._server: ModelServer | None = None
        self._pool: EndpointPool | None = None
        self._done: dict[int, list[Completion]] = defaultdict(list)
        self._tasks: set[asyncio.Task[None]] = set()

    def load(self) -> tuple[int, int]:
        """Requests under way, and tokens so far."""
        if self._pool is None:
            return 0, 0
        stats = self._pool.stats()
        return stats.in_flight, stats.prompt_tokens + stats.completion_tokens

    async def start(self, spec_json: str, *, log_dir: Path, api_key: str | None) -> Endpoints:
        """Start the model's server where it is ours, and try the endpoints.

        Raises:
            RunError: the server did not start, or an endpoint cannot be used.
            UserError: a package or a model file is missing.
        """
        adapter: TypeAdapter[LanguageModel] = TypeAdapter(LanguageModel)
        spec = adapter.validate_json(spec_json, strict=True)
        if isinstance(spec, LlamaCpp):
            self._server = await start(spec, log_dir=log_dir)
            urls, api_key, concurrency = [self._server.base_url], self._server.api_key, spec.slots
        else:
            urls, concurrency = [spec.base_url], spec.concurrency
        self._pool = EndpointPool(
            spec, urls, api_key=api_key, concurrency=concurrency, on_event=_note
        )
        await self._pool.start()
        return Endpoints(urls, self._pool.structured, concurrency * len(urls))

    def submit(self, envelope: Envelope) -> None:
        """Begin the calls of a worker's REQUESTS message."""
        for request in decode(envelope.body, list[Request]):
            task = asyncio.ensure_future(self._call(envelope.sender, request))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def stop(self) -> None:
        """Cancel what is under way and end the server."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._pool is not None:
            await self._pool.close()
        if self._server is not None:
            await self._server.stop()

    async def _call(self, worker: int, request: Request) -> None:
        assert self._pool is not None
        completion = await self._pool.complete(request)
        first = not self._done[worker]
        self._done[worker].append(completion)
        if first:
            await asyncio.sleep(_FLUSH_S)
            batch = self._done.pop(worker)
            await self._send(Envelope(Kind.COMPLETIONS, worker, NODE, encode(batch)))
