"""The asyncio shell around the rounds: carries commands out, journals what comes in."""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import msgspec
import numpy as np

from agentsim.config.scenario import Scenario
from agentsim.errors import LimitReached
from agentsim.games.guess_average import GuessAverageSpec, settle
from agentsim.orchestrator.observer import Observer
from agentsim.orchestrator.rounds import Ask, Board, Command, Finish, Rounds, Settle
from agentsim.plan import RunPlan
from agentsim.replies import STATUSES, Status
from agentsim.results import Journal, RoundColumns, RunDirectory, read_attempts, write_round
from agentsim.results.framing import Kind as Record
from agentsim.rpc import control
from agentsim.rpc.codec import decode, encode
from agentsim.rpc.envelope import Envelope, Kind
from agentsim.rpc.messages import Answers, Attempt
from agentsim.rpc.messages import Settle as SettleRecord

_SYNC_S = 1.0


class Workers(Protocol):
    """The way to the workers, and from them."""

    async def send(self, worker: int, kind: Kind, message: object) -> None: ...

    async def receive(self) -> Envelope: ...


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
        workers: the way to them; agents are enrolled already.
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
        self._directory = directory
        self._observer = observer
        self._rounds = Rounds(
            agents=scenario.agents,
            sessions=scenario.sessions,
            rounds=scenario.rounds,
            at_once=spec.plan.sessions_at_once,
        )
        self._tokens = 0
        self._asked_s: dict[tuple[int, int], float] = {}
        self._offsets: dict[tuple[int, int], list[int]] = defaultdict(list)
        self._writes: list[asyncio.Task[None]] = []

    async def run(self) -> None:
        """Play to the end.

        Raises:
            AgentsimError: a limit was reached, a peer was lost, or the disk did not take it.
        """
        syncing = asyncio.ensure_future(self._sync())
        try:
            async with asyncio.timeout(self._spec.scenario.limits.wall_s):
                await self._loop(syncing)
            await asyncio.gather(*self._writes)
        except TimeoutError:
            limit_s = self._spec.scenario.limits.wall_s
            raise LimitReached(f"limits.wall_s: the run took longer than {limit_s:g} s") from None
        finally:
            syncing.cancel()
            await asyncio.gather(syncing, *self._writes, return_exceptions=True)

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
        self._offsets[first.session, first.round].append(offset)
        _, commands = self._rounds.attempted(attempts)
        statuses: dict[str, int] = defaultdict(int)
        for attempt in attempts:
            if attempt.final:
                statuses[attempt.status] += 1
        tokens = sum(a.prompt_tokens + a.completion_tokens for a in attempts)
        self._tokens += tokens
        self._observer.acted(first.round, dict(statuses), tokens)
        self._check_tokens()
        return commands

    async def _carry_out(self, commands: Sequence[Command]) -> bool:
        """Do what the state machine says; True when the run has ended."""
        todo = list(commands)
        while todo:
            match todo.pop(0):
                case Ask(observation):
                    await self._ask(Ask(observation))
                case Settle(board):
                    todo += self._settle(board)
                case Finish():
                    return True
        return False

    async def _ask(self, ask: Ask) -> None:
        observation = ask.observation
        self._asked_s[observation.session, observation.round] = time.monotonic()
        self._observer.asked(observation.session, observation.round, observation.n)
        for shard in self._spec.plan.shards:
            await self._workers.send(shard.worker, Kind.ASK, control.Ask(observation))

    def _settle(self, board: Board) -> list[Command]:
        scenario, key = self._spec.scenario, (board.session, board.round)
        actions = board.gatherer.actions()
        settlement = settle(
            self._spec.game,
            agents=actions.agents,
            values=actions.values,
            ok=actions.ok,
            n=scenario.agents,
            seed=scenario.seed,
            session=board.session,
            round=board.round,
        )
        record = SettleRecord(
            session=board.session,
            round=board.round,
            n=scenario.agents,
            statuses=actions.counts,
            target=settlement.target,
            mean=settlement.mean,
            median=settlement.median,
            winning_guess=settlement.winning_guess,
            winners=settlement.winners.tolist(),
            payoffs=settlement.payoffs.tolist(),
            announced=settlement.announced,
            wall_s=time.monotonic() - self._asked_s.pop(key),
        )
        self._journal.append(Record.SETTLE, encode(record))
        self._observer.settled(record)
        self._write(board.gatherer.columns(record, model=self._spec.model), record)
        self._check_missing(record)
        return self._rounds.settled(board.session, settlement.announced)

    def _write(self, columns: RoundColumns, record: SettleRecord) -> None:
        """Write the round's tables beside the next round."""
        offsets = self._offsets.pop((record.session, record.round), [])
        attempts = read_attempts(self._journal.path, offsets)
        self._writes = [task for task in self._writes if not task.done() or task.exception()]
        self._writes.append(
            asyncio.ensure_future(
                asyncio.to_thread(write_round, self._directory, columns, attempts, record)
            )
        )

    def _check_tokens(self) -> None:
        limit = self._spec.scenario.limits.tokens
        if limit is not None and self._tokens > limit:
            raise LimitReached(f"limits.tokens: {self._tokens} tokens were used, {limit} allowed")

    def _check_missing(self, record: SettleRecord) -> None:
        missing = record.n - record.statuses.get(str(Status.OK), 0)
        limit = self._spec.scenario.limits.missing_share
        if missing > limit * record.n:
            why = ", ".join(
                f"{count} {status}" for status, count in record.statuses.items() if status != "ok"
            )
            raise LimitReached(
                f"limits.missing_share: in round {record.round} of session {record.session}, "
                f"{missing} of {record.n} agents have no valid action ({why}), more than the share "
                f"of {limit:g} that the scenario allows"
            )

    async def _sync(self) -> None:
        while True:
            await asyncio.sleep(_SYNC_S)
            await asyncio.to_thread(self._journal.sync)
