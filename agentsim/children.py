"""Programs that this one has started."""

from __future__ import annotations

import asyncio
import contextlib


async def tell(process: asyncio.subprocess.Process, data: bytes) -> None:
    """Give a program something on its stdin; lost when it has ended."""
    assert process.stdin is not None
    # asyncio raises ConnectionError for a pipe that is broken, uvloop RuntimeError as well.
    with contextlib.suppress(ConnectionError, RuntimeError):
        process.stdin.write(data)
        await process.stdin.drain()
