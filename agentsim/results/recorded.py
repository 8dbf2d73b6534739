"""Attempts that lie in a journal, read again when they are wanted."""

from __future__ import annotations

import builtins
from array import array
from collections.abc import Collection, Iterator
from itertools import islice
from pathlib import Path
from typing import TypeVar

from msgspec import Struct

from agentsim.ids import Round
from agentsim.results.framing import frames
from agentsim.rpc.codec import decode
from agentsim.rpc.messages import Attempt


class Reading(Struct, frozen=True):
    """What became of an attempt: the fields of `Attempt` of these names, without its prompt."""

    session: int
    round: int
    agent: int
    attempt: int
    text: str
    status: str
    value: float | None
    final: bool


_T = TypeVar("_T", Attempt, Reading)


class RecordedAttempts:
    """The attempts of one round. Only their places are kept in memory: prompts are large.

    Args:
        path: the journal.
        round: whose attempts; None: all that lie in the frames that are added.
        agents: whose attempts; None: everybody's.
    """

    def __init__(
        self, path: Path, round: Round | None = None, agents: Collection[int] | None = None
    ) -> None:
        self._path = path
        self._round = round
        self._agents = agents
        self._offsets = array("Q")
        self._count = 0

    def add(self, offset: int, count: int) -> None:
        """Note that the frame at `offset` holds `count` attempts of the round."""
        self._offsets.append(offset)
        self._count += count

    def of_agents(self, agents: Collection[int]) -> RecordedAttempts:
        """Those of some agents. Its length is still that of all: it is for sizing, not counting."""
        some = RecordedAttempts(self._path, self._round, frozenset(agents))
        some._offsets, some._count = self._offsets[:], self._count
        return some

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Attempt]:
        return self._read(Attempt)

    def readings(self) -> Iterator[Reading]:
        """The same without their prompts, which is much quicker."""
        return self._read(Reading)

    def _read(self, type: type[_T]) -> Iterator[_T]:
        # A name of its own, since mypy takes `list[type]` for a type of its own, too.
        several: builtins.type[list[_T]] = list[type]  # type: ignore[valid-type]
        for offset in self._offsets:
            for frame in islice(frames(self._path, start=offset), 1):
                for attempt in decode(frame.body, several):
                    if self._agents is not None and attempt.agent not in self._agents:
                        continue
                    if self._round in (None, (attempt.session, attempt.round)):
                        yield attempt
