"""Whole runs of the command line beside what they must print.

Each folder of `bad_files` and `commands` is a case; `README.md` says what is in it. Run this file
(`make snapshots`) to write what the program prints now, and look at `git diff`.
"""

from __future__ import annotations

import contextlib
import functools
import io
import os
import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import typer.main

HERE = Path(__file__).parent
BAD_FILES = sorted(path for path in (HERE / "bad_files").iterdir() if path.is_dir())
COMMANDS = sorted(path for path in (HERE / "commands").iterdir() if path.is_dir())
ENVIRONMENT = {"COLUMNS": "80", "LINES": "24", "TERM": "dumb", "NO_COLOR": "1"}
UNSET = ("OPENAI_API_KEY", "SECRET_KEY")
# Made once a process: it takes longer than most cases, which are played thousands of times.
_commands = functools.cache(typer.main.get_command)


@dataclass(frozen=True, slots=True)
class Played:
    """What came of one run.

    Attributes:
        code: what it exited with.
        out, err: what it wrote to stdout and stderr.
        made: files and directories that it left and that were not there before.
    """

    code: int
    out: str
    err: str
    made: tuple[str, ...]


def arguments(case: Path) -> list[str]:
    """The arguments of a case: `command`, or those of a bad file with its `args` behind."""
    command = case / "command"
    if command.exists():
        return shlex.split(command.read_text("utf-8"), comments=True)
    args = case / "args"
    more = args.read_text("utf-8").splitlines() if args.exists() else []
    return ["validate", "scenario.yaml", *more]


def play(case: Path, args: list[str]) -> Played:
    """Run the command line, in this process, in a copy of a case's folder."""
    from agentsim.cli import main

    with tempfile.TemporaryDirectory() as name, _surroundings(Path(name) / "here", case) as here:
        before = _listing(here)
        out, err = io.StringIO(), io.StringIO()
        code: object = 0
        with (
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
            mock.patch.object(sys, "argv", ["agentsim", *args]),
            mock.patch.object(typer.main, "get_command", _commands),
        ):
            try:
                main()
            except SystemExit as end:
                code = end.code or 0
        assert isinstance(code, int), code
        made = tuple(sorted(_listing(here) - before))
    return Played(code, out.getvalue(), err.getvalue(), made)


def expected(case: Path) -> Played:
    """What a case must print; a stream without a file is empty, and nothing is made."""
    streams = [case / name for name in ("stdout", "stderr")]
    out, err = (path.read_text("utf-8") if path.exists() else "" for path in streams)
    code = case / "exit_code"
    return Played(int(code.read_text()) if code.exists() else 2, out, err, ())


def write(case: Path) -> None:
    """Write what a case prints now."""
    now = play(case, arguments(case))
    for name, text in (("stdout", now.out), ("stderr", now.err)):
        (case / name).unlink(missing_ok=True)
        if text:
            (case / name).write_text(text, "utf-8")
    (case / "exit_code").unlink(missing_ok=True)
    if now.code != 2:
        (case / "exit_code").write_text(f"{now.code}\n")


@contextlib.contextmanager
def _surroundings(here: Path, case: Path) -> Iterator[Path]:
    """A copy of a case's folder as the current directory, and the same terminal everywhere."""
    shutil.copytree(case, here, symlinks=True)
    set_ = {name: value for name, value in os.environ.items() if name not in UNSET} | ENVIRONMENT
    with mock.patch.dict(os.environ, set_, clear=True), contextlib.chdir(here):
        yield here


def _listing(here: Path) -> set[str]:
    return {str(path.relative_to(here)) for path in here.rglob("*")}


if __name__ == "__main__":
    for folder in (*BAD_FILES, *COMMANDS):
        write(folder)
    print(f"{len(BAD_FILES) + len(COMMANDS)} cases written; now look at `git diff tests/cli`")
