"""Writes settled rounds to Parquet beside the next rounds, in order, in a thread."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from agentsim.results import RecordedAttempts, RoundColumns, TableWriter
from agentsim.rpc.messages import Settle

# Rounds that may wait to be written before the game is made to wait: each holds its columns.
_WAITING = 4


class Tables:
    """Takes settled rounds and writes them.

    Args:
        writer: of the run.
    """

    def __init__(self, writer: TableWriter) -> None:
        self._writer = writer
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="tables")
        self._pending: deque[asyncio.Future[None]] = deque()

    async def put(self, columns: RoundColumns, attempts: RecordedAttempts, settle: Settle) -> None:
        """Take a settled round, or one market of it, waiting while too many wait.

        Raises:
            ResultsError: an earlier round could not be written.
        """
        await self._submit(lambda: self._writer.write(columns, attempts, settle))

    async def flush(self) -> None:
        """Write what small rounds hold back.

        Raises:
            ResultsError: a round could not be written.
        """
        await self._submit(self._writer.flush)

    async def close(self) -> None:
        """Write everything that is left.

        Raises:
            ResultsError: a round could not be written.
        """
        try:
            await self._submit(self._writer.finish)
            while self._pending:
                await self._pending.popleft()
        finally:
            self._thread.shutdown()

    async def _submit(self, work: Callable[[], None]) -> None:
        loop = asyncio.get_running_loop()
        self._pending.append(loop.run_in_executor(self._thread, work))
        while self._pending and (self._pending[0].done() or len(self._pending) > _WAITING):
            await self._pending.popleft()
