"""What a plain YAML word means. Less than YAML 1.1 allows, so that words stay what they are."""

from __future__ import annotations

import math
import re

_WHOLE = re.compile(r"[-+]?(0|[1-9][0-9]*)")
_REAL = re.compile(r"[-+]?(\.[0-9]+|(0|[1-9][0-9]*)(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[-+]?\.?(nan|inf|infinity)", re.IGNORECASE)
_NULL = frozenset(("", "~", "null", "Null", "NULL"))
_BOOL = {
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_DIGITS = 308


def resolve(text: str) -> str | int | float | bool | None:
    """The value of a word without quotes.

    `no`, `on`, `010`, `0x1f`, `1_000` and `12:30:00` stay text; `1e-4` is a number. Numbers are
    finite: `.nan`, `.inf` and what is too large for a float stay text too, so that a field that
    wants a number says so.
    """
    if text in _NULL:
        return None
    if text in _BOOL:
        return _BOOL[text]
    if _WHOLE.fullmatch(text):
        return int(text) if len(text) <= _DIGITS else text
    if _REAL.fullmatch(text):
        number = float(text)
        return number if math.isfinite(number) else text
    return text


def is_too_large(text: str) -> bool:
    """Whether a word looks like a number and is not a finite one."""
    if _NOT_FINITE.fullmatch(text):
        return True
    return bool(_REAL.fullmatch(text)) and isinstance(resolve(text), str)
