"""Settling a round: target, winners, ties, payoffs, what is announced."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentsim.games.guess_average import GuessAverageSpec, Settlement, settle, to_settle


def game(**parts: Any) -> GuessAverageSpec:
    text = json.dumps({"type": "guess_average", **parts})
    return GuessAverageSpec.model_validate_json(text, strict=True)


def played(
    values: list[float],
    spec: GuessAverageSpec | None = None,
    ok: list[bool] | None = None,
    **of: int,
) -> Settlement:
    return settle(
        spec or game(),
        agents=np.arange(len(values), dtype=np.uint32),
        values=np.asarray(values, dtype=np.float64),
        ok=np.asarray([True] * len(values) if ok is None else ok, dtype=np.bool_),
        n=of.pop("n", len(values)),
        **{"seed": 1, "session": 1, "round": 1, **of},
    )


def test_a_round_by_hand() -> None:
    result = played([90, 15, 30, 45])
    assert result.mean == 45
    assert result.median == 37.5
    assert result.target == pytest.approx(30)
    assert result.winning_guess == 30
    assert result.won.tolist() == [False, False, True, False]
    assert result.payoffs.tolist() == [0, 0, 100, 0]
    assert result.announced == {"mean": 45, "target": result.target}


def test_the_winner_is_the_closest_whichever_side_it_is_on() -> None:
    assert played([0, 30, 60]).agents[played([0, 30, 60]).won].tolist() == [1]
    above = played([10, 10, 25])  # mean 15, target 10
    assert above.won.tolist() == [True, True, False]


def test_answers_that_are_not_valid_count_nowhere() -> None:
    result = played([10, 99, np.nan, 20], ok=[True, False, False, True])
    assert result.mean == 15
    assert result.target == pytest.approx(10)
    assert result.won.tolist() == [True, False, False, False]
    assert np.isnan(result.values[1:3]).all()
    assert result.values[[0, 3]].tolist() == [10, 20]
    assert result.n == 4


def test_nobody_wins_when_no_answer_is_valid() -> None:
    result = played([5, np.nan], ok=[False, False])
    assert (result.mean, result.median, result.target, result.winning_guess) == (None,) * 4
    assert not result.won.any()
    assert not result.payoffs.any()
    assert result.announced == {}


def test_nobody_wins_when_the_target_has_no_value() -> None:
    result = played([7.0], game(target="mean / (n - 1)"))
    assert result.target is None
    assert result.mean == 7
    assert not result.won.any()
    assert result.announced == {"mean": 7}


def test_no_agents_at_all() -> None:
    assert played([]).target is None


def test_n_of_the_target_is_the_size_of_the_market() -> None:
    spec = game(target="mean * n / (n + 1)")
    assert played([50, 50, 50], spec, ok=[True, True, False], n=3).target == 37.5


def test_guesses_that_are_equally_far_tie_in_spite_of_rounding() -> None:
    # Mean 30.3, target 2/3 of it: not 20.2 to the last bit, and the two differ by rounding alone.
    values = [20.1, 20.3, 50.5]
    result = played(values)
    assert result.target == pytest.approx(20.2)
    distances = [abs(value - (result.target or 0)) for value in values[:2]]
    assert distances[0] != distances[1]
    assert result.won.tolist() == [True, True, False]
    assert result.winning_guess == 20.1


def test_guesses_that_differ_do_not_tie() -> None:
    assert played([20.0, 20.0 + 1e-9, 50.0], game(target="20 + 0 * mean")).won.sum() == 1


def test_a_band_lets_more_guesses_win() -> None:
    spec = game(target="20 + 0 * mean", winners={"band": 2.0})
    result = played([21, 17.5, 22.9, 16.9, 23.1], spec)
    assert result.won.tolist() == [True, True, True, False, False]
    assert result.winning_guess == 21


@pytest.mark.parametrize(("ties", "payoffs"), [("split", [50, 50, 0]), ("each", [100, 100, 0])])
def test_several_winners(ties: str, payoffs: list[float]) -> None:
    result = played([20, 20, 50], game(winners={"ties": ties}))
    assert result.won.tolist() == [True, True, False]
    assert result.payoffs.tolist() == payoffs


def test_one_of_several_winners_is_drawn() -> None:
    spec = game(target="20 + 0 * mean", winners={"ties": "draw"})
    drawn = [played([15, 25, 20, 20, 20], spec, round=r).won for r in range(1, 301)]
    assert all(won.sum() == 1 for won in drawn)
    counts = np.sum(drawn, axis=0)
    assert counts[:2].tolist() == [0, 0]
    assert counts[2:].min() > 70  # 100 expected, standard deviation 8
    again = played([15, 25, 20, 20, 20], spec, round=7)
    assert np.array_equal(again.won, drawn[6])
    assert again.payoffs.sum() == 100


def test_what_is_announced_and_in_which_order() -> None:
    spec = game(announce=["winning_guess", "median"])
    assert list(played([90, 15, 30, 45], spec).announced.items()) == [
        ("winning_guess", 30.0),
        ("median", 37.5),
    ]
    assert played([90, 15], game(announce=[])).announced == {}


def test_an_agent_cannot_answer_twice() -> None:
    with pytest.raises(ValueError, match="twice"):
        settle(
            game(),
            agents=np.array([3, 1, 3], dtype=np.uint32),
            values=np.array([1.0, 2.0, 3.0]),
            ok=np.array([True, True, True]),
            n=3,
            seed=1,
            session=1,
            round=1,
        )


@pytest.mark.parametrize("value", [-0.001, 100.001, np.nan, np.inf])
def test_a_valid_guess_outside_the_range_is_a_bug(value: float) -> None:
    with pytest.raises(ValueError, match="outside"):
        played([10, value])


def test_the_record_of_a_round() -> None:
    record = to_settle(
        played([20, 99, 50, 20], ok=[True, False, True, True]),
        statuses={"ok": 3, "empty": 1, "failed": 0},
        wall_s=1.5,
    )
    assert record.statuses == {"ok": 3, "empty": 1}
    assert record.winners == [0, 3]
    assert record.payoffs == [50, 50]
    assert record.mean == 30
    assert record.n == 4
    assert record.winning_guess == 20
    assert record.wall_s == 1.5


GUESSES = st.lists(st.one_of(st.none(), st.floats(0, 100)), min_size=1, max_size=30)
SPECS = st.builds(
    lambda target, ties, band, prize: game(
        target=target, winners={"ties": ties, "band": band, "prize": prize}
    ),
    st.sampled_from(["2/3 * mean", "5 + mean / 2", "2/3 * median", "4/3 * mean"]),
    st.sampled_from(["split", "each", "draw"]),
    st.sampled_from([0.0, 3.0]),
    st.sampled_from([0.0, 7.0, 100.0]),
)


@given(guesses=GUESSES, spec=SPECS)
def test_winners_and_payoffs(guesses: list[float | None], spec: GuessAverageSpec) -> None:
    ok = [guess is not None for guess in guesses]
    result = played([guess if guess is not None else np.nan for guess in guesses], spec, ok)
    winners, prize = int(result.won.sum()), spec.winners.prize
    if not any(ok):
        assert winners == 0
        return
    assert result.target is not None
    distance = np.abs(result.values - result.target)
    least = np.nanmin(distance)
    assert winners >= 1
    assert not result.won[~np.asarray(ok)].any()
    assert np.all(distance[result.won] <= least + spec.winners.band + 1e-9)
    if spec.winners.ties != "draw":
        assert np.all(result.won[distance <= least + spec.winners.band])
        assert result.winning_guess is not None
        assert abs(result.winning_guess - result.target) == pytest.approx(least, abs=1e-9)
    paid = prize * winners if spec.winners.ties == "each" else prize
    assert result.payoffs.sum() == pytest.approx(paid)
    assert not result.payoffs[~result.won].any()


@given(guesses=GUESSES, spec=SPECS, data=st.data())
def test_the_result_does_not_depend_on_the_order_of_answers(
    guesses: list[float | None], spec: GuessAverageSpec, data: st.DataObject
) -> None:
    order = np.asarray(data.draw(st.permutations(range(len(guesses)))), dtype=np.uint32)
    values = np.asarray([guess if guess is not None else np.nan for guess in guesses])
    ok = ~np.isnan(values)
    first = played(values.tolist(), spec, ok.tolist())
    second = settle(
        spec,
        agents=order,
        values=values[order],
        ok=ok[order],
        n=len(guesses),
        seed=1,
        session=1,
        round=1,
    )
    assert second.agents.tolist() == first.agents.tolist()
    assert np.array_equal(second.values, first.values, equal_nan=True)
    assert np.array_equal(second.won, first.won)
    assert np.array_equal(second.payoffs, first.payoffs)
    wall = {"statuses": {}, "wall_s": 0.0}
    assert to_settle(second, **wall) == to_settle(first, **wall)
