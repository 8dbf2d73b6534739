"""Recorded replies, given again."""

from __future__ import annotations

from agentsim.models.replay import UNRECORDED, ReplayPool
from agentsim.rpc.messages import Completion, Message, Request


def request(agent: int, attempt: int = 0) -> Request:
    return Request(1, 2, agent, 0, attempt, [Message("user", "?")], None, seed=1)


def reply(agent: int, text: str, **fields: object) -> Completion:
    return Completion(1, 2, agent, 0, 0, text, "stop", **fields)  # type: ignore[arg-type]


async def test_replies_come_as_they_were_and_as_often_as_asked() -> None:
    pool = ReplayPool()
    recorded = reply(3, "Answer: 7 – ünï", latency_s=1.5, prompt_tokens=9, request_id="r")
    pool.add([recorded, reply(4, "8")])
    assert await pool.complete(request(3)) == recorded
    assert await pool.complete(request(3)) == recorded


async def test_of_two_recordings_the_first_counts() -> None:
    pool = ReplayPool()
    pool.add([reply(3, "first"), reply(3, "late")])
    assert (await pool.complete(request(3))).text == "first"


async def test_a_request_without_a_recording_fails_and_is_counted() -> None:
    pool = ReplayPool()
    pool.add([reply(3, "7")])
    completion = await pool.complete(request(3, attempt=1))
    assert (completion.attempt, completion.error) == (1, UNRECORDED)
    assert (completion.text, completion.finish_reason, completion.tries) == ("", "error", 0)
    assert pool.stats().failed == 1
