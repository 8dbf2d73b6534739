"""Files as they are read: their texts, their trees, and what was found wrong with them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from collections.abc import Mapping as Texts
from dataclasses import dataclass, field, replace
from typing import TypeVar

from agentsim.config import overrides as flags
from agentsim.config.files import Unreadable, display, read_text
from agentsim.config.kinds import misplaced
from agentsim.config.made import MadePersonas, read_made
from agentsim.config.parse import parse
from agentsim.config.recorded import RecordedRun, read_recorded
from agentsim.config.tree import Mapping, Node, Place, document, place
from agentsim.config.tree import Path as TreePath
from agentsim.config.words import found
from agentsim.errors import Finding

T = TypeVar("T")


@dataclass(slots=True)
class Reading:
    """What was read and found so far."""

    files: dict[str, str] = field(default_factory=dict)
    findings: dict[Finding, None] = field(default_factory=dict)
    names: list[str] = field(default_factory=list)
    flags: list[str] = field(default_factory=list)
    stored: Texts[str, str] = field(default_factory=dict)

    def add(self, findings: Iterable[Finding]) -> None:
        """Note findings; the same one is said once."""
        self.findings.update(dict.fromkeys(findings))

    def made(self, path: str, named: Place) -> MadePersonas | None:
        """What a file of personas says of itself; None with findings if it is none."""
        return self._named(read_made, path, named)

    def recorded(self, path: str, named: Place) -> RecordedRun | None:
        """What a run's directory says of itself; None with findings if it cannot be replayed."""
        return self._named(read_recorded, path, named)

    def _named(self, read: Callable[[str, str], T], path: str, named: Place) -> T | None:
        """What a reader makes of a path; what is wrong with it is found where it is named."""
        try:
            return read(path, path)
        except Unreadable as error:
            item = error.finding
            self.add([named.finding(item.code, item.message, item.expected, item.hint)])
            return None

    def tree(self, path: str, kind: str, named: Place | None = None) -> Mapping | None:
        """The tree of a file; None with findings if there is none.

        Args:
            path: as the current directory sees it; findings call it so.
            kind: of the file that belongs here, one of `kinds.MODELS`.
            named: where another file or a flag names it.
        """
        self.names.append(path)
        try:
            before = self.stored.get(os.path.realpath(path)) if self.stored else None
            text = before or read_text(path, path)
        except Unreadable as error:
            finding = error.finding
            if named and not error.inside:
                finding = named.finding(
                    finding.code, finding.message, finding.expected, finding.hint
                )
            self.add(named_here([finding], named) if error.inside else [finding])
            return None
        self.files[os.path.realpath(path)] = text
        where = document(path, text)
        root, findings = parse(text, where)
        if isinstance(root, Mapping):
            other = misplaced(root, kind, named)
            self.add([other] if other else named_here(findings, named))
            return None if other else root
        expected = "lines like `key: value`"
        if root is None and not findings:
            findings = [Finding("missing-key", f"`{path}` is empty", path, 1, 1, expected=expected)]
        elif root is not None:
            message = f"the file must be a map, found {found(root, ())}"
            findings = [*findings, root.place.finding("wrong-type", message, expected)]
        self.add(named_here(findings, named))
        return None

    def sorted(self) -> tuple[Finding, ...]:
        """Findings by file in the order of reading, flags last; then by place."""
        order = {name: index for index, name in enumerate(dict.fromkeys(self.names))}

        def place_of(item: Finding) -> tuple[int, int, int, int]:
            typed = [item.source.startswith(flag) for flag in self.flags]
            flag = typed.index(True) if item.line == 0 and True in typed else len(typed)
            return order.get(item.file, len(order)), item.line, flag, item.column

        return tuple(sorted(self.findings, key=place_of))


def overridden(reading: Reading, root: Node, overrides: Iterable[flags.Override]) -> Node:
    """A tree with what the command line changed."""
    for override in overrides:
        reading.flags.append(flags.before(override))
        root, findings = flags.apply(root, override)
        reading.add(findings)
    return root


def named_here(findings: Iterable[Finding], named: Place | None) -> Iterable[Finding]:
    """Findings of a file with the place that names it."""
    if named is None:
        return findings
    here = named.related("the file is named here")
    return [replace(item, related=(*item.related, here)) for item in findings]


def named_file(root: Node, path: TreePath, name: str) -> tuple[str, Place]:
    """The path of a file that a scenario or a flag names, and where that name stands."""
    where = place(root, path)
    if where.document.is_flag:
        return name, where
    return display(os.path.dirname(where.document.name), name), where  # noqa: PTH120
