"""From the writing of one number to its value, or to why it has none.

Digits are ASCII here (see `clean`). A number whose value depends on the reader's country has none:
`1,000` is a thousand or one. Words are English.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Final

from agentsim.replies.rule import Rule

COMMA = "the comma may separate thousands or decimals"
POINT = "the point may separate thousands or decimals"
GROUPS = "the digits are grouped in no known way"

_GROUPED: Final = re.compile(r"\d{1,3}(?:[,.'_\u00a0]\d{3})+")
_MOST_DIGITS = 800  # more cannot change a float; they only cost time


def to_float(text: str) -> float:
    """The value of a JSON or Python number literal, of any length, in linear time.

    Returns:
        The nearest float; an infinity where there is none that large.
    """
    if len(text) < _MOST_DIGITS:
        return float(text)
    sign = -1.0 if text.startswith("-") else 1.0
    mantissa, _, exponent = text.lstrip("+-").lower().partition("e")
    whole, _, decimals = mantissa.partition(".")
    whole = whole.lstrip("0")
    power = _power(exponent)
    if len(whole) > _MOST_DIGITS:
        power += len(whole) - _MOST_DIGITS
        whole, decimals = whole[:_MOST_DIGITS], ""
    if len(decimals) > _MOST_DIGITS:
        if not whole:
            zeros = len(decimals) - len(decimals.lstrip("0"))
            power, decimals = power - zeros, decimals[zeros:]
        decimals = decimals[:_MOST_DIGITS]
    return sign * float(f"{whole or '0'}.{decimals or '0'}e{power}")


def _power(exponent: str) -> int:
    digits = exponent.lstrip("+-").lstrip("0")
    size = int(digits) if digits and len(digits) <= 18 else (10**18 if digits else 0)
    return -size if exponent.startswith("-") else size


def read_digits(text: str, rule: Rule) -> tuple[str, str]:
    """What a run of digits and separators writes.

    Args:
        text: e.g. `22`, `33.3`, `33,3`, `1'000`, `.5`, `1e1`.
        rule: the game; a point before three digits is doubtful only where thousands can be chosen.

    Returns:
        The number as a plain literal and an empty reason, or an empty literal and the reason.
    """
    mantissa, mark, power = text.partition("e")
    separators = [char for char in mantissa if not char.isdigit()]
    if not separators:
        literal, why = mantissa, ""
    elif len(separators) == 1:
        literal, why = _one_separator(mantissa, separators[0], rule)
    else:
        literal, why = _many_separators(mantissa, separators)
    return (literal + mark + power, "") if literal else ("", why)


def _one_separator(text: str, separator: str, rule: Rule) -> tuple[str, str]:
    """`33.3`, `33,3`, `1,000`, `1'000`."""
    head, _, tail = text.partition(separator)
    looks_grouped = _GROUPED.fullmatch(text) is not None and not head.startswith("0")
    if separator == ".":
        # only where both readings can be chosen do two readers differ
        is_doubtful = looks_grouped and rule.contains(to_float(head + tail))
        return ("", POINT) if is_doubtful else (text, "")
    if separator == ",":
        return ("", COMMA) if looks_grouped else (f"{head}.{tail}", "")
    return (head + tail, "") if looks_grouped else ("", GROUPS)


def _many_separators(text: str, separators: Sequence[str]) -> tuple[str, str]:
    """`10,000,000`, `1,000.5`, `1.000,5`; anything else is a list, a date or a version."""
    first, last = separators[0], separators[-1]
    if all(separator == first for separator in separators):
        is_grouped = _GROUPED.fullmatch(text) and not text.startswith("0")
        return (text.replace(first, ""), "") if is_grouped else ("", GROUPS)
    whole, _, decimals = text.rpartition(last)
    is_grouped = _GROUPED.fullmatch(whole) and not whole.startswith("0")
    if is_grouped and last in ".," and all(separator == first for separator in separators[:-1]):
        return f"{whole.replace(first, '')}.{decimals}", ""
    return "", GROUPS


_SMALL = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
    "sixteen seventeen eighteen nineteen"
)
UNITS: Final = {word: value for value, word in enumerate(_SMALL.split())}
TENS: Final = {
    word: value
    for value, word in zip(
        range(20, 100, 10),
        ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"],
        strict=True,
    )
} | {"fourty": 40}
SCALES: Final = {"hundred": 100, "thousand": 1000, "million": 10**6, "billion": 10**9}
NUMBER_WORDS: Final = frozenset(UNITS) | frozenset(TENS) | frozenset(SCALES)
_MOST_WORDS = 16


def read_words(words: Sequence[str]) -> float | None:
    """The value of an English number in words, e.g. `("twenty", "two", "point", "five")`.

    Returns:
        The value; None where the words are numbers that stand side by side (`ten twenty`).
    """
    if len(words) > _MOST_WORDS:
        return None
    before, _, after = " ".join(words).partition("point")
    whole = _whole(before.split())
    if whole is None or not after:
        return whole
    digits = after.split()
    if any(word not in UNITS or UNITS[word] > 9 for word in digits):
        tail = _whole(digits)  # "point twenty-five"
        return None if tail is None or tail < 10 or tail > 99 else whole + tail / 100
    return float(f"{whole:.0f}." + "".join(str(UNITS[word]) for word in digits))


def _whole(words: Sequence[str]) -> float | None:
    """Units, tens and scales, in the order in which English puts them."""
    total, group = 0, 0
    last = smallest = math.inf
    for i, word in enumerate(words):
        if word == "and":
            if i == 0 or words[i - 1] not in SCALES:
                return None
            continue
        if word in SCALES:
            scale = SCALES[word]
            if (scale == 100 and group > 99) or (scale > 100 and scale >= smallest):
                return None
            group = max(group, 1) * scale
            if scale > 100:
                total, group, smallest = total + group, 0, scale
            last = math.inf
            continue
        value = UNITS.get(word, TENS.get(word, 0)) if word != "a" else 1
        is_unit_after_tens = 0 < value < 10 and last in TENS.values()
        if last is not math.inf and not is_unit_after_tens:
            return None
        if value == 0 and len(words) > 1:
            return None
        group, last = group + value, value
    return float(total + group)
