"""From text to a tree with positions, or to findings.

libyaml reads the text and reports events; the tree is built from them without recursion, so that
depth, size and what aliases expand to are bounded while reading.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import Any

import yaml

from agentsim.config.masking import is_secret
from agentsim.config.scalars import resolve
from agentsim.config.syntax import syntax_finding
from agentsim.config.tree import LINE_END, Document, Entry, Mapping, Node, Place, Scalar, Sequence
from agentsim.errors import Finding

MAX_NODES = 200_000
MAX_DEPTH = 50

_UNPRINTABLE = re.compile(
    "[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]"
)
_STRING_TAGS = frozenset(("!", "tag:yaml.org,2002:str"))
_COLLECTION_TAGS = frozenset(("!", "tag:yaml.org,2002:map", "tag:yaml.org,2002:seq"))


def parse(text: str, where: Document, *, offset: int = 0) -> tuple[Node | None, list[Finding]]:
    """Read one YAML document.

    Args:
        text: the text.
        where: what findings point into.
        offset: columns that stand before the text in its first line.

    Returns:
        The tree, None if there is none (nothing but comments, or not YAML), and findings.
    """
    odd = _UNPRINTABLE.search(text)
    if odd:
        return None, [_unprintable(text, odd, where, offset)]
    builder = _Builder(where, offset)
    loader = yaml.CSafeLoader(text)
    try:
        while (event := loader.get_event()) is not None:
            builder.take(event)
    except _Stop as stop:
        builder.findings.append(stop.finding)
        builder.root = None
    except yaml.YAMLError as error:
        builder.findings.append(syntax_finding(error, where, offset))
        builder.root = None
    finally:
        loader.dispose()
    return builder.root, builder.findings


def _unprintable(text: str, odd: re.Match[str], where: Document, offset: int) -> Finding:
    before = LINE_END.split(text[: odd.start()])
    column = len(before[-1]) + (offset if len(before) == 1 else 0)
    return Place(where, len(before) - 1, column).finding(
        "yaml-syntax",
        f"the character U+{ord(odd[0]):04X} cannot stand in a YAML text",
        hint='inside double quotes it is written "\\x…" or "\\u…"',
    )


class _Stop(Exception):
    """Reading cannot go on."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(finding.message)
        self.finding = finding


@dataclass(slots=True)
class _Frame:
    """A list or map that is being read."""

    place: Place
    flow: bool
    anchor: str | None
    is_map: bool
    items: list[Node] = field(default_factory=list)
    entries: dict[str, Entry] = field(default_factory=dict)
    merged: list[Mapping] = field(default_factory=list)
    key: Scalar | None = None
    wants_key: bool = True
    size: int = 1
    height: int = 1


class _Builder:
    """Takes events, builds the tree."""

    def __init__(self, where: Document, offset: int) -> None:
        self.root: Node | None = None
        self.findings: list[Finding] = []
        self._where = where
        self._offset = offset
        self._stack: list[_Frame] = []
        self._anchors: dict[str, Node | None] = {}
        self._documents = 0
        self._nodes = 0

    def take(self, event: yaml.Event) -> None:
        """Take the next event."""
        if isinstance(event, yaml.ScalarEvent):
            self._scalar(event)
        elif isinstance(event, yaml.CollectionStartEvent):
            self._open(event)
        elif isinstance(event, yaml.CollectionEndEvent):
            self._close(event)
        elif isinstance(event, yaml.AliasEvent):
            self._alias(event)
        elif isinstance(event, yaml.DocumentStartEvent):
            self._documents += 1
            if self._documents > 1:
                raise _Stop(
                    self._place(event).finding(
                        "yaml-syntax",
                        "a second document starts here",
                        "one document in a file, without further `---` lines",
                    )
                )

    def _place(self, event: yaml.Event) -> Place:
        line, column = _position(event.start_mark)
        place = Place(self._where, line, column + self._shift(line))
        return self._until(place, event)

    def _until(self, start: Place, event: yaml.Event) -> Place:
        """A place that reaches to an event's end, or to the end of its first line."""
        line, column = _position(event.end_mark)
        if line == start.line:
            stop = column + self._shift(line)
        else:
            stop = len(self._where.lines[start.line].rstrip())
        return replace(start, length=max(stop - start.column, 1))

    def _shift(self, line: int) -> int:
        return self._offset if line == 0 else 0

    def _scalar(self, event: yaml.ScalarEvent) -> None:
        place = self._place(event)
        quoted = not event.implicit[0] and event.tag is None
        is_text = quoted or event.tag is not None
        if event.tag is not None and event.tag not in _STRING_TAGS:
            self._tag(event, place)
        value = event.value if is_text else resolve(event.value)
        node = Scalar(value, event.value, is_text, place)
        self._add(node, event)
        if event.anchor:
            self._anchors[event.anchor] = node

    def _tag(self, event: yaml.ScalarEvent | yaml.CollectionStartEvent, place: Place) -> None:
        tag = str(event.tag).replace("tag:yaml.org,2002:", "!!")
        self.findings.append(
            place.finding("yaml-syntax", f"the tag `{tag[:40]}` is not used in these files")
        )

    def _open(self, event: yaml.CollectionStartEvent) -> None:
        place = self._place(event)
        if event.tag is not None and event.tag not in _COLLECTION_TAGS:
            self._tag(event, place)
        if len(self._stack) >= MAX_DEPTH:
            raise _Stop(_too_deep(place))
        if event.anchor:
            self._anchors[event.anchor] = None
        is_map = isinstance(event, yaml.MappingStartEvent)
        frame = _Frame(place, bool(event.flow_style), event.anchor, is_map)
        self._stack.append(frame)

    def _close(self, event: yaml.CollectionEndEvent) -> None:
        frame = self._stack.pop()
        place = self._until(frame.place, event) if frame.flow else frame.place
        node: Node
        if frame.is_map:
            entries = _with_merged(frame)
            if not frame.flow and frame.entries:
                place = next(iter(frame.entries.values())).key
            node = Mapping(entries, place, frame.flow, frame.size, frame.height + 1)
        else:
            node = Sequence(tuple(frame.items), place, frame.flow, frame.size, frame.height + 1)
        if frame.anchor:
            self._anchors[frame.anchor] = node
        self._add(node, event)

    def _alias(self, event: yaml.AliasEvent) -> None:
        place = self._place(event)
        name = str(event.anchor)
        node = self._anchors.get(name)
        if node is None:
            reason = "what it stands in" if name in self._anchors else "no anchor"
            message = f"the alias `*{name[:40]}` refers to {reason}"
            raise _Stop(place.finding("yaml-syntax", message))
        if len(self._stack) + node.height > MAX_DEPTH:
            raise _Stop(_too_deep(place))
        self._add(node, event)

    def _add(self, node: Node, end: yaml.Event) -> None:
        self._nodes += 1
        frame = self._stack[-1] if self._stack else None
        size = node.size + (frame.size if frame else 0)
        if max(size, self._nodes) > MAX_NODES:
            raise _Stop(
                self._place(end).finding(
                    "too-large",
                    f"the file holds more than {MAX_NODES:,} values, aliases included",
                )
            )
        if frame is None:
            self.root = node
            return
        frame.size = size
        frame.height = max(frame.height, node.height)
        if not frame.is_map:
            frame.items.append(node)
        elif frame.wants_key:
            frame.wants_key = False
            frame.key = self._key(node)
        else:
            frame.wants_key = True
            if frame.key is not None:
                self._entry(frame, frame.key, node, end)

    def _key(self, node: Node) -> Scalar | None:
        if isinstance(node, Scalar) and (node.written or node.quoted):
            return node
        found = "nothing" if isinstance(node, Scalar) else "a list or a map"
        self.findings.append(
            node.place.finding("yaml-syntax", f"a key must be a word, found {found}")
        )
        return None

    def _entry(self, frame: _Frame, key: Scalar, value: Node, end: yaml.Event) -> None:
        if is_secret(key.written):
            self._hide(value, end)
        if key.written == "<<" and not key.quoted:
            self._merge(frame, value)
        elif key.written in frame.entries:
            first = frame.entries[key.written].key
            self.findings.append(
                key.place.finding(
                    "duplicate-key",
                    f"the key `{key.written[:60]}` stands twice in one map",
                    "each key once",
                    related=(first.related("it stands here first"),),
                )
            )
        else:
            frame.entries[key.written] = Entry(key.place, value)

    def _merge(self, frame: _Frame, value: Node) -> None:
        sources = value.items if isinstance(value, Sequence) else (value,)
        for source in sources:
            if isinstance(source, Mapping):
                frame.merged.append(source)
            else:
                self.findings.append(
                    source.place.finding("yaml-syntax", "`<<` takes a map, or a list of maps")
                )

    def _hide(self, value: Node, end: yaml.Event) -> None:
        """Mask a secret from where it starts to where it ends."""
        first, (last, column) = value.place.line, _position(end.end_mark)
        if last < first:  # an alias: the anchor's own text
            self._where.hide(value.place)
            return
        for line in range(first, min(last + 1, len(self._where.lines))):
            text = self._where.lines[line]
            start = value.place.column if line == first else len(text) - len(text.lstrip())
            stop = len(text.rstrip())
            if line == last:
                stop = column + self._shift(line)
            if stop > start:
                self._where.hide(Place(self._where, line, start, stop - start))


def _position(mark: Any) -> tuple[int, int]:
    """Line and column, from 0; libyaml's events always have marks."""
    return mark.line, mark.column


def _too_deep(place: Place) -> Finding:
    return place.finding(
        "too-large", f"lists and maps are nested more than {MAX_DEPTH} deep, aliases included"
    )


def _with_merged(frame: _Frame) -> dict[str, Entry]:
    """A map's entries; what `<<` brings in comes after and never replaces."""
    entries = dict(frame.entries)
    for source in frame.merged:
        for key, entry in source.entries.items():
            entries.setdefault(key, entry)
    return entries
