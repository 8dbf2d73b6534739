"""Groups at a worker: only those act whom an observation is for."""

from __future__ import annotations

import numpy as np
from test_players_window import Bench

from agentsim.config.models import Random
from agentsim.games.guess_average import GuessAverageSpec
from agentsim.models.rule import Rule
from agentsim.models.scripted import build
from agentsim.rpc.codec import agents_of, to_bytes, values_of
from agentsim.rpc.control import Ask, Enrol
from agentsim.rpc.messages import Groups, Observation
from agentsim.worker.scripted import Shard, act

CODES = np.array([2, 0, 2, 0, 0], np.uint32)


def groups(codes: np.ndarray = CODES, names: list[str] | None = None) -> Groups:
    return Groups(1, names or ["a", "b", "c"], [30, 20, 10], to_bytes(codes), separate=True)


async def acted(shard: Shard, group: int) -> dict[int, float]:
    model = build(Random(backend="random"), Rule.of(0, 100, "2/3 * mean"), seed=1)
    found: dict[int, float] = {}
    async for answers in act(model, shard, Observation(1, 1, 60, {}, group), worker=0):
        found |= zip(agents_of(answers.agents), values_of(answers.values), strict=True)
    return found


async def test_only_the_asked_group_of_a_shard_acts() -> None:
    shard = Shard(10, 5, CODES)
    everybody = await acted(shard, 0)
    assert list(everybody) == [10, 11, 12, 13, 14]
    assert list(await acted(shard, 1)) == [11, 13, 14]
    assert await acted(shard, 2) == {}
    # What an agent does not depend on who is asked with it.
    assert await acted(shard, 3) == {10: everybody[10], 12: everybody[12]}


async def test_a_shard_may_come_in_parts() -> None:
    shard = Shard(10, 0).with_more(2, CODES[:2]).with_more(3, CODES[2:])
    assert list(await acted(shard, 3)) == [10, 12]
    assert list(await acted(Shard(10, 0).with_more(5, None), 0)) == [10, 11, 12, 13, 14]


async def test_only_the_asked_group_of_players_is_asked() -> None:
    bench = Bench(window=9)
    bench.players.enrol(Enrol(1, 10, 2, [], groups(CODES[:2])))
    bench.players.enrol(Enrol(1, 12, 3, [], groups(CODES[2:])))
    await bench.players.ask(Ask(Observation(1, 1, 30, {}, 1)))
    assert [request.agent for request in bench.requests] == [11, 13, 14]
    await bench.players.ask(Ask(Observation(1, 1, 10, {}, 3)))
    assert [request.agent for request in bench.requests[3:]] == [10, 12]


async def test_groups_of_one_session_are_in_different_rounds() -> None:
    """Each group has its own announcements; a fast one is told of rounds that others still play."""
    bench = Bench(window=9)
    bench.players.enrol(Enrol(1, 10, 5, [], groups()))
    await bench.players.ask(Ask(Observation(1, 1, 30, {}, 1)))
    await bench.answer("20", "30", "40")
    await bench.players.ask(Ask(Observation(1, 2, 30, {"mean": 30.0, "target": 20.0}, 1)))
    second = bench.requests[0].messages[-1].content
    assert "In round 1 the average of all numbers was 30" in second
    assert "This is round 2." in second
    await bench.players.ask(Ask(Observation(1, 1, 10, {}, 3)))
    first = bench.requests[-1].messages[-1].content
    assert "was 30" not in first
    assert "This is round 1." in first


async def test_players_are_told_their_group() -> None:
    bench = Bench(window=9)
    spec = {"type": "guess_average", "groups": {"count": 3, "scope": "between"}}
    between = GuessAverageSpec.model_validate(spec)
    object.__setattr__(bench.players._context, "spec", between)
    bench.players.enrol(Enrol(1, 10, 5, [], groups()))
    await bench.players.ask(Ask(Observation(1, 1, 60)))
    texts = {request.agent: request.messages[0].content for request in bench.requests}
    assert list(texts) == [10, 11, 12, 13, 14]
    assert "You are one of 60 players" in texts[10]
    assert "group 1 has 30 players, group 2 has 20 players and group 3 has 10" in texts[10]
    assert ["You play for group 3." in text for text in texts.values()] == [
        code == 2 for code in CODES
    ]
