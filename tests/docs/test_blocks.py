"""The reader of blocks, and how outputs are compared."""

from __future__ import annotations

import pytest
from blocks import ROOT, blocks, complaint, matches

PAGE = ROOT / "docs" / "some.md"


def only(fence: str, text: str = "x\n") -> str:
    (block,) = blocks(PAGE, f"words\n\n{fence}\n{text}```\n")
    assert (block.line, block.text) == (3, text)
    return complaint(block)


@pytest.mark.parametrize(
    "fence",
    [
        "```",
        "```text",
        "```json",
        "```sh run",
        "```yaml scenario",
        "```python skip: needs a key",
        "```python file: a.py",
    ],
)
def test_right_fences(fence: str) -> None:
    assert only(fence) == ""


@pytest.mark.parametrize(
    ("fence", "words"),
    [
        ("```sh", "none of run"),
        ("```yaml run", "none of scenario"),
        ("```python skip:", "without a reason"),
        ("```python file", "without a name"),
        ("```bash", "written sh"),
        ("```sh wrong", "none of run"),
    ],
)
def test_wrong_fences(fence: str, words: str) -> None:
    assert words in only(fence)


def test_wrong_and_right_examples_are_for_pages_of_errors() -> None:
    (block,) = blocks(ROOT / "docs" / "errors" / "some.md", "```yaml wrong\nx\n```\n")
    assert complaint(block) == ""


@pytest.mark.parametrize(
    ("expected", "printed"),
    [
        ("a\nb\n", "a\nb\n"),
        ("finished in 1.1 s\n", "finished in 25 s\n"),
        ("finished in 1.1 s\n", "finished in 3 min\n"),
        ("files: runs/…\n", "files: runs/a-b\n"),
        ("a\n…\nd\n", "a\nb\nc\nd\n"),
        ("a\n…\n", "a\n"),
    ],
)
def test_what_matches(expected: str, printed: str) -> None:
    assert matches(expected, printed)


@pytest.mark.parametrize(
    ("expected", "printed"),
    [
        ("mean 33.59\n", "mean 33.60\n"),
        ("a.c\n", "abc\n"),
        ("a\n", "a\nb\n"),
        ("a\nb\n", "a\n"),
        ("runs/…\n", "runs/a\nb\n"),
        ("a\n…\nd\n", "a\nb\n"),
    ],
)
def test_what_does_not_match(expected: str, printed: str) -> None:
    assert not matches(expected, printed)
