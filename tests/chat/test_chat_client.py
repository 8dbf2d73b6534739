"""Calls of one process: numbered, seeded, recorded before whoever asked goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from agentsim.actors import WouldBlock
from agentsim.chat import Client, Model, Persona, use
from agentsim.chat.client import NOBODY
from agentsim.chat.model import CURRENT
from agentsim.errors import ModelError, UserError
from agentsim.rpc.messages import Attempt, Completion, Request

MODEL = Model(session=1, seed=7, structured=True)


class Desk:
    """A client, with what it sent and recorded."""

    def __init__(self, worker: int = 0) -> None:
        self.batches: list[list[Request]] = []
        self.recorded: list[Attempt] = []
        self.sent = asyncio.Event()
        loop = asyncio.get_running_loop()
        self.client = Client(worker, loop, self.send, self.recorded.extend)
        use(self.client)

    def send(self, requests: list[Request]) -> None:
        self.batches.append(requests)
        self.sent.set()

    async def asked(self) -> list[Request]:
        await asyncio.sleep(0)
        return [request for batch in self.batches for request in batch]

    def answer(self, request: Request, text: str = "yes", **more: object) -> None:
        identity = (request.session, request.round, request.agent, request.step, request.attempt)
        done = Completion(*identity, text=text, **{"finish_reason": "stop", **more})
        self.client.take([done])


@pytest.fixture(autouse=True)
def forget() -> Iterator[None]:
    token = CURRENT.set(None)
    yield
    CURRENT.reset(token)


async def test_calls_of_one_breath_leave_together_and_come_back_apart() -> None:
    desk = Desk()
    pending = [MODEL.of(agent).chat(f"question {agent}") for agent in (3, 1)]
    requests = await desk.asked()
    assert [len(batch) for batch in desk.batches] == [2]
    for request in reversed(requests):
        desk.answer(request, text=f"to {request.messages[0].content}")
    assert [(await reply).text for reply in pending] == ["to question 3", "to question 1"]
    assert [(a.agent, a.step, a.text) for a in desk.recorded] == [
        (1, 0, "to question 1"),
        (3, 0, "to question 3"),
    ]


async def test_seeds_are_the_agents_and_not_the_workers() -> None:
    seeds = []
    for worker in (0, 5):
        desk = Desk(worker)
        for agent in (4, 4, 9):
            MODEL.of(Persona(agent)).chat("?")
        seeds.append([request.seed for request in await desk.asked()])
    assert seeds[0] == seeds[1]
    assert len(set(seeds[0])) == 3
    other = Desk()
    Model(session=2, seed=7).of(4).chat("?")
    assert (await other.asked())[0].seed not in seeds[0]


async def test_calls_that_are_bound_to_nobody_differ_by_worker() -> None:
    seeds = set()
    for worker in (-1, 0, 1):
        desk = Desk(worker)
        MODEL.chat("?")
        (request,) = await desk.asked()
        desk.answer(request)
        seeds.add(request.seed)
        assert desk.recorded[0].agent == NOBODY
    assert len(seeds) == 3


async def test_a_schema_is_left_out_where_nobody_enforces_it() -> None:
    desk = Desk()
    pending = [
        model.chat("?", schema={"type": "object"}) for model in (MODEL, Model(session=1, seed=7))
    ]
    for request in await desk.asked():
        desk.answer(request, text='{"answer": 4}')
    replies = [await reply for reply in pending]
    assert [reply.format for reply in replies] == ["json", "text"]
    assert replies[0].number(0, 10).value == 4


@pytest.mark.parametrize(
    ("more", "status"),
    [
        ({}, "ok"),
        ({"text": " "}, "empty"),
        ({"finish_reason": "length"}, "truncated"),
        ({"text": "", "finish_reason": "error", "error": "HTTP 500"}, "failed"),
    ],
)
async def test_statuses_say_what_came_back(more, status) -> None:
    desk = Desk()
    pending = MODEL.chat("?")
    desk.answer((await desk.asked())[0], **more)
    assert [attempt.status for attempt in desk.recorded] == [status]
    if status == "failed":
        with pytest.raises(ModelError, match="HTTP 500"):
            await pending
    else:
        assert (await pending).finish_reason == desk.recorded[0].finish_reason


async def test_what_is_not_asked_for_is_dropped() -> None:
    desk = Desk()
    MODEL.of(1).chat("?")
    (request,) = await desk.asked()
    for _ in range(2):
        desk.answer(request)
    assert len(desk.recorded) == 1


async def test_nothing_is_asked_after_the_end() -> None:
    desk = Desk()
    pending = MODEL.chat("?")
    desk.client.stop(KeyboardInterrupt("over"))
    for read in (pending.result, lambda: MODEL.chat("?")):
        with pytest.raises(KeyboardInterrupt, match="over"):
            read()


async def test_reading_on_a_loop_would_block() -> None:
    Desk()
    with pytest.raises(WouldBlock):
        MODEL.chat("?").result()


async def test_waiting_in_a_thread() -> None:
    desk = Desk()

    def work() -> str:
        pending = MODEL.chat("?")
        with pytest.raises(TimeoutError, match=r"no reply within 0\.01 s"):
            pending.result(timeout_s=0.01)
        return pending.result(timeout_s=10).text

    waiting = asyncio.create_task(asyncio.to_thread(work))
    await desk.sent.wait()
    await asyncio.sleep(0.05)
    desk.answer(desk.batches[0][0])
    assert await waiting == "yes"


def test_nobody_to_ask() -> None:
    with pytest.raises(UserError, match=r"inside agents and in the workflow's thread"):
        MODEL.chat("?")


@pytest.mark.parametrize(
    "prompt",
    [[], [{"role": "user"}], [{"role": "god", "content": "?"}], [{"role": "user", "content": 3}]],
)
async def test_prompts_that_are_none(prompt) -> None:
    Desk()
    with pytest.raises(TypeError):
        MODEL.chat(prompt)
