"""The players' driver: a bounded window, each reply to its player, asked again in time."""

import pytest

from agentsim.games.guess_average import GuessAverageSpec, MarketContext
from agentsim.rpc.control import Ask, Enrol
from agentsim.rpc.envelope import Kind
from agentsim.rpc.messages import Attempt, Completion, Observation, Request
from agentsim.worker.players import Players


class Bench:
    """A driver and what it sends."""

    def __init__(self, *, window: int, attempts: int = 3, prompt: str = "direct") -> None:
        context = MarketContext(
            spec=GuessAverageSpec(type="guess_average"),
            prompt=prompt,
            memory="none",
            format="text",
            attempts=attempts,
            seed=1,
            worker=0,
        )
        self.requests: list[Request] = []
        self.attempts: list[Attempt] = []
        self.batches: list[list[Attempt]] = []
        self.players = Players(context, window, self.send)

    async def send(self, kind: Kind, message: object) -> None:
        if kind is Kind.REQUESTS:
            self.requests += message
        else:
            self.batches.append(message)
            self.attempts += message

    async def answer(self, *replies: str) -> None:
        """Answer the oldest open requests."""
        taken, self.requests = self.requests[: len(replies)], self.requests[len(replies) :]
        await self.players.digest([reply(r, text) for r, text in zip(taken, replies, strict=True)])


def reply(request: Request, text: str) -> Completion:
    return Completion(
        request.session,
        request.round,
        request.agent,
        request.step,
        request.attempt,
        text,
        "stop",
    )


async def test_no_more_requests_are_open_than_the_window() -> None:
    bench = Bench(window=3)
    bench.players.enrol(Enrol(1, 10, 7))
    await bench.players.ask(Ask(Observation(1, 1, 20)))
    assert [r.agent for r in bench.requests] == [10, 11, 12]
    await bench.answer("20", "30")
    assert [r.agent for r in bench.requests] == [12, 13, 14]
    while bench.requests:
        assert len(bench.requests) <= 3
        await bench.answer("20")
    assert sorted(a.agent for a in bench.attempts) == list(range(10, 17))
    assert all(a.final for a in bench.attempts)


async def test_an_agent_is_asked_again_before_others_begin() -> None:
    bench = Bench(window=1)
    bench.players.enrol(Enrol(1, 0, 2))
    await bench.players.ask(Ask(Observation(1, 1, 2)))
    await bench.answer("20 or 25")
    assert [(r.agent, r.attempt) for r in bench.requests] == [(0, 1)]
    await bench.answer("22")
    assert [(r.agent, r.attempt) for r in bench.requests] == [(1, 0)]
    assert [(a.agent, a.status, a.final) for a in bench.attempts] == [
        (0, "ambiguous", False),
        (0, "ok", True),
    ]


async def test_attempts_of_a_message_are_of_one_round() -> None:
    bench = Bench(window=8)
    for session in (1, 2):
        bench.players.enrol(Enrol(session, 0, 1))
        await bench.players.ask(Ask(Observation(session, 1, 1)))
    await bench.answer("20", "30")
    assert [{(a.session, a.round) for a in batch} for batch in bench.batches] == [
        {(1, 1)},
        {(2, 1)},
    ]


async def test_agents_may_be_enrolled_in_parts() -> None:
    bench = Bench(window=8, prompt="character")
    bench.players.enrol(Enrol(1, 4, 2, ["You are Ann.", "You are Bob."]))
    bench.players.enrol(Enrol(1, 6, 1, ["You are Cid."]))
    await bench.players.ask(Ask(Observation(1, 1, 9)))
    assert [r.agent for r in bench.requests] == [4, 5, 6]
    assert ["Cid" in r.messages[0].content for r in bench.requests] == [False, False, True]


async def test_a_retired_session_is_forgotten() -> None:
    bench = Bench(window=8)
    bench.players.enrol(Enrol(1, 0, 1))
    bench.players.retire(1)
    with pytest.raises(KeyError):
        await bench.players.ask(Ask(Observation(1, 1, 1)))
