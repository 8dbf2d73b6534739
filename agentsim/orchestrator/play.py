"""The asyncio shell around the rounds: carries commands out, journals what comes in."""

from __future__ import annotations

import asyncio
import time
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from agentsim.config.scenario import Scenario
from agentsim.errors import LimitReached
from agentsim.games.guess_average import GuessAverageSpec, Sides, settle, to_settle
from agentsim.ids import Round
from agentsim.orchestrator.enrolment import Workers, enrol, grouping
from agentsim.orchestrator.limits import Missing, check_tokens
from agentsim.orchestrator.observer import Observer
from agentsim.orchestrator.rounds import (
    Ask,
    Board,
    Command,
    Enrol,
    Finish,
    Retire,
    Rounds,
    Settle,
)
from agentsim.orchestrator.tables import Tables
from agentsim.plan import RunPlan
from agentsim.replies import Status
from agentsim.results import Grouping, Journal, RecordedAttempts, RunDirectory
from agentsim.results import Kind as Record
from agentsim.rpc import control
from agentsim.rpc.codec import decode, encode
from agentsim.rpc.envelope import Kind
from agentsim.rpc.messages import Answers, Attempt, Observation

_SYNC_S = 1.0


@dataclass(frozen=True, slots=True)
class RunSpec:
    """What is played.

    Attributes:
        model: what the tables' column `model` says.
        tokens: that were used before the rounds, for the personas.
    """

    scenario: Scenario
    game: GuessAverageSpec
    plan: RunPlan
    model: str
    tokens: int = 0


class Play:
    """Plays all rounds of a run over connected workers.

    Args:
        spec: what is played.
        workers: the way to them; they are set up already.
        journal: takes everything that comes in, before it counts.
        directory: takes the settled rounds.
        observer: is told how it goes.
    """

    def __init__(
        self,
        spec: RunSpec,
        workers: Workers,
        *,
        journal: Journal,
        directory: RunDirectory,
        observer: Observer,
    ) -> None:
        scenario = spec.scenario
        self._spec = spec
        self._workers = workers
        self._journal = journal
        self._tables = Tables(directory)
        self._personas = directory.personas
        self._observer = observer
        self._missing = Missing(scenario.agents, scenario.limits)
        self._groupings: dict[int, Grouping] = {}
        self._settled: Counter[tuple[int, int]] = Counter()
        self._rounds = Rounds(
            sessions=scenario.sessions,
            rounds=scenario.rounds,
            at_once=spec.plan.sessions_at_once,
        )
        self._tokens = spec.tokens
        self._asked_s: dict[tuple[int, int, int], float] = {}
        self._recorded: dict[tuple[int, int], RecordedAttempts] = {}

    async def run(self) -> None:
        """Play to the end.

        Raises:
            AgentsimError: a limit was reached, a peer was lost, or the disk is full.
        """
        limit_s = self._spec.scenario.limits.wall_s
        syncing = asyncio.ensure_future(self._sync())
        try:
            async with asyncio.timeout(limit_s) as limit:
                await self._loop(syncing)
        except TimeoutError:
            if not limit.expired():
                raise
            raise LimitReached(f"limits.wall_s: the run took longer than {limit_s:g} s") from None
        finally:
            syncing.cancel()
            await asyncio.gather(syncing, return_exceptions=True)
            await self._tables.close()

    async def _loop(self, syncing: asyncio.Task[None]) -> None:
        finished = await self._carry_out(self._rounds.start())
        while not finished:
            envelope = await self._workers.receive()
            if syncing.done():
                syncing.result()
            if envelope.kind is Kind.ANSWERS:
                finished = await self._carry_out(self._take_answers(envelope.body))
            elif envelope.kind is Kind.ATTEMPTS:
                finished = await self._carry_out(self._take_attempts(envelope.body))

    def _take_answers(self, body: bytes) -> list[Command]:
        answers = decode(body, Answers)
        self._journal.append(Record.ANSWERS, body)
        new, commands = self._rounds.answered(answers)
        self._observer.acted(answers.round, {str(Status.OK): new}, 0)
        return commands

    def _take_attempts(self, body: bytes) -> list[Command]:
        attempts = decode(body, list[Attempt])
        first = attempts[0]
        offset = self._journal.append(Record.ATTEMPTS, body)
        recorded = self._recorded.get((first.session, first.round))
        if recorded is not None:
            recorded.add(offset, len(attempts))
        _, commands = self._rounds.attempted(attempts)
        tokens = sum(a.prompt_tokens + a.completion_tokens for a in attempts)
        self._tokens += tokens
        statuses = Counter(attempt.status for attempt in attempts if attempt.final)
        self._observer.acted(first.round, statuses, tokens)
        check_tokens(self._tokens, self._spec.scenario.limits)
        return commands

    async def _carry_out(self, commands: Sequence[Command]) -> bool:
        """Do what the state machine says; True when the run has ended."""
        todo = deque(commands)
        while todo:
            match todo.popleft():
                case Enrol(session):
                    todo.extendleft(reversed(await self._enrol(session)))
                case Ask(observation):
                    await self._ask(observation)
                case Settle(board):
                    todo += await self._settle(board)
                case Retire(session):
                    del self._groupings[session]
                    await self._to_all(Kind.RETIRE, control.Retire(session))
                case Finish():
                    return True
        return False

    async def _enrol(self, session: int) -> list[Command]:
        scenario = self._spec.scenario
        groups = grouping(
            self._spec.game,
            scenario.agents,
            seed=scenario.seed,
            session=session,
            personas=self._personas,
        )
        self._groupings[session] = groups
        record = groups.record(session)
        if record is not None:
            self._journal.append(Record.GROUPS, encode(record))
        personas = self._personas if scenario.prompt == "character" else None
        await enrol(self._workers, self._spec.plan, session, groups=groups, personas=personas)
        return self._rounds.enrolled(session, groups)

    async def _ask(self, observation: Observation) -> None:
        session, round, group = observation.session, observation.round, observation.group
        groups = self._groupings[session]
        market = group - 1 if groups.separate else 0
        if (session, market, round) not in self._asked_s:
            self._asked_s[session, market, round] = time.monotonic()
            self._observer.asked(session, round, observation.n)
        if (session, round) not in self._recorded:
            self._recorded[session, round] = RecordedAttempts(
                self._journal.path, Round(session, round)
            )
        message = control.Ask(observation)
        if not group:
            await self._to_all(Kind.ASK, message)
            return
        for worker in self._workers_of(groups.members(group - 1)):
            await self._workers.send(worker, Kind.ASK, message)

    async def _to_all(self, kind: Kind, message: object) -> None:
        for shard in self._spec.plan.shards:
            await self._workers.send(shard.worker, kind, message)

    def _workers_of(self, agents: NDArray[np.uint32]) -> list[int]:
        """The workers that host some of the agents."""
        shards = self._spec.plan.shards
        firsts = [shard.first for shard in shards]
        places = np.unique(np.searchsorted(firsts, agents, side="right") - 1)
        return [shards[place].worker for place in places.tolist()]

    async def _settle(self, board: Board) -> list[Command]:
        gatherer, key = board.gatherer, Round(board.session, board.round)
        codes = gatherer.groups
        settlement = settle(
            self._spec.game,
            agents=gatherer.agents,
            values=gatherer.values,
            ok=gatherer.ok,
            n=board.n,
            seed=self._spec.scenario.seed,
            session=board.session,
            round=board.round,
            sides=None if codes is None else Sides(gatherer.group_names, codes),
        )
        groups = self._groupings[board.session]
        asked_s = self._asked_s.pop((board.session, board.market, board.round))
        record = to_settle(
            settlement,
            statuses=gatherer.statuses,
            group_statuses=gatherer.group_statuses,
            market=(board.market, groups.markets),
            wall_s=time.monotonic() - asked_s,
        )
        self._journal.append(Record.SETTLE, encode(record))
        self._observer.settled(record)
        columns = gatherer.columns(record, model=self._spec.model)
        await self._tables.put(columns, self._recorded[key], record)
        self._settled[key] += 1
        if self._settled[key] == groups.markets:
            del self._settled[key], self._recorded[key]
        self._missing.check(record)
        if not self._spec.game.tells_groups:
            return self._rounds.settled(board, {0: settlement.announced})
        by_group = enumerate(settlement.groups, 1)
        return self._rounds.settled(board, {group: told.announced for group, told in by_group})

    async def _sync(self) -> None:
        while True:
            await asyncio.sleep(_SYNC_S)
            await asyncio.to_thread(self._journal.sync)
            await self._tables.flush()
