"""What libyaml says about broken text, in words for the author of the file."""

from __future__ import annotations

from typing import Any

import yaml

from agentsim.config.masking import opens_secret
from agentsim.config.tree import Document, Place
from agentsim.errors import Finding

_OPENED = {
    "while scanning a quoted scalar": "the quote that opens here is never closed",
    "while parsing a flow sequence": "the list that opens here is not closed, or lacks a comma",
    "while parsing a flow mapping": "the map that opens here is not closed, or lacks a comma",
}
"""By context: what is wrong, at the place where the context began."""

_PROBLEMS = {
    "mapping values are not allowed": (
        "a `:` stands where no key can be",
        'text that holds `: ` stands in quotes: "…"; keys of one map start in one column',
    ),
    "did not find expected key": (
        "this does not fit the lines above",
        "keys of one map start in one column, each written `key: value`",
    ),
    "did not find expected '-' indicator": (
        "this does not fit the list above",
        "items of one list start in one column, each with `- `",
    ),
    "could not find expected ':'": ("a key without a `:`", "each line of a map is `key: value`"),
    "block sequence entries are not allowed": (
        "a `- ` stands where no list can be",
        "a list starts on a line of its own",
    ),
    "did not find expected <document start>": (
        "something follows after the end of the text",
        "one map in a file, all its keys in one column",
    ),
    "unknown escape character": (
        "a `\\` in double quotes starts no known escape",
        "single quotes keep a `\\` as it is",
    ),
    "did not find expected node content": (
        "a value is missing, or starts with a sign of YAML",
        'quotes around text that starts with , ] } or another sign: "…"',
    ),
    "mapping keys are not allowed": (
        "a `? ` stands where no key can be",
        'quotes around text that starts with `? `: "…"',
    ),
    "did not find expected comment or line break": (
        "something follows `|` or `>` in its line",
        "the text below it, indented",
    ),
    "did not find expected alphabetic or numeric character": (
        "a `&` or `*` without a name",
        'quotes around text that starts with `&` or `*`: "…"',
    ),
    "found unexpected ':'": ("a `:` stands inside a list or map", 'quotes around it: "…"'),
    "directive": ("a line that starts with `%`", 'quotes around it: "%…"'),
    "tab character": ("a tab stands where only spaces indent", "spaces"),
    "exceeded maximum nesting depth": ("lists and maps are nested too deeply", ""),
}


def syntax_finding(error: yaml.YAMLError, where: Document, offset: int) -> Finding:
    """The finding for an error of the YAML reader."""
    problem = str(getattr(error, "problem", "") or getattr(error, "reason", ""))
    context = str(getattr(error, "context", "") or "")
    place = _place(getattr(error, "problem_mark", None), where, offset)
    opened = _OPENED.get(context)
    if opened and "escape" not in problem:
        place = _place(getattr(error, "context_mark", None), where, offset)
        message, expected = opened, ""
    elif "cannot start any token" in problem:
        message, expected = _bad_start(place, where)
    else:
        message, expected = next(
            (words for start, words in _PROBLEMS.items() if start in problem),
            (f"this is not YAML: {problem}", ""),
        )
    if _under_secret(where, place.line):
        line = where.lines[place.line]
        where.masks[place.line] = [(_indent(line), len(line))]
    code = "too-large" if "nesting depth" in problem else "yaml-syntax"
    return place.finding(code, message, expected)


def _place(mark: Any, where: Document, offset: int) -> Place:
    if mark is None:
        return Place(where, 0, offset)
    line = min(mark.line, len(where.lines) - 1)
    while line > 0 and not where.lines[line].strip():
        line -= 1
    column = mark.column + (offset if line == 0 else 0)
    if line != mark.line:
        column = len(where.lines[line].rstrip())
    return Place(where, line, column)


def _bad_start(place: Place, where: Document) -> tuple[str, str]:
    line = where.lines[place.line]
    found = line[place.column : place.column + 1]
    if found == "\t":
        return "a tab stands where only spaces indent", "spaces, for example two for each level"
    return f"a value cannot start with `{found}`", f'quotes around it: "{found}…"'


def _under_secret(where: Document, line: int) -> bool:
    """Whether a line may hold the value of a secret-looking key in a line above."""
    depth = _indent(where.lines[line])
    for above in reversed(where.lines[:line]):
        if not above.strip() or _indent(above) >= depth:
            continue
        if opens_secret(above):
            return True
        depth = _indent(above)
    return False


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
