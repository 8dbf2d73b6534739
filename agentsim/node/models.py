"""A node's language models: their servers, and all calls to them."""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter

from agentsim.config.models import AnsweringModel, OpenAI, Replay
from agentsim.models.endpoint_pool import EndpointEvent, EndpointPool, EndpointStats
from agentsim.models.replay import IN_FLIGHT, ReplayPool
from agentsim.node.servers import Servers
from agentsim.rpc.codec import decode, encode
from agentsim.rpc.control import ModelReady, Recordings
from agentsim.rpc.envelope import NODE, Envelope, Kind
from agentsim.rpc.messages import Completion, Request
from agentsim.serving import server_key, weights

_log = logging.getLogger(__name__)
# Completions that arrive within this time travel to who asked in one message.
_FLUSH_S = 0.005


@dataclass(frozen=True, slots=True)
class _Served:
    """A model that answers; names with equal specs share one."""

    spec: AnsweringModel
    pool: EndpointPool | ReplayPool
    ready: ModelReady


def _note(event: EndpointEvent) -> None:
    _log.warning("%s %s: %s", event.endpoint, event.kind, event.message)


class Models:
    """Makes the calls that workers and the orchestrator ask for.

    Args:
        send: delivers an envelope to who asked.
        log_dir: where servers log.
        api_keys: of endpoints, by the name of the variable that holds each.
        servers: of this machine, where runs share them; None: this run's own, in `log_dir`.
        user: what the run is called among those that share servers.
        locate: gives a model whose files are named as this process finds them.
    """

    def __init__(
        self,
        send: Callable[[Envelope], Awaitable[None]],
        *,
        log_dir: Path,
        api_keys: Mapping[str, str],
        servers: Servers | None = None,
        user: str = "",
        locate: Callable[[AnsweringModel], AnsweringModel] = lambda spec: spec,
    ) -> None:
        self._locate = locate
        self._send = send
        self._api_keys = api_keys
        self._served: dict[str, _Served] = {}
        self._servers = servers or Servers(log_dir)
        self._user = user
        self._tokens = 0
        self._done: dict[int, list[Completion]] = defaultdict(list)
        self._tasks: set[asyncio.Task[None]] = set()
        self._changing = asyncio.Lock()

    def load(self) -> tuple[int, int]:
        """Requests under way, and tokens so far."""
        stats = [pool.stats() for pool in self._pools()]
        tokens = sum(s.prompt_tokens + s.completion_tokens for s in stats)
        return sum(s.in_flight for s in stats), self._tokens + tokens

    def stats(self) -> list[tuple[AnsweringModel, list[str], EndpointStats]]:
        """What each model in use is doing: the model, its servers' base URLs, counts."""
        first = {id(served.pool): served for served in self._served.values()}
        return [(s.spec, s.ready.endpoints, s.pool.stats()) for s in first.values()]

    async def serve(self, models: Mapping[str, str]) -> dict[str, ModelReady]:
        """Serve these models and no others; what is served already goes on.

        Servers that nobody needs any more are given up first, so that their memory is free. Models
        that need the same server share it.

        Args:
            models: JSON of each by the name that requests use.

        Raises:
            RunError: a server did not start, or an endpoint cannot be used.
            UserError: a package or a model file is missing.
        """
        adapter: TypeAdapter[AnsweringModel] = TypeAdapter(AnsweringModel)
        wanted = {
            name: self._locate(adapter.validate_json(spec, strict=True))
            for name, spec in models.items()
        }
        async with self._changing:
            await self._drop(wanted)
            for name, spec in wanted.items():
                if name not in self._served:
                    self._served[name] = await self._begin(spec)
            return {name: self._served[name].ready for name in wanted}

    def record(self, recordings: Recordings) -> None:
        """Take replies that a model gives again; they come before the first request."""
        served = self._served.get(recordings.model)
        if served is None or not isinstance(served.pool, ReplayPool):
            _log.warning("refused recordings for `%s`, which is not replayed", recordings.model)
            return
        served.pool.add(recordings.replies)

    def submit(self, envelope: Envelope) -> None:
        """Begin the calls of a REQUESTS message."""
        for request in decode(envelope.body, list[Request]):
            task = asyncio.ensure_future(self._call(envelope.sender, request))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def stop(self) -> None:
        """Cancel what is under way and give up the servers."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._drop({})

    async def _drop(self, wanted: Mapping[str, AnsweringModel]) -> None:
        """End what is not wanted."""
        before, have = self._pools(), list(self._served.values())
        self._served = {
            name: served for name, spec in wanted.items() for served in have if served.spec == spec
        }
        kept = self._pools()
        for pool in before:
            if pool not in kept:
                stats = pool.stats()
                self._tokens += stats.prompt_tokens + stats.completion_tokens
                await pool.close()
        await self._servers.release(self._user, but={server_key(s) for s in wanted.values()})

    async def _begin(self, spec: AnsweringModel) -> _Served:
        """Start the model's server where it is ours and not running, and try the endpoints."""
        for served in self._served.values():
            if served.spec == spec:
                return served
        if isinstance(spec, Replay):
            return _Served(spec, ReplayPool(), ModelReady(in_flight=IN_FLIGHT))
        if isinstance(spec, OpenAI):
            urls, concurrency = [spec.base_url], spec.concurrency
            api_key = self._api_keys.get(spec.api_key_env) if spec.api_key_env else None
            file = None
        else:
            # Beside the server, which reads the same file.
            server, file = await asyncio.gather(
                self._servers.acquire(self._user, spec), asyncio.to_thread(weights, spec)
            )
            urls, api_key, concurrency = [server.base_url], server.api_key, spec.slots
        pool = EndpointPool(spec, urls, api_key=api_key, concurrency=concurrency, on_event=_note)
        await pool.start()
        places = concurrency * len(urls)
        return _Served(spec, pool, ModelReady(pool.structured, urls, places, file, pool.about))

    def _pools(self) -> list[EndpointPool | ReplayPool]:
        pools: list[EndpointPool | ReplayPool] = []
        for served in self._served.values():
            if served.pool not in pools:
                pools.append(served.pool)
        return pools

    async def _call(self, sender: int, request: Request) -> None:
        served = self._served.get(request.model)
        if served is None:
            completion = _refused(request)
        else:
            completion = await served.pool.complete(request)
        first = not self._done[sender]
        self._done[sender].append(completion)
        if first:
            await asyncio.sleep(_FLUSH_S)
            batch = self._done.pop(sender)
            await self._send(Envelope(Kind.COMPLETIONS, sender, NODE, encode(batch)))


def _refused(request: Request) -> Completion:
    """The answer to a request for a model that is not served."""
    return Completion(
        request.session,
        request.round,
        request.agent,
        request.step,
        request.attempt,
        text="",
        finish_reason="error",
        error=f"no model `{request.model}` is served here",
        tries=0,
    )
