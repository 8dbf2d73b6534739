"""Many requests at once: places, order, limits, affinity, dead endpoints, secrets."""

from __future__ import annotations

import asyncio
import logging
import socket

import pytest
from http_pools import QUICK, Told, pool_of, request_of, spec_of, until

from agentsim.errors import ModelError
from agentsim.models.endpoint import Endpoint, is_loopback
from agentsim.models.endpoint_pool import EndpointPool
from agentsim.models.limits import RetryPolicy
from agentsim.testing import Answer, FakeModelServer, Mode

KEY = "sk-test-0123456789abcdef"
SLOW_TO_RETURN = RetryPolicy(
    first_pause_s=0.001, longest_pause_s=600.0, leave_after=3, leave_s=600.0, connect_timeout_s=1.0
)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


async def held(server, pool, agents):
    """Tasks whose requests the server has and does not answer."""
    asked = len(server.asked)
    server.arm(lambda ask: Mode.HOLD)
    tasks = [asyncio.create_task(pool.complete(request_of(agent))) for agent in agents]
    await server.arrived(asked + min(len(tasks), pool.stats().limit))
    return tasks


async def test_no_more_requests_are_in_flight_than_concurrency():
    async with FakeModelServer() as server, pool_of(server.base_url, concurrency=3) as pool:
        asked = len(server.asked)
        tasks = await held(server, pool, range(10))
        stats = pool.stats()
        assert (stats.in_flight, stats.waiting) == (3, 7)
        assert len(server.asked) - asked == 3
        server.release()
        completions = await asyncio.gather(*tasks)
        assert [c.agent for c in completions] == list(range(10))
        assert pool.stats().done == 10


async def test_requests_are_sent_in_order_of_arrival():
    async with FakeModelServer() as server, pool_of(server.base_url, concurrency=1) as pool:
        asked = len(server.asked)
        tasks = await held(server, pool, range(20))
        server.release()
        await asyncio.gather(*tasks)
        assert [ask.seed for ask in server.asked[asked:]] == [1000 + a for a in range(20)]


async def test_request_that_is_tried_again_keeps_its_place():
    async with FakeModelServer() as server, pool_of(server.base_url, concurrency=1) as pool:
        asked = len(server.asked)
        server.arm([Mode.RATE_LIMITED])
        await asyncio.gather(*(pool.complete(request_of(agent)) for agent in range(4)))
        assert [ask.seed for ask in server.asked[asked:]] == [1000, 1000, 1001, 1002, 1003]


@pytest.mark.parametrize("state", ["in flight", "waiting"])
async def test_cancelled_request_frees_its_place(state):
    async with FakeModelServer() as server, pool_of(server.base_url, concurrency=2) as pool:
        tasks = await held(server, pool, range(4))
        cancelled = tasks[:2] if state == "in flight" else tasks[2:]
        for task in cancelled:
            task.cancel()
        ended = await asyncio.gather(*cancelled, return_exceptions=True)
        assert all(isinstance(end, asyncio.CancelledError) for end in ended)
        assert pool.stats().in_flight == 2
        assert pool.stats().waiting == 0
        server.release()
        rest = [task for task in tasks if task not in cancelled]
        assert [c.error for c in await asyncio.gather(*rest)] == ["", ""]
        assert pool.stats().in_flight == 0


async def test_place_granted_to_a_request_that_is_cancelled_goes_to_the_next():
    async with FakeModelServer() as server, pool_of(server.base_url, concurrency=1) as pool:
        gate = pool._endpoints[0].gate
        ticket = await gate.enter(0)
        second = asyncio.create_task(gate.enter(1))
        third = asyncio.create_task(gate.enter(2))
        await until(lambda: gate.waiting == 2)
        gate.forget()  # the second has its place, and has not run yet
        second.cancel()
        assert isinstance(await third, int)
        assert ticket is not None
        assert (gate.health.in_flight, gate.waiting) == (1, 0)


async def test_cancelled_request_frees_its_place_during_a_pause():
    policy = RetryPolicy(first_pause_s=600.0, longest_pause_s=600.0)
    async with FakeModelServer() as server, pool_of(server.base_url, policy=policy) as pool:
        asked = len(server.asked)
        server.arm([Mode.BROKEN])
        task = asyncio.create_task(pool.complete(request_of()))
        await server.arrived(asked + 1)
        await until(lambda: pool.stats().waiting == 1)
        assert pool.stats().in_flight == 0
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert pool.stats().waiting == 0


async def test_limit_halves_on_a_volley_of_429_and_recovers():
    async with FakeModelServer() as server, pool_of(server.base_url, concurrency=8) as pool:
        assert pool.stats().limit == 8
        server.arm([Mode.RATE_LIMITED] * 8)
        completions = await asyncio.gather(*(pool.complete(request_of(a)) for a in range(8)))
        assert [c.tries for c in completions] == [2] * 8
        assert 4 <= pool.stats().limit < 8
        for agent in range(60):
            await pool.complete(request_of(agent, round=2))
        assert pool.stats().limit == 8


async def test_nothing_is_lost_or_sent_twice_under_mixed_faults():
    policy = RetryPolicy(first_pause_s=0.001, longest_pause_s=0.005, leave_s=0.005)
    async with (
        FakeModelServer() as server,
        pool_of(server.base_url, policy=policy, tries=40, concurrency=16) as pool,
    ):
        server.arm(lambda ask: Mode.MIXED)
        requests = [request_of(agent) for agent in range(200)]
        completions = await asyncio.gather(*map(pool.complete, requests))
        assert [c.agent for c in completions] == list(range(200))
        assert all(c.error == "" for c in completions)
        assert not server.repeated
        stats = pool.stats()
        assert (stats.done, stats.in_flight, stats.waiting) == (200, 0, 0)
        assert stats.retries == sum(c.tries - 1 for c in completions) > 0


async def test_tokens_are_counted():
    async with FakeModelServer(["one two three"]) as server, pool_of(server.base_url) as pool:
        completions = [await pool.complete(request_of(agent)) for agent in range(4)]
        assert [c.completion_tokens for c in completions] == [3] * 4
        stats = pool.stats()
        assert stats.completion_tokens == 12
        assert stats.prompt_tokens == sum(c.prompt_tokens for c in completions) > 0
        assert stats.tokens_per_s == 1.2


async def test_latency_leaves_out_queueing():
    async with FakeModelServer() as server, pool_of(server.base_url, concurrency=1) as pool:
        server.arm(lambda ask: Answer(delay_s=0.05))
        completions = await asyncio.gather(*(pool.complete(request_of(a)) for a in range(6)))
        assert all(0.05 <= c.latency_s < 0.15 for c in completions)


async def test_latency_leaves_out_the_pause_of_an_overloaded_endpoint():
    async with FakeModelServer() as server, pool_of(server.base_url, policy=RetryPolicy()) as pool:
        server.arm([Answer(mode=Mode.RATE_LIMITED, retry_after="0.4")])
        loop = asyncio.get_running_loop()
        began = loop.time()
        completion = await pool.complete(request_of())
        assert loop.time() - began >= 0.4
        assert completion.latency_s < 0.3


def agents_at(server, since=0):
    return {ask.seed - 1000 for ask in server.asked[since:] if ask.seed >= 1000}


async def test_an_agent_stays_with_its_endpoint():
    async with (
        FakeModelServer() as one,
        FakeModelServer() as two,
        pool_of([one.base_url, two.base_url]) as pool,
    ):
        for round_ in (1, 2, 3):
            requests = [request_of(agent, round=round_) for agent in range(40)]
            await asyncio.gather(*map(pool.complete, requests))
        assert agents_at(one) | agents_at(two) == set(range(40))
        assert not agents_at(one) & agents_at(two)
        assert 10 <= len(agents_at(one)) <= 30


async def test_others_take_over_when_an_endpoint_dies_and_give_back_when_it_returns():
    told = Told()
    policy = RetryPolicy(first_pause_s=0.001, leave_after=3, leave_s=0.05, longest_pause_s=0.05)
    async with (
        FakeModelServer() as one,
        FakeModelServer() as two,
        pool_of([one.base_url, two.base_url], policy=policy, told=told, tries=6) as pool,
    ):
        await asyncio.gather(*(pool.complete(request_of(agent)) for agent in range(40)))
        home = agents_at(one)
        one.arm(lambda ask: Mode.RESET)
        completions = await asyncio.gather(
            *(pool.complete(request_of(agent, round=2)) for agent in range(40))
        )
        assert all(c.error == "" for c in completions)
        assert {c.endpoint for c in completions} == {two.base_url}
        assert told.kinds() == ["left"]
        assert (told[0].endpoint, pool.stats().endpoints) == (one.base_url, 1)
        one.arm(None)
        for round_ in range(3, 200):
            await pool.complete(request_of(min(home), round=round_))
            if pool.stats().endpoints == 2:
                break
            await asyncio.sleep(0.005)
        assert told.kinds() == ["left", "back"]
        since = len(two.asked)
        await asyncio.gather(*(pool.complete(request_of(a, round=999)) for a in range(40)))
        assert not agents_at(two, since) & home


async def test_a_dead_endpoint_is_not_asked_again_for_a_while():
    async with (
        FakeModelServer() as one,
        FakeModelServer() as two,
        pool_of([one.base_url, two.base_url], policy=SLOW_TO_RETURN, concurrency=1) as pool,
    ):
        asked = len(one.asked)
        one.arm(lambda ask: Mode.BROKEN)
        completions = await asyncio.gather(*(pool.complete(request_of(a)) for a in range(60)))
        assert all(c.error == "" for c in completions)
        assert len(one.asked) - asked == 3


async def test_requests_fail_quickly_when_all_endpoints_are_dead():
    async with (
        FakeModelServer() as server,
        pool_of(server.base_url, policy=SLOW_TO_RETURN, concurrency=2) as pool,
    ):
        asked = len(server.asked)
        server.arm(lambda ask: Mode.RESET)
        requests = [request_of(agent) for agent in range(500)]
        async with asyncio.timeout(5):
            completions = await asyncio.gather(*map(pool.complete, requests))
        assert all(c.finish_reason == "error" and c.error for c in completions)
        assert len(server.asked) - asked <= 5
        assert completions[-1].tries == 0
        assert completions[-1].error == "no model endpoint is in working order"


async def test_waiting_requests_move_on_when_the_server_never_answers():
    async with (
        FakeModelServer() as server,
        pool_of(server.base_url, policy=SLOW_TO_RETURN, concurrency=4, timeout_s=0.2) as pool,
    ):
        server.arm(lambda ask: Mode.NEVER)
        async with asyncio.timeout(5):
            completions = await asyncio.gather(*(pool.complete(request_of(a)) for a in range(400)))
        assert all(c.finish_reason == "error" for c in completions)


async def test_close_ends_what_is_in_flight_and_what_waits():
    async with FakeModelServer() as server, pool_of(server.base_url, concurrency=2) as pool:
        tasks = await held(server, pool, range(5))
        await pool.close()
        async with asyncio.timeout(5):
            completions = await asyncio.gather(*tasks)
        assert all(c.finish_reason == "error" and c.error for c in completions)
        assert (await pool.complete(request_of())).finish_reason == "error"
        await pool.close()
        endpoint = pool._endpoints[0]
        outcome, _ = await endpoint.complete([], schema=None, seed=0)
        assert (outcome.reply, "closed" in outcome.error) == (None, True)


@pytest.mark.parametrize("mode", [Mode.OK, Mode.BROKEN, Mode.RESET, Mode.UNAUTHORIZED])
async def test_key_goes_into_the_header_and_nowhere_else(mode, caplog):
    caplog.set_level(logging.DEBUG)
    told = Told()
    async with (
        FakeModelServer(api_key=KEY) as server,
        pool_of(server.base_url, api_key=KEY, told=told) as pool,
    ):
        server.arm(lambda ask: mode)
        completions = [await pool.complete(request_of(agent)) for agent in range(6)]
        assert all(ask.headers["authorization"] == f"Bearer {KEY}" for ask in server.asked)
        assert all(KEY not in str(ask.body) for ask in server.asked)
        shown = [repr(pool), repr(pool._endpoints), str(pool.stats()), *map(repr, completions)]
        assert not [text for text in [*shown, *map(repr, told), caplog.text] if KEY in text]


async def test_key_is_cut_out_when_the_server_echoes_it():
    endpoint = Endpoint(
        spec_of(), "http://127.0.0.1:1/v1", api_key=KEY, concurrency=1, policy=QUICK
    )
    assert endpoint.clean(f"Incorrect API key provided:\n{KEY}.") == (
        "Incorrect API key provided: [key]."
    )


@pytest.mark.parametrize("key", ["", "two words", "line\nbreak", "ü", "tab\t"])
def test_key_that_cannot_be_one_is_refused_without_being_shown(key):
    with pytest.raises(ModelError, match="api_key_env") as caught:
        EndpointPool(spec_of(), ["http://h/v1"], api_key=key, concurrency=1)
    assert not key or key not in str(caught.value)


@pytest.mark.parametrize("url", ["ftp://h/v1", "nonsense", "http:///v1", "http://[::1/v1"])
def test_what_is_no_address_is_refused(url):
    with pytest.raises(ModelError, match="base_url"):
        EndpointPool(spec_of(), [url], concurrency=1)


def test_address_with_a_password_is_refused_without_showing_it():
    with pytest.raises(ModelError, match="user or password") as caught:
        EndpointPool(spec_of(), ["https://me:hunter2@h/v1"], concurrency=1)
    assert "hunter2" not in str(caught.value)


def test_a_pool_needs_an_endpoint():
    with pytest.raises(ModelError, match="no endpoint"):
        EndpointPool(spec_of(), [], concurrency=1)


async def test_query_of_the_address_is_sent_and_not_shown():
    async with FakeModelServer() as server, pool_of(f"{server.base_url}?api-version=7") as pool:
        completion = await pool.complete(request_of())
        assert completion.error == ""
        assert completion.endpoint == server.base_url
        assert server.asked[-1].target == "/v1/chat/completions?api-version=7"


async def test_proxy_of_the_environment_does_not_swallow_calls_to_this_machine(monkeypatch):
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{free_port()}")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    async with FakeModelServer() as server, pool_of(server.base_url) as pool:
        assert (await pool.complete(request_of())).error == ""


async def test_proxy_of_the_environment_is_used_for_other_machines(monkeypatch):
    async with FakeModelServer() as proxy:
        monkeypatch.delenv("no_proxy", raising=False)
        monkeypatch.delenv("NO_PROXY", raising=False)
        monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{proxy.port}")
        async with pool_of("http://model.invalid/v1") as pool:
            assert (await pool.complete(request_of())).error == ""
        assert proxy.asked[-1].headers["host"] == "model.invalid"


@pytest.mark.parametrize(
    ("host", "loopback"),
    [
        ("localhost", True),
        ("api.localhost", True),
        ("127.0.0.1", True),
        ("127.8.8.8", True),
        ("::1", True),
        ("10.0.0.1", False),
        ("localhost.example.org", False),
    ],
)
def test_loopback_is_told_apart(host, loopback):
    assert is_loopback(host) is loopback
