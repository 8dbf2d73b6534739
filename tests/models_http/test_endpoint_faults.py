"""Every fault of a server, with the outcome for one request."""

from __future__ import annotations

import asyncio
import time
from email.utils import formatdate

import pytest
from http_pools import QUICK, pool_of, request_of

from agentsim.errors import ModelError
from agentsim.models.endpoint import judge
from agentsim.models.limits import RetryPolicy, Verdict
from agentsim.testing import Answer, FakeModelServer, Mode

RETRIED = [
    Mode.RATE_LIMITED,
    Mode.BROKEN,
    Mode.OVERLOADED,
    Mode.WRONG_JSON,
    Mode.NO_CHOICES,
    Mode.NUMBER_CONTENT,
    Mode.ABSURD_USAGE,
    Mode.HTML,
    Mode.HALF,
    Mode.HUGE,
    Mode.RESET,
    Mode.NEVER,
]
SAID = {
    Mode.RATE_LIMITED: "HTTP 429: Too many requests",
    Mode.BROKEN: "HTTP 500: The server had an error",
    Mode.OVERLOADED: "HTTP 503: The engine is overloaded",
    Mode.WRONG_JSON: "not a chat completion",
    Mode.NO_CHOICES: "without choices",
    Mode.NUMBER_CONTENT: "not a chat completion",
    Mode.ABSURD_USAGE: "completion_tokens -7 cannot be",
    Mode.HTML: "not JSON (text/html)",
    Mode.HALF: "closed in the middle of a reply",
    Mode.HUGE: "a reply of more than",
    Mode.RESET: "closed before a reply",
    Mode.NEVER: "no reply within",
}


def timeout_of(mode):
    return 0.15 if mode is Mode.NEVER else 5.0


@pytest.mark.parametrize("mode", RETRIED)
async def test_reply_comes_after_a_retry_when_a_request_meets(mode):
    async with (
        FakeModelServer() as server,
        pool_of(server.base_url, timeout_s=timeout_of(mode)) as pool,
    ):
        server.arm([mode, mode])
        completion = await pool.complete(request_of(3))
        assert completion.text.startswith("I think")
        assert (completion.finish_reason, completion.error, completion.tries) == ("stop", "", 3)
        stats = pool.stats()
        assert (stats.done, stats.failed, stats.retries, stats.in_flight) == (1, 0, 2, 0)
        assert not server.repeated


@pytest.mark.parametrize("mode", RETRIED)
async def test_failed_with_its_tries_counted_when_every_request_meets(mode):
    async with (
        FakeModelServer() as server,
        pool_of(server.base_url, timeout_s=timeout_of(mode)) as pool,
    ):
        server.arm(lambda ask: mode)
        completion = await pool.complete(request_of(3))
        assert (completion.finish_reason, completion.text) == ("error", "")
        assert SAID[mode] in completion.error
        assert completion.tries == 3
        assert completion.endpoint == server.base_url
        stats = pool.stats()
        assert (stats.done, stats.failed, stats.in_flight, stats.waiting) == (0, 1, 0, 0)


@pytest.mark.parametrize(
    ("mode", "said"),
    [
        (Mode.CONTEXT, "HTTP 400: The request exceeds the available context size"),
        (Mode.UNAUTHORIZED, "HTTP 401: Incorrect API key provided"),
    ],
)
async def test_failed_at_once_when_the_request_itself_is_refused(mode, said):
    async with FakeModelServer() as server, pool_of(server.base_url) as pool:
        server.arm(lambda ask: mode)
        completion = await pool.complete(request_of())
        assert (completion.finish_reason, completion.error) == ("error", said)
        assert completion.tries == 1


@pytest.mark.parametrize(
    ("mode", "text", "finish_reason"),
    [
        (Mode.EMPTY, "", "stop"),
        (Mode.NULL_CONTENT, "", "length"),
        (Mode.GARBAGE, "Ja mei, des woaß i aa ned so genau.", "stop"),
    ],
)
async def test_odd_replies_are_replies(mode, text, finish_reason):
    async with FakeModelServer() as server, pool_of(server.base_url) as pool:
        server.arm([mode])
        completion = await pool.complete(request_of())
        assert (completion.text, completion.finish_reason) == (text, finish_reason)
        assert (completion.error, completion.tries) == ("", 1)


async def test_reply_without_usage_counts_no_tokens():
    async with FakeModelServer() as server, pool_of(server.base_url) as pool:
        server.arm([Mode.NO_USAGE])
        completion = await pool.complete(request_of())
        assert completion.error == ""
        assert (completion.prompt_tokens, completion.completion_tokens) == (0, 0)


async def test_truncated_reply_says_length():
    async with FakeModelServer(["12345678"]) as server, pool_of(server.base_url) as pool:
        server.arm([Answer(text="12345678", mode=Mode.TRUNCATED)])
        completion = await pool.complete(request_of())
        assert (completion.text, completion.finish_reason) == ("1234", "length")


async def test_prompt_that_cannot_be_sent_fails_without_a_request():
    async with FakeModelServer() as server, pool_of(server.base_url) as pool:
        asked = len(server.asked)
        message = request_of().messages[0]
        bad = request_of(messages=[type(message)("user", "\ud800")])
        completion = await pool.complete(bad)
        assert "lone surrogate" in completion.error
        assert (completion.tries, len(server.asked)) == (0, asked)


async def test_large_prompt_is_sent():
    async with FakeModelServer() as server, pool_of(server.base_url) as pool:
        message = request_of().messages[0]
        large = request_of(messages=[type(message)("user", "x" * 2**21)])
        assert (await pool.complete(large)).error == ""


@pytest.mark.parametrize("form", ["seconds", "date"])
@pytest.mark.parametrize("mode", [Mode.RATE_LIMITED, Mode.OVERLOADED])
async def test_server_decides_the_pause_by_retry_after(mode, form):
    policy = RetryPolicy(first_pause_s=50.0, longest_pause_s=50.0)
    async with FakeModelServer() as server, pool_of(server.base_url, policy=policy) as pool:
        loop = asyncio.get_running_loop()
        if form == "seconds":
            header, least_s, most_s = "0.2", 0.2, 3.0
        else:  # dates count whole seconds, so this one may be up to a second nearer
            header, least_s, most_s = formatdate(time.time() + 2, usegmt=True), 0.9, 4.0
        server.arm([Answer(mode=mode, retry_after=header)])
        began = loop.time()
        completion = await pool.complete(request_of())
        assert completion.tries == 2
        assert least_s <= loop.time() - began <= most_s


async def test_retry_after_of_a_day_is_bounded():
    async with FakeModelServer() as server, pool_of(server.base_url, policy=QUICK) as pool:
        server.arm([Answer(mode=Mode.RATE_LIMITED, retry_after="86400")])
        async with asyncio.timeout(5):
            assert (await pool.complete(request_of())).tries == 2


@pytest.mark.parametrize(
    ("field", "attribute"),
    [("seed", "seed"), ("top_p", "top_p"), ("max_tokens", "limit_field")],
)
async def test_refused_field_is_given_up_once_for_all(field, attribute):
    async with (
        FakeModelServer(refused_fields=[field]) as server,
        pool_of(server.base_url) as pool,
    ):
        asked = len(server.asked)
        completions = [await pool.complete(request_of(agent)) for agent in range(3)]
        assert [c.tries for c in completions] == [1, 1, 1]
        bodies = [ask.body for ask in server.asked[asked:]]
        assert len(bodies) == 3
        assert all(field not in body for body in bodies)
        if field == "max_tokens":
            assert all(body["max_completion_tokens"] == 100 for body in bodies)
        refused = [ask for ask in server.asked if field in ask.body]
        assert len(refused) == 1, "the field was offered once, at the start"


async def test_all_refused_fields_are_given_up():
    async with (
        FakeModelServer(refused_fields=["top_p", "seed", "max_tokens"]) as server,
        pool_of(server.base_url) as pool,
    ):
        assert (await pool.complete(request_of())).tries == 1


async def test_first_refusal_is_told_when_giving_up_a_field_does_not_help():
    fields = ["max_tokens", "max_completion_tokens"]
    async with FakeModelServer(refused_fields=fields) as server:
        with pytest.raises(ModelError, match="Unsupported parameter: 'max_tokens'"):
            async with pool_of(server.base_url):
                pass
        assert len(server.asked) == 4, "two dialects, with a few tokens and with all"


async def test_temperature_is_never_given_up():
    async with FakeModelServer(refused_fields=["temperature"]) as server:
        with pytest.raises(ModelError, match="temperature"):
            async with pool_of(server.base_url):
                pass


@pytest.mark.parametrize(
    ("status", "code", "verdict", "again"),
    [
        (408, "", Verdict.FAILED, True),
        (409, "", Verdict.OK, True),
        (429, "", Verdict.OVERLOADED, True),
        (429, "insufficient_quota", Verdict.FAILED, False),
        (500, "", Verdict.FAILED, True),
        (502, "", Verdict.FAILED, True),
        (503, "", Verdict.OVERLOADED, True),
        (504, "", Verdict.FAILED, True),
        (400, "", Verdict.OK, False),
        (413, "", Verdict.OK, False),
        (422, "", Verdict.OK, False),
        (307, "", Verdict.OK, False),
        (401, "", Verdict.FAILED, False),
        (403, "", Verdict.FAILED, False),
        (404, "", Verdict.FAILED, False),
    ],
)
def test_status_decides_whether_to_try_again(status, code, verdict, again):
    assert judge(status, code) == (verdict, again)
