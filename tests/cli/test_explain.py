"""Every code has a page, and its examples are what they say."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from snapshots import Played, play

from agentsim.config import CODES
from agentsim.config.explanations import PAGES, Example, markdown

codes = pytest.mark.parametrize("code", sorted(CODES))


def validate(example: Example, folder: Path) -> Played:
    """Run `agentsim validate` on an example."""
    for name, text in example.files().items():
        (folder / name).write_text(text)
    return play(folder, ["validate", "scenario.yaml", *example.args, "--error-format", "json"])


def test_every_code_has_a_page_and_no_other() -> None:
    assert set(PAGES) == set(CODES)


@codes
def test_the_wrong_example_brings_this_finding_alone(code: str, tmp_path: Path) -> None:
    played = validate(PAGES[code].wrong, tmp_path)
    assert [item["code"] for item in json.loads(played.err)] == [code]


@codes
def test_the_right_example_is_right(code: str, tmp_path: Path) -> None:
    played = validate(PAGES[code].right, tmp_path)
    assert (played.code, played.err) == (0, "")


@codes
def test_the_command_shows_the_page(code: str, tmp_path: Path) -> None:
    played = play(tmp_path, ["explain", code])
    assert (played.code, played.err) == (0, "")
    flat = " ".join(played.out.split())
    page = PAGES[code]
    for text in (CODES[code], page.means, page.mend, page.wrong.shown(), page.right.shown()):
        assert " ".join(text.split()) in flat
    assert all(len(line) <= 79 or line.startswith("    ") for line in played.out.splitlines())


@codes
def test_the_page_has_the_same_as_markdown(code: str) -> None:
    text = markdown(code)
    assert text.startswith(f"# {code}\n")
    assert PAGES[code].wrong.shown() in text
    assert PAGES[code].right.shown() in text


def test_there_is_no_page_for_nothing() -> None:
    with pytest.raises(KeyError):
        markdown("nothing")
