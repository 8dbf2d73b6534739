from __future__ import annotations

import shutil
from pathlib import Path

import pandas as pd
import pytest
from recorded_runs import FINISHED, Recorder, attempt

from agentsim.errors import ResultsError
from agentsim.ids import Round
from agentsim.results import RunDirectory, compact, load_run
from agentsim.results import parts as parts_module
from agentsim.results.parts import (
    finish_replacing,
    part_of,
    parts,
    replace_tables,
    scratch_directory,
)

TABLES = ("actions", "requests", "announcements")


def many_parts(path: Path, rounds: int = 70) -> RunDirectory:
    recorder = Recorder(path, agents=2, rounds=rounds, hold_rows=0)
    for round in range(1, rounds + 1):
        recorder.attempted(
            1, round, [[attempt(a, 0, "ok", float(round), round=round) for a in (1, 0)]]
        )
    return recorder.end(FINISHED)


def test_many_files_become_few_with_the_same_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts_module, "_PART_ROWS", 50)
    directory = many_parts(tmp_path / "r")
    before = {name: load_run(directory.path).table(name) for name in TABLES}
    compact(directory)
    assert [path.name for path in parts(directory, "actions")] == [
        "s0001-r0001_s0001-r0025.parquet",
        "s0001-r0026_s0001-r0050.parquet",
        "s0001-r0051_s0001-r0070.parquet",
    ]
    assert len(parts(directory, "announcements")) == 2
    for name in TABLES:
        assert load_run(directory.path).table(name).equals(before[name])
    assert pd.read_parquet(directory.actions)["value"].tolist() == [
        float(round) for round in range(1, 71) for _ in range(2)
    ]
    assert not (directory.path / ".tables").exists()


def test_few_files_are_left_alone(tmp_path: Path) -> None:
    directory = many_parts(tmp_path / "r", rounds=64)
    compact(directory)
    assert len(parts(directory, "actions")) == 64


def test_merging_twice_and_after_more_rounds(tmp_path: Path) -> None:
    directory = many_parts(tmp_path / "r")
    compact(directory)
    names = [path.name for path in parts(directory, "actions")]
    assert names == ["s0001-r0001_s0001-r0070.parquet"]
    compact(directory)
    assert [path.name for path in parts(directory, "actions")] == names


def test_files_are_in_order_of_numbers_not_of_letters(tmp_path: Path) -> None:
    directory = RunDirectory.create(tmp_path / "r")
    names = ["s0002-r0001.parquet", "s10000-r0001.parquet", "s9999-r0002.parquet"]
    for name in [*names, ".s0001-r0001.parquet.1.tmp", "notes.txt"]:
        (directory.actions / name).touch()
    found = [path.name for path in parts(directory, "actions")]
    assert found == ["s0002-r0001.parquet", "s9999-r0002.parquet", "s10000-r0001.parquet"]


def test_a_name_tells_its_rounds() -> None:
    assert part_of(Path("a/s0001-r0002.parquet")) == (Round(1, 2), Round(1, 2))
    assert part_of(Path("s0001-r0002_s0003-r0004.parquet")) == (Round(1, 2), Round(3, 4))


@pytest.mark.parametrize("after", ["scratch", "old moved", "one replaced", "all replaced"])
def test_nothing_is_lost_when_a_crash_interrupts_the_replacement(
    tmp_path: Path, after: str
) -> None:
    directory = many_parts(tmp_path / "r", rounds=3)
    before = {name: load_run(directory.path).table(name) for name in TABLES}
    scratch = scratch_directory(directory)
    for name in TABLES:
        shutil.copytree(directory.table(name), scratch.table(name), dirs_exist_ok=True)
    if after == "old moved":
        directory.actions.rename(scratch.path / "old-actions")
    elif after == "one replaced":
        directory.actions.rename(scratch.path / "old-actions")
        scratch.actions.rename(directory.actions)
    elif after == "all replaced":
        replace_tables(directory, scratch, list(TABLES))
    finish_replacing(directory)
    for name in TABLES:
        assert load_run(directory.path).table(name).equals(before[name])
    assert not (directory.path / ".tables").exists()


def test_a_table_that_is_being_replaced_is_not_taken_for_an_empty_one(tmp_path: Path) -> None:
    directory = many_parts(tmp_path / "r", rounds=3)
    scratch = scratch_directory(directory)
    directory.actions.rename(scratch.path / "old-actions")
    with pytest.raises(ResultsError, match="being replaced"):
        load_run(directory.path).table("actions")
    shutil.rmtree(scratch.path)
    assert load_run(directory.path).actions.empty, "a copy without empty directories"


def test_a_damaged_file_is_named_with_what_helps(tmp_path: Path) -> None:
    directory = many_parts(tmp_path / "r")
    path = directory.actions / "s0001-r0003.parquet"
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(ResultsError, match="s0001-r0003"):
        compact(directory)
    assert len(parts(directory, "actions")) == 70
    with pytest.raises(ResultsError, match=r"s0001-r0003.*rebuild"):
        load_run(directory.path).table("actions")
