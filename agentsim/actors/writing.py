"""Values as trees that MessagePack keeps: what it would change is marked."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any, Final

import msgspec
import numpy as np

from agentsim.actors.arrays import array_parts, scalar_parts
from agentsim.actors.refs import AgentRef, GroupRef, Ref, ResultRef
from agentsim.actors.refusals import refuse
from agentsim.actors.shapes import Shape, member_value, shape_of
from agentsim.actors.simple import BY_TYPE
from agentsim.actors.wire import (
    ELEMENT,
    KEY,
    MAX_DEPTH,
    PLAIN,
    SURE,
    BadValue,
    Kind,
    Refused,
    mark,
)
from agentsim.errors import UserError

REFERENCES: Final = (AgentRef, GroupRef, ResultRef)
STANDS_FOR: Final = "__agentsim_ref__"
"""Method of what stands for something elsewhere; gives its reference."""

_TUPLE: Final = mark(Kind.TUPLE)
_SET: Final = mark(Kind.SET)
_FROZENSET: Final = mark(Kind.FROZENSET)
_DICT: Final = mark(Kind.DICT)
_OBJECT: Final = mark(Kind.OBJECT)
_MEMBER: Final = mark(Kind.MEMBER)
_REFERENCE: Final = mark(Kind.REFERENCE)
_SIMPLE: Final = mark(Kind.SIMPLE)


class Writer:
    """Writes one value; keeps the tables of what it is made of.

    Args:
        modules: whose classes travel.
        shapes: of classes that were met before; grows.
        careful: look at every int and str; without, MessagePack may fail on one of them.

    Attributes:
        classes: of the objects in the value, in order of first appearance.
        references: likewise.
        pins: what stands for results in the value, in order, as often as it does.
    """

    __slots__ = ("classes", "modules", "pins", "plain", "references", "shapes")

    def __init__(
        self, modules: Collection[str], shapes: dict[type, Shape], *, careful: bool
    ) -> None:
        self.modules = modules
        self.shapes = shapes
        self.plain = SURE if careful else PLAIN
        self.classes: dict[type, int] = {}
        self.references: dict[Ref, int] = {}
        self.pins: list[Any] = []

    def write(self, value: Any, depth: int) -> Any:
        """The tree of a value that is in `depth` containers.

        Raises:
            Refused: something in it does not travel.
        """
        kind = type(value)
        if kind in self.plain:
            return value
        handler = _HANDLERS.get(kind)
        if handler is not None:
            return handler(self, value, depth)
        return self._other(value, kind, depth)

    def tables(self) -> tuple[list[Any], list[Any]]:
        """Classes as paths and names of fields; references as lists."""
        classes = [[self.shapes[kind].path, *self.shapes[kind].fields] for kind in self.classes]
        return classes, [msgspec.to_builtins(ref) for ref in self.references]

    def _text(self, value: str, _: int) -> str:
        """A str, if it is Unicode."""
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise Refused(
                f"is a text with a lone surrogate at position {error.start}, which is no "
                "character; decode it with errors='replace'"
            ) from error
        return value

    def _number(self, value: int, depth: int) -> Any:
        """An int of any length."""
        return value if -(2**63) <= value < 2**64 else self._simple(value, depth)

    def _list(self, value: list[Any], depth: int) -> list[Any]:
        """A list; itself if it is plain."""
        if self.plain.issuperset(map(type, value)) and depth < MAX_DEPTH:
            return value
        return self._items([], value, depth, value)

    def _tuple(self, value: tuple[Any, ...], depth: int) -> list[Any]:
        """A marked list."""
        return self._items([_TUPLE], value, depth, value)

    def _set(self, value: set[Any] | frozenset[Any], depth: int) -> list[Any]:
        """A marked list."""
        _bounded(depth)
        first = _SET if type(value) is set else _FROZENSET
        try:
            return [first, *[self.write(item, depth + 1) for item in value]]
        except Refused as refused:
            raise refused.up(ELEMENT, value) from None

    def _dict(self, value: dict[Any, Any], depth: int) -> Any:
        """A dict, if its keys are plain; else a marked list of keys and values."""
        _bounded(depth)
        plain_keys = self.plain.issuperset(map(type, value))
        if plain_keys and self.plain.issuperset(map(type, value.values())):
            return value
        pairs: list[Any] = []
        key, step = None, KEY
        try:
            for key, item in value.items():
                step = KEY
                pairs.append(key if plain_keys else self.write(key, depth + 1))
                step = ""
                pairs.append(self.write(item, depth + 1))
        except Refused as refused:
            raise refused.up(step or f"[{_shown(key)}]", value) from None
        if plain_keys:
            return dict(zip(pairs[::2], pairs[1::2], strict=True))
        return [_DICT, *pairs]

    def _array(self, value: np.ndarray[Any, Any], _: int) -> list[Any]:
        """A marked list."""
        return array_parts(value)

    def _simple(self, value: Any, depth: int) -> list[Any]:
        """A marked list."""
        simple = BY_TYPE[type(value)]
        parts = simple.parts(value)
        return [
            _SIMPLE,
            simple.name,
            *[part if type(part) in self.plain else self.write(part, depth + 1) for part in parts],
        ]

    def _items(self, tree: list[Any], items: Iterable[Any], depth: int, holder: Any) -> list[Any]:
        _bounded(depth)
        marks = len(tree)
        try:
            for item in items:
                tree.append(self.write(item, depth + 1))  # noqa: PERF401 - keeps its length
        except Refused as refused:
            raise refused.up(f"[{len(tree) - marks}]", holder) from None
        return tree

    def _other(self, value: Any, kind: type, depth: int) -> list[Any]:
        """What stands for something elsewhere, or is of a class of the run's modules."""
        shape = self.shapes.get(kind)
        if shape is None:
            if hasattr(kind, STANDS_FOR) or kind in REFERENCES:
                return self._reference(value)
            if issubclass(kind, np.generic) and kind is value.dtype.type and kind is not np.record:
                return scalar_parts(value)
            shape = self._learned(value, kind)
        index = self.classes.setdefault(kind, len(self.classes))
        if shape.category == "member":
            return [_MEMBER, index, member_value(value)]
        _bounded(depth)
        tree: list[Any] = [_OBJECT, index]
        values = shape.take(value)
        try:
            for item in values:
                tree.append(self.write(item, depth + 1))  # noqa: PERF401 - keeps its length
        except Refused as refused:
            raise refused.up(f".{shape.fields[len(tree) - 2]}", value) from None
        return tree

    def _reference(self, value: Any) -> list[Any]:
        reference = value
        if type(value) not in REFERENCES:
            try:
                reference = getattr(value, STANDS_FOR)()
            except UserError as error:
                raise Refused(f"cannot be passed on: {error}") from error
        if isinstance(reference, ResultRef):
            self.pins.append(value)
        return [
            _REFERENCE,
            self.references.setdefault(reference, len(self.references)),
        ]

    def _learned(self, value: Any, kind: type) -> Shape:
        try:
            shape = shape_of(kind, self.modules)
        except (Refused, BadValue):
            raise refuse(value, kind, self.modules) from None
        self.shapes[kind] = shape
        return shape


def _bounded(depth: int) -> None:
    if depth >= MAX_DEPTH:
        raise Refused(f"has more than {MAX_DEPTH} containers inside each other", deep=True)


def _shown(key: object) -> str:
    """A key in a message; of an object only its type, for its `repr` is the user's code."""
    if type(key) not in PLAIN:
        return type(key).__qualname__
    text = repr(key)
    return text if len(text) <= 40 else f"{text[:39]}…"


_HANDLERS: Final[dict[type, Callable[[Writer, Any, int], Any]]] = {
    **dict.fromkeys(BY_TYPE, Writer._simple),
    int: Writer._number,
    str: Writer._text,
    list: Writer._list,
    tuple: Writer._tuple,
    set: Writer._set,
    frozenset: Writer._set,
    dict: Writer._dict,
    np.ndarray: Writer._array,
}
