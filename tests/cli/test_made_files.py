"""Bad files that git cannot hold: too large, unreadable, of a kind that is no file."""

from __future__ import annotations

import os
import resource
import time
from pathlib import Path

import pytest
from snapshots import Played, play

MORE = "\n\n1 finding; nothing was started. More: agentsim explain "


def say(finding: str, code: str) -> Played:
    """What is expected of one finding."""
    return Played(2, "", f"error[{code}]: {finding}{MORE}{code}\n", ())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A case's folder."""
    path = tmp_path / "case"
    path.mkdir()
    return path


def both(folder: Path) -> Played:
    """What `validate` and `run` say, which is the same."""
    validated = play(folder, ["validate", "scenario.yaml"])
    assert play(folder, ["run", "scenario.yaml", "--out", "run"]) == validated
    return validated


@pytest.mark.parametrize("text", ["[" * 10_000_000, "{a: " * 2_500_000, "- " * 5_000_000])
def test_ten_megabytes_of_nesting(folder: Path, text: str) -> None:
    (folder / "scenario.yaml").write_text(text)
    assert both(folder) == say(
        "`scenario.yaml` is larger than 4 MiB\n  --> scenario.yaml", "too-large"
    )


@pytest.mark.parametrize("text", ["[" * 4_000_000, "{a: " * 1_000_000, "- " * 2_000_000])
def test_nesting_up_to_the_largest_file(folder: Path, text: str) -> None:
    (folder / "scenario.yaml").write_text(text)
    began_s, before = time.monotonic(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    played = both(folder)
    assert time.monotonic() - began_s < 20
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 400_000  # KiB
    message = "error[too-large]: lists and maps are nested "
    assert played.err.startswith(message)
    assert max(map(len, played.err.splitlines())) < 140
    assert (played.code, played.out) == (2, "")


@pytest.mark.slow
def test_many_values_up_to_the_largest_file(folder: Path) -> None:
    (folder / "scenario.yaml").write_text("a: [" + "1," * 2_000_000 + "]")
    assert "more than 200,000 values" in both(folder).err


def test_a_file_without_an_end(folder: Path) -> None:
    (folder / "scenario.yaml").symlink_to("/dev/zero")
    assert both(folder) == say(
        "`scenario.yaml` is larger than 4 MiB\n  --> scenario.yaml", "too-large"
    )


def test_a_link_to_itself(folder: Path) -> None:
    (folder / "scenario.yaml").symlink_to("scenario.yaml")
    assert both(folder) == say(
        "`scenario.yaml` cannot be read: too many levels of symbolic links\n  --> scenario.yaml",
        "unreadable-file",
    )


def test_a_link_to_nothing(folder: Path) -> None:
    (folder / "scenario.yaml").symlink_to("nothing.yaml")
    assert both(folder) == say(
        "`scenario.yaml` does not exist\n  --> scenario.yaml", "unreadable-file"
    )


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read(folder: Path) -> None:
    (folder / "scenario.yaml").write_text("name: guess\n")
    (folder / "scenario.yaml").chmod(0)
    assert both(folder) == say(
        "`scenario.yaml` cannot be read: permission denied\n  --> scenario.yaml", "unreadable-file"
    )


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("scenario.yaml/population.yaml", "not a directory"),
        ("x" * 300, "file name too long"),
    ],
)
def test_paths_that_are_none(folder: Path, path: str, reason: str) -> None:
    (folder / "scenario.yaml").write_text("")
    played = play(folder, ["validate", path])
    assert played.code == 2
    assert f" cannot be read: {reason}\n" in played.err


def test_a_directory(folder: Path) -> None:
    (folder / "scenario.yaml").mkdir()
    assert both(folder) == say(
        "`scenario.yaml` is a directory, not a file\n  --> scenario.yaml", "unreadable-file"
    )
