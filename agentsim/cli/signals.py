"""Work that Ctrl-C and SIGTERM end in good order."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Coroutine

_EXIT_CODES = {signal.SIGINT: 130, signal.SIGTERM: 143}


async def until_signal(work: Coroutine[None, None, None]) -> int:
    """Do something to its end, or cancel it at a signal; the exit code.

    Raises:
        RuntimeError: it was cancelled without one, which is a bug of ours.
    """
    loop = asyncio.get_running_loop()
    task = asyncio.ensure_future(work)
    got: list[signal.Signals] = []

    def stop(number: signal.Signals) -> None:
        got.append(number)
        task.cancel()
        # A second one ends the program at once; its nodes notice and end by themselves.
        loop.remove_signal_handler(number)

    for number in _EXIT_CODES:
        loop.add_signal_handler(number, stop, number)
    try:
        await task
    except asyncio.CancelledError as error:
        if not got:
            raise RuntimeError("the work was cancelled, and by no signal") from error
        return _EXIT_CODES[got[0]]
    return 0
