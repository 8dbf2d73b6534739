"""Values of users' programs as bytes: types stay what they are, nothing is ever unpickled.

What travels: None, bool, int, float, str, bytes, bytearray, complex, list, tuple, set, frozenset,
dict, range; dates and times; Decimal, Fraction, UUID, Path; numpy arrays and scalars of a fixed
size; dataclasses, msgspec Structs, NamedTuples and enums of the run's modules; and what stands for
something elsewhere: a proxy, a placeholder. Everything else is refused where it is sent.

What arrives is equal and of the same type, and a copy: an object that occurs twice in a value
arrives as two. Objects are made of their fields and run no code of their class, with one exception
(`Shape.make`); hashing them, in sets and as keys, does. Arrays can be written to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from agentsim.actors.reading import Reader, read_class, read_reference
from agentsim.actors.refs import Ref, ResultRef
from agentsim.actors.shapes import Shape, find
from agentsim.actors.wire import (
    KEY,
    MARKS,
    MAX_BYTES,
    MAX_DEPTH,
    PLAIN,
    BadValue,
    CannotTravel,
    Kind,
    Mark,
    Refused,
    explained,
    extension,
    mark,
)
from agentsim.actors.writing import Writer

__all__ = ["MAX_BYTES", "MAX_DEPTH", "BadValue", "CannotTravel", "Codec"]

_encoder: Final = msgspec.msgpack.Encoder()
_decoder: Final = msgspec.msgpack.Decoder(ext_hook=extension)
_tables: Final = msgspec.msgpack.Decoder(
    tuple[Any, msgspec.Raw, list[Any], msgspec.Raw], ext_hook=extension
)
_TABLES: Final = mark(Kind.TABLES)
_TUPLE: Final = mark(Kind.TUPLE)
_TUPLE_READ: Final = MARKS[Kind.TUPLE.value]
_TABLES_CODE: Final[int] = Kind.TABLES.value
_TABLES_START: Final = _encoder.encode([_TABLES, 0, 0, 0])[:4]


@dataclass(frozen=True, slots=True)
class Codec:
    """Writes and reads values of one run. Reusable, and safe to use from several threads.

    Attributes:
        modules: full names of the modules whose classes travel; a package does not stand for the
            modules in it.
    """

    modules: frozenset[str]
    _shapes: dict[type, Shape] = field(repr=False, compare=False)
    _paths: dict[str, Shape] = field(repr=False, compare=False)

    def __init__(self, modules: Iterable[str] = ()) -> None:
        if isinstance(modules, str):
            raise TypeError("modules is a list of names, not one name")
        object.__setattr__(self, "modules", frozenset(modules))
        object.__setattr__(self, "_shapes", {})
        object.__setattr__(self, "_paths", {})

    def encode(self, value: Any, *, path: str = "") -> bytes:
        """Bytes of a value.

        Args:
            value: anything that travels.
            path: what the value is, for the message, e.g. "argument `plan`".

        Raises:
            CannotTravel: something in it does not; the message says where and why.
        """
        if type(value) in PLAIN:
            try:
                return _bounded(_encoder.encode(value), path)
            except (OverflowError, UnicodeEncodeError):
                pass  # too long an int, or a lone surrogate: told below
        return self.encode_with_refs(value, path=path)[0]

    def encode_with_refs(
        self, value: Any, *, path: str = "", pins: list[Any] | None = None
    ) -> tuple[bytes, list[ResultRef]]:
        """Bytes of a value, and the results of other calls that it needs, each once, in order.

        Args:
            value: anything that travels.
            path: what the value is, for the message.
            pins: gets what stands for those results (placeholders), as often as they occur.

        Raises:
            CannotTravel: something in it does not.
        """
        try:
            writer, body = self._written(value)
        except Refused as refused:
            raise explained(refused, path) from None
        if pins is not None:
            pins.extend(writer.pins)
        needs = [ref for ref in writer.references if isinstance(ref, ResultRef)]
        return _bounded(body, path), needs

    def encode_call(
        self,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        *,
        method: str = "",
        parameters: Sequence[str] = (),
        pins: list[Any] | None = None,
    ) -> tuple[bytes, list[ResultRef]]:
        """Like `encode_with_refs((args, kwargs))`, but a message names the argument.

        Args:
            args: by position.
            kwargs: by name.
            method: that is called, for the message.
            parameters: names of the positional arguments, as far as they are known.
            pins: likewise.

        Raises:
            CannotTravel: an argument does not travel.
        """
        if PLAIN.issuperset(map(type, args)) and PLAIN.issuperset(map(type, kwargs.values())):
            # What a `Writer` writes of plain arguments, for they are the most frequent by far.
            try:
                body = _encoder.encode([_TUPLE, [_TUPLE, *args], dict(kwargs)])
                return _bounded(body, f"the arguments of `{method}`"), []
            except (OverflowError, UnicodeEncodeError):
                pass  # too long an int, or a lone surrogate: told below
        try:
            writer, body = self._written((args, dict(kwargs)))
        except Refused as refused:
            path = f"arguments of `{method}`" if method else "the arguments"
            if len(refused.trail) >= 2 and refused.trail[-2] != KEY:
                by_name = refused.trail.pop() == "[1]"
                path = _argument(by_name, refused.trail.pop(), parameters)
                path += f" of `{method}`" if method else ""
                del refused.holders[-2:]
            raise explained(refused, path) from None
        if pins is not None:
            pins.extend(writer.pins)
        needs = [ref for ref in writer.references if isinstance(ref, ResultRef)]
        return _bounded(body, f"the arguments of `{method}`"), needs

    def find_refs(self, data: bytes | memoryview) -> list[Ref]:
        """References in an encoded value, each once, without reading the rest of it.

        Raises:
            BadValue: the bytes are no value.
        """
        if data[:4] != _TABLES_START:
            return []
        try:
            _, _, references, _ = _tables.decode(_bounded_in(data))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise BadValue(f"the bytes are no value: {error}") from error
        return [read_reference(item) for item in references]

    def decode(
        self,
        data: bytes | memoryview,
        refs: Callable[[Ref], Any] | None = None,
    ) -> Any:
        """The value in bytes that came from elsewhere.

        Args:
            data: of `encode`, damaged, or hostile.
            refs: gives what stands where a reference was, once for each; what it raises passes
                unchanged. Without it references are refused.

        Raises:
            BadValue: the bytes are no value that this run can read.
        """
        classes: list[Shape] = []
        references: list[Ref] = []
        try:
            tree = _decoder.decode(_bounded_in(data))
            if type(tree) in PLAIN:
                return tree
            if (call := _plain_call(tree)) is not None:
                return call
            if _has_tables(tree):
                classes, references, tree = self._read_tables(tree)
        except BadValue:
            raise
        except Exception as error:
            raise BadValue(f"the bytes are no value: {error}") from error
        if references and refs is None:
            raise BadValue("a value has references where there can be none")
        stand_ins = [refs(reference) for reference in references] if refs else []
        try:
            return Reader(classes, stand_ins).read(tree, 0)
        except BadValue:
            raise
        except Exception as error:
            raise BadValue(f"a value cannot be put together: {error!r}") from error

    def _written(self, value: Any) -> tuple[Writer, bytes]:
        """Most values are written without a look at each int and str; the rest is done again."""
        for careful in (False, True):
            writer = Writer(self.modules, self._shapes, careful=careful)
            try:
                tree = writer.write(value, 0)
                if writer.classes or writer.references:
                    tree = [_TABLES, *writer.tables(), tree]
                return writer, _encoder.encode(tree)
            except (OverflowError, UnicodeEncodeError) as error:
                if careful:
                    raise Refused(f"cannot be written: {error}") from error
            except RecursionError as error:
                raise Refused("has too many containers inside each other") from error
        raise AssertionError("unreachable")

    def _read_tables(self, tree: list[Any]) -> tuple[list[Shape], list[Ref], list[Any]]:
        if len(tree) != 4 or type(tree[1]) is not list or type(tree[2]) is not list:
            raise BadValue("the tables of a value are damaged")
        classes = [read_class(item, self._find) for item in tree[1]]
        return classes, [read_reference(item) for item in tree[2]], tree[3]

    def _find(self, path: str) -> Shape:
        shape = self._paths.get(path)
        if shape is None:
            shape = self._paths[path] = find(path, self.modules)
        return shape


def _bounded(body: bytes, path: str) -> bytes:
    if len(body) > MAX_BYTES:
        raise CannotTravel(
            f"{path or 'the value'} is {len(body) / 2**20:.1f} MiB; at most "
            f"{MAX_BYTES // 2**20} MiB travel at once: send parts, or a path"
        )
    return body


def _has_tables(tree: Any) -> bool:
    if type(tree) is not list or not tree or type(tree[0]) is not Mark:
        return False
    return bool(tree[0].code == _TABLES_CODE)


def _plain_call(tree: Any) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
    """What `encode_call` writes of plain arguments; None: it is something else."""
    if type(tree) is not list or len(tree) != 3 or tree[0] is not _TUPLE_READ:
        return None
    _, args, kwargs = tree
    if type(args) is not list or not args or args[0] is not _TUPLE_READ or type(kwargs) is not dict:
        return None
    if kwargs and not PLAIN.issuperset(map(type, (*kwargs, *kwargs.values()))):
        return None
    del args[0]
    for item in args:
        if type(item) not in PLAIN:
            args.insert(0, _TUPLE_READ)
            return None
    return tuple(args), kwargs


def _bounded_in(data: bytes | memoryview) -> bytes | memoryview:
    if len(data) > MAX_BYTES:
        raise BadValue(f"a value of {len(data)} bytes came; {MAX_BYTES} are the most")
    return data


def _argument(by_name: bool, step: str, parameters: Sequence[str]) -> str:
    if by_name:
        return f"argument `{step[2:-2]}`"
    position = int(step[1:-1])
    known = position < len(parameters)
    return f"argument `{parameters[position]}`" if known else f"argument {position + 1}"
