"""Safe arithmetic expressions, such as the target `2/3 * mean` of a game.

An expression has numbers, given names, `+ - * /`, brackets, and `**` with a small whole exponent.
It has no functions, attributes, indices, strings, comparisons or anything else of Python. Python's
parser reads the text and never compiles it: the tree is checked node by node against a short list
and walked by the code below, over plain numbers or over columns.
"""

from __future__ import annotations

import ast
import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from agentsim.errors import UserError

MAX_LENGTH = 500
MAX_DEPTH = 40
MAX_EXPONENT = 8

_ARITHMETIC = (ast.Add, ast.Sub, ast.Mult, ast.Div)
_REFUSED = {
    ast.Call: "functions cannot be called",
    ast.Attribute: "attributes cannot be used",
    ast.Subscript: "indices cannot be used",
    ast.Compare: "comparisons cannot be used",
    ast.BoolOp: "`and` and `or` cannot be used",
    ast.IfExp: "conditions cannot be used",
    ast.Lambda: "functions cannot be defined",
    ast.NamedExpr: "assignments cannot be used",
    ast.JoinedStr: "text cannot be used",
    ast.Tuple: "commas cannot be used; a decimal point is written `.`",
}


class ExpressionError(UserError):
    """An expression cannot be used.

    Attributes:
        message: what is wrong, one sentence.
        column: where in the text, from 1, in characters.
    """

    def __init__(self, message: str, column: int) -> None:
        super().__init__(f"{message} (column {column})")
        self.message = message
        self.column = column


@dataclass(frozen=True, slots=True)
class Expression:
    """An expression that was checked. Made by `parse`.

    Attributes:
        text: as the author wrote it.
        names: the names that occur in it.
    """

    text: str
    names: frozenset[str]
    _tree: ast.expr = field(repr=False, compare=False)

    def evaluate(self, values: Mapping[str, float | NDArray[np.float64]]) -> NDArray[np.float64]:
        """The value for columns, or for single numbers.

        Args:
            values: a number or a column for each of `names`; columns have one length.

        Returns:
            The broadcast shape of the values, 0-dimensional for single numbers. An element is NaN
            where any step of the calculation divides by zero or leaves the finite numbers.

        Raises:
            KeyError: a name has no value.
        """
        with np.errstate(all="ignore"):
            return _evaluate(self._tree, values)

    def number(self, values: Mapping[str, float]) -> float | None:
        """The value for single numbers, None where `evaluate` has NaN."""
        result = float(self.evaluate(values))
        return result if math.isfinite(result) else None

    def affine(self, *names: str) -> tuple[float, float] | None:
        """Slope and intercept, if the expression is `slope * x + intercept`.

        Args:
            names: what stands for x; several names are taken to have the same value.

        Returns:
            The two numbers, calculated exactly and rounded once; None if the expression has
            another form, or other names.
        """
        pair = _affine(self._tree, names)
        try:
            return None if pair is None else (float(pair[0]), float(pair[1]))
        except OverflowError:
            return None


def parse(text: str, names: frozenset[str]) -> Expression:
    """Check an expression.

    Args:
        text: the expression, at most 500 characters.
        names: which names may occur.

    Raises:
        ExpressionError: the text is anything but an arithmetic expression of these names.
    """
    _check_text(text)
    indent = len(text) - len(text.lstrip())
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            tree = ast.parse(text.strip(), mode="eval").body
    except SyntaxError as error:
        column = indent + min(max(error.offset or 1, 1), len(text.strip()) + 1)
        raise ExpressionError("this is not an arithmetic expression", column) from None
    except (ValueError, MemoryError, RecursionError, Warning):
        raise ExpressionError("this is not an arithmetic expression", 1) from None
    used: set[str] = set()
    try:
        _check(tree, names, used, 1)
    except ExpressionError as error:
        raise ExpressionError(error.message, error.column + indent) from None
    return Expression(text, frozenset(used), tree)


def _check_text(text: str) -> None:
    if not text.strip():
        raise ExpressionError("the expression is empty", 1)
    if len(text) > MAX_LENGTH:
        message = f"the expression is longer than {MAX_LENGTH} characters"
        raise ExpressionError(message, MAX_LENGTH + 1)
    for column, character in enumerate(text, 1):
        # Python folds look-alike letters into plain ones; without this line `ｍean` is `mean`.
        if not (character.isascii() and character.isprintable()):
            message = f"the character {character!a} cannot be used"
            raise ExpressionError(message, column)
    if "__" in text:
        raise ExpressionError("two underscores cannot be used", text.index("__") + 1)


def _check(node: ast.expr, names: frozenset[str], used: set[str], depth: int) -> None:
    column = node.col_offset + 1
    if depth > MAX_DEPTH:
        raise ExpressionError(f"the expression is nested deeper than {MAX_DEPTH} levels", column)
    match node:
        case ast.Constant(value=value):
            _check_number(value, column)
        case ast.Name(id=name):
            if name not in names:
                known = ", ".join(f"`{known}`" for known in sorted(names))
                raise ExpressionError(f"unknown name `{name}`; names are {known}", column)
            used.add(name)
        case ast.UnaryOp(op=ast.USub() | ast.UAdd(), operand=operand):
            _check(operand, names, used, depth + 1)
        case ast.BinOp(left=left, op=ast.Pow(), right=right):
            _check(left, names, used, depth + 1)
            _check_exponent(right)
        case ast.BinOp(left=left, op=op, right=right) if isinstance(op, _ARITHMETIC):
            _check(left, names, used, depth + 1)
            _check(right, names, used, depth + 1)
        case _:
            message = _REFUSED.get(type(node), "only numbers, names, `+ - * /` and brackets can be")
            message = message if type(node) in _REFUSED else f"{message} used"
            raise ExpressionError(message, column)


def _check_number(value: object, column: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ExpressionError("only numbers and names can be used", column)
    try:
        finite = math.isfinite(value)
    except OverflowError:
        finite = False
    if not finite:
        raise ExpressionError("the number is too large", column)


def _check_exponent(node: ast.expr) -> None:
    value = node.value if isinstance(node, ast.Constant) else None
    if type(value) is not int or not 1 <= value <= MAX_EXPONENT:
        message = f"an exponent must be a whole number from 1 to {MAX_EXPONENT}"
        raise ExpressionError(message, node.col_offset + 1)


def _number(node: ast.Constant) -> int | float:
    assert isinstance(node.value, int | float)
    return node.value


def _evaluate(
    node: ast.expr, values: Mapping[str, float | NDArray[np.float64]]
) -> NDArray[np.float64]:
    match node:
        case ast.Constant():
            return np.asarray(float(_number(node)))
        case ast.Name(id=name):
            result = np.asarray(values[name], dtype=np.float64)
        case ast.UnaryOp(op=op, operand=operand):
            inner = _evaluate(operand, values)
            return -inner if isinstance(op, ast.USub) else inner
        case ast.BinOp(left=left, op=op, right=right):
            result = _combine(op, _evaluate(left, values), _evaluate(right, values))
        case _:
            raise AssertionError(node)
    # A step that leaves the finite numbers must not come back by a later division.
    return np.where(np.isfinite(result), result, np.nan)


def _combine(
    op: ast.operator, left: NDArray[np.float64], right: NDArray[np.float64]
) -> NDArray[np.float64]:
    match op:
        case ast.Add():
            return np.add(left, right)
        case ast.Sub():
            return np.subtract(left, right)
        case ast.Mult():
            return np.multiply(left, right)
        case ast.Div():
            return np.divide(left, right)
        case ast.Pow():
            return np.power(left, right)
        case _:
            raise AssertionError(op)


def _affine(node: ast.expr, names: tuple[str, ...]) -> tuple[Fraction, Fraction] | None:
    match node:
        case ast.Constant():
            # By the digits that the author wrote: 0.51 is 51/100.
            return Fraction(0), Fraction(str(_number(node)))
        case ast.Name(id=name):
            return (Fraction(1), Fraction(0)) if name in names else None
        case ast.UnaryOp(op=op, operand=operand):
            inner = _affine(operand, names)
            if inner is None or isinstance(op, ast.UAdd):
                return inner
            return -inner[0], -inner[1]
        case ast.BinOp(left=left, op=op, right=right):
            return _combine_affine(op, _affine(left, names), _affine(right, names))
        case _:
            raise AssertionError(node)


def _combine_affine(
    op: ast.operator,
    left: tuple[Fraction, Fraction] | None,
    right: tuple[Fraction, Fraction] | None,
) -> tuple[Fraction, Fraction] | None:
    if left is None or right is None:
        return None
    match op:
        case ast.Add():
            return left[0] + right[0], left[1] + right[1]
        case ast.Sub():
            return left[0] - right[0], left[1] - right[1]
        case ast.Mult() if not left[0] or not right[0]:
            return left[0] * right[1] + left[1] * right[0], left[1] * right[1]
        case ast.Div() if not right[0] and right[1]:
            return left[0] / right[1], left[1] / right[1]
        case ast.Pow() if not left[0]:
            return Fraction(0), left[1] ** int(right[1])
        case ast.Pow() if right[1] == 1:
            return left
        case _:
            return None
