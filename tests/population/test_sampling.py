"""What is drawn: exact, fair, independent, and a function of seed and session alone."""

from __future__ import annotations

import time
from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from example_counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from agentsim.config.population import Population
from agentsim.errors import UserError
from agentsim.population import check, sample

EDUCATION = [1, 2, 1, 2, 2, 1, 0, 1, 2, 3, 1, 3]
AGES = [39, 51, 32, 45, 74, 42, 36, 61, 55, 24, 29, 48]


def numbers(table: pa.Table, name: str) -> np.ndarray:
    column: Any = table.column(name)
    if pa.types.is_dictionary(column.type):
        column = column.combine_chunks().indices
    return np.asarray(column.to_numpy())


def test_columns_follow_the_file(adults: Population) -> None:
    table = sample(adults, 40, seed=7, session=1)
    named = pa.dictionary(pa.int32(), pa.string())
    assert dict(zip(table.column_names, table.schema.types, strict=True)) == {
        "education": named,
        "age": pa.int64(),
        "gender": named,
        "income": pa.float64(),
        "risk_tolerance": pa.float64(),
    }
    assert table.column_names == list(adults.attributes)
    assert table.column("education").chunk(0).dictionary.to_pylist() == [
        "primary",
        "secondary",
        "bachelor",
        "master",
        "phd",
    ]
    assert len(table) == 40


def test_quotas_are_met(adults: Population) -> None:
    table = sample(adults, 40, seed=7, session=1)
    assert Counter(table.column("education").to_pylist()) == {
        "primary": 4,
        "secondary": 16,
        "bachelor": 12,
        "master": 6,
        "phd": 2,
    }
    assert np.histogram(numbers(table, "income"), [0, 20e3, 50e3, 200e3])[0].tolist() == [12, 20, 8]
    assert np.histogram(numbers(table, "risk_tolerance"), 40, (0, 1))[0].tolist() == [1] * 40


@settings(max_examples=examples(60), deadline=None)
@given(n=st.integers(1, 3000), session=st.integers(1, 10_000))
def test_every_marginal_is_rounded_down_or_up_for_any_n(
    adults: Population, n: int, session: int
) -> None:
    table = sample(adults, n, seed=3, session=session)
    education = np.bincount(numbers(table, "education"), minlength=5)
    assert education.sum() == n
    assert (np.abs(education - n * np.array([0.1, 0.4, 0.3, 0.15, 0.05])) < 1).all()
    ages = np.bincount(numbers(table, "age"), minlength=91)
    mass = np.diff(stats.norm(41, 15).cdf(np.arange(17.5, 91)))
    expected = n * np.concatenate([np.zeros(18), mass / mass.sum()])
    assert (np.abs(ages - expected) < 1 + 1e-6).all()
    assert (np.abs(np.cumsum(ages) - np.cumsum(expected)) < 1 + 1e-6).all()
    income = np.histogram(numbers(table, "income"), [0, 20e3, 50e3, 200e3])[0]
    assert (np.abs(income - n * np.array([0.3, 0.5, 0.2])) < 1 + 1e-6).all()


def test_ties_favour_no_category_over_sessions(build: Any) -> None:
    four = build(side={"categories": dict.fromkeys("abcd", 0.25)})
    drawn = [
        sample(four, 1, seed=5, session=session).column("side")[0].as_py()
        for session in range(1, 2001)
    ]
    counts = Counter(drawn)
    assert stats.chisquare([counts[side] for side in "abcd"]).pvalue > 1e-4


def test_small_sessions_keep_the_shape_of_numbers(adults: Population) -> None:
    tables = [sample(adults, 5, seed=2, session=session) for session in range(1, 401)]
    ages = np.concatenate([numbers(table, "age") for table in tables])
    reference = stats.truncnorm((17.5 - 41) / 15, (90.5 - 41) / 15, loc=41, scale=15)
    assert ages.mean() == pytest.approx(reference.mean(), abs=0.5)
    assert ages.std() == pytest.approx(reference.std(), abs=1.0)
    assert np.mean(ages >= 70) == pytest.approx(reference.sf(69.5), abs=0.015)
    income = np.concatenate([numbers(table, "income") for table in tables])
    shares = np.histogram(income, [0, 20e3, 50e3, 200e3])[0] / len(income)
    assert shares == pytest.approx([0.3, 0.5, 0.2], abs=0.02)


@pytest.mark.parametrize("allocation", ["quota", "random"])
def test_attributes_are_independent(adults: Population, allocation: str) -> None:
    population = adults.model_copy(update={"allocation": allocation})
    n = 20_000
    table = sample(population, n, seed=11, session=1)
    columns = np.array([numbers(table, name) for name in table.column_names])
    correlations = np.corrcoef(columns)[np.triu_indices(len(columns), 1)]
    assert np.abs(correlations).max() < 4.5 / np.sqrt(n)
    crossed = np.histogram2d(columns[0], columns[2], [5, 2])[0]
    assert stats.chi2_contingency(crossed).pvalue > 1e-3
    # Nor do they depend on the agent's number, by which groups and workers are formed.
    order = np.arange(n)
    assert max(abs(np.corrcoef(order, column)[0, 1]) for column in columns) < 4.5 / np.sqrt(n)


@pytest.mark.parametrize("allocation", ["quota", "random"])
def test_sessions_and_seeds_differ_and_repeat(adults: Population, allocation: str) -> None:
    population = adults.model_copy(update={"allocation": allocation})
    first = sample(population, 200, seed=7, session=1)
    assert sample(population, 200, seed=7, session=1).equals(first)
    for other in (
        sample(population, 200, seed=7, session=2),
        sample(population, 200, seed=8, session=1),
    ):
        for name in first.column_names:
            assert not other.column(name).equals(first.column(name))
            together = np.corrcoef(numbers(first, name), numbers(other, name))[0, 1]
            assert abs(together) < 4.5 / np.sqrt(200)


def test_a_seed_means_the_same_people_for_ever(adults: Population) -> None:
    table = sample(adults, 12, seed=7, session=1)
    assert numbers(table, "education").tolist() == EDUCATION
    assert numbers(table, "age").tolist() == AGES


def test_an_attribute_at_the_end_leaves_the_others_alone(adults: Population, build: Any) -> None:
    first = dict(list(adults.attributes.items())[:2])
    fewer = adults.model_copy(update={"attributes": first})
    whole = sample(adults, 100, seed=1, session=1)
    assert sample(fewer, 100, seed=1, session=1).equals(whole.select(list(first)))


def test_random_allocation_draws_each_agent_for_itself(adults: Population) -> None:
    population = adults.model_copy(update={"allocation": "random"})
    many = sample(population, 5000, seed=1, session=1)
    assert sample(population, 300, seed=1, session=1).equals(many.slice(0, 300))
    counts = np.bincount(numbers(many, "education"), minlength=5)
    asked = 5000 * np.array([0.1, 0.4, 0.3, 0.15, 0.05])
    assert counts.tolist() != asked.tolist()
    assert stats.chisquare(counts, asked).pvalue > 1e-3
    assert stats.kstest(numbers(many, "risk_tolerance"), "uniform").pvalue > 1e-3
    spread = np.array(
        [
            np.bincount(numbers(sample(population, 50, seed=1, session=s), "gender"), minlength=2)[
                0
            ]
            for s in range(1, 301)
        ]
    )
    assert spread.var() == pytest.approx(12.5, rel=0.35)


def test_nobody_is_a_table_without_rows(adults: Population) -> None:
    for allocation in ("quota", "random"):
        empty = sample(adults.model_copy(update={"allocation": allocation}), 0, seed=1, session=1)
        assert len(empty) == 0
        assert empty.column_names == list(adults.attributes)


def test_categories_keep_odd_characters(build: Any) -> None:
    names = ['say "yes"', "two\nlines", "it's", "日本", "a,b;c\t", "", "🌾"]
    population = build(**{"odd name\n": {"categories": dict.fromkeys(names, 1 / 7)}})
    table = sample(population, 7, seed=1, session=1)
    assert sorted(table.column("odd name\n").to_pylist()) == sorted(names)


@pytest.mark.parametrize("name", ["session", "Agent", "BACKGROUND"])
def test_names_of_the_files_columns_are_refused(build: Any, name: str) -> None:
    population = build(**{"agent_type": {"categories": {"a": 1}}, name: {"categories": {"a": 1}}})
    with pytest.raises(UserError, match=f"attribute `{name}`.*reserved"):
        check(population)
    with pytest.raises(UserError, match="reserved"):
        sample(population, 10, seed=1, session=1)


def test_a_bin_without_a_share_needs_no_whole_number(build: Any) -> None:
    bins = {"edges": [0, 0.2, 0.8, 2], "shares": [0.5, 0, 0.5]}
    table = sample(build(x={"integer": {"histogram": bins}}), 4, seed=1, session=1)
    assert sorted(table.column("x").to_pylist()) == [0, 0, 1, 2]


def test_a_million_people(adults: Population, capsys: pytest.CaptureFixture[str]) -> None:
    started = time.process_time()
    table = sample(adults, 1_000_000, seed=1, session=1)
    cpu_s = time.process_time() - started
    with capsys.disabled():
        print(f"\n[a million people, {table.num_columns} attributes: {cpu_s:.2f} CPU s]")
    counts = np.bincount(numbers(table, "education"))
    assert counts.tolist() == [100_000, 400_000, 300_000, 150_000, 50_000]
    assert cpu_s < 20
