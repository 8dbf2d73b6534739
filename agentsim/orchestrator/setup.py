"""Tells every worker what is played."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from agentsim.config.models import LANGUAGE_MODELS
from agentsim.config.scenario import Scenario
from agentsim.errors import ModelError
from agentsim.games.guess_average import GuessAverageSpec
from agentsim.orchestrator.enrolment import Workers
from agentsim.plan import RunPlan
from agentsim.rpc.control import WorkerSetup
from agentsim.rpc.envelope import Kind

Format = Literal["json", "text"]


def reply_format(scenario: Scenario, *, structured: bool, recorded: Format | None = None) -> Format:
    """How replies are asked for and read: json or text.

    Args:
        structured: whether all model servers enforce a JSON schema.
        recorded: the format of the run that is replayed; None: a server answers.

    Raises:
        ModelError: the scenario insists on JSON, and a server does not enforce it.
    """
    wanted = scenario.replies.format
    if recorded is not None:
        return recorded if wanted == "auto" else wanted
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
    format: Format,
    window: Callable[[int], int],
) -> None:
    """Send its setup to each worker that hosts agents.

    Args:
        format: as `reply_format` says.
        window: requests that a worker may have in flight, by its index.
    """
    whole = scenario.model_copy(update={"game": game}).model_dump_json()
    for shard in plan.shards:
        setup = WorkerSetup(whole, format, window(shard.worker))
        await workers.send(shard.worker, Kind.SETUP, setup)
