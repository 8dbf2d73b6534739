"""Expressions: what they mean, what is refused, and where the error points."""

from __future__ import annotations

import ast
import math
import warnings
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentsim.errors import UserError
from agentsim.expressions import MAX_DEPTH, MAX_LENGTH, ExpressionError, parse

NAMES = frozenset({"mean", "median", "n"})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2/3 * mean", 20.0),
        ("5 + mean / 2", 20.0),
        ("51/100 * mean", 15.3),
        ("2/3 * median", 16.0),
        ("(mean + median)/2", 27.0),
        ("2/3 * mean * n/(n+1)", 18.0),
        ("-mean + 100", 70.0),
        ("+mean - -1", 31.0),
        ("mean ** 2 / 100", 9.0),
        ("-2 ** 2", -4.0),
        ("1e-1 * mean", 3.0),
        ("  42 ", 42.0),
    ],
)
def test_value(text: str, expected: float) -> None:
    expression = parse(text, NAMES)
    assert expression.number({"mean": 30.0, "median": 24.0, "n": 9.0}) == pytest.approx(expected)


def test_names_are_those_that_occur() -> None:
    assert parse("mean + 2 * mean / n", NAMES).names == {"mean", "n"}
    assert parse("50", NAMES).names == frozenset()


def test_columns_are_evaluated_element_by_element() -> None:
    expression = parse("(mean + 1) / median", NAMES)
    mean = np.array([1.0, 5.0, 3.0])
    median = np.array([2.0, 0.0, 4.0])
    result = expression.evaluate({"mean": mean, "median": median})
    assert result[[0, 2]].tolist() == [1.0, 1.0]
    assert np.isnan(result[1])


def test_a_missing_value_is_an_error() -> None:
    with pytest.raises(KeyError):
        parse("mean + n", NAMES).number({"mean": 1.0})


@pytest.mark.parametrize(
    "text",
    ["mean / 0", "1 / (n - 1)", "1 / (1 / (n - 1))", "mean * 1e308 * 1e308", "1 / (1e308 * 1e308)"],
)
def test_no_number_when_a_step_is_not_finite(text: str) -> None:
    expression = parse(text, NAMES)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert expression.number({"mean": 30.0, "n": 1.0}) is None
        assert np.isnan(expression.evaluate({"mean": np.array([30.0]), "n": 1.0})).all()


HOSTILE = [
    "__import__('os').system('id')",
    "mean.__class__",
    "().__class__.__bases__[0].__subclasses__()",
    "mean.real",
    "mean[0]",
    "[mean]",
    "{mean: 1}",
    "{mean}",
    "(mean, 1)",
    "0,66 * mean",
    "'a' * 9999",
    "f'{mean}'",
    "b'x'",
    "lambda: mean",
    "(x := 5)",
    "mean if n else 0",
    "mean and n",
    "not mean",
    "~n",
    "mean < n",
    "mean == n",
    "mean // 2",
    "n % 2",
    "n << 9",
    "n @ n",
    "[x for x in (1, 2)]",
    "(x for x in n)",
    "max(mean, n)",
    "exec('1')",
    "print",
    "True",
    "None",
    "...",
    "1j * mean",
    "yield mean",
    "await mean",
    "*mean",
    "mean; n",
    "mean = 3",
    "import os",
    "mean\nimport os",
    "mean # comment\n",
    "mean\x00",
    "ｍean",
    "mean × 2",
    "2½",
    "__mean",
    "2 ** 99",
    "9 ** 9 ** 9",
    "2 ** n",
    "2 ** -1",
    "2 ** 0.5",
    "2 ** True",
    "1e999",
    "9" * 400,
    "2 mean",
    "2mean",
    "1if n else 2",
    "2 *",
    "(mean",
    "mean)",
    "",
    "   ",
    "0777",
    "mode",
    "(" * 120 + "mean" + ")" * 120 + "(",
    "-" * 400 + "1",
    "+".join(["mean"] * 90),
    "mean" + " " * MAX_LENGTH,
]


@pytest.mark.parametrize("text", HOSTILE)
def test_refused(text: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        parse(text, NAMES)
    assert isinstance(caught.value, UserError)
    assert 1 <= caught.value.column <= len(text) + 1
    assert "\n" not in caught.value.message


@pytest.mark.parametrize(
    ("text", "column", "words"),
    [
        ("2/3 * men", 7, "unknown name `men`; names are `mean`, `median`, `n`"),
        ("  2/3 * men", 9, "unknown name"),
        ("2/3 * max(mean)", 7, "functions"),
        ("5 + mean.real", 5, "attributes"),
        ("2/3 * * mean", 7, "not an arithmetic"),
        ("  2/3 * * mean", 9, "not an arithmetic"),
        ("n + 2 ** 99", 10, "exponent"),
        ("2 × mean", 3, "character"),
    ],
)
def test_the_error_says_what_and_where(text: str, column: int, words: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        parse(text, NAMES)
    assert caught.value.column == column
    assert words in caught.value.message


def test_a_long_sum_within_the_bounds_is_accepted() -> None:
    text = " + ".join(["n"] * MAX_DEPTH)
    assert parse(text, NAMES).number({"n": 2.0}) == 2.0 * MAX_DEPTH


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2/3 * mean", (2 / 3, 0.0)),
        ("mean * 2 / 3", (2 / 3, 0.0)),
        ("5 + mean / 2", (0.5, 5.0)),
        ("0.51 * mean", (0.51, 0.0)),
        ("0.1 * mean + 0.2 * mean", (0.3, 0.0)),
        ("(mean + 10) * (1 - 1/3)", (2 / 3, 20 / 3)),
        ("-mean + 100", (-1.0, 100.0)),
        ("mean - mean + 7", (0.0, 7.0)),
        ("mean ** 1 + 2 ** 3", (1.0, 8.0)),
        ("50", (0.0, 50.0)),
    ],
)
def test_affine_is_exact(text: str, expected: tuple[float, float]) -> None:
    assert parse(text, NAMES).affine("mean") == expected


@pytest.mark.parametrize(
    "text",
    [
        "2/3 * median",
        "(mean + median) / 2",
        "2/3 * mean * n/(n+1)",
        "mean * mean",
        "mean ** 2",
        "1 / mean",
        "mean / 0",
        "mean / mean",
        "1e308 * 1e308 * mean",
    ],
)
def test_other_forms_are_not_affine_in_the_mean(text: str) -> None:
    assert parse(text, NAMES).affine("mean") is None


def test_names_can_share_one_value() -> None:
    assert parse("(mean + median) / 3", NAMES).affine("mean", "median") == (2 / 3, 0.0)


_LEAVES = st.sampled_from(["mean", "3", "0.25", "7", "1.5"])
_TEXTS = st.recursive(
    _LEAVES,
    lambda inner: st.builds("({} {} {})".format, inner, st.sampled_from("+-*/"), inner),
    max_leaves=8,
)


@given(text=_TEXTS, mean=st.fractions(min_value=-50, max_value=50, max_denominator=64))
def test_affine_agrees_with_exact_arithmetic(text: str, mean: Fraction) -> None:
    """The reference is Python's own arithmetic over fractions."""
    pair = parse(text, NAMES).affine("mean")
    if pair is None:
        return
    tree = ast.parse(text, mode="eval")
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant):
            assert isinstance(node.value, int | float)
            node.value = Fraction(node.value)
    names = {"mean": mean, "Fraction": Fraction}
    source = ast.unparse(tree)
    try:
        exact = eval(source, names)
    except ZeroDivisionError:
        return
    assert math.isclose(pair[0] * float(mean) + pair[1], float(exact), rel_tol=1e-9, abs_tol=1e-9)


@given(text=_TEXTS, mean=st.floats(min_value=-50, max_value=50))
def test_a_column_gives_what_single_numbers_give(text: str, mean: float) -> None:
    expression = parse(text, NAMES)
    column = expression.evaluate({"mean": np.array([mean, 2.0])})
    single = expression.number({"mean": mean})
    first = float(np.broadcast_to(column, (2,))[0])
    assert (math.isnan(first) and single is None) or first == single
