"""Numbers as a reader wants them, and tables that are plain ASCII."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.table import Table

NOTHING = "-"
_DECIMALS = 4
_HEAD_ROWS = 15
_TAIL_ROWS = 5
_GAP = 2


@dataclass(frozen=True, slots=True)
class Number:
    """Writes guesses with as many decimals as their range needs: two for [0, 100].

    Attributes:
        decimals: digits after the point.
    """

    decimals: int = 2

    @classmethod
    def of(cls, rule: Mapping[str, Any] | None) -> Number:
        """For a game with this range (`low`, `high`)."""
        span = rule["high"] - rule["low"] if rule else 0
        if span <= 0:
            return cls()
        return cls(min(max(_DECIMALS - math.ceil(math.log10(span)), 0), 6))

    def __call__(self, value: float | None) -> str:
        return NOTHING if value is None else f"{value:,.{self.decimals}f}"

    def span(self, low: float | None, high: float | None) -> str:
        """An interval."""
        return NOTHING if low is None or high is None else f"{self(low)} to {self(high)}"


def count(value: int | None) -> str:
    """A whole number with thousands set apart."""
    return NOTHING if value is None else f"{value:,}"


def share(part: int, whole: int) -> str:
    """A share in percent; never rounded to 100 or to 0 unless it is."""
    if not whole:
        return NOTHING
    percent = 100 * part / whole
    for decimals in (1, 3):
        text = f"{percent:.{decimals}f}"
        if part in (0, whole) or float(text) not in (0, 100):
            return f"{text.rstrip('0').rstrip('.')} %"
    return "under 0.001 %" if percent < 1 else "over 99.999 %"


def duration(seconds: float) -> str:
    """Seconds in the units people use."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 120:
        return f"{whole} s"
    if whole < 7200:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def size(number: float) -> str:
    """Bytes in the units people use: `12.3 MiB`."""
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if number < 1024:
            return f"{number:.0f} {unit}" if unit == "bytes" else f"{number:.1f} {unit}"
        number /= 1024
    return f"{number:,.1f} TiB"


def personas(by_model: int, asked_again: int, from_template: int) -> str:
    """Who wrote how many personas."""
    again = f" ({count(asked_again)} asked again)" if asked_again else ""
    return f"{count(by_model)} by the model{again}, {count(from_template)} from the template"


def printable(text: str) -> str:
    """Text that was written by a model or a server, on one line and unable to steer a terminal."""
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in text
    )


def visible(text: str) -> str:
    """Text of a model over several lines, with everything else that steers made visible."""
    lines = text.replace("\r\n", "\n").replace("\t", "    ").split("\n")
    return "\n".join(map(printable, lines))


def width_of(columns: Mapping[str, Sequence[str]]) -> int:
    """Characters that a table of these columns is wide."""
    widths = (max(map(len, (title, *cells))) for title, cells in columns.items())
    return sum(widths) + _GAP * (len(columns) - 1)


def table(columns: Mapping[str, Sequence[str]]) -> Table:
    """A table of right-aligned columns, by title; the middle of a very long one is left out."""
    result = Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0), header_style="bold")
    for title in columns:
        result.add_column(title, justify="right", no_wrap=True)
    rows = list(zip(*columns.values(), strict=True))
    hidden = len(rows) - _HEAD_ROWS - _TAIL_ROWS
    if hidden > 1:
        rows[_HEAD_ROWS:-_TAIL_ROWS] = [("...", *[""] * (len(columns) - 1))]
    for row in rows:
        result.add_row(*row)
    return result
