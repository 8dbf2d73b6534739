"""Checks that need more than one value of a scenario, and what games say about their part."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from agentsim.config.made import MadePersonas
from agentsim.config.population import Population
from agentsim.config.scenario import Scenario
from agentsim.config.tree import Node, beside, find, given, place, text_at
from agentsim.config.workflow import WorkflowScenario
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
        beside: paths of the values that this one contradicts, each with what it is.
    """

    path: tuple[str | int, ...]
    code: str
    message: str
    expected: str = ""
    hint: str = ""
    beside: tuple[tuple[tuple[str | int, ...], str], ...] = ()


@runtime_checkable
class ChecksScenario(Protocol):
    """A game model that checks the scenario around it."""

    def findings(self, scenario: Scenario, population: Population | None) -> Iterable[GameFinding]:
        """What cannot be run with this game.

        Args:
            scenario: around the game.
            population: None where the scenario names none, or one that is not right.
        """
        ...


def of_game(
    game: object, scenario: Scenario, population: Population | None, node: Node
) -> list[Finding]:
    """What the game has to say, at its places in the file."""
    if not isinstance(game, ChecksScenario):
        return []
    return [_placed(item, node) for item in game.findings(scenario, population)]


def _placed(item: GameFinding, node: Node) -> Finding:
    where = place(node, item.path)
    related = [there for path, note in item.beside for there in beside(node, path, note, where)]
    return where.finding(item.code, item.message, item.expected, item.hint, tuple(related))


def of_made(made: MadePersonas, scenario: Scenario | WorkflowScenario, node: Node) -> list[Finding]:
    """Whether a file of personas has enough of them."""
    wanted = scenario.agents * scenario.sessions
    if made.people >= wanted:
        return []
    where = place(node, ("population",))
    related = [
        there
        for key in ("agents", "sessions")
        for there in beside(node, (key,), f"{key} {getattr(scenario, key):,}", where)
    ]
    return [
        where.finding(
            "contradiction",
            f"population: the file holds {made.people:,} personas, the scenario needs {wanted:,}",
            "a file with at least as many personas as there are agents over all sessions",
            related=tuple(related),
        )
    ]


def across(node: Node) -> list[Finding]:
    """Contradictions between keys of a scenario."""
    prompt = find(node, "prompt")
    if prompt is None or text_at(node, "prompt") != "character" or given(node, "population"):
        return []
    where = place(node, ("prompt",))
    return [
        where.finding(
            "contradiction",
            "prompt: `character` shows the persona, and there is no population",
            "for example population: ../populations/adults.yaml",
            related=beside(node, ("population",), "there is none because of this", where),
        )
    ]
