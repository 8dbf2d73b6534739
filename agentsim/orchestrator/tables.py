"""Writes settled rounds to Parquet beside the next rounds, in order, in a thread."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

from agentsim.orchestrator.ledger import Ledger
from agentsim.results import RecordedAttempts, RoundColumns, TableWriter
from agentsim.rpc.messages import Settle

# Rounds that may wait to be written before the game is made to wait: each holds its columns.
_WAITING = 4


class Tables:
    """Takes settled rounds and writes them; when the disk is full, once there is room.

    Args:
        writer: of the run; what it could not write waits in it for its next `flush`.
        ledger: of the run; knows how to wait for room.
    """

    def __init__(self, writer: TableWriter, ledger: Ledger) -> None:
        self._writer = writer
        self._ledger = ledger
        self._turn = asyncio.Lock()
        self._pending: deque[asyncio.Task[None]] = deque()

    async def put(self, columns: RoundColumns, attempts: RecordedAttempts, settle: Settle) -> None:
        """Take a settled round, or one market of it, waiting while too many wait.

        Raises:
            ResultsError: an earlier round could not be written.
        """
        write, flush = self._writer.write, self._writer.flush
        await self._submit(lambda: write(columns, attempts, settle), flush)

    async def flush(self) -> None:
        """Write what small rounds hold back.

        Raises:
            ResultsError: a round could not be written.
        """
        await self._submit(self._writer.flush, self._writer.flush)

    async def close(self) -> None:
        """Write everything that is left.

        Raises:
            ResultsError: a round could not be written.
        """
        await self._submit(self._writer.finish, self._writer.finish)
        while self._pending:
            await self._first()

    async def _submit(self, work: Callable[[], None], again: Callable[[], None]) -> None:
        """Do something in its turn.

        Args:
            again: does the rest, after there was no room.
        """
        self._pending.append(asyncio.ensure_future(self._do(work, again)))
        while self._pending and (self._pending[0].done() or len(self._pending) > _WAITING):
            await self._first()

    async def _first(self) -> None:
        """Wait for what began first. It goes on when who waits is cancelled: it is in a thread."""
        task = self._pending.popleft()
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            if not task.done():
                self._pending.appendleft(task)
            raise

    async def _do(self, work: Callable[[], None], again: Callable[[], None]) -> None:
        todo = [again, work]

        def step() -> None:
            todo.pop()() if len(todo) > 1 else again()

        async with self._turn:
            await self._ledger.written(step)
