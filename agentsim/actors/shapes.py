"""Classes of the run's modules whose objects travel as the values of their fields."""

from __future__ import annotations

import dataclasses
import importlib
import re
from collections.abc import Callable, Collection, Sequence
from enum import Enum, Flag
from functools import cached_property, partial
from inspect import Parameter, signature
from operator import attrgetter
from types import MemberDescriptorType, ModuleType
from typing import Any, Final, Literal

import msgspec

from agentsim.actors.wire import BadValue, Refused

_QUALIFIED = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*")
_UNCOUNTED: Final = frozenset({"__orig_class__"})
"""Attributes of an object that are no state of it."""

Category = Literal["object", "struct", "tuple", "member"]


@dataclasses.dataclass(frozen=True, slots=True)
class Shape:
    """How objects of one class travel.

    Attributes:
        path: `module:qualname`.
        type: the class.
        category: what kind of class it is.
        fields: names of what travels, in order; none for enums.
        known: names that an object's `__dict__` may have.
        values: the fields' values of an object; AttributeError when one is not set.
        make: an object with these values. No `__init__`, `__new__` or `__post_init__` of its class
            runs, for they did where the object was made; a msgspec Struct is the exception: it
            cannot be made without `__post_init__`, and gets its values again afterwards.
    """

    path: str
    type: type
    category: Category
    fields: tuple[str, ...] = ()
    known: frozenset[str] = frozenset()
    values: Callable[[Any], tuple[Any, ...]] = tuple
    make: Callable[[Sequence[Any]], Any] = tuple

    def take(self, value: Any) -> tuple[Any, ...]:
        """What travels of an object.

        Raises:
            Refused: a field has no value, or the object has more than its fields.
        """
        state = getattr(value, "__dict__", None)
        if state and not state.keys() <= self.known:
            extra = ", ".join(sorted(map(str, state.keys() - self.known)))
            raise Refused(f"is a {self.path} with attributes that are no fields of it: {extra}")
        try:
            return self.values(value)
        except AttributeError as error:
            raise Refused(f"is a {self.path} without a value for each field: {error}") from error


def shape_of(kind: type, modules: Collection[str]) -> Shape:
    """How objects of a class travel.

    Raises:
        Refused: they do not.
    """
    path = f"{kind.__module__}:{kind.__qualname__}"
    category = _category(kind)
    if category is None:
        kinds = "dataclass, msgspec.Struct, NamedTuple or enum"
        if kind.__module__ in modules or kind.__module__ == "__main__":
            raise Refused(f"is a {path}, which is no {kinds}: make it one")
        raise Refused(
            f"is a {path}, which does not travel; pass plain data, or a {kinds} of the run's "
            f"modules ({_listed(modules)})"
        )
    if kind.__module__ not in modules:
        raise Refused(_not_allowed(kind, modules))
    if _named(path, modules) is not kind:
        raise Refused(
            f"is a {path}, and that name does not lead to its class: define the class at the top "
            "of its module"
        )
    if category == "member":
        return Shape(path, kind, category)
    fields = _fields(kind, category)
    if category == "object":
        _check_object(kind, path, fields)
    known = _known(kind, fields)
    make = _maker(kind, category, fields)
    return Shape(path, kind, category, fields, known, _getter(category, fields), make)


def find(path: str, modules: Collection[str]) -> Shape:
    """How objects of the class at `module:qualname` travel. Imports the module if it is allowed.

    Raises:
        BadValue: the module is not allowed, or there is no class whose objects travel.
    """
    kind = _named(path, modules)
    if kind is None:
        raise BadValue(f"there is no class {path[:200]!r} in the run's modules")
    try:
        return shape_of(kind, modules)
    except Refused as error:
        raise BadValue(f"objects of {path[:200]!r} do not travel: it {error.reason}") from error


def member_value(value: Enum) -> str | int:
    """What travels of an enum's member: its name, or the bits of a flag.

    Raises:
        Refused: it has bits that no member names.
    """
    if isinstance(value, Flag):
        bits = value._value_
        if type(bits) is not int or bits & ~_mask(type(value)):
            raise Refused("is a flag with bits that no member has")
        return bits
    return value._name_


def member(shape: Shape, sent: object) -> Enum:
    """The member that `member_value` was taken of.

    Raises:
        BadValue: there is no such member.
    """
    kind: Any = shape.type
    if issubclass(kind, Flag):
        if type(sent) is not int or sent < 0 or sent & ~_mask(kind):
            raise BadValue(f"{shape.path} has no such bits")
        flags: Enum = kind(sent)
        return flags
    named: Enum | None = kind.__members__.get(sent) if type(sent) is str else None
    if named is None:
        raise BadValue(f"{shape.path} has no such member")
    return named


def _mask(kind: type[Flag]) -> int:
    mask = 0
    for each in kind.__members__.values():
        mask |= each._value_
    return mask


def _category(kind: type) -> Category | None:
    if issubclass(kind, Enum):
        return "member"
    if issubclass(kind, msgspec.Struct):
        return "struct"
    if issubclass(kind, tuple):
        return "tuple" if type(getattr(kind, "_fields", None)) is tuple else None
    return "object" if dataclasses.is_dataclass(kind) else None


def _fields(kind: Any, category: Category) -> tuple[str, ...]:
    if category == "struct":
        return tuple(kind.__struct_fields__)
    if category == "tuple":
        return tuple(kind._fields)
    return tuple(field.name for field in dataclasses.fields(kind))


def _getter(category: Category, fields: tuple[str, ...]) -> Callable[[Any], tuple[Any, ...]]:
    if category == "tuple":
        return tuple
    if not fields:
        return lambda _: ()
    get = attrgetter(*fields)
    return get if len(fields) > 1 else lambda value: (get(value),)


def _maker(
    kind: type, category: Category, fields: tuple[str, ...]
) -> Callable[[Sequence[Any]], Any]:
    if category == "tuple":
        return partial(tuple.__new__, kind)
    if category == "struct":
        return _struct_maker(kind, fields)

    def make(values: Sequence[Any]) -> Any:
        made: Any = object.__new__(kind)
        for name, value in zip(fields, values, strict=True):
            object.__setattr__(made, name, value)
        return made

    return make


def _struct_maker(kind: type, fields: tuple[str, ...]) -> Callable[[Sequence[Any]], Any]:
    def make(values: Sequence[Any]) -> Any:
        return kind(**dict(zip(fields, values, strict=True)))

    def make_and_set(values: Sequence[Any]) -> Any:
        made = make(values)
        for name, value in zip(fields, values, strict=True):
            msgspec.structs.force_setattr(made, name, value)
        return made

    if hasattr(kind, "__post_init__"):
        return make_and_set
    by_position = all(
        parameter.kind is Parameter.POSITIONAL_OR_KEYWORD
        for parameter in signature(kind).parameters.values()
    )
    return (lambda values: kind(*values)) if by_position else make


def _known(kind: type, fields: tuple[str, ...]) -> frozenset[str]:
    """Fields, and what is computed again when it is asked for."""
    cached = {
        name
        for base in kind.__mro__
        for name, attribute in vars(base).items()
        if isinstance(attribute, cached_property)
    }
    return frozenset(fields) | cached | _UNCOUNTED


def _check_object(kind: type, path: str, fields: tuple[str, ...]) -> None:
    """Refuse dataclasses that fields alone do not make: of a builtin, or with properties."""
    try:
        object.__new__(kind)
    except TypeError as error:
        raise Refused(f"is a {path}, a dataclass that is more than its fields: {error}") from error
    for name in fields:
        for base in kind.__mro__:
            attribute = vars(base).get(name)
            if hasattr(type(attribute), "__set__"):
                if not isinstance(attribute, MemberDescriptorType):
                    raise Refused(f"is a {path}, whose field {name} is a property")
                break


def _not_allowed(kind: type, modules: Collection[str]) -> str:
    what = f"is a {kind.__module__}:{kind.__qualname__}"
    if kind.__module__ == "__main__":
        return f"{what}, of the program itself: move the class into a module, and name that"
    listed = _listed(modules)
    return f"{what}, and {kind.__module__} is none of the run's modules ({listed}): add it"


def _listed(modules: Collection[str]) -> str:
    return ", ".join(sorted(modules)) or "there are none"


def _named(path: str, modules: Collection[str]) -> type | None:
    """The class at `module:qualname`, by plain names: nothing of the module is called."""
    module, _, qualname = path.partition(":")
    if module not in modules or not _QUALIFIED.fullmatch(qualname):
        return None
    found: Any = _imported(module)
    for name in qualname.split("."):
        if not isinstance(found, type | ModuleType):
            return None
        found = vars(found).get(name)
    if not isinstance(found, type):
        return None
    same = found.__module__ == module and found.__qualname__ == qualname
    return found if same else None


def _imported(module: str) -> ModuleType:
    try:
        return importlib.import_module(module)
    except (Exception, SystemExit) as error:
        raise BadValue(f"module {module} cannot be imported here: {error!r}") from error
