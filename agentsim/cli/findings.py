"""How findings look: like a compiler's, with the source line and carets under what is meant."""

from __future__ import annotations

import os
import sys
import unicodedata
from collections.abc import Sequence
from typing import TextIO

from agentsim.errors import ConfigError, Finding

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
    shown = [_one(finding, colour) for finding in findings[:_SHOWN]]
    count = "1 finding" if len(findings) == 1 else f"{len(findings)} findings"
    if len(findings) > _SHOWN:
        count += f" (the first {_SHOWN} are shown)"
    return "\n\n".join([*shown, f"{count}; nothing was started."]) + "\n"


def _one(finding: Finding, colour: bool) -> str:
    def paint(text: str, start: str) -> str:
        return f"{start}{text}{_RESET}" if colour else text

    number = str(finding.line) if finding.line else ""
    margin = " " * max(len(number), 1)
    bar = paint("|", _BLUE)
    head = paint(f"error[{finding.code}]", _RED) + paint(f": {_clean(finding.message)}", _BOLD)
    where = _clean(finding.file)
    if finding.line:
        where += f":{finding.line}:{finding.column}"
    lines = [head, f" {margin}{paint('-->', _BLUE)} {where}"]
    if finding.source:
        source, carets = _excerpt(finding)
        label = paint(number.rjust(len(margin)), _BLUE)
        lines += [
            f" {margin} {bar}",
            f" {label} {bar} {source}".rstrip(),
            f" {margin} {bar} {paint(carets, _RED)}",
        ]
    if finding.expected:
        lines.append(f" {margin} {paint('=', _BLUE)} expected {_clean(finding.expected)}")
    if finding.hint:
        lines.append(f"{paint('hint', _GREEN)}: {_clean(finding.hint)}")
    return "\n".join(lines)


def _excerpt(finding: Finding) -> tuple[str, str]:
    """The source line, a part of it if it is long, and the carets below it."""
    source = finding.source
    start = min(finding.column - 1, len(source))
    end = min(start + finding.length, len(source))
    first = 0 if len(source) <= _WIDEST else max(0, start - _BEFORE)
    last = min(len(source), first + _WIDEST)
    before, marked = source[first:start], source[start : min(end, last)]
    lead = "…" if first else ""
    tail = "…" if last < len(source) else ""
    column = _width(lead) + _width(before)
    text = lead + _clean(source[first:last], keep_tabs=True) + tail
    return _expand(text), " " * column + "^" * max(_width(marked), 1)


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
