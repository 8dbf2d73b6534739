"""A secret that somebody writes into a file, where it should not be, is never printed.

Every bad file gets one in several places, so that it meets every kind of finding.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from snapshots import BAD_FILES, arguments, play

SECRET = "sk-planted-0123456789"
Plant = Callable[[str], str]


def into_the_model(text: str) -> str:
    """Behind the model's opening bracket, or below its key."""
    if "model: {" in text:
        return text.replace("model: {", f"model: {{api_key: {SECRET}, ", 1)
    return text.replace("model:\n", f"model:\n  api_key: {SECRET}\n", 1)


PLANTS: dict[str, Plant] = {
    "first": lambda text: f"api_key: {SECRET}\n{text}",
    "last": lambda text: f"{text.rstrip()}\npassword: {SECRET}\n",
    "quoted": lambda text: f'{text.rstrip()}\nhfToken: "{SECRET}"\n',
    "in a block": lambda text: f"{text.rstrip()}\nsecrets:\n  - {SECRET}\n  - {{a: {SECRET}}}\n",
    "as a text of lines": lambda text: f"{text.rstrip()}\nprivate_key: |\n  {SECRET}\n  {SECRET}\n",
    "in an address": lambda text: f"{text.rstrip()}\nurl: https://me:{SECRET}@llm.example/v1\n",
    "in a comment": lambda text: f"# api_key={SECRET}\n{text}",
    "in a broken line": lambda text: f"{text.rstrip()}\ntoken: [{SECRET}\n",
    "at an anchor": lambda text: f"token: &t {SECRET}\n{text.rstrip()}\ndescription: *t\n",
    "in the model": into_the_model,
}


@pytest.fixture
def planted(tmp_path: Path) -> Callable[[Path, Plant], Path]:
    """A copy of a case with a secret in every file of it."""

    def make(case: Path, plant: Plant) -> Path:
        copy = tmp_path / "case"
        shutil.copytree(case, copy)
        for file in copy.glob("*.yaml"):
            text = file.read_bytes().decode("utf-8", "surrogateescape")
            file.write_bytes(plant(text).encode("utf-8", "surrogateescape"))
        return copy

    return make


# In the fast tier every file meets three or four of the places, and every place a third of the
# files.
BOTH = [
    pytest.param(
        *(case, where),
        id=f"{case.name}-{where}",
        marks=() if (i + j) % 3 == 0 else pytest.mark.slow,
    )
    for i, case in enumerate(BAD_FILES)
    for j, where in enumerate(PLANTS)
]


@pytest.mark.parametrize(("case", "where"), BOTH)
def test_it_is_never_printed(
    case: Path, where: str, planted: Callable[[Path, Plant], Path]
) -> None:
    copy = planted(case, PLANTS[where])
    for more in ([], ["--error-format", "json"]):
        played = play(copy, [*arguments(copy), *more])
        assert played.code == 2
        assert SECRET not in played.out + played.err


FLAGS = [
    f"model.api_key={SECRET}",
    f"api_key={SECRET}",
    f"model={{backend: openai, name: m, token: {SECRET}}}",
    f"model={{backend: openai, name: m, token: {SECRET}",
    f"model.base_url=https://me:{SECRET}@llm.example/v1",
    f"secrets=[{SECRET}, {{a: {SECRET}}}]",
    f"password:{SECRET}",
]


@pytest.mark.parametrize("flag", FLAGS)
@pytest.mark.parametrize("case", BAD_FILES[::8], ids=lambda case: case.name)
def test_it_is_never_printed_from_a_flag(case: Path, flag: str) -> None:
    for format in ("text", "json"):
        played = play(case, [*arguments(case), "--set", flag, "--error-format", format])
        assert played.code == 2
        assert SECRET not in played.out + played.err
