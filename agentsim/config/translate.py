"""From pydantic's errors to findings in YAML words, at their places."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import get_args, get_origin

from pydantic import BaseModel
from pydantic_core import ErrorDetails

from agentsim.config import shape
from agentsim.config.codes import CODES
from agentsim.config.keys import Fields, NearMiss, missing_key, near_miss, unknown_key
from agentsim.config.rules import BESIDE, NO_KIND
from agentsim.config.scalars import is_too_large
from agentsim.config.shape import Spot, Type
from agentsim.config.tree import Mapping, Node, Path, Scalar, beside, find, key_place, place
from agentsim.config.words import found, name_of, suggestion, type_hint
from agentsim.errors import Finding

_NO_TAG = (NO_KIND, "union_tag_not_found")
_LIMITS = {
    "greater_than_equal": ("ge", "at least"),
    "greater_than": ("gt", "above"),
    "less_than_equal": ("le", "at most"),
    "less_than": ("lt", "below"),
}
_PATTERNS = {
    r"^[a-z0-9][a-z0-9-]{0,63}$": "lower-case letters, digits and hyphens, at most 64",
    r"^https?://[^/]": "an address that starts with http:// or https://",
    r"^[A-Z_][A-Z0-9_]*$": "the name of an environment variable, in capitals",
    r"^\S[^\r\n]{0,59}$": "the name of a language, at most 60 characters",
    r"^[A-Za-z_][A-Za-z0-9_]*$": "the name of an environment variable",
    r"^[^\s-]\S*$": "a name or address without spaces, which does not begin with a hyphen",
    r"^[A-Za-z]+=\S.*$": "an option of ssh as in ConnectTimeout=5",
}
_WRONG_TYPE = re.compile(r".*_type|int_from_float|none_required")


@dataclass(frozen=True, slots=True)
class Problem:
    """One error of pydantic with where it stands.

    Attributes:
        error: as pydantic has it.
        spot: its place in the tree and what may stand there.
        fields: the keys that may stand beside it, if it is about a key.
    """

    error: ErrorDetails
    spot: Spot
    fields: Fields

    @property
    def kind(self) -> str:
        """Pydantic's type of the error."""
        return self.error["type"]

    @property
    def path(self) -> Path:
        """Where it stands in the tree."""
        return self.spot.path


def locate(model: type[BaseModel], errors: Iterable[ErrorDetails]) -> list[Problem]:
    """Locate errors; where a union has tried several members, keep those of the closest one."""
    located = [_problem(model, error) for error in errors]
    depths: dict[tuple[Path, str], int] = {}
    for problem in located:
        for branch in problem.spot.branches:
            key = (problem.path[: branch.at], branch.tag)
            depths[key] = max(depths.get(key, 0), len(problem.path))
    chosen: dict[Path, str] = {}
    for (path, tag), depth in depths.items():
        if path not in chosen or depth > depths[path, chosen[path]]:
            chosen[path] = tag
    return [
        problem
        for problem in located
        if all(chosen[problem.path[: item.at]] == item.tag for item in problem.spot.branches)
    ]


def _problem(model: type[BaseModel], error: ErrorDetails) -> Problem:
    spot = shape.locate(model, error["loc"])
    fields: Fields = {}
    if error["type"] == "extra_forbidden":
        owner = shape.as_model(shape.locate(model, error["loc"][:-1]).type.form)
        fields = dict(owner.model_fields) if owner else {}
    elif error["type"] in _NO_TAG:
        context = error.get("ctx", {})
        keys = context.get("keys") or str(context.get("discriminator", "")).strip("'")
        fields = dict.fromkeys(str(keys).split(", "))
    return Problem(error, spot, fields)


def meant(problem: Problem, node: Node) -> NearMiss | None:
    """The key that was meant, if a problem is a key that is close to an absent one."""
    if problem.kind == "extra_forbidden":
        return near_miss(problem.path, problem.fields, node)
    here = find(node, *problem.path)
    if problem.kind in _NO_TAG and isinstance(here, Mapping):
        close = (near_miss((*problem.path, key), problem.fields, node) for key in here.entries)
        return next((miss for miss in close if miss), None)
    return None


def to_finding(problem: Problem, node: Node) -> Finding:
    """The finding for an error."""
    kind, path = problem.kind, problem.path
    if kind == "missing" and isinstance(path[-1], int):
        message = f"{name_of(path[:-1])} needs more than {path[-1]} values"
        return place(node, path[:-1]).finding("out-of-range", message)
    if kind == "missing":
        return missing_key(path, shape.snippet(problem.spot.type, str(path[-1])), node)
    if kind == "extra_forbidden":
        return unknown_key(path, problem.fields, node)
    if kind in _NO_TAG:
        return _no_tag(problem, node)
    if kind == "union_tag_invalid":
        words = re.findall(r"'([^']*)'", str(problem.error["ctx"]["expected_tags"]))
        return unknown_word((*path, next(iter(_tag_key(problem)))), words, node)
    if kind in CODES:
        return _custom(problem, node)
    if kind in _LIMITS:
        name, words_ = _LIMITS[kind]
        limit = shape.number(problem.error["ctx"][name])
        message = f"{name_of(path)} must be {words_} {limit}, found {found(node, path)}"
        return _at(problem, node, "out-of-range", message)
    if kind == "literal_error" or _WRONG_TYPE.fullmatch(kind):
        return _wrong_type(problem, node)
    return _other(problem, node)


def unknown_word(path: Path, words: Iterable[str], node: Node) -> Finding:
    """The finding for a value that is not among the possible words."""
    words = tuple(words)
    here = find(node, *path)
    is_word = isinstance(here, Scalar) and bool(here.written)
    hint = suggestion(here.written, words) if isinstance(here, Scalar) else ""
    code = "unknown-value" if is_word else "wrong-type"
    message = f"{name_of(path)} cannot be {found(node, path)}"
    return place(node, path).finding(code, message, f"one of: {', '.join(words)}", hint)


def _tag_key(problem: Problem) -> list[str]:
    return [str(problem.error["ctx"]["discriminator"]).strip("'")]


def _at(
    problem: Problem, node: Node, code: str, message: str, expected: str = "", hint: str = ""
) -> Finding:
    where = key_place(node, problem.path) if problem.spot.is_key else None
    where = where or place(node, problem.path)
    return where.finding(code, message, expected or shape.expected(problem.spot.type), hint)


def _no_tag(problem: Problem, node: Node) -> Finding:
    path, keys = problem.path, list(problem.fields)
    if len(keys) == 1:
        example = shape.example_of(problem.spot.type)
        snippet = shape.flow(example)[1:-1] if isinstance(example, dict) else f"{keys[0]}: …"
        return missing_key((*path, keys[0]), snippet, node)
    words = f"a map with one of: {', '.join(keys)}"
    if isinstance(find(node, *path), Mapping):
        message = f"{name_of(path)} lacks a key that says what it is"
        return _at(problem, node, "missing-key", message, words)
    message = f"{name_of(path)} must be a map, found {found(node, path)}"
    return _at(problem, node, "wrong-type", message, words)


def _custom(problem: Problem, node: Node) -> Finding:
    """A finding of the file models' own rules."""
    name, message = name_of(problem.path), problem.error["msg"]
    if problem.spot.is_key or problem.kind == "contradiction":
        name = name_of(problem.path[:-1])
    if problem.path and name != "the file":
        message = f"{name}: {message}"
    expected = "shares that sum to 1" if problem.kind == "shares-sum" else ""
    where = key_place(node, problem.path) if problem.spot.is_key else None
    where = where or place(node, problem.path)
    other = problem.error.get("ctx", {}).get(BESIDE, "")
    note = f"{other} stands here"
    related = beside(node, (*problem.path[:-1], other), note, where) if other else ()
    return where.finding(problem.kind, message, expected, related=related)


def _wrong_type(problem: Problem, node: Node) -> Finding:
    path, kind = problem.path, problem.spot.type
    branches = problem.spot.branches
    if branches and branches[-1].at == len(path):
        return unknown_word(path, _alternatives(branches[-1].union), node)
    if get_origin(kind.form) is not None and problem.kind == "literal_error":
        return unknown_word(path, map(str, get_args(kind.form)), node)
    here, noun = find(node, *path), shape.noun(kind)
    hint = ""
    if isinstance(here, Scalar):
        if noun in ("a number", "a whole number") and is_too_large(here.written):
            message = f"{name_of(path)} must be a finite number, found {found(node, path)}"
            return _at(problem, node, "out-of-range", message)
        hint = type_hint(here, noun)
    message = f"{name_of(path)} must be {noun}, found {found(node, path)}"
    return _at(problem, node, "wrong-type", message, hint=hint)


def _alternatives(union: Type) -> list[str]:
    """What the members of a union look like."""
    words: list[str] = []
    for member in shape.members(union):
        example = shape.example_of(member)
        if shape.as_model(member.form) and example is not None:
            words.append(shape.flow(example))
        else:
            words += shape.words(member) or [shape.noun(member)]
    return words


def _other(problem: Problem, node: Node) -> Finding:
    """Lengths, patterns, and what the models of games say themselves."""
    kind, context = problem.kind, problem.error.get("ctx", {})
    name, what = name_of(problem.path), found(node, problem.path)
    if kind in ("too_short", "string_too_short"):
        least = context.get("min_length", 1)
        message = f"{name} must not be empty"
        if least > 1:
            message = f"{name} needs at least {least} {_unit(kind)}"
        return _at(problem, node, "out-of-range", message)
    if kind in ("too_long", "string_too_long"):
        message = f"{name} takes at most {context.get('max_length')} {_unit(kind)}"
        return _at(problem, node, "out-of-range", message)
    if kind == "string_pattern_mismatch":
        words = _PATTERNS.get(context["pattern"], "text of another form")
        example = shape.example_of(problem.spot.type)
        expected = f"{words}, for example {example}" if example else words
        return _at(problem, node, "bad-value", f"{name} cannot be {what}", expected)
    words = str(context.get("error") or problem.error["msg"])
    return _at(problem, node, "bad-value", f"{name}: {words}")


def _unit(kind: str) -> str:
    """What a length counts."""
    return "characters" if kind.startswith("string") else "values"
