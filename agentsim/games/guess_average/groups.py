"""Who is in which group, and how players are told of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from agentsim import draws
from agentsim.draws import Stream
from agentsim.games.guess_average.parts import CountedGroups
from agentsim.games.guess_average.spec import GuessAverageSpec

if TYPE_CHECKING:
    # Workers read this module too, and have no use for all the results that come with it.
    from agentsim.results import Grouping

_FEW = 6


@dataclass(frozen=True, slots=True)
class Membership:
    """A player's group among the others.

    Attributes:
        number: from 1.
        names: of all groups, in order.
        sizes: players of each.
    """

    number: int
    names: Sequence[str]
    sizes: Sequence[int]


def by_count(spec: GuessAverageSpec, n: int, *, seed: int, session: int) -> Grouping:
    """Groups whose sizes differ by one at most, or one market for all without groups.

    A function of the seed and the session alone: agents are put in a random order and dealt to
    the groups in turn, so that nobody is left over.

    Args:
        spec: the game; its groups must not be by an attribute.
        n: agents of the session.
        seed: the scenario's seed.
        session: from 1.
    """
    from agentsim.results import Grouping

    groups = spec.groups
    if groups is None:
        return Grouping(n)
    assert isinstance(groups, CountedGroups)
    agents = np.arange(n, dtype=np.uint32)
    lots = draws.integers(Stream.GROUP, agents, seed=seed, session=session)
    codes = np.empty(n, dtype=np.uint32)
    codes[np.argsort(lots, kind="stable")] = agents % groups.count
    names = tuple(str(number) for number in range(1, groups.count + 1))
    return Grouping(n, names, codes, groups.scope == "separate")


def by_category(
    spec: GuessAverageSpec, names: Sequence[str], codes: NDArray[np.integer]
) -> Grouping:
    """A group for each category that somebody has.

    Args:
        spec: the game.
        names: of all categories, in order.
        codes: `(n,)` the category of each agent, as a place in `names`.
    """
    from agentsim.results import Grouping

    held = np.unique(codes)
    packed = np.searchsorted(held, codes).astype(np.uint32)
    return Grouping(
        len(codes), tuple(names[code] for code in held), packed, spec.scope == "separate"
    )


def who_plays(spec: GuessAverageSpec, own: Membership, named: bool) -> str:
    """Who else plays, in groups, for the rules that a player is told; empty where groups do not
    matter to it.

    Args:
        spec: the game.
        own: the player's group.
        named: whether players know what the groups are called.
    """
    if spec.scope == "pooled" and not spec.tells_groups:
        return ""
    names = [f"the group of {name}" if named else f"group {i}" for i, name in _numbered(own.names)]
    mine = names[own.number - 1]
    count = len(own.sizes)
    if count == 1:
        return "All players are in one group."
    if spec.scope == "separate":
        return (
            f"There are {count} groups. You are in {mine}. Each group plays a game of its own: "
            "what the other groups do does not matter for yours."
        )
    text = f"The players are in {_groups(names, own.sizes)}. "
    if spec.scope == "between":
        return text + f"You play for {mine}."
    return text + f"You are in {mine}. All groups play in one and the same game."


def _numbered(names: Sequence[str]) -> list[tuple[int, str]]:
    return list(enumerate(names, 1))


def _groups(names: Sequence[str], sizes: Sequence[int]) -> str:
    """How many groups there are, and how large."""
    smallest, largest = min(sizes), max(sizes)
    if smallest == largest and not names[0].startswith("the "):
        return f"{len(sizes)} groups of {_players(smallest)} each"
    if len(sizes) > _FEW:
        return f"{len(sizes)} groups of {smallest} to {_players(largest)}"
    listed = [f"{name} has {_players(size)}" for name, size in zip(names, sizes, strict=True)]
    return f"{len(sizes)} groups: {', '.join(listed[:-1])} and {listed[-1]}"


def _players(count: int) -> str:
    return f"{count} player" if count == 1 else f"{count} players"
