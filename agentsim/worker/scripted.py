"""Scripted agents, as columns: no object an agent, and one timer for all that wake together."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from agentsim.models.scripted import Scripted
from agentsim.rpc.codec import to_bytes
from agentsim.rpc.messages import Answers, Observation

# A message of this many rows is 768 kB: large enough that its cost vanishes, small enough to flow.
_ROWS_A_MESSAGE = 65_536
# Agents whose thinking ends within the same tick wake together.
_TICK_S = 0.02


@dataclass(frozen=True, slots=True)
class Shard:
    """A worker's agents of one session: `first` to `first + count - 1`."""

    first: int
    count: int

    @property
    def agents(self) -> NDArray[np.uint32]:
        """`(count,)` agent numbers."""
        return np.arange(self.first, self.first + self.count, dtype=np.uint32)


async def act(
    model: Scripted, shard: Shard, observation: Observation, worker: int
) -> AsyncIterator[Answers]:
    """The shard's answers to one observation, each no earlier than its agent has thought."""
    agents = shard.agents
    values = model.values(agents, observation)
    thinking_s = model.thinking_s(agents, observation)
    if thinking_s is None:
        for start in range(0, shard.count, _ROWS_A_MESSAGE):
            rows = slice(start, start + _ROWS_A_MESSAGE)
            yield _answers(observation, worker, agents[rows], values[rows])
        return
    started = time.monotonic()
    order = np.argsort(thinking_s, kind="stable")
    agents, values, thinking_s = agents[order], values[order], thinking_s[order]
    done = 0
    while done < shard.count:
        await asyncio.sleep(max(0.0, started + thinking_s[done] + _TICK_S - time.monotonic()))
        awake = int(np.searchsorted(thinking_s, time.monotonic() - started, side="right"))
        while done < awake:
            rows = slice(done, min(awake, done + _ROWS_A_MESSAGE))
            yield _answers(observation, worker, agents[rows], values[rows])
            done = rows.stop


def _answers(
    observation: Observation,
    worker: int,
    agents: NDArray[np.uint32],
    values: NDArray[np.float64],
) -> Answers:
    return Answers(
        observation.session, observation.round, worker, to_bytes(agents), to_bytes(values)
    )
