"""The scenario file: one experiment."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from agentsim.config.base import FileModel, Sweep
from agentsim.config.models import Model


class Last(FileModel):
    """The last few rounds in full."""

    last: Annotated[int, Field(ge=1, examples=[3])]
    """How many rounds, the newest ones."""


Memory = Literal["none", "numbers", "transcript"] | Last
Prompt = Literal["direct", "step_by_step", "rational", "strategic", "character"]


class Replies(FileModel):
    """How replies of language models are asked for and read."""

    format: Literal["auto", "json", "text"] = "auto"
    """`auto`: JSON where the server enforces a schema (found by trying it), rules for text where
    it does not; `json` and `text` insist on one."""
    attempts: Annotated[int, Field(ge=1, le=20)] = 3
    """How often an agent is asked in one round, the first time included."""


class Limits(FileModel):
    """What ends a run early. A limit that is not set does not apply."""

    tokens: Annotated[int | None, Field(ge=1, examples=[1_000_000])] = None
    """Most tokens over the whole run, prompts and replies together."""
    wall_s: Annotated[float | None, Field(gt=0, examples=[3600])] = None
    """Most seconds of wall time."""
    missing_share: Annotated[float, Field(ge=0, le=1)] = 0.02
    """Largest share of agents without a valid final action in a round; more ends the run, since
    its means would say little."""
    restarts: Annotated[int, Field(ge=0)] = 16
    """Lost workers that are replaced before the run ends; 0: the first loss ends it."""


class Scenario(FileModel):
    """One experiment: who plays what, how often, and who answers."""

    # `game` is checked by the model of its own type, which the loader is given.

    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,63}$", examples=["guess-two-thirds"])]
    """Lower-case letters, digits and hyphens; names the run's directory."""
    description: str = ""
    """What the experiment is about, for readers."""
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 1
    """Everything random is a function of this number."""
    agents: Annotated[int, Field(ge=1, le=100_000_000, examples=[40])]
    """Players in each session."""
    sessions: Annotated[int, Field(ge=1, le=100_000)] = 1
    """Independent repetitions, each with its own draw of the population."""
    rounds: Annotated[int, Field(ge=1, le=10_000, examples=[3])]
    """Rounds in each session."""
    population: Annotated[str | None, Field(examples=["../populations/adults.yaml"])] = None
    """Path of the population file; none: agents have no persona. A path that ends in `.parquet` is
    a file of personas made before, by `agentsim personas` or an earlier run: session s takes the
    rows from (s − 1) × agents on."""
    game: Annotated[
        Any,
        Field(examples=[{"type": "guess_average", "range": [0, 100], "target": "2/3 * mean"}]),
    ]
    """The rules, as the map of one game."""
    prompt: Prompt = "step_by_step"
    """What language models are told beside the rules. `character` alone shows the persona."""
    memory: Annotated[Memory, Field(examples=["numbers"])] = "numbers"
    """What an agent knows of earlier rounds beyond the last announcement."""
    model: Annotated[Model, Field(examples=[{"backend": "cognitive_hierarchy"}])]
    """Who answers."""
    replies: Replies = Replies()
    """How replies are asked for and read."""
    limits: Limits = Limits()
    """What ends a run early."""
    hosts: Annotated[str | None, Field(examples=["../hostfiles/laptop.yaml"])] = None
    """Path of the hostfile; none: this machine with 2 workers."""
    compare: Literal["nagel-1995"] | None = None
    """Published results of people, printed beside the rounds."""
    sweep: Annotated[Sweep | None, Field(exclude=True, examples=[{"seed": [1, 2, 3]}])] = None
    """One run for each combination of values of some keys (dotted, as `--set` takes them), or for
    each map of a list; none: one run."""
