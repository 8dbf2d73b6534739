"""Groups: who is in which, how each scope ends a round, what players are told of them."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentsim.config.models import LevelK
from agentsim.config.scenario import Scenario
from agentsim.games.guess_average import (
    GuessAverageSpec,
    Membership,
    Settlement,
    Sides,
    by_category,
    by_count,
    equilibrium,
    prompts,
    settle,
    to_settle,
)
from agentsim.models import scripted
from agentsim.rpc.messages import Observation


def game(**parts: Any) -> GuessAverageSpec:
    text = json.dumps({"type": "guess_average", **parts})
    return GuessAverageSpec.model_validate_json(text, strict=True)


def played(
    spec: GuessAverageSpec, *groups: list[float], ok: list[bool] | None = None, **of: int
) -> Settlement:
    """A round in which the members of each group guess this, the first group's agents first."""
    values = np.array([guess for group in groups for guess in group])
    codes = np.repeat(np.arange(len(groups), dtype=np.uint32), [len(group) for group in groups])
    return settle(
        spec,
        agents=np.arange(values.size, dtype=np.uint32),
        values=values,
        ok=np.ones(values.size, np.bool_) if ok is None else np.array(ok),
        n=values.size,
        sides=Sides([str(i + 1) for i in range(len(groups))], codes),
        **{"seed": 1, "session": 1, "round": 1, **of},
    )


def between(**parts: Any) -> GuessAverageSpec:
    return game(groups={"count": 3, "scope": "between"}, **parts)


def pooled(**parts: Any) -> GuessAverageSpec:
    return game(groups={"count": 3, "scope": "pooled"}, **parts)


@given(st.data(), st.integers(1, 300), st.integers(0, 2**63 - 1), st.integers(1, 50))
def test_every_agent_is_in_one_group_and_sizes_differ_by_one_at_most(
    data: st.DataObject, n: int, seed: int, session: int
) -> None:
    count = data.draw(st.integers(1, n))
    spec = game(groups={"count": count, "scope": "separate"})
    grouping = by_count(spec, n, seed=seed, session=session)
    members = [grouping.members(group).tolist() for group in range(count)]
    assert sorted(agent for group in members for agent in group) == list(range(n))
    assert all(group == sorted(group) for group in members)
    assert {len(group) for group in members} <= {n // count, -(-n // count)}
    assert grouping.sizes == [len(group) for group in members]
    assert grouping.names == tuple(str(i + 1) for i in range(count))


def test_groups_are_a_function_of_seed_and_session() -> None:
    spec = game(groups={"count": 3})

    def codes(seed: int, session: int) -> list[int]:
        drawn = by_count(spec, 60, seed=seed, session=session).codes
        assert drawn is not None
        return drawn.tolist()

    assert codes(1, 1) == codes(1, 1)
    assert codes(1, 1) != codes(2, 1)
    assert codes(1, 1) != codes(1, 2)
    # Not contiguous, and not in turn.
    assert len(set(codes(1, 1)[:20])) == 3
    assert codes(1, 1) != [agent % 3 for agent in range(60)]


def test_a_scope_changes_nothing_about_who_is_in_which_group() -> None:
    drawn = [
        by_count(game(groups={"count": 7, "scope": scope}), 100, seed=3, session=2).codes
        for scope in ("pooled", "separate", "between")
    ]
    assert drawn[0].tolist() == drawn[1].tolist() == drawn[2].tolist()


def test_a_category_that_nobody_has_is_no_group() -> None:
    spec = game(groups={"by": "education", "scope": "separate"})
    grouping = by_category(spec, ["a", "b", "c"], np.array([2, 0, 2, 0, 0]))
    assert grouping.names == ("a", "c")
    assert grouping.members(1).tolist() == [0, 2]
    assert grouping.markets == 2


def test_the_published_round_of_three_groups() -> None:
    """Means of 39.36, 21.14 and 40.75: the winning number was 22.50, and the second group won."""
    result = played(between(), [30.0, 48.72], [21.14, 11.14, 31.14], [40.75])
    assert [group.mean for group in result.groups] == pytest.approx([39.36, 21.14, 40.75])
    assert result.target == pytest.approx(22.50)
    assert result.mean == pytest.approx(33.75)  # of the groups' means; of all guesses it is 30.48
    assert result.median == pytest.approx(39.36)
    assert result.winning_guess == pytest.approx(21.14)
    assert [group.winners for group in result.groups] == [0, 3, 0]
    assert result.payoffs.tolist() == pytest.approx([0, 0, 100 / 3, 100 / 3, 100 / 3, 0])
    assert result.announced == {"mean": result.mean, "target": result.target}
    assert [group.announced for group in result.groups] == [result.announced] * 3


def test_between_groups_n_counts_groups_also_those_without_a_number() -> None:
    spec = between(target="mean * (n - 1) / n")
    result = played(spec, [30.0], [60.0], [5.0], ok=[True, True, False])
    assert result.target == pytest.approx(45 * 2 / 3)
    assert result.groups[2].mean is None
    assert [group.winners for group in result.groups] == [1, 0, 0]


def test_only_members_with_a_valid_number_share_the_prize() -> None:
    result = played(between(), [20.0, 20.0, 99.0], [60.0], ok=[True, True, False, True])
    assert result.payoffs.tolist() == [50, 50, 0, 0]
    assert result.won.tolist() == [True, True, False, False]


@pytest.mark.parametrize(
    ("ties", "payoffs"),
    [("split", {(25, 25, 50)}), ("each", {(50, 50, 100)}), ("draw", {(50, 50, 0), (0, 0, 100)})],
)
def test_groups_that_tie_between_groups(ties: str, payoffs: set[tuple[float, ...]]) -> None:
    spec = between(target="median", winners={"ties": ties})
    drawn = {
        tuple(played(spec, [10.0, 30.0], [20.0], round=round).payoffs.tolist())
        for round in range(1, 30)
    }
    assert drawn == payoffs


def test_a_band_between_groups() -> None:
    spec = between(winners={"band": 5})
    result = played(spec, [30.0, 30.0], [34.0], [60.0])  # target 27.56
    assert result.won.tolist() == [True, True, True, False]
    assert result.payoffs.tolist() == [25, 25, 50, 0]


def test_nobody_wins_between_groups_without_a_number() -> None:
    result = played(between(), [1.0], [2.0], ok=[False, False])
    assert (result.target, result.mean, result.winning_guess) == (None, None, None)
    assert not result.won.any()


def test_pooled_groups_are_labels() -> None:
    groups = ([90.0, 15.0], [30.0, 45.0])
    result = played(pooled(), *groups)
    alone = settle(
        game(),
        agents=result.agents,
        values=result.values,
        ok=np.ones(4, np.bool_),
        n=4,
        seed=1,
        session=1,
        round=1,
    )
    for name in ("target", "mean", "median", "winning_guess", "announced"):
        assert getattr(result, name) == getattr(alone, name)
    assert result.payoffs.tolist() == alone.payoffs.tolist() == [0, 0, 100, 0]
    assert [(g.n, g.mean, g.median, g.winners) for g in result.groups] == [
        (2, 52.5, 52.5, 0),
        (2, 37.5, 37.5, 1),
    ]


@pytest.mark.parametrize("scope", ["pooled", "between"])
def test_a_group_is_told_its_own_averages_and_the_target_of_all(scope: str) -> None:
    spec = game(
        groups={"count": 2, "scope": scope},
        announce={"what": ["mean", "median", "target", "winning_guess"], "to": "group"},
    )
    result = played(spec, [10.0, 20.0, 60.0], [40.0])
    assert result.announced == {}
    first, second = (group.announced for group in result.groups)
    assert (first["mean"], first["median"]) == (30, 20)
    assert (second["mean"], second["median"]) == (40, 40)
    assert first["target"] == second["target"] == result.target
    assert first["winning_guess"] == second["winning_guess"] == result.winning_guess


def test_the_record_of_a_round_with_groups() -> None:
    result = played(pooled(), [10.0, 99.0], [30.0], ok=[True, False, True])
    record = to_settle(
        result,
        statuses={"ok": 2, "empty": 1},
        group_statuses=[{"ok": 1, "empty": 1}, {"ok": 1, "empty": 0}],
        wall_s=1.0,
    )
    assert [(g.name, g.n, g.statuses, g.mean, g.winners) for g in record.groups] == [
        ("1", 2, {"ok": 1, "empty": 1}, 10.0, 1),
        ("2", 1, {"ok": 1}, 30.0, 0),
    ]
    assert (record.market, record.markets) == (0, 1)


def test_a_separate_market_is_the_same_market_alone() -> None:
    """Draws are by agent: with the same agents, it does not matter that others play beside."""
    model = LevelK(backend="level_k")
    separate = game(groups={"count": 2, "scope": "separate"})
    agents = by_count(separate, 31, seed=5, session=1).members(1)
    rounds: list[list[list[float]]] = []
    for spec, group in ((separate, 2), (game(), 0)):
        players = scripted.build(model, spec.rule, seed=5)
        announced: dict[str, float] = {}
        rounds.append([])
        for round in (1, 2, 3):
            values = players.values(agents, Observation(1, round, agents.size, announced, group))
            result = settle(
                spec,
                agents=agents,
                values=values,
                ok=np.ones(agents.size, np.bool_),
                n=agents.size,
                seed=5,
                session=1,
                round=round,
            )
            announced = result.announced
            rounds[-1].append([*values.tolist(), result.target or 0, *result.payoffs.tolist()])
    assert rounds[0] == rounds[1]


@pytest.mark.parametrize(
    ("groups", "guesses", "words"),
    [
        ({"count": 20, "scope": "separate"}, (0.0,), "with two players 0 is dominant"),
        ({"count": 3, "scope": "separate"}, (0.0,), "0"),
        ({"count": 3, "scope": "between"}, (0.0,), "0"),
        ({"count": 40, "scope": "pooled"}, (0.0,), "0"),
    ],
)
def test_equilibria(groups: Any, guesses: tuple[float, ...], words: str) -> None:
    found = equilibrium(game(groups=groups), 40)
    assert found.guesses == guesses
    assert found.words.startswith(words)


def test_equilibria_of_markets_of_two_sizes_are_both_told() -> None:
    found = equilibrium(game(groups={"count": 2, "scope": "separate"}), 5)
    assert found.guesses == (0.0,)
    assert found.words.startswith("in a group of 2: with two players 0 is dominant")
    assert found.words.endswith("; in a group of 3: 0")


OWN = Membership(2, ["1", "2", "3"], [14, 13, 13])


def rules(spec: GuessAverageSpec, own: Membership | None = OWN, prompt: Any = "direct") -> str:
    return prompts.system(spec, 40, prompt, "Ann." if prompt == "character" else None, own)


def test_without_groups_nobody_is_told_of_any() -> None:
    assert "group" not in rules(game(), None)
    assert rules(game(), None) == rules(pooled())


def test_players_of_a_group_are_told_whom_they_play_for() -> None:
    text = rules(between(winners={"band": 2}))
    assert "3 groups: group 1 has 14 players, group 2 has 13 players and group 3 has 13" in text
    assert "You play for group 2." in text
    assert "- A group's number is the average of its players' numbers." in text
    assert "- The target is two thirds of the average of the groups' numbers." in text
    assert (
        "- The group whose number is closest to the target wins a prize of 100 points, which"
        in (text)
    )
    assert "Every group whose number is at most 2 farther from the target" in text
    assert "everybody is told the average of the groups' numbers and the target." in text


def test_players_of_separate_markets_are_told_that_others_do_not_matter() -> None:
    text = rules(game(groups={"count": 3, "scope": "separate"}))
    assert "There are 3 groups. You are in group 2. Each group plays a game of its own" in text
    assert "- The target is two thirds of the average of all numbers." in text


def test_groups_that_are_told_their_own_numbers() -> None:
    spec = pooled(announce={"what": ["mean", "target"], "to": "group"})
    assert "each player is told the average of its own group's numbers and the target" in rules(
        spec
    )
    text = prompts.question(spec, 2, {"mean": 30.0, "target": 20.0})
    assert "In round 1 the average of your group's numbers was 30 and the target was 20." in text
    table = prompts.table(spec, [{"mean": 30.0, "target": 20.0}], [25.0])
    assert "Round 1: average of your group 30, target 20, your number 25" in table


def test_only_character_tells_what_a_group_of_an_attribute_is_called() -> None:
    spec = game(groups={"by": "education", "scope": "between"})
    own = Membership(1, ["primary", "phd"], [3, 2])
    assert "primary" not in rules(spec, own)
    assert "You play for group 1." in rules(spec, own)
    text = rules(spec, own, "character")
    assert "the group of primary has 3 players and the group of phd has 2 players" in text
    assert "You play for the group of primary." in text


def test_many_groups_are_not_listed() -> None:
    own = Membership(3, [str(i) for i in range(1, 9)], [4] * 4 + [3] * 4)
    assert "The players are in 8 groups of 3 to 4 players." in rules(between(), own)
    own = Membership(3, [str(i) for i in range(1, 9)], [1] * 8)
    assert "The players are in 8 groups of 1 player each." in rules(between(), own)


def checked(spec: GuessAverageSpec, backend: str, agents: int) -> list[str]:
    scenario = {
        "name": "x",
        "agents": agents,
        "rounds": 1,
        "game": {},
        "model": {"backend": backend},
    }
    whole = Scenario.model_validate_json(json.dumps(scenario), strict=True)
    return [f"{'.'.join(map(str, item.path))}: {item.message}" for item in spec.findings(whole)]


def test_theory_is_checked_for_the_size_of_a_market() -> None:
    """With a factor of 2.5, 3 players have a best reply and 2 have none."""
    parts = {"range": [-100, 100], "target": "2.5 * mean"}
    assert checked(game(**parts), "level_k", 8) == []
    two = game(**parts, groups={"count": 4, "scope": "separate"})
    assert len(checked(two, "level_k", 8)) == 1
    assert "a group of 2" in checked(two, "level_k", 8)[0]
    assert "a group of 2" in checked(two, "level_k", 11)[0]
    assert checked(two, "level_k", 12) == []
    assert checked(game(**parts, groups={"count": 4}), "level_k", 8) == []


def test_there_is_no_theory_between_groups() -> None:
    (finding,) = checked(between(), "cognitive_hierarchy", 9)
    assert finding.startswith("game.groups.scope: there is no theory of a game between groups")
    assert checked(between(), "random", 9) == []
    assert (between().rule.slope, between().rule.intercept) == (None, None)
