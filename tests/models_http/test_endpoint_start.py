"""What a pool finds out, and refuses, before the first request."""

from __future__ import annotations

import asyncio
import re
import socket

import pytest
from http_pools import QUICK, Told, pool_of, request_of, spec_of

from agentsim.errors import ModelError
from agentsim.models.endpoint_pool import EndpointPool
from agentsim.testing import Answer, FakeModelServer, Mode

KEY = "sk-test-0123456789abcdef"


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


async def refused(urls, **fields):
    """The message with which a pool refuses to start."""
    with pytest.raises(ModelError) as caught:
        async with asyncio.timeout(5), pool_of(urls, **fields):
            pass
    message = str(caught.value)
    assert "\n" not in message
    return message


@pytest.mark.parametrize(
    ("structured", "found"), [(True, True), (False, False), ("lie", False), ("refuse", False)]
)
async def test_enforcement_of_schemas_is_found_by_trying(structured, found):
    async with FakeModelServer(structured=structured) as server, pool_of(server.base_url) as pool:
        assert pool.structured is found


async def test_server_that_obeys_the_schema_once_is_not_believed():
    async with FakeModelServer(structured=False) as server:
        replies = ["ok", '{"qvx": "zukrobam"}', "The sky is blue."]
        server.arm(replies)
        async with pool_of(server.base_url) as pool:
            assert pool.structured is False


@pytest.mark.parametrize("fault", [Mode.BROKEN, Mode.HALF, Mode.NULL_CONTENT])
async def test_probe_is_repeated_when_it_is_unclear_after(fault):
    async with FakeModelServer(faults=[None, fault]) as server:
        async with pool_of(server.base_url) as pool:
            assert pool.structured is True
        probes = [ask for ask in server.asked if ask.schema is not None]
        assert len(probes) == 3


async def test_later_probes_leave_room_for_reasoning():
    async with FakeModelServer(faults=[None, Mode.NULL_CONTENT]) as server:
        async with pool_of(server.base_url, max_tokens=3000):
            pass
        limits = [ask.body["max_tokens"] for ask in server.asked if ask.schema is not None]
        assert limits == [64, 3000, 3000]


async def test_enforcement_counts_only_when_all_servers_have_it():
    told = Told()
    async with (
        FakeModelServer() as one,
        FakeModelServer(structured=False) as two,
        pool_of([one.base_url, two.base_url], told=told) as pool,
    ):
        assert pool.structured is False
        assert told.kinds() == ["remark"]


async def test_wrong_key_is_refused_without_showing_it():
    async with FakeModelServer(api_key="another") as server:
        message = await refused(server.base_url, api_key=KEY)
        assert "HTTP 401: Incorrect API key provided" in message
        assert "api_key_env" in message
        assert server.base_url in message
        assert KEY not in message
        assert len(server.asked) == 1


async def test_unknown_model_is_refused_with_the_names_there_are():
    async with FakeModelServer(models=["alpha", "beta"]) as server:
        message = await refused(server.base_url)
        assert "HTTP 404" in message
        assert "alpha, beta: set model.name" in message


async def test_unlisted_model_that_answers_is_remarked():
    told = Told()
    async with (
        FakeModelServer(models=["other"], any_model=True) as server,
        pool_of(server.base_url, told=told),
    ):
        assert told.kinds() == ["remark"]
        assert "lists only other" in told[0].message


async def test_listed_model_is_not_remarked():
    told = Told()
    async with (
        FakeModelServer(models=["other", "fake"]) as server,
        pool_of(server.base_url, told=told),
    ):
        assert told == []


async def test_settings_that_the_server_refuses_end_the_start():
    async with FakeModelServer() as server:
        server.arm(lambda ask: Mode.CONTEXT)
        message = await refused(server.base_url)
        assert "exceeds the available context size" in message
        # Once with a few tokens, once with what the scenario gives.
        assert [ask.body["max_tokens"] for ask in server.asked] == [16, 100]


async def test_unreachable_server_is_refused_after_bounded_tries():
    url = f"http://127.0.0.1:{free_port()}/v1"
    message = await refused(url)
    assert "cannot connect (Connection refused)" in message
    assert "check that the server runs" in message


async def test_unknown_host_is_refused():
    message = await refused("http://model.invalid/v1")
    assert "the name model.invalid is not known" in message


@pytest.mark.parametrize("mode", [Mode.BROKEN, Mode.RESET, Mode.WRONG_JSON, Mode.RATE_LIMITED])
async def test_server_that_only_fails_is_refused_after_bounded_tries(mode):
    async with FakeModelServer() as server:
        server.arm(lambda ask: mode)
        await refused(server.base_url, tries=3)
        assert len(server.asked) == 3


async def test_server_that_never_answers_is_refused():
    async with FakeModelServer(faults=lambda ask: Mode.NEVER) as server:
        message = await refused(server.base_url, timeout_s=0.1, tries=2)
        assert "no reply within 0.1 s" in message


@pytest.mark.parametrize("mode", [Mode.BROKEN, Mode.RATE_LIMITED, Mode.RESET])
async def test_start_survives_a_fault(mode):
    async with (
        FakeModelServer(faults=[Answer(mode=mode, retry_after="0")]) as server,
        pool_of(server.base_url) as pool,
    ):
        assert pool.structured is True


async def test_start_goes_on_without_a_server_that_cannot_be_reached():
    told = Told()
    dead = f"http://127.0.0.1:{free_port()}/v1"
    async with FakeModelServer() as server, pool_of([dead, server.base_url], told=told) as pool:
        completions = [await pool.complete(request_of(agent)) for agent in range(10)]
        assert {(c.endpoint, c.error) for c in completions} == {(server.base_url, "")}
        assert told.kinds() == ["left"]
        assert told[0].endpoint == dead


async def test_refused_start_leaves_no_socket_open():
    async with FakeModelServer(api_key="another") as server:
        pool = EndpointPool(spec_of(), [server.base_url] * 3, concurrency=1, policy=QUICK)
        with pytest.raises(ModelError, match=re.escape(server.base_url)):
            await pool.start()
        assert all(endpoint._session.closed for endpoint in pool._endpoints)
        assert (await pool.complete(request_of())).finish_reason == "error"


async def test_one_refusal_ends_the_start_while_another_server_is_silent():
    async with (
        FakeModelServer(faults=lambda ask: Mode.NEVER) as silent,
        FakeModelServer(faults=lambda ask: Mode.UNAUTHORIZED) as refusing,
    ):
        pool = EndpointPool(
            spec_of(timeout_s=60.0), [silent.base_url, refusing.base_url], concurrency=1
        )
        async with asyncio.timeout(5):
            with pytest.raises(ModelError, match="HTTP 401"):
                await pool.start()
        assert not [task for task in asyncio.all_tasks() if "_probe" in repr(task.get_coro())]


async def test_overloaded_server_at_the_start_is_left_while_another_works():
    told = Told()
    async with (
        FakeModelServer(faults=lambda ask: Mode.RATE_LIMITED) as one,
        FakeModelServer() as two,
        pool_of([one.base_url, two.base_url], told=told) as pool,
    ):
        assert pool.structured is True
        assert told.kinds() == ["left"]


async def test_what_the_servers_say_of_the_model_is_known():
    async with FakeModelServer(models=["fake"]) as server, pool_of(server.base_url) as pool:
        assert pool.about == {"answers_as": "fake", "listed": {"id": "fake"}, "seed": True}
    async with (
        FakeModelServer(models=["fake"]) as first,
        FakeModelServer(refused_fields=["seed"]) as second,
        pool_of([first.base_url, second.base_url]) as pool,
    ):
        assert [about["seed"] for about in pool.about["servers"]] == [True, False]
