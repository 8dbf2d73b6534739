"""Scripted players: their guesses follow theory, whoever asks and in which order."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentsim.config.models import CognitiveHierarchy, Dummy, LevelK, Random, ScriptedModel
from agentsim.models import theory
from agentsim.models.rule import Rule
from agentsim.models.scripted import TheoryPlayers, build
from agentsim.rpc.messages import Observation

RULE = Rule.of(0, 100, "2/3 * mean", ["mean", "target"])
AGENTS = np.arange(200_000, dtype=np.uint32)
CH = CognitiveHierarchy(backend="cognitive_hierarchy")
LEVEL_K = LevelK(backend="level_k")
RANDOM = Random(backend="random")
DUMMY = Dummy(backend="dummy", think_s=2.0, jitter_s=0.5)
ALL: list[ScriptedModel] = [CH, LEVEL_K, RANDOM, DUMMY]


def observe(round: int = 1, session: int = 1, **announced: float) -> Observation:
    return Observation(session, round, AGENTS.size, announced)


@pytest.mark.parametrize("spec", [CH, LEVEL_K], ids=lambda spec: str(spec.backend))
def test_four_rounds_follow_theory(spec: CognitiveHierarchy | LevelK) -> None:
    players = build(spec, RULE, seed=7)
    assert isinstance(players, TheoryPlayers)
    expected = theory.expected_means(players.levels, RULE, AGENTS.size, 4)
    announced: dict[str, float] = {}
    for round, mean in enumerate(expected, 1):
        values = players.values(AGENTS, observe(round, **announced))
        assert values.mean() == pytest.approx(mean, abs=0.15)  # about 3 standard errors
        announced = {"mean": float(values.mean())}


def test_levels_have_their_shares_and_stay_in_a_session() -> None:
    players = build(LEVEL_K, RULE, seed=7)
    assert isinstance(players, TheoryPlayers)
    level = players.level(AGENTS, session=1)
    assert np.bincount(level) / AGENTS.size == pytest.approx([0.15, 0.4, 0.35, 0.1], abs=0.005)
    assert not np.array_equal(level, players.level(AGENTS, session=2))
    means = theory.level_means(players.levels, RULE, AGENTS.size, 40)
    values = players.values(AGENTS, observe(2, mean=40.0))
    assert np.array_equal(values[level > 0], means[level[level > 0]])
    assert np.abs(values[level == 0] - 40).max() <= 10


def test_guesses_of_level_0_are_new_in_each_round() -> None:
    players = build(LevelK(backend="level_k", levels={"0": 1.0}), RULE, seed=7)
    first, second = players.values(AGENTS, observe(1)), players.values(AGENTS, observe(2))
    assert abs(np.corrcoef(first, second)[0, 1]) < 0.01
    assert first.mean() == pytest.approx(50, abs=0.3)


@pytest.mark.parametrize("spec", ALL, ids=lambda spec: str(spec.backend))
@given(data=st.data())
def test_a_guess_does_not_depend_on_who_is_asked_with_it(
    spec: ScriptedModel, data: st.DataObject
) -> None:
    asked = data.draw(st.lists(st.integers(0, 999), min_size=1, unique=True))
    observation = observe(data.draw(st.integers(1, 3)), mean=30.0)
    agents = np.arange(1000, dtype=np.uint32)
    whole = build(spec, RULE, seed=7).values(agents, observation)
    players = build(spec, RULE, seed=7)
    some = np.asarray(asked, dtype=np.uint32)
    for _ in range(2):  # the second time from the cache
        assert np.array_equal(players.values(some, observation), whole[some])
    assert np.array_equal(players.values(some[::-1].copy(), observation), whole[some][::-1])


def test_a_changed_agent_column_is_not_taken_for_the_cached_one() -> None:
    players = build(CH, RULE, seed=7)
    agents = np.array([0, 1, 2, 3], dtype=np.uint32)
    players.values(agents, observe())
    agents[1] = 77
    fresh = build(CH, RULE, seed=7).values(agents, observe())
    assert np.array_equal(players.values(agents, observe()), fresh)


def test_the_cache_is_bounded() -> None:
    players = build(CH, RULE, seed=7)
    assert isinstance(players, TheoryPlayers)
    for session in range(1, 1000):
        players.level(AGENTS[:10], session)
    for session in range(1, 100):
        players.level(AGENTS, session)
    kept = [column[0].size for column in players._drawn.values()]
    assert len(kept) <= 256
    assert sum(kept) <= 8_000_000


@pytest.mark.parametrize("spec", ALL, ids=lambda spec: str(spec.backend))
@pytest.mark.parametrize("announced", [{}, {"mean": 0.0}, {"mean": 99.999}, {"target": 66.7}])
def test_guesses_stay_in_the_range(spec: ScriptedModel, announced: dict[str, float]) -> None:
    rule = Rule.of(-3, 100, "2/3 * mean", ["mean"])
    values = build(spec, rule, seed=1).values(AGENTS, observe(2, **announced))
    assert values.dtype == np.float64
    assert values.shape == AGENTS.shape
    assert values.min() >= -3
    assert values.max() <= 100


@pytest.mark.parametrize("spec", ALL, ids=lambda spec: str(spec.backend))
def test_no_agents(spec: ScriptedModel) -> None:
    none = np.empty(0, dtype=np.uint32)
    assert build(spec, RULE, seed=1).values(none, observe()).shape == (0,)


@pytest.mark.parametrize("spec", [RANDOM, DUMMY], ids=lambda spec: str(spec.backend))
def test_random_guesses_are_uniform(spec: ScriptedModel) -> None:
    values = build(spec, RULE, seed=3).values(AGENTS, observe())
    counts, _ = np.histogram(values, bins=10, range=(0, 100))
    assert np.abs(counts - 20_000).max() < 600


def test_thinking_times() -> None:
    for spec in (CH, LEVEL_K, RANDOM):
        assert build(spec, RULE, seed=1).thinking_s(AGENTS, observe()) is None
    times = build(DUMMY, RULE, seed=1).thinking_s(AGENTS, observe())
    assert times is not None
    assert times.min() >= 1.5
    assert times.max() <= 2.5
    assert times.mean() == pytest.approx(2, abs=0.005)
    steady = build(Dummy(backend="dummy", think_s=0.25), RULE, seed=1)
    assert set(np.asarray(steady.thinking_s(AGENTS, observe())).tolist()) == {0.25}


def test_thinking_never_takes_less_than_no_time() -> None:
    spec = Dummy(backend="dummy", think_s=0.1, jitter_s=0.1)
    times = build(spec, RULE, seed=1).thinking_s(AGENTS, observe())
    assert times is not None
    assert times.min() >= 0


def test_seeds_differ() -> None:
    values = [build(CH, RULE, seed=seed).values(AGENTS, observe()) for seed in (1, 2, 1)]
    assert np.array_equal(values[0], values[2])
    assert not np.array_equal(values[0], values[1])
