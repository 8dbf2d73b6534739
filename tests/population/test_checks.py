"""What a text says about each attribute: stated, absent, contradicted."""

from __future__ import annotations

import time
from typing import Any

import pytest

from agentsim.config.population import Population
from agentsim.population.checks import Verdict, check
from agentsim.population.drafts import Draft
from agentsim.population.facts import Fact, roles_of

PEOPLE: dict[str, Any] = {
    "education": {
        "categories": dict.fromkeys(["primary school", "secondary school", "master", "phd"], 0.25)
    },
    "age": {"integer": {"uniform": {"low": 18, "high": 90}}},
    "gender": {"categories": {"female": 0.5, "male": 0.4, "non-binary": 0.1}},
    "occupation": {"categories": {"farmer": 0.25, "nurse": 0.25, "teacher": 0.25, "retired": 0.25}},
    "income": {"real": {"uniform": {"low": 0, "high": 100_000}}},
    "trust": {"real": {"uniform": {"low": 0, "high": 1}}},
    "children": {"integer": {"uniform": {"low": 0, "high": 9}}},
    "smoker": {"categories": {"yes": 0.5, "no": 0.5}},
    "risk": {"categories": {"low": 0.5, "high": 0.5}},
}
OK, ABSENT, NO = Verdict.STATED, Verdict.ABSENT, Verdict.CONTRADICTED


@pytest.fixture(scope="module")
def population(build: Any) -> Population:
    return build(**PEOPLE)


def verdict(
    population: Population, name: str, value: Any, text: str, *, english: bool = True, **parts: Any
) -> Verdict:
    fact = Fact(name, value, population.attributes[name], roles_of(population)[name])
    draft = Draft(
        **{"name": "A", "age": 41, "gender": "female", "job": "clerk", **parts}, description=text
    )
    return check(draft, [fact], english=english)[name]


CATEGORIES = [
    ("master", "You hold a master in law.", OK),
    ("master", "You have a master's degree.", OK),
    ("master", "You did your masters in Oslo.", OK),
    ("phd", "You got your Ph.D. late.", OK),
    ("phd", "You have a PhD in physics.", OK),
    ("secondary school", "You finished Secondary School.", OK),
    ("secondary school", "You went to secondary_school.", OK),
    ("secondary school", "You went to school.", ABSENT),
    ("master", "You like the sea.", ABSENT),
    ("master", "You masterfully cook.", ABSENT),
    ("master", "You have no master and no time.", ABSENT),
    ("master", "Your mother has a master in law.", ABSENT),
    ("master", "You have a master, not a phd.", OK),
    ("master", "You have a phd.", NO),
    ("master", "You have a master and a phd.", NO),
    ("primary school", "You left after secondary school.", NO),
    ("master", "You have a master. Your brother has a phd.", OK),
]


@pytest.mark.parametrize(("value", "text", "expected"), CATEGORIES)
def test_categories(population: Population, value: str, text: str, expected: Verdict) -> None:
    assert verdict(population, "education", value, text) is expected


JOBS = [
    ("farmer", "farmer", "You like cows.", OK),
    ("farmer", "Organic Farmer", "You like cows.", OK),
    ("farmer", "farmers", "You like cows.", OK),
    ("farmer", "clerk", "You like cows.", ABSENT),
    ("farmer", "clerk", "You are a farmer at heart.", ABSENT),
    ("farmer", "nurse", "You like cows.", NO),
    ("farmer", "farmer", "You are a teacher.", NO),
    ("farmer", "farmer", "Your wife is a teacher.", OK),
    ("farmer", "farmer", "You work with nurses.", OK),
    ("farmer", "farmer", "You are not a teacher.", OK),
    ("retired", "retired teacher", "You taught for long.", OK),
    ("retired", "retired", "You were a nurse.", OK),
    ("teacher", "retired teacher", "You taught for long.", NO),
]


@pytest.mark.parametrize(("value", "job", "text", "expected"), JOBS)
def test_jobs(population: Population, value: str, job: str, text: str, expected: Verdict) -> None:
    assert verdict(population, "occupation", value, text, job=job) is expected


AGES = [
    (41, "You like tea.", OK),
    (41, "You are a 41-year-old.", OK),
    (41, "You are forty-one years old.", OK),
    (41, "You have a 12-year-old son.", OK),
    (41, "When you were 20 years old you left.", OK),
    (41, "You have worked for 20 years.", OK),
    (41, "You are 35 years old.", NO),
    (41, "You are thirty-five years old.", NO),
    (41, "A woman aged 35, you like tea.", NO),
    (41, "You are ３５ years old.", NO),
    (35, "You are 35 years old.", NO),  # the part says 41
]


@pytest.mark.parametrize(("value", "text", "expected"), AGES)
def test_ages(population: Population, value: int, text: str, expected: Verdict) -> None:
    assert verdict(population, "age", value, text) is expected


GENDERS = [
    ("female", "female", "You like tea.", OK),
    ("female", "Woman", "You like tea.", OK),
    ("female", "F", "You like tea.", OK),
    ("female", "unknown", "You like tea.", ABSENT),
    ("female", "male or female", "You like tea.", ABSENT),
    ("female", "male", "You like tea.", NO),
    ("female", "non-binary", "You like tea.", NO),
    ("non-binary", "Nonbinary", "You like tea.", OK),
    ("non-binary", "female", "You like tea.", NO),
    ("female", "female", "You are a tall man of the sea.", NO),
    ("female", "female", "You are a 41-year-old male nurse.", NO),
    ("female", "female", "You live with a man. He works and he cooks.", OK),
    ("female", "female", "You are not a man of words.", OK),
    ("female", "female", "He likes tea. He reads at night.", NO),
    ("female", "female", "He likes tea.", OK),  # one pronoun may be anybody's
    ("female", "female", "She likes her husband. He reads to him.", OK),
    ("male", "male", "She reads. Her days are long.", NO),
]


@pytest.mark.parametrize(("value", "said", "text", "expected"), GENDERS)
def test_genders(
    population: Population, value: str, said: str, text: str, expected: Verdict
) -> None:
    assert verdict(population, "gender", value, text, gender=said) is expected


NUMBERS = [
    ("income", 32000, "You earn 32000 a year.", OK),
    ("income", 32000, "You earn 32,000 a year.", OK),
    ("income", 32000, "You earn $32.000 a year.", OK),
    ("income", 32000, "You earn 32'000 francs.", OK),
    ("income", 32000, "You earn 32,000.00 a year.", OK),
    ("income", 32000, "You earn ٣٢٠٠٠ a year.", OK),
    ("income", 32000, "You earn thirty-two thousand a year.", OK),
    ("income", 32000, "You earn enough.", ABSENT),
    ("income", 32000, "You earn 45000 a year.", ABSENT),
    ("income", 32000, "Your income is 45000 a year.", NO),
    ("income", 32000, "Your income is fine. In 1999 you left.", ABSENT),
    ("trust", 0.53, "Your trust is 0.53.", OK),
    ("trust", 0.53, "Your trust is 0,53.", OK),
    ("trust", 0.53, "Your trust is 0.5.", NO),
    ("children", 2, "You have two children.", OK),
    ("children", 2, "You have 2 kids.", OK),
    ("children", 2, "You have children, three of them.", ABSENT),
    ("children", 2, "You have children: 3.", NO),
    ("children", 0, "You have no children.", OK),
    ("children", 0, "You live without children.", OK),
    ("children", 0, "You like children.", ABSENT),
]


@pytest.mark.parametrize(("name", "value", "text", "expected"), NUMBERS)
def test_numbers(
    population: Population, name: str, value: float, text: str, expected: Verdict
) -> None:
    assert verdict(population, name, value, text) is expected


VAGUE = [
    ("smoker", "yes", "You are a smoker, yes.", OK),
    ("smoker", "no", "You have no time.", ABSENT),
    ("smoker", "yes", "You have no time. Smoker: yes.", OK),
    ("risk", "high", "You take a high risk.", OK),
    ("risk", "high", "You live in a high house.", ABSENT),
    ("risk", "high", "You live low and take a high risk.", NO),
]


@pytest.mark.parametrize(("name", "value", "text", "expected"), VAGUE)
def test_words_that_say_nothing_alone(
    population: Population, name: str, value: str, text: str, expected: Verdict
) -> None:
    assert verdict(population, name, value, text) is expected


def test_another_language_is_checked_where_it_can_be(population: Population) -> None:
    text = "Du bist 41 Jahre alt und verdienst 32.000 im Jahr. Du magst Tee."
    other: dict[str, Any] = {"english": False}
    assert verdict(population, "education", "master", text, **other) is Verdict.UNCHECKED
    assert verdict(population, "education", "master", text + " Master.", **other) is OK
    assert verdict(population, "income", 32000, text, **other) is OK
    assert verdict(population, "income", 45000, text, **other) is ABSENT
    assert verdict(population, "age", 41, text, **other) is OK
    assert verdict(population, "age", 40, text, **other) is NO
    assert verdict(population, "gender", "male", text, **other) is NO
    assert verdict(population, "occupation", "farmer", text, job="farmer", **other) is OK
    assert verdict(population, "occupation", "farmer", text, job="Bäuerin", **other) is ABSENT
    assert verdict(population, "occupation", "farmer", text, job="nurse", **other) is NO


def test_scripts_without_spaces(build: Any) -> None:
    people = build(occupation={"categories": {"教师": 0.4, "大学教师": 0.3, "农民": 0.3}})
    other: dict[str, Any] = {"english": False}
    assert verdict(people, "occupation", "农民", "你喜欢茶。", job="农民", **other) is OK
    assert verdict(people, "occupation", "教师", "你喜欢茶。", job="大学教师", **other) is NO
    assert verdict(people, "occupation", "大学教师", "你喜欢茶。", job="大学教师", **other) is OK


def test_a_category_that_is_part_of_another_one(build: Any) -> None:
    people = build(status={"categories": {"married": 0.5, "never married": 0.5}})
    assert verdict(people, "status", "married", "You are married.") is OK
    assert verdict(people, "status", "never married", "You have never married.") is OK
    assert verdict(people, "status", "married", "You have never married.") is NO


@pytest.mark.parametrize(
    "text",
    [
        "one " * 50_000,
        "1,1" * 50_000,
        "9" * 150_000,
        "school " * 30_000,
        "ph." * 50_000,
        "." * 150_000,
    ],
    ids=["words", "separators", "digits", "phrases", "abbreviations", "ends"],
)
def test_hostile_texts_take_no_time(population: Population, text: str) -> None:
    began = time.process_time()
    for name, value in (("education", "master"), ("age", 41), ("income", 3.0), ("risk", "low")):
        verdict(population, name, value, text)
    assert time.process_time() - began < 4
