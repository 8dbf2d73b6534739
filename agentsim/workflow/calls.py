"""The central side of a user's program: journals rows and calls, counts tokens, keeps limits."""

from __future__ import annotations

import asyncio
import re
import threading
from collections import Counter

from agentsim.chat import Client
from agentsim.errors import LimitReached, PeerLost, UserError
from agentsim.orchestrator.ledger import Ledger
from agentsim.results import Kind
from agentsim.results.workflow import RESERVED, Columns, Row, Value
from agentsim.rpc import envelope
from agentsim.rpc.codec import decode, encode
from agentsim.rpc.envelope import Envelope
from agentsim.rpc.messages import Attempt, Completion
from agentsim.workflow.asker import Asker
from agentsim.workflow.observer import Observer

_TABLE = re.compile(r"[a-z][a-z0-9_]{0,63}")


class Recorder:
    """Takes what a program records and what its calls gave.

    Args:
        ledger: of the run.
        observer: is told of calls.
        most_tokens: the scenario's limit; None: none.
        spent: tokens before the first call.

    Attributes:
        tokens: of all calls so far, with those before.
    """

    def __init__(
        self, ledger: Ledger, observer: Observer, most_tokens: int | None, *, spent: int = 0
    ) -> None:
        self.tokens = spent
        self._ledger = ledger
        self._observer = observer
        self._most_tokens = most_tokens
        self._tables: dict[str, Columns] = {}
        self._lock = threading.Lock()

    def row(self, table: str, columns: dict[str, Value]) -> None:
        """Journal one row, once there is room for it; from any thread but the loop's.

        Raises:
            UserError: the name cannot be a table's.
            TypeError: a column has another type.
            ResultsError: the journal cannot be written.
        """
        if not _TABLE.fullmatch(table) or table in RESERVED:
            raise UserError(
                f"{table!r} cannot be a table's name: lower-case letters, digits and underscores, "
                f"and none of {', '.join(sorted(RESERVED))}"
            )
        with self._lock:
            self._tables.setdefault(table, Columns()).check(columns)
            self._ledger.append_in_thread(Kind.ROW, encode(Row(table, columns)))

    async def attempts(self, attempts: list[Attempt]) -> None:
        """Journal calls that have ended, once there is room for them.

        Raises:
            LimitReached: they took more tokens than the run may.
            ResultsError: the journal cannot be written.
        """
        tokens = sum(a.prompt_tokens + a.completion_tokens for a in attempts)
        await self._ledger.append(Kind.ATTEMPTS, encode(attempts))
        self.tokens += tokens
        self._observer.called(dict(Counter(a.status for a in attempts)), tokens)
        most = self._most_tokens
        if most is not None and self.tokens > most:
            raise LimitReached(f"limits.tokens: {self.tokens} tokens were used, {most} are allowed")


class Calls:
    """Takes the messages of nodes and workers that are about models; on the loop.

    Args:
        recorder: is given what came of each call.
        asker: sends requests of the user's own thread to the nodes.

    Attributes:
        client: carries out the calls of the user's own thread.
        failed: gets the exception of the first thing that ended the run.
    """

    def __init__(self, recorder: Recorder, asker: Asker) -> None:
        loop = asyncio.get_running_loop()
        self._recorder = recorder
        self.failed: asyncio.Future[None] = loop.create_future()
        self._asker = asker
        self.client = Client(envelope.ORCHESTRATOR, loop, asker.ask, lambda attempts: None)

    async def take(self, message: Envelope) -> None:
        """Take a message that is not the actors' own; what it says counts once it is journaled."""
        if message.kind is envelope.Kind.ATTEMPTS:
            await self._attempts(decode(message.body, list[Attempt]))
        elif message.kind is envelope.Kind.COMPLETIONS:
            completions = decode(message.body, list[Completion])
            self._asker.answered(completions)
            attempts, tell = self.client.arrived(completions)
            try:
                if attempts:
                    await self._attempts(attempts)
            finally:
                tell()

    def lost(self, error: PeerLost, *, last: bool) -> None:
        """Workers or a node were lost; without the last node, the run has ended."""
        if not last:
            self._asker.lost()
        elif not self.failed.done():
            self.failed.set_exception(error)

    async def _attempts(self, attempts: list[Attempt]) -> None:
        try:
            await self._recorder.attempts(attempts)
        except Exception as error:  # noqa: BLE001 - it ends the run, not the reading of messages
            if not self.failed.done():
                self.failed.set_exception(error)
