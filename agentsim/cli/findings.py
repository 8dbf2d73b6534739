"""How findings look: like a compiler's, with the source line and carets under what is meant."""

from __future__ import annotations

import os
import sys
import unicodedata
from collections.abc import Sequence
from typing import TextIO

from agentsim.errors import ConfigError, Finding, Related

_TAB = 4
_WIDEST = 120
_BEFORE = 60
_SHOWN = 100
_PLACEHOLDER = "\ufffd"
_RED, _BLUE, _GREEN, _BOLD, _RESET = "\x1b[1;31m", "\x1b[1;34m", "\x1b[1;32m", "\x1b[1m", "\x1b[0m"


def print_findings(error: ConfigError, stream: TextIO | None = None) -> None:
    """Write every finding to stderr, in colour on a terminal (unless `NO_COLOR` is set)."""
    out = stream or sys.stderr
    colour = out.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    text = render(error.findings, colour=colour)
    encoding = getattr(out, "encoding", None) or "utf-8"
    out.write(text.encode(encoding, "replace").decode(encoding))


def render(findings: Sequence[Finding], *, colour: bool = False) -> str:
    """All findings as text, with how many there are at the end.

    Args:
        findings: in the order in which they are shown; of very many, the first 100.
        colour: whether to use the escape sequences of a terminal.
    """
    named: set[Related] = set()
    shown = [_one(finding, colour, named) for finding in findings[:_SHOWN]]
    count = "1 finding" if len(findings) == 1 else f"{len(findings)} findings"
    if len(findings) > _SHOWN:
        count += f" (the first {_SHOWN} are shown)"
    codes = {finding.code for finding in findings}
    code = codes.pop() if len(codes) == 1 else "CODE"
    end = f"{count}; nothing was started. More: agentsim explain {code}"
    return "\n\n".join([*shown, end]) + "\n"


def _one(finding: Finding, colour: bool, named: set[Related]) -> str:
    """A finding as text; a place in another file is not shown again (`named`: those shown)."""
    related = [item for item in finding.related if item not in named]
    named.update(item for item in related if item.file != finding.file)
    numbers = [finding.line, *(item.line for item in related)]
    margin = " " * max(len(str(number)) for number in numbers)
    head = _paint(f"error[{finding.code}]", _RED, colour)
    lines = [head + _paint(f": {_clean(finding.message)}", _BOLD, colour)]
    lines += _where(finding, margin, colour, "^", _RED)
    if finding.expected:
        equals = _paint("=", _BLUE, colour)
        lines.append(f" {margin} {equals} expected {_clean(finding.expected)}")
    for item in related:
        lines.append(f"{_paint('note', _BLUE, colour)}: {_clean(item.note)}")
        lines += _where(item, margin, colour, "-", _BLUE)
    if finding.hint:
        lines.append(f"{_paint('hint', _GREEN, colour)}: {_clean(finding.hint)}")
    return "\n".join(lines)


def _where(item: Finding | Related, margin: str, colour: bool, mark: str, paint: str) -> list[str]:
    """The place, the source line and the marks below it."""
    where = _clean(item.file)
    if item.line:
        where += f":{item.line}:{item.column}"
    lines = [f" {margin}{_paint('-->', _BLUE, colour)} {where}"]
    if not item.source:
        return lines
    source, marks = _excerpt(item, mark)
    bar = _paint("|", _BLUE, colour)
    label = _paint(str(item.line or "").rjust(len(margin)), _BLUE, colour)
    return [
        *lines,
        f" {margin} {bar}",
        f" {label} {bar} {source}".rstrip(),
        f" {margin} {bar} {_paint(marks, paint, colour)}",
    ]


def _paint(text: str, start: str, colour: bool) -> str:
    return f"{start}{text}{_RESET}" if colour else text


def _excerpt(item: Finding | Related, mark: str) -> tuple[str, str]:
    """The source line, a part of it if it is long, and the marks below it."""
    source = item.source
    start = min(item.column - 1, len(source))
    end = min(start + item.length, len(source))
    first = 0 if len(source) <= _WIDEST else max(0, start - _BEFORE)
    last = min(len(source), first + _WIDEST)
    before, marked = source[first:start], source[start : min(end, last)]
    lead = "…" if first else ""
    tail = "…" if last < len(source) else ""
    column = _width(lead) + _width(before)
    text = lead + _clean(source[first:last], keep_tabs=True) + tail
    return _expand(text), " " * column + mark * max(_width(marked), 1)


def _clean(text: str, *, keep_tabs: bool = False) -> str:
    """A text that cannot steer a terminal: no controls, no changes of direction."""
    return "".join(
        char if (char == "\t" and keep_tabs) or not _steers(char) else _PLACEHOLDER for char in text
    )


def _steers(char: str) -> bool:
    kind = unicodedata.category(char)
    return kind in ("Cc", "Zl", "Zp", "Cs") or unicodedata.bidirectional(char) in _DIRECTIONS


_DIRECTIONS = frozenset(("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"))


def _expand(text: str) -> str:
    """Tabs as blanks, so that carets do not depend on the terminal."""
    return text.replace("\t", " " * _TAB)


def _width(text: str) -> int:
    """Columns that a text takes on a terminal."""
    return sum(_columns(char) for char in text)


def _columns(char: str) -> int:
    if char == "\t":
        return _TAB
    if _steers(char):
        return 1
    if unicodedata.category(char) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in ("W", "F") else 1
