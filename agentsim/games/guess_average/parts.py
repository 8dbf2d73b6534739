"""Maps inside the `game:` part of a scenario."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from agentsim.config.base import FileModel

Announced = Literal["mean", "median", "target", "winning_guess"]
Scope = Literal["pooled", "separate", "between"]
Finite = Annotated[float, Field(allow_inf_nan=False)]


class Winners(FileModel):
    """Who wins and what is paid. The winner is the player whose guess is closest to the target."""

    ties: Literal["split", "each", "draw"] = "split"
    """`split`: several winners share the prize; `each`: each of them gets the whole prize; `draw`:
    one of them is drawn."""
    prize: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 100.0
    """What a round pays, in points."""
    band: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0
    """A guess also wins when it is at most this much farther from the target than the closest
    one, in the unit of the guesses."""


class Announcement(FileModel):
    """What is told after a round, and whose numbers these are."""

    what: tuple[Announced, ...] = ("mean", "target")
    """What is told; may be empty."""
    to: Literal["all", "group"] = "all"
    """`all`: everybody in a market is told the same numbers; `group`: mean and median are those of
    the player's own group (target and winning guess are the market's, as there is only one). Of
    separate markets, each of which is one group, both say the same."""


class CountedGroups(FileModel):
    """Groups of sizes that differ by one at most. Agents are dealt to them at random, anew in each
    session; the groups are called 1, 2, …"""

    count: Annotated[int, Field(ge=1, le=100_000, examples=[3])]
    """How many groups; at most as many as there are agents."""
    scope: Scope = "pooled"
    """What a group is for. `pooled`: all agents play in one market, and groups only mark them in
    the tables; `separate`: each group is a market of its own, with its own players, target and
    winners, and goes on to its next round without waiting for the others; `between`: groups play
    against each other. Then the numbers of the game are the groups' means (mean, median and `n` of
    the target are over groups), and the group whose mean is closest to the target wins the prize,
    which is shared by its agents with a valid number."""


class AttributeGroups(FileModel):
    """A group for each category of an attribute of the population that somebody in the session
    has."""

    by: Annotated[str, Field(min_length=1, examples=["education"])]
    """Name of the attribute; it must have categories."""
    scope: Scope = "pooled"
    """What a group is for: as for groups by `count`."""


Groups = CountedGroups | AttributeGroups
