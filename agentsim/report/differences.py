"""What two runs differ in, as text of 80 columns: layer by layer, the first difference of each."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from agentsim.report.words import count, duration, printable
from agentsim.results.compare import Comparison, Side
from agentsim.results.difference import Difference, Layer

_WIDTH = 80
_SHOWN = 8
_TOLD = 12
_OF = {
    "files": "fields",
    "versions": "versions",
    "personas": "people",
    "prompts": "requests",
    "replies": "replies",
    "reading": "replies",
    "results": "rows",
}
_BODY = " " * 12


def plain(comparison: Comparison) -> str:
    """The whole comparison, as text."""
    left, right = comparison.left, comparison.right
    lines = [f"- {_side(left)}", f"+ {_side(right)}", ""]
    for layer in comparison.layers:
        lines += _layer(layer)
    lines += ["", *_verdict(comparison)]
    if comparison.told:
        lines += ["", "Not the same either, and no part of the result:"]
        lines += [line for item in comparison.told[:_TOLD] for line in _told(item)]
        if len(comparison.told) > _TOLD:
            lines.append(f"  … and {count(len(comparison.told) - _TOLD)} more; --json has all")
    return "\n".join(lines) + "\n"


def _side(side: Side) -> str:
    words = f"{side.path}: {side.state}"
    if side.wall_s is not None:
        words += f" after {duration(side.wall_s)}"
    if side.settled is not None:
        words += f", {count(side.settled)} of {count(side.expected)} rounds settled"
    return words


def _layer(layer: Layer) -> Iterator[str]:
    yield from _wrapped(_counts(layer), f"  {layer.name:8}  ", _BODY)
    for difference in layer.first[:_SHOWN]:
        yield from _difference(difference)
    if len(layer.first) > _SHOWN:
        yield f"{_BODY}… and {count(len(layer.first) - _SHOWN)} more; --json has all"


def _counts(layer: Layer) -> str:
    if layer.compared is None and layer.equal:
        return "none"
    things = _OF[layer.name]
    if layer.equal:
        return f"equal ({count(layer.compared)} {things})"
    parts = []
    if layer.differ:
        parts.append(f"{count(layer.differ)} of {count(layer.compared)} {things} differ")
    for number, sign in ((layer.only_left, "-"), (layer.only_right, "+")):
        if number:
            parts.append(f"{count(number)} {things} only in {sign}")
    columns = ", ".join(f"{name} {count(number)}" for name, number in (layer.counts or {}).items())
    return "; ".join(parts) + (f" ({columns})" if len(layer.counts or {}) > 1 else "")


def _difference(difference: Difference) -> Iterator[str]:
    at = f", character {count(difference.at)}" if difference.at is not None else ""
    place = f"{difference.place}: " if difference.place else ""
    yield from _wrapped(f"{place}{difference.what}{at}", _BODY, f"{_BODY}  ")
    for sign, text in (("-", difference.left), ("+", difference.right)):
        yield f"{_BODY}  {sign} {printable(text)}".rstrip()


def _verdict(comparison: Comparison) -> Iterator[str]:
    parting = comparison.parting
    if parting is not None and comparison.equal_so_far:
        yield "Equal in all that both have; one of them has more."
        return
    if parting is not None:
        yield f"The runs part at: {parting.name}."
        return
    yield "Equal in everything that decides the result."
    if any(side.settled != side.expected for side in (comparison.left, comparison.right)):
        yield "Neither has settled all rounds: this is about those that are settled."


def _told(difference: Difference) -> Iterator[str]:
    left, right = (printable(text) or "(none)" for text in (difference.left, difference.right))
    line = f"  {difference.what}: {left} | {right}"
    if len(line) <= _WIDTH:
        yield line
        return
    yield f"  {difference.what}:"
    yield f"    - {left}"
    yield f"    + {right}"


def _wrapped(text: str, first: str, then: str) -> list[str]:
    return textwrap.wrap(
        printable(text),
        _WIDTH,
        initial_indent=first,
        subsequent_indent=then,
        break_long_words=False,
        break_on_hyphens=False,
    )
