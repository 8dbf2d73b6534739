"""A node's models by name: shared where they can be, ended when nobody wants them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from agentsim.config.models import LlamaCpp, OpenAI
from agentsim.node import servers as module
from agentsim.node.models import Models
from agentsim.rpc.codec import decode, encode
from agentsim.rpc.envelope import NODE, ORCHESTRATOR, Envelope, Kind
from agentsim.rpc.messages import PERSONAS, PLAYERS, Completion, Message, Request
from agentsim.testing import FakeModelServer


class FakeServer:
    """Stands for a server of our own: it is a fake model server that somebody else runs."""

    def __init__(self, base_url: str) -> None:
        self.base_url = base_url
        self.api_key = "key"
        self.running = True

    def poll(self) -> int | None:
        return None if self.running else 0

    async def stop(self) -> None:
        self.running = False


@pytest.fixture
async def fake() -> AsyncIterator[FakeModelServer]:
    async with FakeModelServer() as server:
        yield server


@pytest.fixture
def started(fake: FakeModelServer, monkeypatch: pytest.MonkeyPatch) -> list[FakeServer]:
    """The servers of our own that were started."""
    servers: list[FakeServer] = []

    async def start(spec: LlamaCpp, *, log_dir: Path) -> FakeServer:
        # What is not wanted any more has been stopped before, and its memory is free.
        assert not any(server.running for server in servers)
        servers.append(FakeServer(fake.base_url))
        return servers[-1]

    monkeypatch.setattr(module, "start", start)
    return servers


@pytest.fixture
async def models(tmp_path: Path) -> AsyncIterator[Models]:
    sent: asyncio.Queue[Envelope] = asyncio.Queue()
    models = Models(sent.put, log_dir=tmp_path, api_keys={"A_KEY": "sk-test"})
    models.sent = sent  # type: ignore[attr-defined]
    yield models
    await models.stop()


def llama(**fields: Any) -> str:
    return LlamaCpp(backend="llama_cpp", **fields).model_dump_json()


def openai(url: str, **fields: Any) -> str:
    return OpenAI(backend="openai", name="m", base_url=url, **fields).model_dump_json()


def request(model: str, agent: int = 0) -> Request:
    return Request(1, 1, agent, 0, 0, [Message("user", "hello")], None, seed=3, model=model)


async def ask(models: Models, model: str, sender: int) -> tuple[Envelope, list[Completion]]:
    models.submit(Envelope(Kind.REQUESTS, NODE, sender, encode([request(model)])))
    envelope = await asyncio.wait_for(models.sent.get(), 5)  # type: ignore[attr-defined]
    return envelope, decode(envelope.body, list[Completion])


async def test_equal_models_are_one(models: Models, started: list[FakeServer]) -> None:
    ready = await models.serve({PERSONAS: llama(), PLAYERS: llama()})
    assert set(ready) == {PERSONAS, PLAYERS}
    assert len(started) == 1
    await models.serve({PLAYERS: llama()})
    assert [server.running for server in started] == [True]
    await models.serve({})
    assert [server.running for server in started] == [False]


async def test_models_that_differ_in_sampling_alone_share_a_server(
    models: Models, started: list[FakeServer]
) -> None:
    await models.serve({PERSONAS: llama(temperature=0.7, max_tokens=200)})
    await models.serve({PLAYERS: llama(max_tokens=128)})
    assert [server.running for server in started] == [True]


async def test_a_server_that_is_not_wanted_is_stopped_before_another_starts(
    models: Models, started: list[FakeServer]
) -> None:
    await models.serve({PERSONAS: llama(slots=4)})
    ready = await models.serve({PLAYERS: llama(slots=8)})
    assert [server.running for server in started] == [False, True]
    assert ready[PLAYERS].in_flight == 8


async def test_requests_go_to_the_model_that_they_name(
    models: Models, fake: FakeModelServer
) -> None:
    async with FakeModelServer() as other:
        await models.serve({PERSONAS: openai(fake.base_url), PLAYERS: openai(other.base_url)})
        before = len(fake.asked), len(other.asked)
        envelope, completions = await ask(models, PERSONAS, ORCHESTRATOR)
        assert (envelope.kind, envelope.to, envelope.sender) == (
            Kind.COMPLETIONS,
            ORCHESTRATOR,
            NODE,
        )
        assert completions[0].endpoint == fake.base_url
        envelope, completions = await ask(models, PLAYERS, 5)
        assert envelope.to == 5
        assert completions[0].endpoint == other.base_url
        assert (len(fake.asked), len(other.asked)) == (before[0] + 1, before[1] + 1)


async def test_tokens_of_models_that_are_gone_still_count(
    models: Models, fake: FakeModelServer
) -> None:
    await models.serve({PERSONAS: openai(fake.base_url)})
    await ask(models, PERSONAS, ORCHESTRATOR)
    _, tokens = models.load()
    assert tokens > 0
    await models.serve({PLAYERS: openai(fake.base_url, temperature=0.1)})
    assert models.load() == (0, tokens)


async def test_a_model_has_the_key_that_it_names(models: Models) -> None:
    async with FakeModelServer(api_key="sk-test") as server:
        await models.serve({PLAYERS: openai(server.base_url, api_key_env="A_KEY")})
        assert {ask.headers["authorization"] for ask in server.asked} == {"Bearer sk-test"}
