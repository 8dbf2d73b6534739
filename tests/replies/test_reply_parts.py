"""The parts of a reading on their own: the rule's factors, numbers, words, objects, thinking."""

from __future__ import annotations

from fractions import Fraction

import pytest

from agentsim.replies.clean import clean, is_blank
from agentsim.replies.numbers import read_digits, read_words, to_float
from agentsim.replies.objects import Shape, field_values, scan
from agentsim.replies.rule import Rule, factors
from agentsim.replies.segments import split

RULE = Rule(0, 100, factors("2/3 * mean"))


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("2/3 * mean", {Fraction(2, 3)}),
        ("mean * 2/3", {Fraction(2, 3)}),
        ("5 + mean / 2", {Fraction(1, 2)}),
        ("(5 + mean) / 2", {Fraction(1, 2)}),
        ("2 * mean / 3", {Fraction(2, 3)}),
        ("0.5 * mean + 0.25 * target", {Fraction(1, 2), Fraction(1, 4)}),
        ("51/100 * median", {Fraction(51, 100)}),
        ("0.7 * mean", {Fraction(7, 10)}),
        ("mean", set()),
        ("mean / 0", set()),
        ("", set()),
    ],
)
def test_factors_of_a_rule(target: str, expected: set[Fraction]) -> None:
    assert factors(target) == expected


@pytest.mark.parametrize(
    ("text", "literal"),
    [
        ("22", "22"), ("22.5", "22.5"), (".5", ".5"), ("33,3", "33.3"),
        ("1,000", ""), ("0,667", "0.667"),
        ("1000,000", "1000.000"), ("1'000", "1000"), ("1'00", ""), ("10,000,000", "10000000"),
        ("1,000.5", "1000.5"), ("1.000,5", "1000.5"), ("1.2.3", ""), ("1e5",
        "1e5"), ("33,3e1", "33.3e1"),
        ("1'000e1", "1000e1"), ("1,00,000", ""), ("14.815", "14.815"),
    ],
)  # fmt: skip
def test_digits_and_separators(text: str, literal: str) -> None:
    assert read_digits(text, RULE)[0] == literal


def test_a_point_before_three_digits_is_doubtful_only_where_thousands_can_be_chosen() -> None:
    assert read_digits("1.500", Rule(0, 10_000, frozenset()))[0] == ""
    assert read_digits("1.500", RULE)[0] == "1.500"
    assert read_digits("0.500", Rule(0, 10_000, frozenset()))[0] == "0.500"


@pytest.mark.parametrize(
    "text",
    ["0", "-0.0", "1e400", "-1e400", "1e-400", "123.456e-7", "0.1", "9" * 300, "1e308", "5e-324"],
)
def test_literals_have_the_value_that_python_gives_them(text: str) -> None:
    assert to_float(text) == float(text)
    padded = text if "e" in text else f"{text}{'' if '.' in text else '.'}{'0' * 2000}"
    assert to_float(padded) == float(text)


def test_very_long_literals() -> None:
    assert to_float("1" * 5000) == float("inf")
    assert to_float("0." + "3" * 5000) == 1 / 3
    assert to_float("0." + "0" * 1000 + "1" * 1000) == 0
    assert to_float("0" * 5000 + "7") == 7
    assert to_float("1" + "0" * 5000 + "e-5000") == 1


@pytest.mark.parametrize(
    ("words", "value"),
    [
        ("zero", 0), ("twenty two", 22), ("one hundred and five", 105), ("a hundred", 100),
        ("hundred", 100), ("two thousand three hundred", 2300), ("twenty two point five", 22.5),
        ("zero point two five", 0.25), ("point five", 0.5), ("ten twenty",
        None), ("two three", None),
        ("twenty eleven", None), ("five hundred two hundred", None), ("zero one", None),
    ],
)  # fmt: skip
def test_number_words(words: str, value: float | None) -> None:
    assert read_words(words.split()) == value


@pytest.mark.parametrize(
    ("text", "shape", "rest"),
    [
        ('{"a": "}"} rest', Shape.WHOLE, " rest"),
        ('{"a": "\\"}"} rest', Shape.WHOLE, " rest"),
        ('{"a": 1,} rest', Shape.BROKEN, " rest"),
        ("{'a': 1} rest", Shape.BROKEN, " rest"),
        ('{"a": "}', Shape.CUT, ""),
        ('{"a": {"b": 1}', Shape.CUT, ""),
    ],
)
def test_where_an_object_ends(text: str, shape: Shape, rest: str) -> None:
    found = scan(text, 0)
    assert found.shape is shape
    assert text[found.end :] == rest


def test_every_repeated_key_is_seen() -> None:
    found = scan('{"number": 1, "x": {"number": 5}, "number": 2}', 0)
    assert len(field_values(found.members)) == 2


@pytest.mark.parametrize(
    ("text", "prose"),
    [
        ("a<think>b</think>c", "a\nc"),
        ("a</think>c", "c"),
        ("a<THINKING>b", "a"),
        ("<think>a<think>b</think>c</think>d", "d"),
        ("<think>{</think>d", "d"),
        ("a < b", "a < b"),
    ],
)
def test_thinking_is_left_out(text: str, prose: str) -> None:
    assert split(text).prose == prose


def test_the_small_alphabet() -> None:
    assert clean("Ａ٣٫５ “x” ½\u200b−") == 'a3.5 "x" \x1a−'
    assert is_blank("\ufeff \u200b\n")
    assert not is_blank("²")
