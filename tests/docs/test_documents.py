"""Every example in the documents is run or validated, and prints what they say."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from blocks import PAGES, ROOT, Block, blocks, complaint, matches

BASE = "name: documented\nagents: 10\nrounds: 2\ngame: {type: guess_average}\n"
TO_RUN = ("sh", "python")
REPLIES = '{"reply": "I pick 22.", "low": 0, "high": 100, "target": "2/3 * mean"}\n'


def checked(page: Path) -> list[Block]:
    return [block for block in blocks(page) if block.check not in ("", "skip", "wrong", "right")]


WITH_BLOCKS = [page for page in PAGES if checked(page)]
SLOW = [page for page in WITH_BLOCKS if any(block.check == "slow" for block in checked(page))]
YAML = [
    block
    for page in PAGES
    for block in checked(page)
    if block.language == "yaml" and block.check != "file"
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """What a clone has and the examples name."""
    for name in ("scenarios", "populations", "hostfiles"):
        shutil.copytree(ROOT / name, tmp_path / name)
    (tmp_path / "replies.jsonl").write_text(REPLIES)
    return tmp_path


def execute(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """Run a command as a user would, in a folder."""
    places = (str(Path(sys.executable).parent), os.environ["PATH"])
    more = {"PATH": os.pathsep.join(places), "COLUMNS": "80", "MPLBACKEND": "Agg"}
    return subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, **more, "OPENAI_API_KEY": "none"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


def play(block: Block, folder: Path) -> str:
    """Run a block; what it printed, to stderr if it had to fail."""
    text = block.text
    if block.check == "validate":
        text = text.replace("agentsim run ", "agentsim validate ")
    if "runs/…" in text:
        text = text.replace("runs/…", some_run(folder))
    if block.language == "python":
        command = (sys.executable, "-W", "error", "-c", text)
    else:
        command = ("bash", "-euo", "pipefail", "-c", text)
    done = execute(folder, *command)
    code = 2 if block.check == "fails" else 0
    assert done.returncode == code, f"{block}: exit {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stderr if code else done.stdout


def some_run(folder: Path) -> str:
    """The newest run; a small one is made if there is none."""
    if not (folder / "runs").exists():
        (folder / "scenarios" / "documented.yaml").write_text(f"{BASE}model: {{backend: random}}\n")
        done = execute(folder, "agentsim", "run", "scenarios/documented.yaml", "--quiet")
        assert done.returncode == 0, done.stderr
    newest = max((folder / "runs").iterdir(), key=lambda path: path.stat().st_mtime)
    return str(newest.relative_to(folder))


def play_page(page: Path, folder: Path, *, slow: bool) -> None:
    """Run a page's blocks in order, in one folder."""
    printed: str | None = None
    for block in blocks(page):
        if block.check == "file":
            (folder / block.reason).write_text(block.text)
        elif block.language in TO_RUN:
            runs = block.check not in ("", "skip") and (slow or block.check != "slow")
            printed = play(block, folder) if runs else None
        elif (block.language, block.check) == ("text", "output") and printed is not None:
            assert matches(block.text, printed), f"{block} is not what is printed:\n{printed}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_block_says_how_it_is_checked(page: Path) -> None:
    assert [f"{block}: {complaint(block)}" for block in blocks(page) if complaint(block)] == []


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("page", WITH_BLOCKS, ids=lambda page: str(page.relative_to(ROOT)))
def test_what_is_documented_runs(page: Path, folder: Path) -> None:
    play_page(page, folder, slow=False)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("page", SLOW, ids=lambda page: str(page.relative_to(ROOT)))
def test_what_is_documented_and_takes_long_runs(page: Path, folder: Path) -> None:
    play_page(page, folder, slow=True)


@pytest.mark.parametrize("block", YAML, ids=str)
def test_documented_files_are_valid(block: Block, folder: Path, tmp_path: Path) -> None:
    from agentsim.config import load_runs
    from agentsim.games import GAMES

    scenario = folder / "scenarios" / "documented.yaml"
    other = folder / "populations" / "documented.yaml"
    texts = {
        "scenario": block.text,
        "workflow": block.text,
        "model": f"{BASE}{block.text}",
        "population": f"{BASE}model: {{backend: random}}\npopulation: {other}\n",
        "hostfile": f"{BASE}model: {{backend: random}}\nhosts: {other}\n",
    }
    scenario.write_text(texts[block.check])
    other.write_text(block.text)
    load_runs(scenario, games=GAMES)


def test_there_is_something_to_check() -> None:
    assert {"README.md", "tutorial.md", "limits-of-a-run.md"} <= {page.name for page in WITH_BLOCKS}
    assert len(YAML) > 10
    assert SLOW
