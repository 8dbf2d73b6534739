"""`agentsim replies FILE`: how replies are read, one JSON object a line in and out."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from agentsim.errors import UserError

_DEFAULTS: dict[str, object] = {"finish_reason": "stop", "format": "text"}


@dataclass(frozen=True, slots=True)
class _Line:
    """One line of the file: the arguments of a reading."""

    reply: str
    finish_reason: str
    low: float
    high: float
    target: str
    format: str


def replies(
    file: Annotated[
        Path,
        typer.Argument(
            help="JSON lines with reply, low, high, target, and if need be finish_reason (stop) "
            "and format (text | json)."
        ),
    ],
) -> None:
    """Read model replies from FILE and print status, value and reason of each, a line each."""
    from agentsim.replies import read

    for line in _lines(file):
        reading = read(
            line.reply,
            finish_reason=line.finish_reason,
            low=line.low,
            high=line.high,
            target=line.target,
            format=line.format,
        )
        shown = {"status": reading.status, "value": reading.value, "reason": reading.reason}
        print(json.dumps(shown))


def _lines(file: Path) -> Iterator[_Line]:
    """The lines of the file, blank ones left out.

    Raises:
        UserError: the file cannot be read, or a line is not what it should be.
    """
    try:
        content = file.read_bytes()
    except OSError as error:
        raise UserError(f"cannot read {file}: {error.strerror}") from error
    parsed = []
    for number, raw in enumerate(content.removeprefix(b"\xef\xbb\xbf").split(b"\n"), 1):
        if raw.strip():
            try:
                parsed.append(_parse(raw))
            except ValueError as error:
                raise UserError(f"{file}:{number}: {error}") from error
    yield from parsed


def _parse(raw: bytes) -> _Line:
    """One line.

    Raises:
        ValueError: it is not JSON, or a field is missing or of another type.
    """
    try:
        # keys that are not ours may hold integers of any length
        row = json.loads(raw.decode(), parse_int=float)
    except UnicodeDecodeError as error:
        raise ValueError(f"the line is not UTF-8 at byte {error.start + 1}") from error
    except RecursionError as error:
        raise ValueError("the line is nested too deeply") from error
    except json.JSONDecodeError as error:
        raise ValueError(f"the line is not JSON: {error.msg} at column {error.colno}") from error
    if not isinstance(row, dict):
        raise ValueError("expected a JSON object with `reply`, `low`, `high` and `target`")
    low, high = _number(row, "low"), _number(row, "high")
    if low >= high:
        raise ValueError(f"`low` must be below `high`, found {low:g} and {high:g}")
    return _Line(
        reply=_text(row, "reply"),
        finish_reason=_text(row, "finish_reason"),
        low=low,
        high=high,
        target=_text(row, "target"),
        format=_format(row),
    )


def _text(row: dict[str, object], key: str) -> str:
    value = row.get(key, _DEFAULTS.get(key))
    if not isinstance(value, str):
        raise ValueError(f"`{key}` must be a text" if key in row else f"`{key}` is missing")
    return value


def _number(row: dict[str, object], key: str) -> float:
    value = row.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(f"`{key}` must be a number" if key in row else f"`{key}` is missing")
    return float(value)


def _format(row: dict[str, object]) -> str:
    value = _text(row, "format")
    if value not in {"text", "json"}:
        raise ValueError("`format` must be `text` or `json`")
    return value
