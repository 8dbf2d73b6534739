from __future__ import annotations

import errno
import os
from datetime import datetime
from pathlib import Path

import pytest

from agentsim.errors import ResultsError
from agentsim.results import storage
from agentsim.results.directory import RunDirectory, default_path
from agentsim.results.storage import read_json, write_atomic, write_json


def test_a_new_directory_has_its_parts_and_parents(tmp_path: Path) -> None:
    directory = RunDirectory.create(tmp_path / "runs" / "a")
    for path in (
        directory.actions,
        directory.requests,
        directory.announcements,
        directory.logs,
    ):
        assert path.is_dir()
    names = {
        path.name
        for path in (
            directory.manifest,
            directory.journal,
            directory.personas,
            directory.summary,
        )
    }
    assert names == {"manifest.json", "journal.log", "personas.parquet", "summary.json"}


def test_a_run_is_never_overwritten(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    with pytest.raises(ResultsError, match="never overwritten"):
        RunDirectory.create(tmp_path / "a")
    (tmp_path / "file").write_text("x")
    with pytest.raises(ResultsError, match="cannot make"):
        RunDirectory.create(tmp_path / "file")


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (errno.ENOSPC, "disk is full"),
        (errno.EACCES, "Permission denied"),
        (errno.EROFS, "Read-only file system"),
    ],
)
def test_what_the_system_refuses_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, words: str
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    directory = RunDirectory.create(tmp_path / "a")
    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", refuse)
        with pytest.raises(ResultsError, match=f"{directory.summary}.*{words}"):
            write_atomic(directory.summary, b"{}")
    with monkeypatch.context() as patch:
        patch.setattr(Path, "mkdir", refuse)
        with pytest.raises(ResultsError, match=f"{tmp_path / 'b'}.*{words}"):
            RunDirectory.create(tmp_path / "b")
    assert list(directory.path.glob(".*")) == [], "nothing half-written stays"


def test_a_failed_replacement_leaves_the_old_content(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.json"
    write_atomic(path, b"old")

    def refuse(fd: int) -> None:
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr("os.fsync", refuse)
    with pytest.raises(ResultsError):
        write_atomic(path, b"new")
    assert path.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["a.json"]


def test_opening_tells_what_is_missing(tmp_path: Path) -> None:
    with pytest.raises(ResultsError, match="does not exist"):
        RunDirectory.open(tmp_path / "a")
    (tmp_path / "file").write_text("x")
    with pytest.raises(ResultsError, match="not a directory"):
        RunDirectory.open(tmp_path / "file")
    (tmp_path / "b").mkdir()
    with pytest.raises(ResultsError, match=r"neither manifest\.json nor journal\.log"):
        RunDirectory.open(tmp_path / "b")
    (tmp_path / "b" / "journal.log").write_bytes(b"")
    assert RunDirectory.open(tmp_path / "b").path == tmp_path / "b"


def test_the_default_path_tells_scenario_and_time(tmp_path: Path) -> None:
    now = datetime(2026, 11, 29, 23, 19, 0)
    first, second = (default_path("guess", now, root=tmp_path) for _ in range(2))
    assert first.parent == tmp_path
    name, identity = first.name.rsplit("-", 1)
    assert name == "guess-20261129-231900"
    assert len(identity) == 6
    assert int(identity, 16) >= 0
    assert first != second


def test_json_holds_no_number_that_json_does_not_know(tmp_path: Path) -> None:
    import numpy as np

    data = {"a": float("nan"), "b": [float("inf"), np.float64(1.5)], 3: np.arange(2), "c": (True,)}
    write_json(tmp_path / "a.json", data)
    expected = {"a": None, "b": [None, 1.5], "3": [0, 1], "c": [True]}
    assert read_json(tmp_path / "a.json") == expected


@pytest.mark.parametrize("content", ["", "{", "[1]"])
def test_damaged_json_is_named(tmp_path: Path, content: str) -> None:
    (tmp_path / "a.json").write_text(content)
    with pytest.raises(ResultsError, match=r"a\.json: not a JSON"):
        read_json(tmp_path / "a.json")


def test_temporary_files_are_hidden_and_in_the_same_directory(tmp_path: Path) -> None:
    path = storage.temporary_path(tmp_path / "x.parquet")
    assert path.parent == tmp_path
    assert path.name.startswith(".")
    assert path.suffix != ".parquet"
