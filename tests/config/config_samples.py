"""A small game and the smallest files, for tests of the loader."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from agentsim.config import FileModel, GameFinding, Loaded, Population, Scenario, load
from agentsim.config.overrides import Override
from agentsim.errors import ConfigError, Finding


class Coin(FileModel):
    """Everybody says heads or tails."""

    type: Literal["coin"]
    """Fixed."""
    bias: Annotated[float, Field(ge=0, le=1)] = 0.5
    """Chance of heads."""
    sides: tuple[str, str] = ("heads", "tails")
    """Their names."""
    reward: Literal["none", "fixed"] | dict[str, float] = "none"
    """What is paid."""

    def findings(self, scenario: Scenario, population: Population | None) -> Iterable[GameFinding]:
        """Odd numbers of players are refused, for the test's sake."""
        if scenario.agents % 2:
            yield GameFinding(("agents",), "contradiction", "coins need pairs", "an even number")
        if self.bias == 1:
            yield GameFinding(("game", "bias"), "bad-value", "that is no game", hint="less than 1")


GAMES: dict[str, type[FileModel]] = {"coin": Coin}
SCENARIO = """\
name: coins
agents: 4
rounds: 2
game: {type: coin}
model: {backend: random}
"""
POPULATION = "attributes: {gender: {categories: {female: 0.5, male: 0.5}}}\n"


def write(folder: Path, **texts: str | bytes) -> Path:
    """Write files by name; the path of the scenario."""
    for name, text in {"scenario": SCENARIO, **texts}.items():
        content = text if isinstance(text, bytes) else text.encode()
        (folder / f"{name}.yaml").write_bytes(content)
    return folder / "scenario.yaml"


def findings(
    path: Path,
    overrides: Iterable[Override] = (),
    *,
    hosts: Path | None = None,
    workers: int | None = None,
) -> tuple[Finding, ...]:
    """What is wrong; nothing if the files load."""
    try:
        load(path, games=GAMES, overrides=overrides, hosts=hosts, workers=workers)
    except ConfigError as error:
        return error.findings
    return ()


def loaded(path: Path, *overrides: Override) -> Loaded:
    """The files, which must be right."""
    return load(path, games=GAMES, overrides=overrides)


def codes(items: Iterable[Finding]) -> list[str]:
    """The codes of findings, in order."""
    return [item.code for item in items]
