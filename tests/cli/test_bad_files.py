"""Each folder of `bad_files` is a case: files that are wrong, and what is said about them.

`args` holds what stands behind `agentsim validate scenario.yaml`, one argument a line.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from agentsim.cli import main

FOLDER = Path(__file__).parent / "bad_files"
CASES = sorted(path.name for path in FOLDER.iterdir() if path.is_dir())


def validate(*args: str, monkeypatch: pytest.MonkeyPatch) -> object:
    """Run the command as a shell would; the exit code."""
    monkeypatch.setattr(sys, "argv", ["agentsim", "validate", *args])
    with pytest.raises(SystemExit) as end:
        main()
    return end.value.code


@pytest.mark.parametrize("case", CASES)
def test_what_is_wrong_is_said(
    case: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = FOLDER / case
    args = folder / "args"
    more = args.read_text("utf-8").splitlines() if args.exists() else []
    monkeypatch.chdir(folder)
    code = validate("scenario.yaml", *more, monkeypatch=monkeypatch)
    out, err = capsys.readouterr()
    assert code == 2
    assert out == ""
    assert err == (folder / "stderr").read_text("utf-8")
    assert "do-not-print-me" not in err


def test_there_are_enough_cases() -> None:
    assert len(CASES) > 60
