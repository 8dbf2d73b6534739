"""The reference pages of the files, from the models and their docstrings."""

from __future__ import annotations

import inspect
import types
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args, get_origin

import annotated_types
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from agentsim.config import shape
from agentsim.config.base import Sweep
from agentsim.config.models import Model
from agentsim.config.shape import Type, as_model, is_union, members, type_of

MODELS_PAGE = "models.md"
SWEEPS_PAGE = "../sweeps.md"
MODELS: tuple[type[BaseModel], ...] = tuple(
    model for member in members(type_of(Model)) if (model := as_model(member.form))
)
"""The models of a scenario's `model:` part."""
NAME = "NAME"
"""What a path has for a name that the author of a file chooses."""


@dataclass(frozen=True, slots=True)
class Part:
    """A map that may stand in a file.

    Attributes:
        model: what checks it.
        paths: where it may stand; empty for the file itself.
    """

    model: type[BaseModel]
    paths: list[str] = field(default_factory=list)


def parts(model: type[BaseModel], path: str = "") -> list[Part]:
    """A map and all that stand in it, outer ones first; a scenario's models are a page apart."""
    found: dict[type[BaseModel], Part] = {}
    waiting = [(model, path)]
    while waiting:
        model, path = waiting.pop(0)
        part = found.setdefault(model, Part(model))
        if path not in part.paths:
            part.paths.append(path)
            waiting += [
                below
                for name, info in model.model_fields.items()
                for below in _inside(type_of(info.annotation, info), f"{path}.{name}".strip("."))
                if below[0] not in MODELS
            ]
    return list(found.values())


def _inside(kind: Type, path: str) -> Iterator[tuple[type[BaseModel], str]]:
    """The models in an annotation, each with its path."""
    model, origin = as_model(kind.form), get_origin(kind.form)
    if model:
        yield model, path
    elif origin is dict:
        yield from _inside(type_of(get_args(kind.form)[1]), f"{path}.{NAME}")
    elif origin in (list, tuple):
        yield from _inside(type_of(get_args(kind.form)[0]), f"{path}[]")
    for member in members(kind):
        yield from _inside(member, path)


def sections(model: type[BaseModel], title: str, path: str, games: Mapping[str, str]) -> str:
    """A map and all that stand in it as Markdown: what each is, and a table of its keys.

    Args:
        model: what checks the map.
        title: of its section.
        path: where it stands; empty for the file itself.
        games: pages of the games by `type`.
    """
    found = parts(model, path)
    shared = Counter(part.paths[0] for part in found)
    texts = []
    for part in found:
        first = part.paths[0]
        own = f"`{first}`"
        if shared[first] > 1:
            own += f" with `{_mark(part.model)}`"
        texts.append(_section(part, title if part.model is model else own, games))
    return "\n".join(texts)


def _mark(model: type[BaseModel]) -> str:
    """What tells a map from others that may stand in its place."""
    name, info = next(iter(model.model_fields.items()))
    words = shape.words(type_of(info.annotation, info))
    return f"{name}: {words[0]}" if len(words) == 1 else name


def _section(part: Part, title: str, games: Mapping[str, str]) -> str:
    lines = [f"## {title}", "", _flat(inspect.getdoc(part.model) or "")]
    others = part.paths[1:]
    if others:
        lines += ["", "The same at " + ", ".join(f"`{path}`" for path in others) + "."]
    lines += ["", "| key | takes | default | example | meaning |", "|---|---|---|---|---|"]
    for name in _names(part.model):
        lines.append("| " + " | ".join(_row(name, part.model.model_fields[name], games)) + " |")
    return "\n".join(lines) + "\n"


def _names(model: type[BaseModel]) -> list[str]:
    """The keys of a map, first the one that says what it is."""
    return sorted(model.model_fields, key=lambda name: name != "backend")


def _row(name: str, info: FieldInfo, games: Mapping[str, str]) -> list[str]:
    kind = type_of(info.annotation, info)
    takes, default, example = _takes(kind), _default(info), _example(kind)
    if kind.form is None:  # the game, which has its own model
        takes = "a map: " + ", ".join(f"[{game}]({page})" for game, page in games.items())
    example = "" if example == default else example
    cells = [f"`{name}`", takes, default, example, _flat(info.description or "")]
    return [cell.replace("|", "\\|") for cell in cells]


def _takes(kind: Type) -> str:
    """What may stand somewhere, in YAML words."""
    form, origin, arguments = kind.form, get_origin(kind.form), get_args(kind.form)
    model = as_model(form)
    if form is types.NoneType:
        words = "null"
    elif origin is Literal:
        words = " or ".join(f"`{word}`" for word in arguments)
    elif form == Sweep:
        words = f"a map of lists, or a list of maps: [sweeps]({SWEEPS_PAGE})"
    elif is_union(form):
        inner = [_takes(member) for member in members(kind)]
        words = " or ".join(dict.fromkeys(inner))
    elif model in MODELS:
        words = f"a map: [a model]({MODELS_PAGE})"
    elif origin is dict:
        words = f"a map from names to {_plural(type_of(arguments[1]))}"
    elif origin in (list, tuple):
        fixed = origin is tuple and Ellipsis not in arguments
        size = f"{len(arguments)} " if fixed else ""
        words = f"a list of {size}{_plural(type_of(arguments[0]))}"
    else:
        words = " ".join(part for part in (shape.noun(kind), shape.bounds(kind)) if part)
    least = next((item.min_length for item in kind.metadata if _has_least(item)), 0)
    if least:
        words += ", not empty" if least == 1 else f", at least {least}"
    return f"{words} or null" if kind.optional and form is not types.NoneType else words


def _has_least(item: Any) -> bool:
    return isinstance(item, annotated_types.MinLen) and item.min_length > 0


def _plural(kind: Type) -> str:
    """What the items of a list or map are."""
    if kind.form is None:
        return "anything"
    noun = _takes(kind)
    singular, _, bounds = noun.partition(" from ")
    words = {"a number": "numbers", "a map": "maps", "text": "texts"}
    if singular in words:
        return words[singular] + (f" from {bounds}" if bounds else "")
    return noun.replace(" or ", ", ") if get_origin(kind.form) is Literal else noun


def _default(info: FieldInfo) -> str:
    if info.is_required():
        return "must be given"
    default = info.get_default(call_default_factory=True, validated_data={})
    if isinstance(default, BaseModel):
        return "as below"
    if default == "":
        return "empty"
    return f"`{shape.flow(default)}`"


def _example(kind: Type) -> str:
    example = shape.example_of(kind)
    if example is None or isinstance(example, BaseModel):
        info = kind.field
        words = info.default if info and info.default is not PydanticUndefined else None
        return f"`{shape.flow(words)}`" if words not in (None, "") else ""
    return f"`{shape.flow(example)}`" if example != "" else ""


def _flat(text: str) -> str:
    """A docstring on one line."""
    return " ".join(text.split())


def defaults(model: type[BaseModel], given: Mapping[str, Any]) -> str:
    """A map as YAML with every key that has a value, one key a line.

    Args:
        model: what checks the map.
        given: values of the keys that have no default.
    """
    value = model.model_validate({**given}).model_dump(mode="json")
    return "".join(
        f"{key}: {shape.flow(value[key])}\n" for key in _names(model) if value[key] is not None
    )
