"""YAML as a tree whose nodes know where they stand."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from agentsim.config.masking import MASK, mask_spans, mask_text, opens_secret
from agentsim.errors import Finding, Related

Path = tuple[str | int, ...]
"""Where a value stands in a file: keys, and positions in lists from 0."""
LINE_END = re.compile("\r\n|[\r\n\x85\u2028\u2029]")
"""What ends a line in YAML."""


@dataclass(frozen=True, slots=True, eq=False)
class Document:
    """A text that findings point into: a file, or a flag of the command line.

    Attributes:
        name: the file as the user named it, or the flag.
        lines: without their ends. A flag's only line is what the user wrote behind it.
        is_flag: whether it is a flag.
        masks: by line from 0, spans in characters that hold secrets.
    """

    name: str
    lines: tuple[str, ...]
    is_flag: bool = False
    masks: dict[int, list[tuple[int, int]]] = field(default_factory=dict)

    def source(self, line: int) -> str:
        """A line, from 0, as it may be printed."""
        if line >= len(self.lines):
            return ""
        text = self.lines[line]
        # An unclosed quote may swallow the next secret's key; its value is what follows.
        spans = [
            (start, len(text) if opens_secret(text[start:end]) else end)
            for start, end in self.masks.get(line, [])
        ]
        return mask_text(mask_spans(text, spans))

    def hide(self, place: Place) -> None:
        """Keep the text at a place out of what is printed."""
        self.masks.setdefault(place.line, []).append((place.column, place.column + place.length))


def document(name: str, text: str, *, flag: str = "") -> Document:
    """A text split into lines as YAML does.

    Args:
        name: the file as the user named it, or the flag that brought the text.
        text: what is parsed.
        flag: for a flag, what stands before the text on the command line.
    """
    lines = LINE_END.split(text)
    return Document(name, (flag + lines[0], *lines[1:]), is_flag=bool(flag))


@dataclass(frozen=True, slots=True)
class Place:
    """A span of one line. Line and column count from 0, length in characters."""

    document: Document
    line: int
    column: int
    length: int = 1

    def finding(
        self,
        code: str,
        message: str,
        expected: str = "",
        hint: str = "",
        related: tuple[Related, ...] = (),
    ) -> Finding:
        """A finding here."""
        here = self.related("")
        return Finding(
            code=code,
            message=message,
            file=here.file,
            line=here.line,
            column=here.column,
            length=here.length,
            source=here.source,
            expected=expected,
            hint=hint,
            related=related,
        )

    def related(self, note: str) -> Related:
        """This place beside a finding that stands elsewhere."""
        column, length = self.column, max(self.length, 1)
        for start, end in self.document.masks.get(self.line, []):
            if start <= column < end:
                column, length = start, len(MASK)
        return Related(
            note=note,
            file=self.document.name,
            line=0 if self.document.is_flag else self.line + 1,
            column=column + 1,
            length=length,
            source=self.document.source(self.line),
        )


@dataclass(frozen=True, slots=True, eq=False)
class Scalar:
    """A single value.

    Attributes:
        value: text, number, true or false, or nothing.
        written: as the author wrote it, quotes left out.
        quoted: whether it had quotes.
    """

    value: str | int | float | bool | None
    written: str
    quoted: bool
    place: Place
    size: int = 1
    height: int = 1


@dataclass(frozen=True, slots=True, eq=False)
class Sequence:
    """A list. `size` counts nodes with aliases expanded; `height` is the depth below."""

    items: tuple[Node, ...]
    place: Place
    flow: bool
    size: int = 1
    height: int = 1


@dataclass(frozen=True, slots=True)
class Entry:
    """One key of a map with its value."""

    key: Place
    value: Node


@dataclass(frozen=True, slots=True, eq=False)
class Mapping:
    """A map. Keys are text as the author wrote it."""

    entries: dict[str, Entry]
    place: Place
    flow: bool
    size: int = 1
    height: int = 1


Node = Scalar | Sequence | Mapping


def plain(node: Node) -> Any:
    """The value of a tree, as JSON has it."""
    if isinstance(node, Scalar):
        return node.value
    if isinstance(node, Sequence):
        return [plain(item) for item in node.items]
    return {key: plain(entry.value) for key, entry in node.entries.items()}


def child(node: Node | None, step: str | int) -> Node | None:
    """The value under one key or list position."""
    if isinstance(node, Mapping):
        entry = node.entries.get(str(step))
        return entry.value if entry else None
    if isinstance(node, Sequence) and isinstance(step, int) and 0 <= step < len(node.items):
        return node.items[step]
    return None


def find(node: Node | None, *path: str | int) -> Node | None:
    """The value at a path, if there is one."""
    for step in path:
        node = child(node, step)
    return node


def given(node: Node | None, *path: str | int) -> Node | None:
    """The value at a path, if there is one that is not null."""
    found = find(node, *path)
    return None if isinstance(found, Scalar) and found.value is None else found


def text_at(node: Node | None, *path: str | int) -> str | None:
    """The text at a path, if there is one."""
    found = find(node, *path)
    return found.value if isinstance(found, Scalar) and isinstance(found.value, str) else None


def key_place(node: Node, path: Path) -> Place | None:
    """Where the last key of a path stands; None for a list position or no such key."""
    parent = find(node, *path[:-1])
    entry = parent.entries.get(str(path[-1])) if path and isinstance(parent, Mapping) else None
    return entry.key if entry else None


def place(node: Node, path: Path) -> Place:
    """Where a finding about a path points.

    At the value; at the key for what spreads over lines or is left empty; for what does not
    exist, at what would hold it.
    """
    while path and find(node, *path) is None:
        path = path[:-1]
    found = find(node, *path) or node
    spread = isinstance(found, Mapping | Sequence) and not found.flow
    empty = isinstance(found, Scalar) and not found.written and not found.quoted
    key = key_place(node, path) if spread or empty else None
    return key or found.place


def beside(node: Node, path: Path, note: str, main: Place) -> tuple[Related, ...]:
    """The place of a value that contradicts another; nothing if it is in the same line."""
    if find(node, *path) is None:
        return ()
    there = place(node, path)
    same = there.document is main.document and there.line == main.line
    return () if same else (there.related(note),)


def without(node: Node, path: Path) -> Node:
    """The tree with one key of a map left out."""
    head, *rest = path
    if isinstance(node, Mapping):
        entries = dict(node.entries)
        entry = entries.pop(str(head), None)
        if entry and rest:
            entries = dict(node.entries)
            entries[str(head)] = Entry(entry.key, without(entry.value, tuple(rest)))
        return replace(node, entries=entries)
    if isinstance(node, Sequence) and isinstance(head, int) and rest:
        items = list(node.items)
        items[head] = without(items[head], tuple(rest))
        return replace(node, items=tuple(items))
    return node


def renamed(node: Node, path: Path, name: str) -> Node:
    """The tree with the last key of a path changed; its place stays."""
    head, *rest = path
    if isinstance(node, Mapping):
        entries = {}
        for key, entry in node.entries.items():
            if key != str(head):
                entries[key] = entry
            elif rest:
                entries[key] = Entry(entry.key, renamed(entry.value, tuple(rest), name))
            else:
                entries[name] = entry
        return replace(node, entries=entries)
    if isinstance(node, Sequence) and isinstance(head, int) and rest:
        items = list(node.items)
        items[head] = renamed(items[head], tuple(rest), name)
        return replace(node, items=tuple(items))
    return node


def put(node: Node, steps: tuple[tuple[str, Place], ...], value: Node) -> Node | None:
    """The tree with a value set, and the maps on the way to it made.

    Args:
        steps: names from the root, each with where it was written.
        value: what to set.

    Returns:
        The tree, or None if a list on the way has no such position.
    """
    if not steps:
        return value
    (name, where), rest = steps[0], steps[1:]
    if isinstance(node, Sequence):
        if not name.isdecimal() or int(name) >= len(node.items):
            return None
        below = put(node.items[int(name)], rest, value)
        items = list(node.items)
        if below is None:
            return None
        items[int(name)] = below
        return replace(node, items=tuple(items))
    if isinstance(node, Scalar):
        node = Mapping({}, where, flow=True)
    entry = node.entries.get(name)
    below = put(entry.value if entry else Mapping({}, where, flow=True), rest, value)
    if below is None:
        return None
    key = entry.key if entry and rest else where
    return replace(node, entries={**node.entries, name: Entry(key, below)})


def walk(node: Node, path: Path = ()) -> Iterator[tuple[Path, Node]]:
    """Every value of a tree with its path, parents first."""
    yield path, node
    if isinstance(node, Mapping):
        for key, entry in node.entries.items():
            yield from walk(entry.value, (*path, key))
    elif isinstance(node, Sequence):
        for index, item in enumerate(node.items):
            yield from walk(item, (*path, index))
