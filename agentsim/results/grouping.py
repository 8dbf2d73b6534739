"""How the agents of one session are divided into groups and markets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from agentsim.rpc import codec
from agentsim.rpc.messages import Groups

Agents = NDArray[np.uint32]
Codes = NDArray[np.uint32]


@dataclass(frozen=True, slots=True, eq=False)
class Grouping:
    """The groups and markets of one session.

    A market is who plays with whom: one for all, or one a group. Groups and markets count from 0
    here.

    Attributes:
        n: agents of the session.
        names: of the groups, in order; empty when there are none.
        codes: `(n,)` the group of each agent, as a place in `names`; None when there are none.
        separate: whether each group is a market of its own.
    """

    n: int
    names: tuple[str, ...] = ()
    codes: Codes | None = None
    separate: bool = False
    _order: Agents = field(init=False, repr=False)
    _bounds: NDArray[np.int64] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        order = np.arange(self.n, dtype=np.uint32)
        bounds = np.array([0, self.n])
        if self.codes is not None:
            if self.codes.shape != (self.n,):
                raise ValueError(f"{self.codes.size} agents have a group, {self.n} play")
            order = np.argsort(self.codes, kind="stable").astype(np.uint32)
            bounds = np.searchsorted(self.codes[order], np.arange(len(self.names) + 1))
            if bounds[-1] != self.n or not np.all(bounds[1:] > bounds[:-1]):
                raise ValueError("a group has no agents, or an agent has no group")
        object.__setattr__(self, "_order", order)
        object.__setattr__(self, "_bounds", bounds)

    @classmethod
    def of(cls, record: Groups) -> Grouping:
        """The grouping that a record of all agents describes.

        Raises:
            ValueError: the record does not make sense.
        """
        codes = np.frombuffer(record.codes, dtype="<u4")
        return cls(codes.size, tuple(record.names), codes, record.separate)

    @property
    def markets(self) -> int:
        """How many markets there are."""
        return len(self.names) if self.separate else 1

    @property
    def sizes(self) -> list[int]:
        """Agents of each group."""
        sizes: list[int] = np.diff(self._bounds).tolist() if self.names else []
        return sizes

    def members(self, group: int) -> Agents:
        """The agents of one group, ascending."""
        return self._order[self._bounds[group] : self._bounds[group + 1]]

    def players(self, market: int) -> Agents:
        """The agents of one market, ascending."""
        return self.members(market) if self.separate else np.arange(self.n, dtype=np.uint32)

    def groups_of(self, market: int) -> range:
        """The groups of one market."""
        return range(market, market + 1) if self.separate else range(len(self.names))

    def names_of(self, market: int) -> Sequence[str]:
        """The names of a market's groups."""
        return [self.names[group] for group in self.groups_of(market)]

    def codes_of(self, market: int) -> Codes | None:
        """The group of each player of a market, as a place in `names_of`; None without groups."""
        if self.codes is None or not self.separate:
            return self.codes
        return np.zeros(len(self.members(market)), dtype=np.uint32)

    def split(self, agents: Agents) -> Iterator[tuple[int, NDArray[np.bool_]]]:
        """The markets that agents belong to, each with which of them it is.

        Raises:
            IndexError: there is no such agent.
        """
        if agents.size and agents.max() >= self.n:
            raise IndexError(f"there is no agent {agents.max()}")
        if self.codes is None or not self.separate:
            yield 0, np.ones(agents.size, np.bool_)
            return
        codes = self.codes[agents]
        for market in np.unique(codes).tolist():
            yield market, codes == market

    def record(self, session: int, agents: slice = slice(None)) -> Groups | None:
        """As a message about some agents of a session; None when there are no groups."""
        if self.codes is None:
            return None
        codes = codec.to_bytes(self.codes[agents])
        return Groups(session, list(self.names), self.sizes, codes, self.separate)
