"""The asyncio shell around the rounds: carries commands out, journals what comes in."""

from __future__ import annotations

import asyncio
import time
from collections import Counter, deque
from collections.abc import Sequence
from datetime import UTC, datetime

from agentsim.errors import DiskFull, LimitReached, PeerLost
from agentsim.orchestrator.course import Course, RunSpec, tokens_of
from agentsim.orchestrator.enrolment import Surviving, Workers
from agentsim.orchestrator.ledger import Ledger
from agentsim.orchestrator.observer import Observer
from agentsim.orchestrator.placement import Placement
from agentsim.orchestrator.recovery import Past, recover
from agentsim.orchestrator.reply_format import Format
from agentsim.orchestrator.rounds import (
    Ask,
    Board,
    Command,
    Enrol,
    Finish,
    Retire,
    Settle,
)
from agentsim.orchestrator.seats import Seats
from agentsim.orchestrator.tables import Tables
from agentsim.replies import Status
from agentsim.results import Event, RunDirectory, TableWriter, frames, to_json
from agentsim.results import Kind as Record
from agentsim.results.directory import TABLES
from agentsim.results.parts import replace_tables, scratch_directory, table_rows
from agentsim.results.persona_stage import write_persona_requests
from agentsim.results.records import EventKind
from agentsim.rpc import control
from agentsim.rpc.codec import decode, encode
from agentsim.rpc.envelope import Envelope, Kind
from agentsim.rpc.messages import Answers, Attempt, Observation

_SYNC_S = 1.0


class Play:
    """Plays all rounds of a run over connected workers.

    Args:
        spec: what is played.
        workers: the way to them; nothing was sent to them yet.
        ledger: takes everything that comes in, before it counts.
        directory: takes the settled rounds.
        observer: is told how it goes.
        format: how replies are asked for and read.
    """

    def __init__(
        self,
        spec: RunSpec,
        workers: Workers,
        *,
        ledger: Ledger,
        directory: RunDirectory,
        observer: Observer,
        format: Format,
    ) -> None:
        limits, personas = spec.scenario.limits, directory.personas
        self._plan = spec.plan
        self._workers = Surviving(workers)
        self._directory = directory
        self._ledger = ledger
        self._tables = Tables(TableWriter(directory), ledger)
        self._observer = observer
        self._limit_s = limits.wall_s
        self._placement = Placement(spec.plan, limits.restarts)
        self._course = Course(spec, personas=personas, journal=ledger.path)
        self._seats = Seats(spec, self._course, self._workers, personas=personas, format=format)
        self._grouped: set[int] = set()
        self._asked_s: dict[tuple[int, int, int], float] = {}

    async def run(self, *, resume: bool = False) -> None:
        """Play to the end.

        Args:
            resume: whether the journal holds rounds already.

        Raises:
            AgentsimError: a limit was reached, too many peers were lost, or the disk fails.
        """
        syncing = asyncio.ensure_future(self._sync())
        try:
            async with self._ledger.within(self._limit_s) as limit:
                past = await self._recover(tables=resume)
                if not past.finished:
                    await self._loop(past.todo, syncing)
        except TimeoutError:
            if not limit.expired():
                raise
            raise LimitReached(
                f"limits.wall_s: the run took longer than {self._limit_s:g} s"
            ) from None
        except BaseException:
            self._ledger.give_up()
            raise
        finally:
            syncing.cancel()
            await asyncio.gather(syncing, return_exceptions=True)
            await self._close_tables()
        self._check_complete()

    async def _close_tables(self) -> None:
        """Write what is left; a run that ends early on a full disk leaves it to who goes on."""
        try:
            await self._tables.close()
        except DiskFull:
            if not self._ledger.gave_up:
                raise
            self._observer.notice(
                "the tables lack the last rounds, for which there is no room; "
                f"agentsim resume {self._directory.path} writes them"
            )

    async def _recover(self, *, tables: bool) -> Past:
        """Take in what the journal holds, and show it.

        Args:
            tables: write the tables of settled rounds anew.
        """
        path = self._ledger.path
        scratch = scratch_directory(self._directory) if tables else self._directory
        writer = TableWriter(scratch)
        records = frames(path)
        past = await asyncio.to_thread(recover, self._course, records, path, writer.write)
        if tables:
            await self._ledger.written(writer.flush)
            write_persona_requests(scratch, past.personas)
            replace_tables(self._directory, scratch, list(TABLES))
            writer.move(self._directory)
            self._tables = Tables(writer, self._ledger)
        self._grouped = past.grouped
        for record in past.settled:
            self._observer.asked(record.session, record.round, record.n)
            self._observer.acted(record.round, record.statuses, 0)
            self._observer.settled(record)
        return past

    async def _loop(self, todo: list[Command], syncing: asyncio.Task[None]) -> None:
        await self._seats.set_up(self._placement.shards)
        for session in self._course.sessions:
            await self._seat(session)
        finished = await self._carry_out(todo)
        while not finished:
            try:
                envelope = await self._workers.receive()
            except PeerLost as loss:
                await self._replace(loss)
                continue
            if syncing.done():
                syncing.result()
            finished = await self._carry_out(await self._take(envelope))

    async def _take(self, envelope: Envelope) -> list[Command]:
        """Journal what a worker sends, then count it."""
        if envelope.kind not in (Kind.ANSWERS, Kind.ATTEMPTS):
            return []
        if not self._placement.hosts_agents(envelope.sender):
            await self._drop(envelope)
            return []
        if envelope.kind is Kind.ANSWERS:
            answers = decode(envelope.body, Answers)
            await self._ledger.append(Record.ANSWERS, envelope.body)
            new, commands = self._course.answered(answers)
            self._observer.acted(answers.round, {str(Status.OK): new}, 0)
            return commands
        attempts = decode(envelope.body, list[Attempt])
        offset = await self._ledger.append(Record.ATTEMPTS, envelope.body)
        commands = self._course.attempted(attempts, offset)
        statuses = Counter(attempt.status for attempt in attempts if attempt.final)
        self._observer.acted(attempts[0].round, statuses, tokens_of(attempts))
        self._course.check_tokens()
        return commands

    async def _drop(self, envelope: Envelope) -> None:
        """What a lost worker still sends changes nothing; its tokens count."""
        tokens = 0
        if envelope.kind is Kind.ATTEMPTS:
            tokens = tokens_of(decode(envelope.body, list[Attempt]))
        self._course.tokens += tokens
        text = f"dropped what worker {envelope.sender} sent after it was given up"
        await self._event("stale", text, envelope.sender, tokens)

    async def _carry_out(self, commands: Sequence[Command]) -> bool:
        """Do what the state machine says; True when the run has ended."""
        todo = deque(commands)
        while todo:
            match todo.popleft():
                case Enrol(session):
                    for command in self._course.enrol(session):
                        assert isinstance(command, Ask)
                        self._course.tell(command.observation)
                    await self._seat(session)
                case Ask(observation):
                    market = self._course.tell(observation)
                    self._asked(observation, market)
                    await self._seats.ask(observation, self._placement.shards)
                case Settle(board):
                    todo += await self._settle(board)
                case Retire(session):
                    self._course.retire(session)
                    for shard in self._placement.shards:
                        message = control.Retire(session)
                        await self._workers.send(shard.worker, Kind.RETIRE, message)
                case Finish():
                    return True
        return False

    async def _seat(self, session: int) -> None:
        """Fill the workers with the agents of a session; what is open is asked."""
        record = self._course.grouping(session).record(session)
        if record is not None and session not in self._grouped:
            await self._ledger.append(Record.GROUPS, encode(record))
        for board, observations in self._course.open(session):
            self._asked(observations[0], board.market)
            if board.final:
                self._observer.acted(board.round, board.gatherer.statuses, 0)
        await self._seats.fill(session, self._placement.shards)

    def _asked(self, observation: Observation, market: int) -> None:
        session, round = observation.session, observation.round
        if (session, market, round) not in self._asked_s:
            self._asked_s[session, market, round] = time.monotonic()
            self._observer.asked(session, round, observation.n)

    async def _settle(self, board: Board) -> list[Command]:
        now_s = time.monotonic()
        asked_s = self._asked_s.pop((board.session, board.market, board.round), now_s)
        record = self._course.outcome(board, now_s - asked_s)
        await self._ledger.append(Record.SETTLE, encode(record))
        self._observer.settled(record)
        columns, attempts = self._course.close(board, record)
        await self._tables.put(columns, attempts, record)
        self._course.check(record)
        return self._course.go_on(board, record)

    async def _replace(self, loss: PeerLost) -> None:
        """Let the agents of lost workers go on in new ones.

        Raises:
            PeerLost: no node is left, or too many workers were lost.
        """
        replacements = self._placement.replace(loss.workers, self._workers.alive())
        if replacements is None:
            raise _final(loss, self._workers.alive(), self._placement.restarts_left)
        for one in replacements:
            shard, host = one.shard, self._plan.hosts[one.node].address
            text = f"{loss}; its {shard.count:,} agents go on in worker {shard.worker} on {host}"
            self._observer.notice(text)
            await self._event("moved" if one.moved else "restarted", text, one.lost)
            await self._workers.spawn(one.node, [shard.worker])
        # One that is frozen must not come back to life.
        await self._workers.end([one.lost for one in replacements])
        shards = [one.shard for one in replacements]
        await self._seats.set_up(shards)
        for session in self._course.sessions if shards else ():
            await self._seats.fill(session, shards)

    async def _event(
        self, kind: EventKind, text: str, worker: int | None = None, tokens: int = 0
    ) -> None:
        at = datetime.now(UTC).isoformat(timespec="seconds")
        event = Event(kind, text, worker=worker, tokens=tokens, at=at)
        await self._ledger.append(Record.EVENT, to_json(event))

    def _check_complete(self) -> None:
        """Every agent has exactly one action in every round: in what was counted, and on disk."""
        rows, wanted = table_rows(self._directory, "actions"), self._plan.actions
        if self._course.actions != wanted or rows != wanted:
            raise RuntimeError(
                f"{wanted} actions were to be made, {self._course.actions} were counted and {rows} "
                f"stand in {self._directory.actions}"
            )

    async def _sync(self) -> None:
        while True:
            await asyncio.sleep(_SYNC_S)
            await self._ledger.sync()
            await self._tables.flush()


def _final(loss: PeerLost, alive: Sequence[int], restarts_left: int) -> PeerLost:
    """A loss that ends the run, with why."""
    if not alive:
        return PeerLost(f"{loss}; no host is left", loss.workers)
    return PeerLost(
        f"{loss}; it is not replaced: limits.restarts leaves {restarts_left}", loss.workers
    )
