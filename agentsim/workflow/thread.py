"""Runs a user's function in a thread of its own, which can be told to stop."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import threading
from collections.abc import Callable
from typing import Any

from agentsim.chat import Client, use
from agentsim.workflow.program import Workflow, WorkflowStopped


class Thread:
    """A function's thread.

    Args:
        function: the user's.
        run: what it is called with.
        client: carries out its calls of models.

    Attributes:
        ended: done when the function has ended, with what it raised; None if it returned.
    """

    def __init__(self, function: Callable[[Workflow], Any], run: Workflow, client: Client) -> None:
        self._loop = asyncio.get_running_loop()
        self.ended: asyncio.Future[BaseException | None] = self._loop.create_future()
        self._thread = threading.Thread(
            target=self._work, args=(function, run, client), name="workflow", daemon=True
        )
        self._thread.start()

    async def stop(self, *, patience_s: float = 2.0) -> None:
        """Wait for the function to end; raise in it if it does not by itself.

        Blocked reads raise already when this is called. A function that does not even end then,
        because it waits in a call of its own, is left behind: it ends with the program.
        """
        for _ in range(2):
            await asyncio.wait([self.ended], timeout=patience_s / 2)
            if self.ended.done():
                break
            _raise_in(self._thread)

    def _work(self, function: Callable[[Workflow], Any], run: Workflow, client: Client) -> None:
        error: BaseException | None = None
        try:
            use(client)
            function(run)
        except BaseException as raised:  # noqa: BLE001 - it is told by whoever waits for the thread
            error = raised
        # The loop is closed if nobody waits any more.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._end, error)

    def _end(self, error: BaseException | None) -> None:
        if not self.ended.done():
            self.ended.set_result(error)


def _raise_in(thread: threading.Thread) -> None:
    if thread.ident is not None and thread.is_alive():
        ctypes.pythonapi.PyThreadState_SetAsyncExc(
            ctypes.c_ulong(thread.ident), ctypes.py_object(WorkflowStopped)
        )
