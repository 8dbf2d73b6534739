"""The bytes of a journal: frames that a reader can check, and reading them.

Layout, all numbers little-endian:

    header   magic 8 bytes · version u32 · crc32 u32 of the twelve bytes before it
    frame    mark 4 bytes · length u32 · kind u8 · crc32 u32 of length, kind and body · body

The highest bit of `kind` says that the body is compressed: the size before compression as u32, then
Zstandard. The mark holds a byte that no UTF-8 text holds, so that a reader finds the next frame
after a bad one without trying every byte. Nothing in a journal is ever unpickled.
"""

from __future__ import annotations

import contextlib
import os
import struct
import zlib
from collections.abc import Collection, Iterator
from enum import IntEnum
from pathlib import Path
from typing import BinaryIO, NamedTuple

from agentsim.errors import ResultsError
from agentsim.results.lock import is_held
from agentsim.results.storage import failure

MAX_BODY_BYTES = 64 * 1024 * 1024
"""Most bytes of one body, before and after compression."""

_MAGIC = b"agentsim"
_VERSION = 1
_HEADER = struct.Struct("<8sII")
_MARK = b"\xff\xa9AJ"
_FRAME = struct.Struct("<4sIBI")
_CHECKED = struct.Struct("<IB")
_RAW_SIZE = struct.Struct("<I")
_COMPRESSED = 0x80
_COMPRESS_ABOVE_BYTES = 512
_SCAN_BYTES = 1024 * 1024


class Kind(IntEnum):
    """What a frame holds. Numbers are part of the file format: append, never renumber."""

    RUN = 1
    """JSON of `records.RunStart`: a run began, or went on."""
    ATTEMPTS = 2
    """MessagePack of `list[rpc.messages.Attempt]`; compressed."""
    ANSWERS = 3
    """MessagePack of `rpc.messages.Answers`, as it came off the wire."""
    SETTLE = 4
    """MessagePack of `rpc.messages.Settle`."""
    END = 5
    """JSON of `records.RunEnd`: how the run ended."""
    GROUPS = 6
    """MessagePack of `rpc.messages.Groups`: who is in which group, before a session's first round.
    """
    ROW = 7
    """MessagePack of `workflow.Row`: one row of a table of a user's program."""
    EVENT = 8
    """JSON of `records.Event`: something that happened to the run, e.g. a worker was replaced."""


class Frame(NamedTuple):
    """One record.

    Attributes:
        kind: what the body is.
        body: its bytes, uncompressed.
        offset: where the frame begins in the file.
    """

    kind: Kind
    body: bytes
    offset: int


class _FrameError(Exception):
    """The bytes at an offset are no whole frame."""


def header() -> bytes:
    """The first bytes of a journal."""
    return _HEADER.pack(_MAGIC, _VERSION, zlib.crc32(_MAGIC + _VERSION.to_bytes(4, "little")))


def pack(kind: Kind, body: bytes | memoryview) -> tuple[bytes, bytes | memoryview]:
    """Head and body of a frame, as they are to be written.

    Raises:
        ResultsError: the body is larger than `MAX_BODY_BYTES`.
    """
    if len(body) > MAX_BODY_BYTES:
        raise ResultsError(f"a record of {len(body)} bytes is larger than {MAX_BODY_BYTES}")
    flags = 0
    if kind is Kind.ATTEMPTS and len(body) > _COMPRESS_ABOVE_BYTES:
        body, flags = _compress(body), _COMPRESSED
    checked = _CHECKED.pack(len(body), kind | flags)
    return _FRAME.pack(_MARK, len(body), kind | flags, zlib.crc32(body, zlib.crc32(checked))), body


def frames(path: Path, *, start: int = 0, only: Collection[Kind] | None = None) -> Iterator[Frame]:
    """The records of a journal in order, one in memory at a time.

    A journal that is being written may be read: what is in it now is returned. A torn tail ends the
    iteration in silence, since the writer cuts it when the run goes on.

    Args:
        path: the file.
        start: offset of the frame to begin with, as `Frame.offset` gave it; 0: the first.
        only: kinds that are wanted; the bodies of others are not read, nor checked.

    Raises:
        ResultsError: the file is no journal, or a frame before the last good one is damaged.
    """
    with _reading(path) as (file, size):
        if not _check_header(path, file, size):
            return
        offset = max(start, _HEADER.size)
        number = 0
        while offset < size:
            number += 1
            if only is not None and (end := _end_of_other(file, offset, size, only)):
                offset = end
                continue
            try:
                frame, after = _read_frame(path, file, offset, size)
            except _FrameError as bad:
                _refuse_if_more_follows(path, file, (offset, size), f"frame {number}", str(bad))
                return
            yield frame
            offset = after


def last_frame(path: Path) -> Frame | None:
    """The record at the very end, without reading the others; None when there is none.

    Only a record of at most 64 KiB that ends with the file is found.

    Raises:
        ResultsError: the file is no journal.
    """
    with _reading(path) as (file, size):
        if not _check_header(path, file, size):
            return None
        start = max(_HEADER.size, size - 64 * 1024)
        file.seek(start)
        tail = file.read(size - start)
        at = tail.rfind(_MARK)
        while at >= 0:
            try:
                frame, after = _read_frame(path, file, start + at, size)
            except _FrameError:
                pass
            else:
                return frame if after == size else None
            at = tail.rfind(_MARK, 0, at)
    return None


def is_being_written(path: Path) -> bool:
    """Whether a process holds the journal for writing, on this machine or another.

    Raises:
        ResultsError: the file cannot be opened.
    """
    with _reading(path) as (file, _):
        return is_held(path, file)


def _check_header(path: Path, file: BinaryIO, size: int) -> bool:
    """True when frames may follow, False when the file ends inside a header."""
    head = file.read(_HEADER.size)
    if len(head) < _HEADER.size:
        if header().startswith(head):
            return False
        raise ResultsError(f"{path}: not a journal of agentsim")
    magic, version, crc = _HEADER.unpack(head)
    if magic != _MAGIC:
        raise ResultsError(f"{path}: not a journal of agentsim")
    if zlib.crc32(head[:12]) != crc:
        raise ResultsError(f"{path}: the journal's first {_HEADER.size} bytes are damaged")
    if version != _VERSION:
        raise ResultsError(
            f"{path}: a journal of format {version}; this version of agentsim reads {_VERSION}"
        )
    return True


def _end_of_other(file: BinaryIO, offset: int, size: int, only: Collection[Kind]) -> int:
    """Where a frame ends that is of none of these kinds; 0 for one that is, or is none."""
    file.seek(offset)
    head = file.read(_FRAME.size)
    if len(head) < _FRAME.size:
        return 0
    mark, length, kind, _ = _FRAME.unpack(head)
    end = offset + _FRAME.size + int(length)
    return end if mark == _MARK and kind & ~_COMPRESSED not in only and end <= size else 0


def _read_frame(path: Path, file: BinaryIO, offset: int, size: int) -> tuple[Frame, int]:
    """The frame at `offset` and where the next one begins."""
    kind, body, after = _read_raw(file, offset, size)
    try:
        known = Kind(kind & ~_COMPRESSED)
        plain = _decompress(body) if kind & _COMPRESSED else body
    except ValueError as error:
        # The checksum is right: this was written so, and cutting it off would lose data.
        raise ResultsError(
            f"{path}: the record at byte {offset} cannot be read ({error}); "
            "was it written by a newer version of agentsim?"
        ) from error
    return Frame(known, plain, offset), after


def _read_raw(file: BinaryIO, offset: int, size: int) -> tuple[int, bytes, int]:
    file.seek(offset)
    head = file.read(min(_FRAME.size, size - offset))
    if len(head) < _FRAME.size:
        raise _FrameError("it is cut short")
    mark, length, kind, crc = _FRAME.unpack(head)
    if mark != _MARK:
        raise _FrameError("it does not begin with a frame's mark")
    if length > MAX_BODY_BYTES:
        raise _FrameError(f"it claims {length} bytes")
    after = offset + _FRAME.size + length
    if after > size:
        raise _FrameError("it is cut short")
    body = file.read(length)
    if len(body) < length or zlib.crc32(body, zlib.crc32(_CHECKED.pack(length, kind))) != crc:
        raise _FrameError("its checksum is wrong")
    return kind, body, after


def _refuse_if_more_follows(
    path: Path, file: BinaryIO, span: tuple[int, int], frame: str, what: str
) -> None:
    """Raise when a good frame stands after the bad one at the beginning of `span`."""
    offset, size = span
    following = _next_good_frame(file, offset + 1, size)
    if following is not None:
        raise ResultsError(
            f"{path}: {frame}, at byte {offset}, is damaged ({what}), and good records follow at "
            f"byte {following}: this is no torn tail, so nothing was cut. To give up everything "
            f"from there on: truncate -s {offset} {path}"
        )


def _next_good_frame(file: BinaryIO, start: int, size: int) -> int | None:
    overlap = len(_MARK) - 1
    while start < size:
        file.seek(start)
        block = file.read(min(_SCAN_BYTES + overlap, size - start))
        at = block.find(_MARK)
        while at >= 0:
            with contextlib.suppress(_FrameError):
                _read_raw(file, start + at, size)
                return start + at
            at = block.find(_MARK, at + 1)
        start += _SCAN_BYTES
    return None


def good_end(path: Path) -> int:
    """Where the last good frame ends; 0 when not even the header is whole.

    Raises:
        ResultsError: the file is no journal, or a frame before the last good one is damaged.
    """
    with _reading(path) as (file, size):
        if not _check_header(path, file, size):
            return 0
        offset = _HEADER.size
        number = 0
        while offset < size:
            number += 1
            try:
                _, _, offset = _read_raw(file, offset, size)
            except _FrameError as bad:
                _refuse_if_more_follows(path, file, (offset, size), f"frame {number}", str(bad))
                break
        return offset


@contextlib.contextmanager
def _reading(path: Path) -> Iterator[tuple[BinaryIO, int]]:
    # The size is taken once: beyond it a writer may be in the middle of a frame.
    try:
        with path.open("rb") as file:
            yield file, os.fstat(file.fileno()).st_size
    except OSError as error:
        raise failure(path, "cannot read the journal", error) from error


def _compress(body: bytes | memoryview) -> bytes:
    import pyarrow as pa

    packed = pa.Codec("zstd", compression_level=1).compress(body, asbytes=True)
    return _RAW_SIZE.pack(len(body)) + packed


def _decompress(body: bytes) -> bytes:
    import pyarrow as pa

    if len(body) < _RAW_SIZE.size:
        raise ValueError("no size before compression")
    (raw_size,) = _RAW_SIZE.unpack_from(body)
    if raw_size > MAX_BODY_BYTES:
        raise ValueError(f"it claims {raw_size} bytes")
    try:
        plain: bytes = pa.Codec("zstd").decompress(body[_RAW_SIZE.size :], raw_size, asbytes=True)
    except OSError as error:
        raise ValueError(str(error)) from error
    if len(plain) != raw_size:
        raise ValueError(f"{len(plain)} bytes instead of {raw_size}")
    return plain
