"""How much memory a run is expected to take, from what was measured. Pure.

The figures are resident sets at their peak, measured with `agentsim run` at 100,000 to 10,000,000
scripted players and 2,000 to 20,000 language players, and rounded up; `_MARGIN` is for what differs
from machine to machine. What programs share, mostly libraries, is counted in each of them. Model
servers are not in it: their own settings say what they take.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from agentsim.config.models import LANGUAGE_MODELS, Dummy
from agentsim.config.scenario import Last, Scenario

_MARGIN = 1.2
_MB = 1_000_000

# Programs without agents. In the orchestrator the end is the peak: it reads tables to sum up.
_ORCHESTRATOR = 190 * _MB
_POPULATION = 80 * _MB  # its people are drawn before the rounds, in pieces
_NODE = 110 * _MB
_WORKER = 118 * _MB
# Messages on their way: what is sent and not acknowledged is bounded, on both sides of a node.
_UNDER_WAY = 40 * _MB
_ROWS_UNDER_WAY = 16  # bytes a row, until the bound

# Bytes an agent.
_SETTLED = 130  # of one session, at the orchestrator: its columns, and what settling makes of them
_ROUND_THAT_WAITS = 25  # each settled round that waits for Parquet
_ROUNDS_THAT_WAIT = 5
_GATHERED = 40  # in each further session that is under way
_GROUPED = 45
_SCRIPTED = 60  # at its worker
_TEXT = 100  # of a text beside its length, at the orchestrator
_TALK = 4_000  # of a language player, at the orchestrator: attempts, and the deciding reply
_TALK_THAT_WAITS = 2_000  # in each settled round that waits for Parquet
_PLAYER = 700  # of a language player, at its worker
_PERSONA = 1_200
_REPLY = 600  # one that memory keeps
# A market that is not alone in its session: its own columns, and its record.
_MARKET = 6_000
# Small files are merged at the end, a million rows at a time.
_MANY_FILES = 64
_MERGED_ROWS = 1_000_000
_MERGED_ROW = 200


@dataclass(frozen=True, slots=True)
class Memory:
    """Expected bytes at the peak.

    Attributes:
        orchestrator: of `agentsim run`.
        node: of each node, its model server left out.
        workers: of each worker that hosts agents, in order of the plan's shards.
        total: of all.
    """

    orchestrator: int
    node: int
    workers: tuple[int, ...]
    total: int


def expected(
    scenario: Scenario, *, hosted: Sequence[int], nodes: int, idle: int, sessions_at_once: int
) -> Memory:
    """What a run will take.

    Args:
        hosted: agents of each worker that hosts some, in one session.
        nodes: how many.
        idle: workers without agents.
        sessions_at_once: sessions that are played side by side.
    """
    language = isinstance(scenario.model, LANGUAGE_MODELS)
    at_worker = _language_player(scenario) if language else _SCRIPTED
    if "groups" in _game(scenario):
        at_worker += _GROUPED
    orchestrator = _rounded(_orchestrator(scenario, sessions_at_once, language=language))
    rows = scenario.agents * sessions_at_once
    node = _rounded(_NODE + min(_UNDER_WAY, rows * _ROWS_UNDER_WAY))
    workers = tuple(_rounded(_WORKER + at_worker * n * sessions_at_once) for n in hosted)
    whole = orchestrator + nodes * node + sum(workers) + idle * _rounded(_WORKER)
    return Memory(orchestrator, node, workers, whole)


def _orchestrator(scenario: Scenario, sessions_at_once: int, *, language: bool) -> float:
    agents = scenario.agents
    waiting = min(scenario.rounds * scenario.sessions - 1, _ROUNDS_THAT_WAIT)
    an_agent = _SETTLED + waiting * _ROUND_THAT_WAITS + _GATHERED * (sessions_at_once - 1)
    groups = _game(scenario).get("groups") or {}
    if groups:
        an_agent += _GROUPED * sessions_at_once
    if isinstance(scenario.model, Dummy) and scenario.model.text_bytes:
        text = _TEXT + scenario.model.text_bytes
        an_agent += text * (sessions_at_once + waiting)
    if language:
        an_agent += _TALK * sessions_at_once + _TALK_THAT_WAITS * waiting
    total = _ORCHESTRATOR + an_agent * agents
    if scenario.population is not None:
        total += _POPULATION
    total += min(_UNDER_WAY, agents * sessions_at_once * _ROWS_UNDER_WAY)
    markets = groups.get("count", 1) if groups.get("scope") == "separate" else 1
    if markets > 1:
        total += _MARKET * markets * sessions_at_once * (1 + waiting)
    files = scenario.rounds * scenario.sessions
    if files > _MANY_FILES:
        total += _MERGED_ROW * min(_MERGED_ROWS, agents * files)
    return total


def _language_player(scenario: Scenario) -> int:
    size = _PLAYER
    if scenario.prompt == "character":
        size += _PERSONA
    match scenario.memory:
        case "transcript":
            size += _REPLY * scenario.rounds
        case Last(last=rounds):
            size += _REPLY * min(rounds, scenario.rounds)
        case _:
            pass
    return size


def _game(scenario: Scenario) -> dict[str, Any]:
    """The rules as a plain map, whatever they were read as."""
    game = scenario.game
    dumped = game if isinstance(game, dict) else game.model_dump(exclude_none=True)
    return {name: value for name, value in dumped.items() if value is not None}


def _rounded(size: float) -> int:
    """With the margin, in whole megabytes."""
    return math.ceil(size * _MARGIN / _MB) * _MB
