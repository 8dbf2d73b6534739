"""The asyncio shell around the rounds: carries commands out, journals what comes in."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from agentsim.config.scenario import Scenario
from agentsim.errors import LimitReached
from agentsim.games.guess_average import GuessAverageSpec, settle, to_settle
from agentsim.orchestrator.enrolment import Workers, enrol
from agentsim.orchestrator.limits import check_missing, check_tokens
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
from agentsim.results import Journal, RecordedAttempts, RunDirectory
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
    """

    scenario: Scenario
    game: GuessAverageSpec
    plan: RunPlan
    model: str


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
        self._personas = directory.personas if scenario.prompt == "character" else None
        self._observer = observer
        self._rounds = Rounds(
            agents=scenario.agents,
            sessions=scenario.sessions,
            rounds=scenario.rounds,
            at_once=spec.plan.sessions_at_once,
        )
        self._tokens = 0
        self._asked_s: dict[tuple[int, int], float] = {}
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
        todo = list(commands)
        while todo:
            match todo.pop(0):
                case Enrol(session):
                    await enrol(self._workers, self._spec.plan, session, self._personas)
                case Ask(observation):
                    await self._ask(observation)
                case Settle(board):
                    todo += await self._settle(board)
                case Retire(session):
                    await self._to_all(Kind.RETIRE, control.Retire(session))
                case Finish():
                    return True
        return False

    async def _ask(self, observation: Observation) -> None:
        key = (observation.session, observation.round)
        self._asked_s[key] = time.monotonic()
        self._recorded[key] = RecordedAttempts(self._journal.path)
        self._observer.asked(observation.session, observation.round, observation.n)
        await self._to_all(Kind.ASK, control.Ask(observation))

    async def _to_all(self, kind: Kind, message: object) -> None:
        for shard in self._spec.plan.shards:
            await self._workers.send(shard.worker, kind, message)

    async def _settle(self, board: Board) -> list[Command]:
        scenario, gatherer = self._spec.scenario, board.gatherer
        key = (board.session, board.round)
        settlement = settle(
            self._spec.game,
            agents=np.arange(scenario.agents, dtype=np.uint32),
            values=gatherer.values,
            ok=gatherer.ok,
            n=scenario.agents,
            seed=scenario.seed,
            session=board.session,
            round=board.round,
        )
        wall_s = time.monotonic() - self._asked_s.pop(key)
        record = to_settle(settlement, statuses=gatherer.statuses, wall_s=wall_s)
        self._journal.append(Record.SETTLE, encode(record))
        self._observer.settled(record)
        columns = gatherer.columns(record, model=self._spec.model)
        await self._tables.put(columns, self._recorded.pop(key), record)
        check_missing(record, scenario.limits)
        return self._rounds.settled(board.session, settlement.announced)

    async def _sync(self) -> None:
        while True:
            await asyncio.sleep(_SYNC_S)
            await asyncio.to_thread(self._journal.sync)
            await self._tables.flush()
