"""Tells workers everything that their agents have to know: at the start, and when agents go on in
a new worker. Both are the same: who they are, what they remember, and what is open."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from agentsim.config.models import LANGUAGE_MODELS
from agentsim.orchestrator.course import Course, RunSpec
from agentsim.orchestrator.enrolment import Workers, enrol
from agentsim.orchestrator.reply_format import Format
from agentsim.plan import Shard
from agentsim.replies import Status
from agentsim.results import RecordedAttempts
from agentsim.rpc.codec import to_bytes
from agentsim.rpc.control import Ask, Recall, Tried, WorkerSetup
from agentsim.rpc.envelope import Kind
from agentsim.rpc.messages import Observation

# Memories of this many agents travel in one message: a few MB of text.
_AGENTS_A_MESSAGE = 5_000
_NOBODY = np.empty(0, np.uint32)


@dataclass(slots=True)
class _Batch:
    """Memories on their way to one worker."""

    agents: list[int] = field(default_factory=list)
    values: list[float] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)

    def message(self, observations: list[Observation]) -> Recall:
        agents = np.array(self.agents, np.uint32)
        values = np.array(self.values, np.float64)
        return Recall(observations, to_bytes(agents), to_bytes(values), self.texts)


class Seats:
    """Fills workers.

    Args:
        spec: what is played.
        course: what has been played.
        workers: the way to them.
        personas: file of the population.
        format: how replies are read.
    """

    def __init__(
        self,
        spec: RunSpec,
        course: Course,
        workers: Workers,
        *,
        personas: Path,
        format: Format,
    ) -> None:
        scenario = spec.scenario
        self._course = course
        self._workers = workers
        self._format = format
        self._scenario = scenario.model_copy(update={"game": spec.game}).model_dump_json()
        self._agents = scenario.agents
        self._personas = personas if scenario.prompt == "character" else None
        self._language = isinstance(scenario.model, LANGUAGE_MODELS)
        self._memory = scenario.memory

    async def set_up(self, shards: Sequence[Shard]) -> None:
        """Tell workers what is played, before anything else."""
        for shard in shards:
            window = self._workers.window(shard.worker)
            setup = WorkerSetup(self._scenario, self._format, window)
            await self._workers.send(shard.worker, Kind.SETUP, setup)

    async def fill(self, session: int, shards: Sequence[Shard]) -> None:
        """Make the agents of a session that sit in these places, with what they remember, and ask
        those that have not acted.

        Args:
            session: one that is being played.
            shards: in order of agents.
        """
        groups = self._course.grouping(session)
        for shard in shards:
            await enrol(self._workers, shard, session, groups=groups, personas=self._personas)
        if self._language:
            for observations, attempts in self._course.past(session):
                await self._recall(shards, observations, attempts)
        for board, observations in self._course.open(session):
            done = board.gatherer.agents[board.gatherer.acted]
            tried = self._tried(self._course.recorded(board), done)
            for observation in observations:
                await self.ask(observation, shards, done, tried)

    async def ask(
        self,
        observation: Observation,
        shards: Sequence[Shard],
        done: NDArray[np.uint32] = _NOBODY,
        tried: Sequence[Tried] = (),
    ) -> None:
        """Ask the agents that an observation is for, in these places.

        Args:
            done: who has acted already, ascending.
            tried: who has been asked before.
        """
        group = observation.group
        members = self._course.grouping(observation.session).members(group - 1) if group else None
        for shard in shards:
            if members is not None and not _within(members, shard).size:
                continue
            mine = [one for one in tried if 0 <= one.agent - shard.first < shard.count]
            message = Ask(observation, to_bytes(_within(done, shard)), mine)
            await self._workers.send(shard.worker, Kind.ASK, message)

    async def _recall(
        self, shards: Sequence[Shard], observations: list[Observation], attempts: RecordedAttempts
    ) -> None:
        """Send what agents remember of one round."""
        batches = {shard.worker: _Batch() for shard in shards}
        if self._memory != "none":
            firsts = [shard.first for shard in shards]
            for agent, value, text in self._remembered(shards, observations, attempts):
                worker = shards[bisect_right(firsts, agent) - 1].worker
                batch = batches[worker]
                batch.agents.append(agent)
                batch.values.append(value)
                if self._memory != "numbers":
                    batch.texts.append(text)
                if len(batch.agents) == _AGENTS_A_MESSAGE:
                    message = batch.message(observations)
                    await self._workers.send(worker, Kind.RECALL, message)
                    batches[worker] = _Batch()
        for worker, batch in batches.items():
            # One without agents still tells what was announced.
            await self._workers.send(worker, Kind.RECALL, batch.message(observations))

    def _remembered(
        self, shards: Sequence[Shard], observations: list[Observation], attempts: RecordedAttempts
    ) -> Iterator[tuple[int, float, str]]:
        """Final actions of a round: agent, number (nan without) and reply; the first of each."""
        grouping = self._course.grouping(observations[0].session)
        wanted = np.zeros(self._agents, np.bool_)
        for shard in shards:
            wanted[shard.first : shard.first + shard.count] = True
        if observations[0].group:
            told = np.zeros(self._agents, np.bool_)
            for observation in observations:
                told[grouping.members(observation.group - 1)] = True
            wanted &= told
        for reading in attempts.readings():
            if reading.final and wanted[reading.agent]:
                wanted[reading.agent] = False
                value = np.nan if reading.value is None else reading.value
                yield reading.agent, value, reading.text

    def _tried(self, attempts: RecordedAttempts, done: NDArray[np.uint32]) -> list[Tried]:
        """How far those are that were asked and have not acted."""
        found: dict[int, Tried] = {}
        acted = set(done.tolist()) if len(attempts) else set()
        for reading in attempts.readings():
            before = found.get(reading.agent, Tried(reading.agent, 0, ""))
            if reading.agent not in acted and reading.attempt >= before.attempts:
                refused = before.refused if reading.status == Status.FAILED else reading.status
                found[reading.agent] = Tried(reading.agent, reading.attempt + 1, refused)
        return list(found.values())


def _within(agents: NDArray[np.uint32], shard: Shard) -> NDArray[np.uint32]:
    """Those of some agents, ascending, that sit in a place."""
    first, last = np.searchsorted(agents, [shard.first, shard.first + shard.count])
    return agents[first:last]
