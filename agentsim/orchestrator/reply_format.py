"""How replies are asked for and read in a run."""

from __future__ import annotations

from typing import Literal

from agentsim.config.models import LANGUAGE_MODELS
from agentsim.config.scenario import Scenario
from agentsim.errors import ModelError

Format = Literal["json", "text"]


def reply_format(
    scenario: Scenario,
    *,
    structured: bool,
    recorded: Format | None = None,
    before: Format | None = None,
) -> Format:
    """How replies are asked for and read: json or text.

    Args:
        structured: whether all model servers enforce a JSON schema.
        recorded: the format of the run that is replayed; None: a server answers.
        before: how it was when the run began, for one that goes on; it stays so.

    Raises:
        ModelError: the scenario insists on JSON, or the run began with it, and a server does not
            enforce it.
    """
    wanted = before or scenario.replies.format
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
