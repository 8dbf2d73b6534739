"""Writes settled rounds to Parquet beside the next rounds, in order, in a thread."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from agentsim.errors import DiskFull
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
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="tables")
        # What is under way, each with what does the rest of it after there was no room.
        self._pending: deque[tuple[asyncio.Future[None], Callable[[], None]]] = deque()

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
        try:
            await self._submit(self._writer.finish, self._writer.finish)
            while self._pending:
                await self._first()
        finally:
            await asyncio.gather(*(done for done, _ in self._pending), return_exceptions=True)
            self._thread.shutdown()

    async def _submit(self, work: Callable[[], None], again: Callable[[], None]) -> None:
        """Do something in its turn.

        Args:
            again: does the rest, after there was no room.
        """
        loop = asyncio.get_running_loop()
        self._pending.append((loop.run_in_executor(self._thread, work), again))
        while self._pending and (self._pending[0][0].done() or len(self._pending) > _WAITING):
            await self._first()

    async def _first(self) -> None:
        """Wait for what began first. It goes on when who waits for it is cancelled."""
        done, again = self._pending.popleft()
        try:
            await asyncio.shield(done)
        except DiskFull:
            await self._ledger.written(again, self._thread)
        except asyncio.CancelledError:
            if not done.done():
                self._pending.appendleft((done, again))
            raise
