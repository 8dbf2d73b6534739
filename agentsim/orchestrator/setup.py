"""Tells every worker what is played."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from agentsim.config.models import LANGUAGE_MODELS
from agentsim.config.scenario import Last, Scenario
from agentsim.errors import ModelError
from agentsim.games.guess_average import GuessAverageSpec
from agentsim.orchestrator.enrolment import Workers
from agentsim.plan import RunPlan
from agentsim.rpc.control import WorkerSetup
from agentsim.rpc.envelope import Kind


def reply_format(scenario: Scenario, *, structured: bool) -> str:
    """How replies are asked for and read: json or text.

    Args:
        structured: whether all model servers enforce a JSON schema.

    Raises:
        ModelError: the scenario insists on JSON, and a server does not enforce it.
    """
    wanted = scenario.replies.format
    if wanted == "auto":
        return "json" if structured else "text"
    if wanted == "json" and not structured and isinstance(scenario.model, LANGUAGE_MODELS):
        raise ModelError(
            "replies.format is json, but the model's server does not enforce a JSON schema "
            "(it was tried); use `auto` or `text`"
        )
    return wanted


async def set_up(
    workers: Workers,
    scenario: Scenario,
    game: GuessAverageSpec,
    plan: RunPlan,
    *,
    format: str,
    window: Callable[[int], int],
) -> None:
    """Send its setup to each worker that hosts agents.

    Args:
        format: as `reply_format` says.
        window: requests that a worker may have in flight, by its index.
    """
    memory = scenario.memory
    memory_json = memory.model_dump() if isinstance(memory, Last) else memory
    for shard in plan.shards:
        setup = WorkerSetup(
            game=game.model_dump_json(),
            game_type=game.type,
            model=scenario.model.model_dump_json(),
            prompt=scenario.prompt,
            memory=msgspec.json.encode(memory_json).decode(),
            attempts=scenario.replies.attempts,
            format=format,
            seed=scenario.seed,
            window=window(shard.worker),
        )
        await workers.send(shard.worker, Kind.SETUP, setup)
