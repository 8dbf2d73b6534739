"""The `game:` part: its defaults, and what it finds wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import ValidationError

from agentsim.config.scenario import Scenario
from agentsim.games import GAMES
from agentsim.games.guess_average import PEOPLE, GuessAverageSpec

CH = {"backend": "cognitive_hierarchy"}
RANDOM = {"backend": "random"}


def game(**parts: Any) -> GuessAverageSpec:
    text = json.dumps({"type": "guess_average", **parts})
    return GuessAverageSpec.model_validate_json(text, strict=True)


def found(spec: GuessAverageSpec, **parts: Any) -> list[tuple[tuple[str, ...], str]]:
    """Places and codes of all findings."""
    scenario = {"name": "x", "agents": 18, "rounds": 1, "game": {}, "model": RANDOM, **parts}
    checked = Scenario.model_validate_json(json.dumps(scenario), strict=True)
    return [(tuple(map(str, each.path)), each.code) for each in spec.findings(checked)]


def test_the_games_are_known_by_name() -> None:
    assert dict(GAMES) == {"guess_average": GuessAverageSpec}


def test_defaults_are_the_classic_game() -> None:
    spec = game()
    assert (spec.rule.low, spec.rule.high) == (0, 100)
    assert (spec.rule.slope, spec.rule.intercept) == (2 / 3, 0)
    assert spec.rule.announce == ("mean", "target")
    assert (spec.winners.ties, spec.winners.prize, spec.winners.band) == ("split", 100, 0)
    assert found(spec) == []


@pytest.mark.parametrize(
    "parts",
    [
        {"range": [0]},
        {"range": [0, 50, 100]},
        {"range": ["0", 100]},
        {"announce": ["average"]},
        {"announce": "mean"},
        {"target": 3},
        {"winners": {"ties": "all"}},
        {"winners": {"prize": -1}},
        {"winners": {"band": -1}},
        {"groups": {"count": 0}},
        {"groups": {"count": 3, "by": "education"}},
        {"groups": {"count": 3, "scope": "all"}},
        {"groups": 3},
        {"announce": {"what": "mean"}},
        {"announce": {"to": "own"}},
        {"type": "guess"},
        {"p": 0.5},
    ],
)
def test_wrong_types_and_words_are_refused(parts: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        game(**parts)


@pytest.mark.parametrize("text", ["[0, 1e999]", "[NaN, 1]", "[-Infinity, 1]"])
def test_the_range_is_finite(text: str) -> None:
    with pytest.raises(ValidationError):
        GuessAverageSpec.model_validate_json(
            f'{{"type": "guess_average", "range": {text}}}', strict=True
        )


@pytest.mark.parametrize(
    ("parts", "place", "code"),
    [
        ({"range": [100, 0]}, ("game", "range"), "contradiction"),
        ({"range": [5, 5]}, ("game", "range"), "contradiction"),
        ({"range": [-1e308, 1e308]}, ("game", "range"), "out-of-range"),
        ({"target": "2/3 * average"}, ("game", "target"), "bad-expression"),
        ({"target": "__import__('os')"}, ("game", "target"), "bad-expression"),
        ({"announce": ["mean", "mean"]}, ("game", "announce"), "contradiction"),
    ],
)
def test_findings(parts: dict[str, Any], place: tuple[str, ...], code: str) -> None:
    assert found(game(**parts)) == [(place, code)]


def test_all_findings_at_once() -> None:
    spec = game(range=[9, 1], target="mean(", announce=["mean", "mean"])
    assert len(found(spec, model=CH, compare="nagel-1995")) == 3


@pytest.mark.parametrize("model", [CH, {"backend": "level_k"}])
@pytest.mark.parametrize(
    "target", ["2/3 * median", "mean ** 2 / 100", "2/3 * mean * n/(n+1)", "18 * mean"]
)
def test_theory_needs_a_rule_with_a_derivation(model: dict[str, str], target: str) -> None:
    assert found(game(target=target), model=model) == [(("game", "target"), "contradiction")]
    assert found(game(target=target)) == []  # other players do not


@pytest.mark.parametrize(
    ("target", "agents", "count"),
    [("2/3 * mean", 2, 0), ("mean", 2, 1), ("mean", 1, 1), ("2/3 * mean", 1, 0), ("mean", 3, 0)],
)
def test_theory_in_small_markets(target: str, agents: int, count: int) -> None:
    assert len(found(game(target=target), model=CH, agents=agents)) == count


@pytest.mark.parametrize(
    "parts",
    [{"target": "1/2 * mean"}, {"target": "2/3 * median"}, {"range": [1, 100]}, {"range": [0, 10]}],
)
def test_people_are_compared_with_their_own_game_alone(parts: dict[str, Any]) -> None:
    assert found(game(**parts), compare="nagel-1995") == [(("compare",), "contradiction")]


@pytest.mark.parametrize("target", ["2/3 * mean", "mean * 2 / 3", "mean - mean / 3"])
def test_the_same_game_in_other_words_can_be_compared(target: str) -> None:
    assert found(game(target=target), compare="nagel-1995") == []


def test_people_are_as_published() -> None:
    path = Path(__file__).parents[1] / "data" / "human_results.yaml"
    published = yaml.safe_load(path.read_text(encoding="utf-8"))["nagel_1995"]["p_2_3"]
    people = PEOPLE["nagel-1995"]
    assert list(people.means) == published["session_4_means"]
    assert list(people.medians) == published["session_4_medians"]
    assert people.first_round_mean == published["mean"]
    assert people.first_round_n == published["n"]
