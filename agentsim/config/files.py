"""Reads files as text."""

from __future__ import annotations

import difflib
import itertools
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from agentsim.config.tree import Document, Place, document
from agentsim.errors import Finding

MAX_BYTES = 4 * 2**20


class Unreadable(Exception):
    """A file cannot be used as text."""

    def __init__(self, finding: Finding, *, inside: bool) -> None:
        super().__init__(finding.message)
        self.finding = finding
        self.inside = inside


@contextmanager
def opened(path: str, name: str) -> Iterator[BinaryIO]:
    """A file that is open for reading.

    Args:
        path: where the file is.
        name: how findings call it.

    Raises:
        Unreadable: it cannot be opened or read.
    """
    try:
        with open(path, "rb") as file:  # noqa: PTH123 a bad path is a finding, not an exception
            yield file
    except FileNotFoundError:
        raise _about(name, "does not exist", _nearest(path)) from None
    except IsADirectoryError:
        raise _about(name, "is a directory, not a file") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise _about(name, f"cannot be read: {reason.lower()}") from None


def read_text(path: str, name: str) -> str:
    """The text of a file, without a byte order mark.

    Args:
        path: where the file is.
        name: how findings call it.

    Raises:
        Unreadable: `inside` says whether its finding points into the file or is about the path.
    """
    with opened(path, name) as file:
        content = file.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        problem = f"{shown(name)} is larger than {MAX_BYTES // 2**20} MiB"
        raise Unreadable(Finding("too-large", problem, name), inside=False)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _not_utf8(content, error.start, name) from None


def shown(text: str, limit: int = 100) -> str:
    """A text in backticks, cut when it is long."""
    return f"`{text}`" if len(text) <= limit else f"`{text[: limit - 1]}…`"


def display(directory: str, path: str) -> str:
    """How a path that another file names is called: from the same directory as that file."""
    joined = os.path.join(directory, path)  # noqa: PTH118 keeps `..`, which may cross a link
    short = os.path.normpath(joined)
    try:
        same = os.path.realpath(short) == os.path.realpath(joined)
    except (OSError, ValueError):
        return joined
    return short if same else joined


def _about(name: str, problem: str, hint: str = "") -> Unreadable:
    finding = Finding("unreadable-file", f"{shown(name)} {problem}", name, hint=hint)
    return Unreadable(finding, inside=False)


def _nearest(path: str) -> str:
    """A did-you-mean from the same directory; may be empty."""
    wanted = Path(path)
    try:
        names = [item.name for item in itertools.islice(wanted.parent.iterdir(), 500)]
    except (OSError, ValueError):
        return ""
    names = [name for name in names if name != wanted.name]  # a link to nothing is there
    close = difflib.get_close_matches(wanted.name, sorted(names), n=1, cutoff=0.75)
    return f"did you mean `{close[0]}`?" if close else ""


def _not_utf8(content: bytes, start: int, name: str) -> Unreadable:
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        finding = Finding(
            "unreadable-file", f"{shown(name)} is UTF-16", name, expected="text in UTF-8"
        )
        return Unreadable(finding, inside=False)
    before = content[:start].decode("utf-8-sig")
    where: Document = document(name, before)
    line = len(where.lines) - 1
    rest = content[start:].splitlines()[0].decode("utf-8", "replace")
    column = len(where.lines[line])
    whole = Document(name, (*where.lines[:line], where.lines[line] + rest))
    finding = Place(whole, line, column).finding(
        "unreadable-file",
        f"the byte 0x{content[start]:02X} is not UTF-8",
        "text in UTF-8",
    )
    return Unreadable(finding, inside=True)
