"""Values from trees that came from elsewhere. Nothing in a tree is taken on trust."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Sized
from typing import Any, Final, TypeVar

import msgspec

from agentsim.actors.arrays import read_array, read_scalar
from agentsim.actors.refs import AgentRef, GroupRef, Ref, ResultRef
from agentsim.actors.shapes import Shape, member
from agentsim.actors.simple import read_simple
from agentsim.actors.wire import MAX_DEPTH, PLAIN, BadValue, Kind, Mark

_PARTS_DEPTH: Final = 4
"""What a value without items may have inside it: a datetime its zone, that its offset."""

C = TypeVar("C", bound=Sized)


_KINDS: Final[dict[int, Any]] = {2: ResultRef, 3: GroupRef, 4: AgentRef}
_LARGEST_GROUP: Final = 1_000_000_000


def read_reference(item: object) -> Ref:
    """A reference from its list.

    Raises:
        BadValue: it is none.
    """
    if type(item) is not list or len(item) not in _KINDS:
        raise BadValue("a reference is neither of an agent, nor of a group, nor of a result")
    try:
        reference: Ref = msgspec.convert(item, _KINDS[len(item)])
    except msgspec.ValidationError as error:
        raise BadValue(f"a reference has parts that do not fit: {error}") from error
    if isinstance(reference, GroupRef):
        _check_parts(reference.parts)
    return reference


def _check_parts(parts: tuple[tuple[int, int, int], ...]) -> None:
    """Every agent of a group is in one part, and there are not absurdly many."""
    total = 0
    for worker, first, count in parts:
        if worker < 0 or first != total or count < 1:
            raise BadValue("the parts of a group do not follow each other")
        total += count
    if total > _LARGEST_GROUP:
        raise BadValue(f"a group claims {total} agents")


def read_class(item: object, find: Callable[[str], Shape]) -> Shape:
    """A class from its list.

    Raises:
        BadValue: it is none of the run, or has other fields here.
    """
    if type(item) is not list or not item or not all(type(part) is str for part in item):
        raise BadValue("a class is no path with names of fields")
    shape = find(item[0])
    if tuple(item[1:]) != shape.fields:
        raise BadValue(
            f"{shape.path} has other fields here than where it was sent: {', '.join(shape.fields)}"
        )
    return shape


class Reader:
    """Reads one value.

    Args:
        classes: of the objects in it.
        stand_ins: what stands for the references in it.
    """

    __slots__ = ("classes", "stand_ins")

    def __init__(self, classes: Sequence[Shape], stand_ins: Sequence[Any]) -> None:
        self.classes = classes
        self.stand_ins = stand_ins

    def read(self, tree: Any, depth: int) -> Any:
        """The value of a tree that is in `depth` containers.

        Raises:
            BadValue: the tree is none of a value.
        """
        kind = type(tree)
        if kind in PLAIN:
            return tree
        if depth > MAX_DEPTH + _PARTS_DEPTH:
            raise BadValue(f"a value has more than {MAX_DEPTH} containers inside each other")
        if kind is list:
            if tree and type(tree[0]) is Mark:
                build = _BY_CODE.get(tree[0].code)
                if build is None:
                    raise BadValue("the tables of a value stand inside it")
                return build(self, tree, depth)
            return tree if PLAIN.issuperset(map(type, tree)) else self._each(tree, 0, depth)
        if kind is not dict:
            raise BadValue(f"a {kind.__name__} has no place in a value")
        if not PLAIN.issuperset(map(type, tree)):
            raise BadValue("a key is a container, and is not marked")
        if not PLAIN.issuperset(map(type, tree.values())):
            for key, item in tree.items():
                if type(item) not in PLAIN:
                    tree[key] = self.read(item, depth + 1)
        return tree

    def _each(self, tree: list[Any], start: int, depth: int) -> list[Any]:
        """Reads the items from `start` on, in place."""
        for index in range(start, len(tree)):
            item = tree[index]
            if type(item) not in PLAIN:
                tree[index] = self.read(item, depth + 1)
        return tree

    def _object(self, tree: list[Any], depth: int) -> Any:
        shape: Shape = _at(self.classes, tree, "class")
        if shape.category == "member":
            raise BadValue(f"{shape.path} has members, no objects")
        if len(tree) - 2 != len(shape.fields):
            raise BadValue(f"{len(tree) - 2} values came for the fields of {shape.path}")
        return shape.make(self._each(tree, 2, depth)[2:])

    def _member(self, tree: list[Any], _: int) -> Any:
        shape: Shape = _at(self.classes, tree, "class")
        if shape.category != "member" or len(tree) != 3:
            raise BadValue(f"a member of {shape.path} is none")
        return member(shape, tree[2])

    def _reference(self, tree: list[Any], _: int) -> Any:
        if len(tree) != 2:
            raise BadValue("a reference has something beside it")
        return _at(self.stand_ins, tree, "reference")

    def _tuple(self, tree: list[Any], depth: int) -> tuple[Any, ...]:
        return tuple(self._each(tree, 1, depth)[1:])

    def _set(self, tree: list[Any], depth: int) -> set[Any]:
        return _distinct(set(self._each(tree, 1, depth)[1:]), len(tree) - 1)

    def _frozenset(self, tree: list[Any], depth: int) -> frozenset[Any]:
        return _distinct(frozenset(self._each(tree, 1, depth)[1:]), len(tree) - 1)

    def _dict(self, tree: list[Any], depth: int) -> dict[Any, Any]:
        self._each(tree, 1, depth)
        return _distinct(dict(zip(tree[1::2], tree[2::2], strict=True)), len(tree) // 2)

    def _simple(self, tree: list[Any], depth: int) -> Any:
        self._each(tree, 1, depth)
        return read_simple(tree[1] if len(tree) > 1 else None, tree[2:])

    def _array(self, tree: list[Any], _: int) -> Any:
        return read_array(tree[1:])

    def _scalar(self, tree: list[Any], _: int) -> Any:
        return read_scalar(tree[1:])


def _distinct(found: C, count: int) -> C:
    if len(found) != count:
        raise BadValue("a set or dict has something twice")
    return found


def _at(table: Sequence[Any], tree: list[Any], what: str) -> Any:
    index = tree[1] if len(tree) > 1 else None
    if type(index) is not int or not 0 <= index < len(table):
        raise BadValue(f"a value names a {what} that did not come with it")
    return table[index]


_BY_CODE: Final[dict[int, Callable[[Reader, list[Any], int], Any]]] = {
    Kind.TUPLE.value: Reader._tuple,
    Kind.SET.value: Reader._set,
    Kind.FROZENSET.value: Reader._frozenset,
    Kind.DICT.value: Reader._dict,
    Kind.OBJECT.value: Reader._object,
    Kind.MEMBER.value: Reader._member,
    Kind.REFERENCE.value: Reader._reference,
    Kind.ARRAY.value: Reader._array,
    Kind.SCALAR.value: Reader._scalar,
    Kind.SIMPLE.value: Reader._simple,
}
