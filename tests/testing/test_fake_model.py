"""The fake model server, in this process and as a program."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys

import httpx
import pytest

from agentsim.testing import Answer, Ask, FakeModelServer, Mode
from agentsim.testing.answers import draw_mode, identity_of

SCHEMA = {
    "type": "object",
    "properties": {
        "reasoning": {"type": "string"},
        "number": {"type": "number"},
        "kind": {"enum": ["a", "b"]},
        "fixed": {"const": 7},
        "maybe": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        "list": {"type": "array"},
        "sure": {"type": ["boolean", "null"]},
    },
}


def body_of(seed=1, text="Guess.", schema=None, **fields):
    body = {"model": "m", "messages": [{"role": "user", "content": text}], "seed": seed}
    if schema is not None:
        body["response_format"] = {"type": "json_schema", "json_schema": {"schema": schema}}
    return body | fields


async def post(server, body=None, **options):
    async with httpx.AsyncClient(trust_env=False) as http:
        return await http.post(
            f"{server.base_url}/chat/completions", json=body or body_of(), **options
        )


async def said(server, **fields):
    response = await post(server, body_of(**fields))
    return response.json()["choices"][0]["message"]["content"]


async def test_reply_depends_on_the_seed_alone():
    async with FakeModelServer() as server:
        replies = [await said(server, seed=seed) for seed in (1, 2, 1)]
    assert replies[0] == replies[2] != replies[1]


async def test_schema_is_followed():
    async with FakeModelServer() as server:
        reply = json.loads(await said(server, schema=SCHEMA))
    assert 0 <= reply["number"] <= 100
    assert list(reply) == list(SCHEMA["properties"])
    assert (reply["kind"], reply["fixed"], reply["list"], reply["sure"]) == ("a", 7, [], True)
    assert isinstance(reply["maybe"], int)


async def test_replies_may_be_a_list_or_a_function():
    async with FakeModelServer(["one", "two"]) as server:
        assert [await said(server) for _ in range(3)] == ["one", "two", "two"]
    async with FakeModelServer(lambda ask: f"seed {ask.seed}") as server:
        assert await said(server, seed=9) == "seed 9"


async def test_faults_come_first_and_end():
    async with FakeModelServer(["one"], faults=[Mode.BROKEN, None, "forged"]) as server:
        assert (await post(server)).status_code == 500
        assert [await said(server) for _ in range(3)] == ["one", "forged", "one"]


async def test_retry_after_is_sent():
    faults = [Answer(mode=Mode.RATE_LIMITED, retry_after="7"), Mode.RATE_LIMITED]
    async with FakeModelServer(faults=faults) as server:
        first, second = await post(server), await post(server)
    assert (first.status_code, first.headers["retry-after"]) == (429, "7")
    assert "retry-after" not in second.headers


async def test_requests_after_a_good_reply_are_told_apart():
    async with FakeModelServer(faults=[Mode.BROKEN, Mode.HALF]) as server:
        await post(server)
        with pytest.raises(httpx.RemoteProtocolError):
            await post(server)
        await post(server)
        await post(server, body_of(seed=2))
        assert server.repeated == []
        await post(server)
        assert [ask.number for ask in server.repeated] == [4]
        assert [ask.earlier for ask in server.asked] == [0, 1, 2, 0, 3]
        assert server.replied[identity_of(body_of())] == 2


async def test_key_models_and_fields_are_checked():
    async with FakeModelServer(models=["m"], api_key="k", refused_fields=["top_k"]) as server:
        headers = {"Authorization": "Bearer k"}
        assert (await post(server)).status_code == 401
        assert (await post(server, headers=headers)).status_code == 200
        other = await post(server, body_of(model="x"), headers=headers)
        assert (other.status_code, "`x`" in other.text) == (404, True)
        refused = await post(server, body_of(top_k=0), headers=headers)
        assert (refused.status_code, refused.json()["error"]["param"]) == (400, "top_k")


async def test_held_requests_wait_until_they_are_released():
    async with FakeModelServer(faults=lambda ask: Mode.HOLD) as server:
        task = asyncio.create_task(said(server))
        await server.arrived(1)
        assert not server.replied
        server.release()
        assert (await task).startswith("I think")


async def test_stop_does_not_wait_for_what_is_never_answered():
    server = await FakeModelServer(faults=lambda ask: Mode.NEVER).start()
    task = asyncio.create_task(post(server))
    await server.arrived(1)
    async with asyncio.timeout(3):
        await server.stop()
        with pytest.raises(httpx.HTTPError):
            await task


def test_mixed_draws_from_identity_and_repetition():
    def ask(seed, earlier):
        body = body_of(seed=seed)
        return Ask(0, identity_of(body), earlier, 0, seed, "", None, body, {}, "/")

    modes = [draw_mode(ask(seed, 0)) for seed in range(500)]
    assert 0.5 < modes.count(Mode.OK) / 500 < 0.7
    assert len(set(modes)) > 8
    assert modes == [draw_mode(ask(seed, 0)) for seed in range(500)]
    assert len({draw_mode(ask(1, earlier)) for earlier in range(50)}) > 3


def test_program_serves_until_stdin_ends():
    command = [sys.executable, "-m", "agentsim.testing.model_server"]
    options = ["--mode", "429", "--after", "1", "--first", "2", "--retry-after", "3"]
    with subprocess.Popen(
        [*command, *options], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as program:
        assert program.stdout is not None
        word, port = program.stdout.readline().split()
        assert word == "READY"
        url = f"http://127.0.0.1:{port}"
        with httpx.Client(trust_env=False) as http:
            assert http.get(f"{url}/health").status_code == 200
            assert http.get(f"{url}/v1/models").json()["data"] == []
            statuses = [
                http.post(f"{url}/v1/chat/completions", json=body_of(seed)).status_code
                for seed in range(4)
            ]
        assert statuses == [200, 429, 429, 200]
        rest, _ = program.communicate(timeout=10)
    assert (program.returncode, rest) == (0, "")


def test_program_stops_when_it_is_told_to():
    command = [sys.executable, "-m", "agentsim.testing.model_server", "--mode", "never"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as program:
        assert program.stdout is not None
        program.stdout.readline()
        program.terminate()
        assert program.wait(timeout=10) == 0
