"""Scripted agents, as columns: no object an agent, and one timer for all that wake together."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from agentsim.models.scripted import Scripted
from agentsim.rpc.codec import to_bytes
from agentsim.rpc.messages import Answers, Observation

# A message of this many rows is 768 kB: large enough that its cost vanishes, small enough to flow.
_ROWS_A_MESSAGE = 65_536
# With texts there are fewer rows: about so many bytes.
_BYTES_A_MESSAGE = 1024 * 1024
# Agents whose thinking ends within the same tick wake together.
_TICK_S = 0.02
_NOBODY = np.empty(0, np.uint32)


@dataclass(frozen=True, slots=True, eq=False)
class Shard:
    """A worker's agents of one session: `first` to `first + count - 1`.

    Attributes:
        codes: `(count,)` the group of each, from 0; None when there are none.
    """

    first: int
    count: int
    codes: NDArray[np.uint32] | None = None
    _by_group: NDArray[np.intp] | None = field(init=False, repr=False, default=None)

    def __post_init__(self) -> None:
        if self.codes is not None:
            object.__setattr__(self, "_by_group", np.argsort(self.codes, kind="stable"))

    def with_more(self, count: int, codes: NDArray[np.uint32] | None) -> Shard:
        """The shard with the agents that follow."""
        if self.codes is not None and codes is not None:
            codes = np.concatenate([self.codes, codes])
        return Shard(self.first, self.count + count, codes)

    def agents(self, group: int = 0) -> NDArray[np.uint32]:
        """Agent numbers, ascending.

        Args:
            group: whose, from 1; 0: all.
        """
        if group == 0 or self.codes is None or self._by_group is None:
            return np.arange(self.first, self.first + self.count, dtype=np.uint32)
        ends = np.searchsorted(self.codes, [group - 1, group], sorter=self._by_group)
        return (self.first + self._by_group[slice(*ends)]).astype(np.uint32)


async def act(
    model: Scripted,
    shard: Shard,
    observation: Observation,
    worker: int,
    acted: NDArray[np.uint32] = _NOBODY,
) -> AsyncIterator[Answers]:
    """The shard's answers to one observation, each no earlier than its agent has thought.

    Args:
        acted: agents that have answered already.
    """
    agents = shard.agents(observation.group)
    if acted.size:
        agents = np.setdiff1d(agents, acted, assume_unique=True)
    count = agents.size
    most = max(1, min(_ROWS_A_MESSAGE, _BYTES_A_MESSAGE // max(1, model.text_bytes)))
    values = model.values(agents, observation)
    thinking_s = model.thinking_s(agents, observation)
    if thinking_s is None:
        for start in range(0, count, most):
            rows = slice(start, start + most)
            yield _answers(observation, worker, agents[rows], values[rows], model.text_bytes)
        return
    started = time.monotonic()
    ticks = _ticks(thinking_s)
    order = np.argsort(ticks, kind="stable")
    agents, values, ticks = agents[order], values[order], ticks[order]
    done = 0
    while done < count:
        await asyncio.sleep(max(0.0, started + int(ticks[done]) * _TICK_S - time.monotonic()))
        now = min(int((time.monotonic() - started) / _TICK_S), int(ticks[-1]))
        awake = int(np.searchsorted(ticks, ticks.dtype.type(now), side="right"))
        while done < awake:
            rows = slice(done, min(awake, done + most))
            yield _answers(observation, worker, agents[rows], values[rows], model.text_bytes)
            done = rows.stop


def _ticks(thinking_s: NDArray[np.float64]) -> NDArray[np.unsignedinteger]:
    """The tick at which each has thought; of 16 bits where they do, which sort ten times faster."""
    ticks = np.ceil(thinking_s / _TICK_S)
    return ticks.astype(np.uint16 if ticks.max(initial=0.0) < 2**16 else np.uint64)


def _answers(
    observation: Observation,
    worker: int,
    agents: NDArray[np.uint32],
    values: NDArray[np.float64],
    text_bytes: int,
) -> Answers:
    texts = [_said(value, text_bytes) for value in values.tolist()] if text_bytes else []
    session, round = observation.session, observation.round
    return Answers(session, round, worker, to_bytes(agents), to_bytes(values), texts)


def _said(value: float, text_bytes: int) -> str:
    """A text of that length about a guess."""
    sentence = f"I thought about the others, and I say {value:.4f}. "
    return (sentence * (text_bytes // len(sentence) + 1))[:text_bytes]
