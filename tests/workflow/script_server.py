"""A scripted model server in a thread of its own, for programs that run beside the test."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

from agentsim.testing import Answer, Ask, FakeModelServer


class ScriptServer:
    """Listens until `close`.

    Args:
        script: what is said to a request.
        options: of the fake server.
    """

    def __init__(self, script: Callable[[Ask], str | Answer | None], **options: Any) -> None:
        self._loop = asyncio.new_event_loop()
        self._server = FakeModelServer(script, **options)
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()
        self._do(self._server.start())

    @property
    def url(self) -> str:
        """Address up to and including `/v1`."""
        return self._server.base_url

    @property
    def asked(self) -> list[Ask]:
        """Every request, in order of arrival."""
        return self._server.asked

    def close(self) -> None:
        """Stop listening."""
        self._do(self._server.stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _do(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(20)
