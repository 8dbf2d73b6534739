"""The files' JSON schema, for editors and other tools."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Union

from pydantic import BaseModel, Field, create_model

from agentsim.config.base import FileModel
from agentsim.config.kinds import MODELS
from agentsim.config.scenario import Scenario
from agentsim.config.workflow import WorkflowScenario

KINDS = (*MODELS, "workflow")
"""The kinds of files; a scenario with a workflow has a schema of its own."""


def json_schema(kind: str, games: Mapping[str, type[FileModel]]) -> dict[str, Any]:
    """The JSON schema (draft 2020-12) of one kind of file.

    Args:
        kind: one of `KINDS`.
        games: the models of a scenario's `game:` part by `type`.

    Raises:
        KeyError: there is no such kind.
    """
    models: dict[str, type[BaseModel]] = {
        **MODELS,
        "scenario": _scenario(games),
        "workflow": WorkflowScenario,
    }
    model = models[kind]
    schema = model.model_json_schema(mode="validation")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def _scenario(games: Mapping[str, type[FileModel]]) -> type[BaseModel]:
    """The scenario with its game's own model in place of anything."""
    if not games:
        return Scenario
    specs = tuple(games.values())
    union: Any = specs[0]
    if len(specs) > 1:
        union = Annotated[Union[specs], Field(discriminator="type")]  # noqa: UP007
    field = Scenario.model_fields["game"]
    description = Field(description=field.description, examples=field.examples)
    return create_model(
        "Scenario", __base__=Scenario, __doc__=Scenario.__doc__, game=(union, description)
    )
