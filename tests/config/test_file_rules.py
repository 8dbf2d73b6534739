"""Rules of the file models beyond types and bounds."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from agentsim.config import Population
from agentsim.config.codes import CODES
from agentsim.config.models import Dummy, LevelK, OpenAI


def errors(model: type[BaseModel], **data: Any) -> list[str]:
    try:
        model.model_validate_json(json.dumps(data), strict=True)
    except ValidationError as error:
        return [item["type"] for item in error.errors()]
    return []


def attribute(**data: Any) -> list[str]:
    return errors(Population, attributes={"a": data})


@pytest.mark.parametrize(
    ("shares", "codes"),
    [
        ({"a": 0.1, "b": 0.2, "c": 0.7}, []),
        ({"a": 1 / 3, "b": 1 / 3, "c": 1 / 3}, []),
        ({"a": 0.333333, "b": 0.333333, "c": 0.333334}, []),
        ({"a": 1.0 + 9e-7}, []),
        ({"a": 1.0 + 2e-6}, ["shares-sum"]),
        ({"a": 0.5}, ["shares-sum"]),
        ({"a": 0.0}, ["shares-sum"]),
        ({"a": 2, "b": -1}, ["greater_than_equal"]),
        ({str(i): 0.001 for i in range(1000)}, []),
    ],
)
def test_shares_sum_to_one(shares: dict[str, float], codes: list[str]) -> None:
    assert attribute(categories=shares) == codes
    assert errors(
        LevelK, backend="level_k", levels=dict(zip("012", shares.values(), strict=False))
    ) == (codes if len(shares) <= 3 else ["shares-sum"])


@pytest.mark.parametrize("level", ["0", "7", "100"])
def test_levels(level: str) -> None:
    assert errors(LevelK, backend="level_k", levels={level: 1}) == []


@pytest.mark.parametrize("level", ["-1", "01", "1.0", "one", "101", "1e1", "", "٣"])
def test_what_is_no_level(level: str) -> None:
    assert errors(LevelK, backend="level_k", levels={level: 1}) == ["out-of-range"]


@pytest.mark.parametrize(
    ("low", "high", "codes"),
    [
        (0, 1, []),
        (1, 1, ["contradiction"]),
        (2, 1, ["contradiction"]),
        (-1e308, 1e308, ["out-of-range"]),
    ],
)
def test_bounds(low: float, high: float, codes: list[str]) -> None:
    assert attribute(real={"uniform": {"low": low, "high": high}}) == codes


@pytest.mark.parametrize(
    ("low", "high", "codes"),
    [
        (-10, 10, []),
        (4, 5, []),
        (-5, -4, []),
        (5, 6, ["contradiction"]),
        (-6, -5, ["contradiction"]),
        (1e-9, 2e-9, ["contradiction"]),
        (1, 1.0001, []),
        (1e300, 1e301, ["contradiction"]),
    ],
)
def test_a_normal_keeps_some_mass(low: float, high: float, codes: list[str]) -> None:
    assert attribute(real={"normal": {"mean": 0, "sd": 1, "low": low, "high": high}}) == codes


@pytest.mark.parametrize(
    ("edges", "shares", "codes"),
    [
        ([0, 1, 2], [0.5, 0.5], []),
        ([0, 1, 1], [0.5, 0.5], ["bad-value"]),
        ([0, 2, 1], [0.5, 0.5], ["bad-value"]),
        ([0, 1], [0.5, 0.5], ["contradiction"]),
        ([0, 1, 2, 3], [0.5, 0.5], ["contradiction"]),
        ([0, 1, 2], [0.5, 0.6], ["shares-sum"]),
        ([2, 1, 0], [0.5, 0.6], ["bad-value", "shares-sum"]),
        ([-1e308, 1e308], [1], ["out-of-range"]),
        ([0], [1], ["too_short"]),
        ([0, 1], [], ["too_short"]),
    ],
)
def test_histograms(edges: list[float], shares: list[float], codes: list[str]) -> None:
    assert attribute(real={"histogram": {"edges": edges, "shares": shares}}) == codes


@pytest.mark.parametrize(
    ("distribution", "codes"),
    [
        ({"uniform": {"low": 0.5, "high": 1}}, []),
        ({"uniform": {"low": 0.2, "high": 0.8}}, ["bad-value"]),
        ({"normal": {"mean": 0, "sd": 1, "low": 0.2, "high": 0.8}}, ["bad-value"]),
        ({"histogram": {"edges": [0, 1, 2], "shares": [0.5, 0.5]}}, []),
        ({"histogram": {"edges": [0.5, 1, 2], "shares": [0.5, 0.5]}}, ["bad-value"]),
        ({"histogram": {"edges": [0.5, 1, 2], "shares": [0, 1]}}, []),
        ({"histogram": {"edges": [0.5, 1], "shares": [1]}}, []),
        ({"uniform": {"low": 0, "high": 1e16}}, ["out-of-range"]),
    ],
)
def test_integers_have_whole_numbers_to_take(
    distribution: dict[str, Any], codes: list[str]
) -> None:
    assert attribute(integer=distribution) == codes


def test_kinds_of_attributes() -> None:
    assert attribute(gamma={}) == ["no-kind"]
    assert attribute(integer={"gamma": {}}) == ["no-kind"]
    assert errors(Population, attributes={"a": 3, "b": [], "c": None}) == ["no-kind"] * 3
    assert attribute(categories={"a": 1}, integer={}) == ["extra_forbidden"]
    assert errors(Population, attributes={}) == ["too_short"]


def test_attributes_built_in_python_are_accepted() -> None:
    population = Population.model_validate_json(
        '{"attributes": {"a": {"real": {"uniform": {"low": 0, "high": 1}}}}}', strict=True
    )
    assert Population(attributes=population.attributes) == population
    assert Population.model_validate(population.model_dump()) == population


def test_jitter_is_at_most_thinking_time() -> None:
    assert errors(Dummy, backend="dummy", think_s=1, jitter_s=1) == []
    assert errors(Dummy, backend="dummy", think_s=1, jitter_s=1.1) == ["contradiction"]
    assert errors(Dummy, backend="dummy", jitter_s=1.1) == ["contradiction"]
    assert errors(Dummy, backend="dummy", think_s="x", jitter_s=1.1) == ["float_type"]


@pytest.mark.parametrize(
    ("url", "codes"),
    [
        ("http://127.0.0.1:8000/v1", []),
        ("https://host/v1?x=a@b", []),
        ("https://me:pw@host/v1", ["secret-in-file"]),
        ("https://key@host/v1", ["secret-in-file"]),
        ("https://[::1", ["bad-value"]),
        ("host/v1", ["string_pattern_mismatch"]),
        ("https:///v1", ["string_pattern_mismatch"]),
    ],
)
def test_addresses(url: str, codes: list[str]) -> None:
    assert errors(OpenAI, backend="openai", name="m", base_url=url) == codes


@pytest.mark.parametrize("name", ["sk-123", "openai_key", "", "1KEY", "A B", "KEY\n"])
def test_what_is_no_name_of_a_variable(name: str) -> None:
    assert errors(OpenAI, backend="openai", name="m", api_key_env=name) == [
        "string_pattern_mismatch"
    ]


def test_codes_are_kebab_case_words() -> None:
    assert all(code == code.lower() and "_" not in code for code in CODES)
