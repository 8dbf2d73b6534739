"""The scenario file of a user's own program: a function with agents, personas and a model."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, Field

from agentsim.config.base import FileModel, Sweep
from agentsim.config.models import LanguageModel
from agentsim.config.rules import function_path, module_name

Language = Annotated[LanguageModel, Field(discriminator="backend")]


class WorkflowLimits(FileModel):
    """What ends a run early. A limit that is not set does not apply."""

    tokens: Annotated[int | None, Field(ge=1, examples=[1_000_000])] = None
    """Most tokens over the whole run, prompts and replies together."""
    wall_s: Annotated[float | None, Field(gt=0, examples=[3600])] = None
    """Most seconds of wall time."""


class WorkflowScenario(FileModel):
    """One experiment that a function of yours drives."""

    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,63}$", examples=["debate"])]
    """Lower-case letters, digits and hyphens; names the run's directory."""
    description: str = ""
    """What the experiment is about, for readers."""
    workflow: Annotated[str, AfterValidator(function_path), Field(examples=["debate:main"])]
    """`module:function`. The module lies beside the scenario or can be imported; the function is
    called once a session, in a thread of its own, with the run as its only argument."""
    modules: list[Annotated[str, AfterValidator(module_name)]] = []  # noqa: RUF012 pydantic copies it
    """Further modules whose classes live on workers; they travel there with the workflow's own."""
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 1
    """Everything random is a function of this number."""
    agents: Annotated[int, Field(ge=1, le=100_000_000, examples=[8])]
    """Number of agents in each session; each has a persona."""
    sessions: Annotated[int, Field(ge=1, le=100_000)] = 1
    """Independent repetitions, one after the other, each with its own draw of the population."""
    rounds: Annotated[int | None, Field(ge=1, le=10_000)] = None
    """Rounds, for functions that have some: `run.rounds`."""
    population: Annotated[str | None, Field(examples=["../populations/adults.yaml"])] = None
    """Path of the population file, or of a `.parquet` file of personas made before; none:
    personas have numbers and nothing else."""
    model: Language | None = None
    """The language model that agents ask; none: they ask nobody."""
    parameters: dict[str, Any] = {}  # noqa: RUF012 pydantic copies it
    """A map of your own: `run.parameters`."""
    limits: WorkflowLimits = WorkflowLimits()
    """What ends a run early."""
    hosts: Annotated[str | None, Field(examples=["../hostfiles/laptop.yaml"])] = None
    """Path of the hostfile; none: this machine with 2 workers."""
    sweep: Annotated[Sweep | None, Field(exclude=True, examples=[{"seed": [1, 2, 3]}])] = None
    """One run for each combination of values of some keys (dotted, as `--set` takes them), or for
    each map of a list; none: one run."""
