"""Backgrounds are good English and leave nothing out."""

from __future__ import annotations

import re
import time
from typing import Any

import pyarrow as pa
import pytest
from example_counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from agentsim.config.population import Population
from agentsim.population import backgrounds, sample
from agentsim.population.wording import article, names_a_person, plain


def one(build: Any, **values: Any) -> str:
    """The background of one person with these values."""
    attributes: dict[str, Any] = {}
    columns: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, str):
            attributes[name] = {"categories": {value: 1}}
            columns[name] = pa.array([value]).dictionary_encode()
        else:
            kind = "integer" if isinstance(value, int) else "real"
            attributes[name] = {kind: {"uniform": {"low": 0, "high": max(1, 2 * value)}}}
            columns[name] = pa.array([value])
    (text,) = backgrounds(pa.table(columns), build(**attributes)).to_pylist()
    return str(text)


SAID = {
    "You are a 41-year-old female farmer.": {"age": 41, "gender": "female", "job": "farmer"},
    "You are an 18-year-old engineer.": {"occupation": "engineer", "age": 18},
    "You are an engineer.": {"occupation": "engineer"},
    "You are a university lecturer.": {"profession": "university_lecturer"},
    "You are a 30-year-old woman and an artist.": {"age": 30, "sex": "woman", "job": "artist"},
    "You are a 30-year-old woman.": {"age": 30, "sex": "woman"},
    "You are a retired man.": {"gender": "man", "occupation": "retired"},
    "You are an unemployed woman.": {"gender": "woman", "occupation": "unemployed"},
    "You are 81 years old, female and retired.": {
        "age": 81,
        "gender": "female",
        "occupation": "retired",
    },
    "You are 1 year old.": {"age": 1},
    "You are male.": {"gender": "male"},
    "You are female and self-employed.": {"gender": "female", "occupation": "self-employed"},
    "Your gender is other.": {"gender": "other"},
    "You are 50 years old. Your gender is other.": {"age": 50, "gender": "other"},
    "You are a 50-year-old nurse. Your gender is other.": {
        "age": 50,
        "gender": "other",
        "job": "nurse",
    },
    "You are 41 years old. You live in Oslo, Eastern Norway, Norway.": {
        "country": "Norway",
        "region": "Eastern_Norway",
        "city": "Oslo",
        "age": 41,
    },
    "You live in Washington D.C. Your BMI is 22.": {"city": "Washington D.C.", "BMI": 22},
    "Your region is rural.": {"region": "rural"},
    "Your occupation is manufacturing.": {"occupation": "manufacturing"},
    "Your level of education is secondary and your income is 32000.": {
        "education": "secondary",
        "income": 32000,
    },
    "Your level of education is phd.": {"education_level": "phd"},
    "Your income is low.": {"income": "low"},
    "Your risk tolerance is 0.35. Your religion is none.": {
        "risk_tolerance": 0.3478,
        "Religion": "none",
    },
    "Your IQ score is 104.": {"IQ score": 104},
    "Your age is 18-29.": {"age": "18-29"},
    "Your gender is 1.": {"gender": 1},
    "You are 41 years old.": {"age": 41.97},
    "Your weight is 41.2.": {"weight": 41.23},
    "You are a farmer. Your job is nurse.": {"occupation": "farmer", "job": "nurse"},
}


@pytest.mark.parametrize("text", SAID)
def test_people_are_described_in_english(build: Any, text: str) -> None:
    assert one(build, **SAID[text]) == text


AN = (
    "8, 11, 18, 80, 88, 800, 11000, 18500, engineer, artist, unemployed, hourly, honest, heir, "
    "umpire, MBA student, HR manager, NGO worker, Uber driver"
)
A = (
    "1, 7, 10, 12, 17, 19, 110, 180, 1800, 21, 90, farmer, university, unit, user, European, "
    "one-eyed, utility, CEO, UN official, PhD student, house painter"
)


@pytest.mark.parametrize(("words", "expected"), [(AN, "an"), (A, "a")])
def test_articles_go_by_sound(words: str, expected: str) -> None:
    assert [word for word in words.split(", ") if article(word) != expected] == []


def test_what_cannot_follow_you_are_a_is_known() -> None:
    people = "farmer, waitress, physics teacher, HR manager, clerk, nurse's aide"
    assert [value for value in people.split(", ") if not names_a_person(value)] == []
    others = "sales, agriculture, IT, none, other, , 30-40, not working, health care"
    assert [value for value in others.split(", ") if names_a_person(value)] == []


def test_one_odd_value_moves_the_whole_attribute(build: Any) -> None:
    """A sentence must not depend on which other people happen to be in the table."""
    population = build(
        age={"integer": {"uniform": {"low": 20, "high": 60}}},
        occupation={"categories": {"farmer": 0.5, "none": 0.5}},
    )
    texts = backgrounds(sample(population, 50, seed=1, session=1), population).to_pylist()
    assert {re.sub(r"\d+", "N", text) for text in texts} == {
        "You are N years old. Your occupation is farmer.",
        "You are N years old. Your occupation is none.",
    }


@pytest.mark.parametrize("allocation", ["quota", "random"])
def test_a_slice_reads_as_in_the_whole(adults: Population, allocation: str) -> None:
    population = adults.model_copy(update={"allocation": allocation})
    table = sample(population, 300, seed=1, session=1)
    whole = backgrounds(table, population).to_pylist()
    parts = [
        text
        for start in range(0, 300, 7)
        for text in backgrounds(table.slice(start, 7), population).to_pylist()
    ]
    assert parts == whole
    assert len(set(whole)) > 290


def test_every_value_of_a_person_is_stated(adults: Population) -> None:
    table = sample(adults, 500, seed=4, session=1)
    rows = zip(table.to_pylist(), backgrounds(table, adults).to_pylist(), strict=True)
    for person, text in rows:
        assert text == (
            f"You are {person['age']} years old and {person['gender']}. "
            f"Your level of education is {person['education']} and "
            f"your income is {person['income']:.0f}. "
            f"Your risk tolerance is {person['risk_tolerance']:.2f}."
        )


names = st.text(st.characters(codec="utf-8"), min_size=1, max_size=12)


@settings(max_examples=examples(80), deadline=None)
@given(name=names, values=st.lists(names, min_size=1, max_size=5, unique=True))
def test_odd_characters_survive(build: Any, name: str, values: list[str]) -> None:
    population = build(**{name: {"categories": dict.fromkeys(values, 1 / len(values))}})
    if name.lower() in ("agent", "session", "background"):
        return
    table = sample(population, 10, seed=1, session=1)
    texts = backgrounds(table, population).to_pylist()
    for value, text in zip(table.column(name).to_pylist(), texts, strict=True):
        assert plain(value) in text
        assert "\n" not in text


def test_nobody_has_no_background(adults: Population) -> None:
    assert len(backgrounds(sample(adults, 0, seed=1, session=1), adults)) == 0


def test_small_negative_reals_are_not_minus_zero(build: Any) -> None:
    population = build(mood={"real": {"uniform": {"low": -1, "high": 1}}})
    table = pa.table({"mood": pa.array([-0.001, 0.5])})
    assert backgrounds(table, population).to_pylist() == [
        "Your mood is 0.00.",
        "Your mood is 0.50.",
    ]


def test_a_million_backgrounds(adults: Population, capsys: pytest.CaptureFixture[str]) -> None:
    table = sample(adults, 1_000_000, seed=1, session=1)
    started = time.process_time()
    texts = backgrounds(table, adults)
    cpu_s = time.process_time() - started
    with capsys.disabled():
        print(f"\n[a million backgrounds: {cpu_s:.2f} CPU s, {texts.nbytes / 1e6:.0f} MB]")
    assert len(texts) == 1_000_000
    assert texts.null_count == 0
    assert cpu_s < 30
