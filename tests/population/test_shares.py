"""What was asked for and what was drawn stand side by side."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from scipy import stats

from agentsim.config.population import Population
from agentsim.population import (
    describe,
    expected,
    marginals,
    read_personas,
    sample,
    write_personas,
)


def test_expected_values_are_those_of_the_distributions(adults: Population) -> None:
    asked = expected(adults)
    assert list(asked) == list(adults.attributes)
    assert asked["education"]["shares"] == pytest.approx(
        {"primary": 0.1, "secondary": 0.4, "bachelor": 0.3, "master": 0.15, "phd": 0.05}
    )
    reference = stats.truncnorm(-23.5 / 15, 49.5 / 15, loc=41, scale=15)
    assert asked["age"]["mean"] == pytest.approx(reference.mean(), abs=0.01)
    assert (asked["age"]["low"], asked["age"]["high"]) == (18, 90)
    assert asked["risk_tolerance"]["mean"] == pytest.approx(0.5)
    assert asked["risk_tolerance"]["sd"] == pytest.approx(12**-0.5, rel=1e-4)
    assert asked["risk_tolerance"]["quantiles"]["0.05"] == pytest.approx(0.05, abs=1e-4)
    assert asked["income"]["mean"] == pytest.approx(0.3 * 10e3 + 0.5 * 35e3 + 0.2 * 125e3)


def test_shares_that_miss_one_by_a_hair_are_relative(build: Any) -> None:
    thirds = build(side={"categories": {"a": 0.3333333, "b": 0.3333333, "c": 0.3333333}})
    assert sum(expected(thirds)["side"]["shares"].values()) == pytest.approx(1, abs=1e-15)


def test_drawn_marginals_meet_what_was_asked(adults: Population) -> None:
    drawn, asked = marginals(sample(adults, 2000, seed=1, session=1)), expected(adults)
    assert drawn["education"] == {"shares": pytest.approx(asked["education"]["shares"])}
    for name in ("age", "income", "risk_tolerance"):
        assert drawn[name]["mean"] == pytest.approx(asked[name]["mean"], rel=2e-3)
        assert drawn[name]["sd"] == pytest.approx(asked[name]["sd"], rel=5e-3)
        assert drawn[name]["quantiles"] == pytest.approx(asked[name]["quantiles"], rel=0.02)
    assert json.loads(json.dumps(drawn)) == drawn


def test_categories_that_nobody_has_are_listed(build: Any) -> None:
    population = build(side={"categories": {"a": 0.9, "b": 0.1}})
    assert marginals(sample(population, 1, seed=1, session=1))["side"]["shares"] == {
        "a": 1.0,
        "b": 0.0,
    }


def test_the_file_has_the_marginals_of_the_draw(adults: Population, tmp_path: Path) -> None:
    write_personas(tmp_path / "p.parquet", adults, agents=50, sessions=2, seed=1)
    table = read_personas(tmp_path / "p.parquet", session=2)
    assert marginals(table) == marginals(sample(adults, 50, seed=1, session=2))


def test_nobody_has_no_marginals(adults: Population) -> None:
    empty = marginals(sample(adults, 0, seed=1, session=1))
    assert empty["age"] == {}
    assert set(empty["education"]["shares"].values()) == {0.0}


def test_a_population_is_described_line_by_line(build: Any) -> None:
    population = build(
        allocation="random",
        education={"categories": {"primary\nschool": 0.25, "phd": 0.75}},
        age={"integer": {"normal": {"mean": 41, "sd": 15, "low": 18, "high": 90}}},
        income={"real": {"histogram": {"edges": [0, 20000, 50000], "shares": [0.3, 0.7]}}},
        risk={"real": {"uniform": {"low": 0, "high": 0.5}}},
    )
    assert describe(population).splitlines() == [
        "education: primary school 25 %, phd 75 %",
        "age: whole number, normal with mean 41 and sd 15, truncated to 18 to 90",
        "income: real number, histogram: 0 to 20000 30 %, 20000 to 50000 70 %",
        "risk: real number, uniform from 0 to 0.5",
        "allocation: random (every agent draws for itself)",
    ]
    quota = population.model_copy(update={"allocation": "quota"})
    assert describe(quota).splitlines()[-1].startswith("allocation: quota")
