"""Checks that need more than one value of a scenario, and what games say about their part."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from agentsim.config.scenario import Scenario
from agentsim.config.tree import Node, find, given, place, text_at
from agentsim.errors import Finding


@dataclass(frozen=True, slots=True)
class GameFinding:
    """What a game has to say about a scenario.

    Attributes:
        path: where, from the root of the scenario, e.g. `("game", "target")`.
        code: one of `codes.CODES`.
        message: what was found, one sentence in YAML words.
        expected: what would be right there; may be empty.
        hint: one suggestion; may be empty.
    """

    path: tuple[str | int, ...]
    code: str
    message: str
    expected: str = ""
    hint: str = ""


@runtime_checkable
class ChecksScenario(Protocol):
    """A game model that checks the scenario around it."""

    def findings(self, scenario: Scenario) -> Iterable[GameFinding]:
        """What cannot be run with this game."""
        ...


def of_game(game: object, scenario: Scenario, node: Node) -> list[Finding]:
    """What the game has to say, at its places in the file."""
    if not isinstance(game, ChecksScenario):
        return []
    return [
        place(node, item.path).finding(item.code, item.message, item.expected, item.hint)
        for item in game.findings(scenario)
    ]


def across(node: Node) -> list[Finding]:
    """Contradictions between keys of a scenario."""
    prompt = find(node, "prompt")
    if prompt is None or text_at(node, "prompt") != "character" or given(node, "population"):
        return []
    return [
        place(node, ("prompt",)).finding(
            "contradiction",
            "prompt: `character` shows the persona, and there is no population",
            "for example population: ../populations/adults.yaml",
        )
    ]
