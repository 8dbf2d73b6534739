"""What the file models say about a place: which field it is, what may stand there, an example."""

from __future__ import annotations

import types
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import annotated_types
from pydantic import BaseModel, Tag
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from agentsim.config.tree import Path

KEY = "[key]"
"""Pydantic's last step of a place that is a key of a map, not its value."""


@dataclass(frozen=True, slots=True)
class Type:
    """An annotation without its wrappers.

    Attributes:
        form: a class, or a typing form such as a union or `list[int]`; None for anything.
        metadata: bounds, patterns, tags and discriminators.
        optional: whether null may stand there.
        field: the field whose annotation it is, if it is one.
    """

    form: Any
    metadata: tuple[Any, ...] = ()
    optional: bool = False
    field: FieldInfo | None = None


@dataclass(frozen=True, slots=True)
class Branch:
    """A step of pydantic's place that chooses a member of a union.

    Attributes:
        at: length of the path before it.
        tag: the step.
        union: the union.
    """

    at: int
    tag: str
    union: Type


@dataclass(frozen=True, slots=True)
class Spot:
    """Where an error of pydantic stands.

    Attributes:
        path: in the tree.
        type: what may stand there.
        branches: which members of unions were tried on the way.
        is_key: whether it is about the last key, not about its value.
    """

    path: Path
    type: Type
    branches: tuple[Branch, ...]
    is_key: bool = False


def type_of(annotation: Any, field: FieldInfo | None = None) -> Type:
    """Take an annotation out of its wrappers."""
    metadata: list[Any] = list(field.metadata) if field else []
    if field and field.discriminator is not None:
        metadata.append(field.discriminator)
    optional = False
    while True:
        if get_origin(annotation) is Annotated:
            annotation, *extra = get_args(annotation)
            for item in extra:
                metadata += item.metadata if isinstance(item, FieldInfo) else [item]
                if isinstance(item, FieldInfo) and item.discriminator is not None:
                    metadata.append(item.discriminator)
        elif is_union(annotation) and type(None) in get_args(annotation):
            optional = True
            rest = [member for member in get_args(annotation) if member is not type(None)]
            annotation = rest[0] if len(rest) == 1 else Union[tuple(rest)]  # noqa: UP007
        else:
            form = None if annotation is Any else annotation
            return Type(form, tuple(metadata), optional, field)


def is_union(form: Any) -> bool:
    """Whether an annotation is a union."""
    return get_origin(form) in (Union, types.UnionType)


def as_model(form: Any) -> type[BaseModel] | None:
    """The annotation if it is a model."""
    return form if isinstance(form, type) and issubclass(form, BaseModel) else None


def members(kind: Type) -> list[Type]:
    """The members of a union."""
    return [type_of(member) for member in get_args(kind.form)] if is_union(kind.form) else []


def locate(model: type[BaseModel], loc: tuple[str | int, ...]) -> Spot:
    """Follow pydantic's place of an error through the models."""
    here = Type(model)
    path: Path = ()
    branches: list[Branch] = []
    for step in loc:
        if step == KEY:
            return Spot(path, here, tuple(branches), is_key=True)
        if is_union(here.form):
            branches.append(Branch(len(path), str(step), here))
            here = _member(here, str(step))
            continue
        here = _below(here, step)
        path = (*path, step)
    return Spot(path, here, tuple(branches))


def _below(kind: Type, step: str | int) -> Type:
    model = as_model(kind.form)
    if model:
        field = model.model_fields.get(str(step))
        return type_of(field.annotation, field) if field else Type(None)
    origin, arguments = get_origin(kind.form), get_args(kind.form)
    if origin is dict:
        return type_of(arguments[1])
    if origin is tuple and isinstance(step, int) and Ellipsis not in arguments:
        return type_of(arguments[step]) if step < len(arguments) else Type(None)
    return type_of(arguments[0]) if arguments and origin is not Literal else Type(None)


def _member(kind: Type, tag: str) -> Type:
    for member in members(kind):
        model = as_model(member.form)
        tags = [item.tag for item in member.metadata if isinstance(item, Tag)]
        if tag in tags or (model and (model.__name__ == tag or tag in _fixed(model, kind))):
            return member
        if get_origin(member.form) is Literal and tag.startswith("literal["):
            return member
        name = getattr(get_origin(member.form) or member.form, "__name__", "")
        if name and tag.split("[")[0] == name:
            return member
    return Type(None)


def _fixed(model: type[BaseModel], union: Type) -> tuple[str, ...]:
    """The values of the field that tells a union's members apart."""
    for item in union.metadata:
        if isinstance(item, str) and item in model.model_fields:
            return get_args(model.model_fields[item].annotation)
    return ()


def words(kind: Type) -> list[str]:
    """The words of a literal; empty for anything else."""
    return [str(word) for word in get_args(kind.form)] if get_origin(kind.form) is Literal else []


def noun(kind: Type) -> str:
    """What may stand somewhere, in YAML words."""
    form, origin = kind.form, get_origin(kind.form)
    if origin is Literal:
        return " or ".join(words(kind))
    if is_union(form):
        return " or ".join(dict.fromkeys(noun(member) for member in members(kind)))
    if as_model(form) or origin is dict:
        return "a map"
    names: dict[Any, str] = {
        int: "a whole number",
        float: "a number",
        str: "text",
        bool: "true or false",
        list: "a list",
        tuple: "a list",
    }
    return names.get(origin or form, "something else")


def bounds(kind: Type) -> str:
    """The bounds of a number or length, in words; may be empty."""
    low = high = ""
    for item in kind.metadata:
        if isinstance(item, annotated_types.Ge):
            low = f"from {number(item.ge)}"
        elif isinstance(item, annotated_types.Gt):
            low = f"above {number(item.gt)}"
        elif isinstance(item, annotated_types.Le):
            high = f"{'to' if low.startswith('from') else 'at most'} {number(item.le)}"
        elif isinstance(item, annotated_types.Lt):
            high = f"below {number(item.lt)}"
    joint = " " if high.startswith("to") else ", "
    return joint.join(part for part in (low, high) if part)


def number(value: Any) -> str:
    """A number as an author would write it."""
    if value == 2**63:
        return "2^63"
    return f"{value:.10g}" if isinstance(value, float) else str(value)


def expected(kind: Type) -> str:
    """What may stand somewhere, with bounds and an example."""
    text = " ".join(part for part in (noun(kind), bounds(kind)) if part)
    example = example_of(kind)
    if example is None or words(kind):
        return text
    return f"{text}, for example {flow(example)}"


def example_of(kind: Type) -> Any:
    """A value that may stand somewhere, None if there is no telling."""
    field = kind.field
    if field and field.examples:
        return field.examples[0]
    if field and field.default not in (None, PydanticUndefined):
        return field.default
    model = as_model(kind.form)
    if model:
        fields = model.model_fields
        names = [name for name in fields if fields[name].is_required()] or list(fields)[:3]
        examples = {name: example_of(_below(kind, name)) for name in names}
        return {name: example for name, example in examples.items() if example is not None}
    if get_origin(kind.form) is Literal:
        return get_args(kind.form)[0]
    return None


def snippet(kind: Type, name: str) -> str:
    """The smallest valid text for a key that is missing."""
    example = example_of(kind)
    return f"{name}: {flow(example)}" if example is not None else f"{name}: …"


def flow(value: Any) -> str:
    """A value as YAML on one line."""
    if isinstance(value, BaseModel):
        value = value.model_dump(exclude_none=True)
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {flow(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(flow(item) for item in value) + "]"
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    return number(value)
