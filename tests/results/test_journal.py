from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pytest

from agentsim.errors import DiskFull, ResultsError
from agentsim.results import framing
from agentsim.results.framing import Frame, Kind, frames, is_being_written, last_frame
from agentsim.results.journal import Journal

BODIES = [
    (Kind.RUN, b'{"run_id":"r1"}'),
    (Kind.ATTEMPTS, b"I would guess thirty-three. " * 40),
    (Kind.ANSWERS, bytes(range(256))),
    (Kind.ATTEMPTS, b"short"),
    (Kind.SETTLE, b""),
    (Kind.END, b'{"state":"finished"}'),
]


def written(path: Path, bodies: Sequence[tuple[Kind, bytes]] = BODIES) -> list[int]:
    """A journal with these bodies; returns where each frame begins, and the end of the file."""
    with Journal.create(path) as journal:
        offsets = [journal.append(kind, body) for kind, body in bodies]
    return [*offsets, path.stat().st_size]


def contents(path: Path) -> list[tuple[Kind, bytes]]:
    return [(frame.kind, frame.body) for frame in frames(path)]


def test_frames_come_back_in_order_with_their_offsets(tmp_path: Path) -> None:
    offsets = written(tmp_path / "j")
    assert contents(tmp_path / "j") == BODIES
    assert [frame.offset for frame in frames(tmp_path / "j")] == offsets[:-1]


def test_attempts_are_compressed_and_answers_are_not(tmp_path: Path) -> None:
    offsets = written(tmp_path / "j")
    sizes = [after - before - 13 for before, after in pairwise(offsets)]
    assert sizes[1] < len(BODIES[1][1]) / 5
    assert sizes[2:4] == [256, 5]
    assert BODIES[2][1] in (tmp_path / "j").read_bytes()


def test_reading_begins_at_a_given_frame(tmp_path: Path) -> None:
    offsets = written(tmp_path / "j")
    assert [f.kind for f in frames(tmp_path / "j", start=offsets[3])] == [k for k, _ in BODIES[3:]]


def test_recovery_is_right_wherever_the_file_is_cut(tmp_path: Path) -> None:
    whole = tmp_path / "whole"
    offsets = written(whole)
    content = whole.read_bytes()
    for size in range(len(content)):
        cut = tmp_path / "cut"
        cut.write_bytes(content[:size])
        kept = sum(end <= size for end in offsets[1:])
        good_end = offsets[kept] if size >= offsets[0] else 0
        assert contents(cut) == BODIES[:kept], size
        with Journal.open(cut) as journal:
            assert journal.cut_bytes == size - good_end, size
            journal.append(Kind.END, b"after")
        assert contents(cut) == [*BODIES[:kept], (Kind.END, b"after")], size


def test_a_flipped_byte_is_detected_wherever_it_is(tmp_path: Path) -> None:
    whole = tmp_path / "whole"
    offsets = written(whole)
    content = whole.read_bytes()
    flipped = tmp_path / "flipped"
    for at in range(len(content)):
        for bit in (0x01, 0x80):
            damaged = bytearray(content)
            damaged[at] ^= bit
            flipped.write_bytes(damaged)
            if at >= offsets[-2]:
                # The last frame cannot be told from one that was cut short by a crash.
                assert contents(flipped) == BODIES[:-1], at
                with Journal.open(flipped) as journal:
                    assert journal.cut_bytes == len(content) - offsets[-2]
                continue
            with pytest.raises(ResultsError):
                contents(flipped)
            with pytest.raises(ResultsError):
                Journal.open(flipped)
            assert flipped.read_bytes() == damaged, "a damaged journal is left as it is"


def test_damage_in_the_middle_names_frame_and_offsets(tmp_path: Path) -> None:
    path = tmp_path / "j"
    offsets = written(path)
    content = bytearray(path.read_bytes())
    content[offsets[2] + 20] ^= 1
    path.write_bytes(content)
    with pytest.raises(ResultsError, match="frame 3") as caught:
        Journal.open(path)
    for part in (str(path), f"byte {offsets[2]}", f"byte {offsets[3]}", f"-s {offsets[2]}"):
        assert part in str(caught.value)


def test_frames_before_the_damage_are_still_read(tmp_path: Path) -> None:
    path = tmp_path / "j"
    offsets = written(path)
    content = bytearray(path.read_bytes())
    content[offsets[2] + 20] ^= 1
    path.write_bytes(content)
    reader = frames(path)
    assert [next(reader).kind, next(reader).kind] == [Kind.RUN, Kind.ATTEMPTS]
    with pytest.raises(ResultsError):
        next(reader)


def test_a_good_frame_is_found_behind_a_long_stretch_of_zeros(tmp_path: Path) -> None:
    path = tmp_path / "j"
    offsets = written(path)
    content = path.read_bytes()
    gap = bytes(3 * 1024 * 1024 - 2)
    path.write_bytes(content[: offsets[1]] + gap + content[offsets[1] :])
    with pytest.raises(ResultsError, match=f"follow at byte {offsets[1] + len(gap)}"):
        Journal.open(path)


def test_zeros_at_the_end_are_a_torn_tail(tmp_path: Path) -> None:
    path = tmp_path / "j"
    written(path)
    with path.open("ab") as file:
        file.write(bytes(5000))
    assert contents(path) == BODIES
    with Journal.open(path) as journal:
        assert journal.cut_bytes == 5000


def test_a_frame_inside_the_body_of_a_torn_one_is_found_by_its_checksum_only(
    tmp_path: Path,
) -> None:
    path = tmp_path / "j"
    with Journal.create(path) as journal:
        # Looks like the beginning of a frame, and is none.
        start = journal.append(Kind.ANSWERS, framing._MARK * 100)
    content = path.read_bytes()
    path.write_bytes(content[:-1])
    with Journal.open(path) as journal:
        assert journal.cut_bytes == len(content) - 1 - start


@pytest.mark.parametrize("content", [b"PAR1" + bytes(100), b"x", b"agentsim" + b"\2" * 20])
def test_what_is_no_journal_is_refused_and_left_alone(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "j"
    path.write_bytes(content)
    with pytest.raises(ResultsError, match=r"not a journal|damaged"):
        Journal.open(path)
    with pytest.raises(ResultsError, match=r"not a journal|damaged"):
        contents(path)
    assert path.read_bytes() == content


def test_another_version_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(framing, "_VERSION", 9)
    written(tmp_path / "j")
    monkeypatch.undo()
    with pytest.raises(ResultsError, match="format 9"):
        Journal.open(tmp_path / "j")


def test_a_kind_of_a_newer_version_is_not_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "j"
    written(path)
    size = path.stat().st_size
    head = framing._CHECKED.pack(1, 99)
    crc = framing.zlib.crc32(b"x", framing.zlib.crc32(head))
    with path.open("ab") as file:
        file.write(framing._FRAME.pack(framing._MARK, 1, 99, crc) + b"x")
    with pytest.raises(ResultsError, match="newer version"):
        contents(path)
    Journal.open(path).close()
    assert path.stat().st_size == size + 14


@pytest.mark.parametrize("raw_size", [0, 3, 2**32 - 1])
def test_a_compressed_body_of_another_size_is_an_error(tmp_path: Path, raw_size: int) -> None:
    path = tmp_path / "j"
    body = framing._compress(b"hello" * 500)
    body = framing._RAW_SIZE.pack(raw_size) + body[4:]
    kind = Kind.ATTEMPTS | 0x80
    crc = framing.zlib.crc32(body, framing.zlib.crc32(framing._CHECKED.pack(len(body), kind)))
    path.write_bytes(
        framing.header() + framing._FRAME.pack(framing._MARK, len(body), kind, crc) + body
    )
    with pytest.raises(ResultsError, match="cannot be read") as caught:
        contents(path)
    # Before memory of that size is asked for.
    assert ("claims 4294967295 bytes" in str(caught.value)) is (raw_size == 2**32 - 1)


def test_a_body_over_the_bound_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(framing, "MAX_BODY_BYTES", 100)
    with Journal.create(tmp_path / "j") as journal:
        with pytest.raises(ResultsError, match="101 bytes is larger than 100"):
            journal.append(Kind.ANSWERS, bytes(101))
        journal.append(Kind.ANSWERS, bytes(100))
    assert contents(tmp_path / "j") == [(Kind.ANSWERS, bytes(100))]


def test_a_journal_is_never_created_over_another(tmp_path: Path) -> None:
    written(tmp_path / "j")
    before = (tmp_path / "j").read_bytes()
    with pytest.raises(ResultsError, match="already"):
        Journal.create(tmp_path / "j")
    assert (tmp_path / "j").read_bytes() == before


def test_a_missing_journal_is_named(tmp_path: Path) -> None:
    with pytest.raises(ResultsError, match=r"nowhere.*No such file"):
        Journal.open(tmp_path / "nowhere")
    with pytest.raises(ResultsError, match=r"nowhere.*No such file"):
        contents(tmp_path / "nowhere")


def test_a_second_writer_in_this_process_is_refused(tmp_path: Path) -> None:
    with Journal.create(tmp_path / "j"):
        assert is_being_written(tmp_path / "j")
        with pytest.raises(ResultsError, match="another process is writing"):
            Journal.open(tmp_path / "j")
    assert not is_being_written(tmp_path / "j")
    Journal.open(tmp_path / "j").close()


def test_a_second_process_is_refused_until_the_first_is_gone(tmp_path: Path) -> None:
    path = tmp_path / "j"
    program = (
        "import sys; from pathlib import Path; from agentsim.results.journal import Journal\n"
        "journal = Journal.create(Path(sys.argv[1])); print('held', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"held\n"
        try:
            with pytest.raises(ResultsError, match="another process is writing"):
                Journal.open(path)
            assert contents(path) == []
        finally:
            other.kill()
            other.wait()
    Journal.open(path).close()


class FullDisk:
    """`os.writev` of a disk on which `room` bytes are left, and which takes `step` at a time."""

    def __init__(self, room: int, step: int) -> None:
        self.room = room
        self.step = step

    def __call__(self, fd: int, parts: Sequence[memoryview]) -> int:
        if not self.room:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        data = b"".join(parts)[: min(self.room, self.step)]
        self.room -= len(data)
        return os.write(fd, data)


@pytest.mark.parametrize("step", [1, 7, 1000])
def test_a_frame_is_whole_when_the_system_writes_a_little_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    monkeypatch.setattr("os.writev", FullDisk(10**6, step))
    written(tmp_path / "j")
    assert contents(tmp_path / "j") == BODIES


@pytest.mark.parametrize("room", [0, 1, 12, 13, 14, 200])
def test_a_full_disk_leaves_whole_frames_and_room_frees_the_journal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, room: int
) -> None:
    path = tmp_path / "j"
    with Journal.create(path) as journal:
        journal.append(*BODIES[0])
        size = path.stat().st_size
        with monkeypatch.context() as patch:
            patch.setattr("os.writev", FullDisk(room, 5))
            with pytest.raises(ResultsError, match="disk is full"):
                journal.append(*BODIES[2])
        assert path.stat().st_size == size
        journal.append(*BODIES[3])
    assert contents(path) == [BODIES[0], BODIES[3]]


def test_a_torn_frame_that_cannot_be_cut_at_once_is_cut_before_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "j"
    with Journal.create(path) as journal:
        journal.append(*BODIES[0])
        size = path.stat().st_size

        def refuse(fd: int, length: int) -> None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        with monkeypatch.context() as patch:
            patch.setattr("os.writev", FullDisk(20, 5))
            patch.setattr("os.ftruncate", refuse)
            for _ in range(2):
                with pytest.raises(DiskFull):
                    journal.append(*BODIES[2])
        assert path.stat().st_size == size + 20
        journal.append(*BODIES[3])
    assert contents(path) == [BODIES[0], BODIES[3]]


@pytest.mark.parametrize(
    ("number", "waits", "words"),
    [
        (errno.ENOSPC, True, "the disk is full"),
        (errno.EDQUOT, True, "the disk quota is used up"),
        (errno.EFBIG, False, "allows no larger file"),
        (errno.EIO, False, "Input/output error"),
    ],
)
def test_only_a_lack_of_room_is_worth_waiting_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, waits: bool, words: str
) -> None:
    def refuse(fd: int, parts: Sequence[memoryview]) -> int:
        raise OSError(number, os.strerror(number))

    with Journal.create(tmp_path / "j") as journal:
        monkeypatch.setattr("os.writev", refuse)
        with pytest.raises(ResultsError, match=words) as caught:
            journal.append(*BODIES[0])
        assert isinstance(caught.value, DiskFull) is waits


def test_a_real_limit_of_the_system_cuts_back_at_the_last_frame(tmp_path: Path) -> None:
    program = """
import resource, signal, sys
from pathlib import Path
from agentsim.errors import ResultsError
from agentsim.results.journal import Journal, Kind
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))
journal = Journal.create(Path(sys.argv[1]))
count = 0
try:
    while True:
        journal.append(Kind.ANSWERS, bytes(997))
        count += 1
except ResultsError as error:
    assert "allows no larger file" in str(error), error
print(count)
"""
    path = tmp_path / "j"
    done = subprocess.run(
        [sys.executable, "-c", program, str(path)], capture_output=True, text=True, check=True
    )
    assert int(done.stdout) == 9
    assert path.stat().st_size == 16 + 9 * (13 + 997)
    assert contents(path) == [(Kind.ANSWERS, bytes(997))] * 9


def test_nothing_is_appended_after_the_disk_refused_to_sync(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(fd: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    journal = Journal.create(tmp_path / "j")
    monkeypatch.setattr("os.fdatasync", refuse)
    with pytest.raises(ResultsError, match="Input/output error"):
        journal.sync()
    with pytest.raises(ResultsError, match="fdatasync failed"):
        journal.append(*BODIES[0])
    journal.close()


def test_a_closed_journal_says_so(tmp_path: Path) -> None:
    journal = Journal.create(tmp_path / "j")
    journal.close()
    journal.close()
    journal.sync()
    with pytest.raises(ResultsError, match="closed"):
        journal.append(*BODIES[0])


def test_the_last_frame_is_found_without_reading_the_others(tmp_path: Path) -> None:
    path = tmp_path / "j"
    offsets = written(path, [(Kind.ANSWERS, bytes(300_000)), (Kind.END, b"done")])
    assert last_frame(path) == Frame(Kind.END, b"done", offsets[1])
    with path.open("ab") as file:
        file.write(b"\xff\xa9AJ")
    assert last_frame(path) is None


def test_an_empty_journal_has_no_last_frame(tmp_path: Path) -> None:
    written(tmp_path / "j", [])
    assert last_frame(tmp_path / "j") is None
    (tmp_path / "j").write_bytes(b"agen")
    assert last_frame(tmp_path / "j") is None


def test_reading_holds_one_frame_in_memory(tmp_path: Path) -> None:
    path = tmp_path / "j"
    written(path, [(Kind.ANSWERS, bytes(1_000_000))] * 64)
    program = """
import sys, tracemalloc
from pathlib import Path
from agentsim.results.journal import Journal
from agentsim.results.framing import frames
tracemalloc.start()
print(sum(len(frame.body) for frame in frames(Path(sys.argv[1]))), end=" ")
Journal.open(Path(sys.argv[1])).close()
print(tracemalloc.get_traced_memory()[1])
"""
    done = subprocess.run(
        [sys.executable, "-c", program, str(path)], capture_output=True, text=True, check=True
    )
    total, peak = map(int, done.stdout.split())
    assert total == 64_000_000
    assert peak < 5_000_000
