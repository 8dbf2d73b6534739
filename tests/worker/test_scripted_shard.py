"""Scripted agents: every agent answers once, and none before it has thought."""

import time

import numpy as np
import pytest

from agentsim.config.models import Dummy, Random
from agentsim.models.rule import Rule
from agentsim.models.scripted import build
from agentsim.rpc.codec import agents_of, values_of
from agentsim.rpc.messages import Observation
from agentsim.worker import scripted
from agentsim.worker.scripted import Shard, act

RULE = Rule.of(0, 100, "2/3 * mean", ["mean"])
OBSERVATION = Observation(session=1, round=1, n=200_000)


async def collect(model, shard: Shard) -> tuple[np.ndarray, np.ndarray, list[float]]:
    agents, values, times = [], [], []
    began = time.monotonic()
    async for answers in act(model, shard, OBSERVATION, worker=3):
        assert (answers.session, answers.round, answers.worker) == (1, 1, 3)
        agents.append(agents_of(answers.agents))
        values.append(values_of(answers.values))
        times += [time.monotonic() - began] * len(agents[-1])
    return np.concatenate(agents), np.concatenate(values), times


@pytest.mark.parametrize("count", [1, 65_536, 70_000, 150_000])
async def test_all_agents_answer_once(count: int) -> None:
    agents, values, _ = await collect(
        build(Random(backend="random"), RULE, seed=1), Shard(7, count)
    )
    assert agents.tolist() == list(range(7, 7 + count))
    assert values.min() >= 0
    assert values.max() <= 100


async def test_what_an_agent_answers_does_not_depend_on_its_shard() -> None:
    model = build(Random(backend="random"), RULE, seed=1)
    _, whole, _ = await collect(model, Shard(0, 1000))
    _, part, _ = await collect(model, Shard(400, 100))
    assert (whole[400:500] == part).all()


async def test_no_agent_answers_before_it_has_thought() -> None:
    model = build(Dummy(backend="dummy", think_s=0.2, jitter_s=0.15), RULE, seed=1)
    agents, _, times = await collect(model, Shard(0, 500))
    thinking_s = model.thinking_s(np.arange(500, dtype=np.uint32), OBSERVATION)
    assert sorted(agents.tolist()) == list(range(500))
    assert all(when >= thinking_s[agent] for agent, when in zip(agents, times, strict=True))
    # One timer serves all that wake together, and they do not all wait for the slowest.
    assert len(set(times)) < 60
    assert min(times) < 0.2


async def test_no_agent_that_thinks_for_very_many_ticks_answers_before(monkeypatch) -> None:
    monkeypatch.setattr(scripted, "_TICK_S", 1e-6)
    model = build(Dummy(backend="dummy", think_s=0.1, jitter_s=0.08), RULE, seed=1)
    agents, _, times = await collect(model, Shard(0, 20))
    thinking_s = model.thinking_s(np.arange(20, dtype=np.uint32), OBSERVATION)
    assert agents.tolist() == np.argsort(thinking_s).tolist()
    assert all(when >= thinking_s[agent] for agent, when in zip(agents, times, strict=True))
