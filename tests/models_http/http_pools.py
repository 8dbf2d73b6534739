"""Requests, specs and pools with pauses short enough for tests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from agentsim.config.models import OpenAI
from agentsim.models.endpoint_pool import EndpointEvent, EndpointPool
from agentsim.models.limits import RetryPolicy
from agentsim.rpc.messages import Message, Request

QUICK = RetryPolicy(
    first_pause_s=0.001, longest_pause_s=0.02, leave_after=5, leave_s=0.01, connect_timeout_s=1.0
)


def spec_of(**fields: Any) -> OpenAI:
    """A spec for the fake server."""
    defaults: dict[str, Any] = {"name": "fake", "max_tokens": 100, "timeout_s": 5.0, "tries": 3}
    return OpenAI(backend="openai", **(defaults | fields))


def request_of(agent: int = 0, **fields: Any) -> Request:
    """A request of one agent."""
    defaults: dict[str, Any] = {
        "session": 1,
        "round": 1,
        "step": 0,
        "attempt": 0,
        "messages": [Message("system", "Play."), Message("user", "Guess a number.")],
        "schema": None,
        "seed": 1000 + agent,
    }
    return Request(agent=agent, **(defaults | fields))


async def until(condition: Callable[[], bool]) -> None:
    """Lets other tasks run until the condition holds; fails when it never does."""
    async with asyncio.timeout(5):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0)


class Told(list[EndpointEvent]):
    """Events that a pool told."""

    def kinds(self) -> list[str]:
        """Their kinds, in order."""
        return [event.kind for event in self]


@asynccontextmanager
async def pool_of(
    urls: str | Sequence[str],
    *,
    api_key: str | None = None,
    concurrency: int = 8,
    policy: RetryPolicy = QUICK,
    told: Told | None = None,
    **fields: Any,
) -> AsyncIterator[EndpointPool]:
    """A started pool; `fields` go into the spec, events into `told`."""
    pool = EndpointPool(
        spec_of(**fields),
        [urls] if isinstance(urls, str) else urls,
        api_key=api_key,
        concurrency=concurrency,
        on_event=(Told() if told is None else told).append,
        policy=policy,
    )
    await pool.start()
    try:
        yield pool
    finally:
        await pool.close()
