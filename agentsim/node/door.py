"""Where streams come in: who joins is asked for its run first, and handed to that run's node."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Protocol

import msgspec

from agentsim.rpc.codec import decode, encode
from agentsim.rpc.control import Join, Refused
from agentsim.rpc.envelope import NODE, ORCHESTRATOR, Envelope, Kind, WireError
from agentsim.rpc.links import Link

_log = logging.getLogger(__name__)
# A stream that does not say who it is for is closed after this time.
_JOIN_TIMEOUT_S = 10.0


class RefusedError(Exception):
    """A stream is not served, for the reason given."""


class Host(Protocol):
    """What serves the streams of one run: its `Node`, or something around it."""

    async def data(self, link: Link, join: Join) -> None:
        """Serve a data stream until it breaks."""

    async def pulse(self, link: Link, join: Join) -> None:
        """Serve a pulse stream until it breaks or its run has ended."""


class Door:
    """Serves the streams of a server; see `rpc.streams.serve`.

    Args:
        find: gives what serves a run; raises RefusedError when there is nothing.
    """

    def __init__(self, find: Callable[[Join], Awaitable[Host]]) -> None:
        self._find = find

    async def data(self, link: Link) -> None:
        """Serve a data stream until it breaks."""
        try:
            join = await _read(link)
            if join is not None:
                node = await self._find(join)
                await node.data(link, join)
        except RefusedError as refused:
            await _refuse(link, str(refused))
        except WireError as error:
            _log.info("a data stream ended: %s", error)

    async def pulse(self, link: Link) -> None:
        """Serve a pulse stream until it breaks or its run has ended."""
        try:
            join = await _read(link)
            if join is not None:
                node = await self._find(join)
                await node.pulse(link, join)
        except RefusedError as refused:
            await _refuse(link, str(refused))
        except WireError as error:
            _log.info("a pulse stream ended: %s", error)


class OnlyRun:
    """The door's `find` for a node that serves one run: whose orchestrator joins first.

    Args:
        node: of that run.
    """

    def __init__(self, node: Host) -> None:
        self._node = node
        self._first: Join | None = None

    async def __call__(self, join: Join) -> Host:
        if join.run_id != (self._first or join).run_id:
            raise RefusedError("this node serves another run")
        self._first = known(join, self._first)
        return self._node


def known(join: Join, first: Join | None) -> Join:
    """The first join of a run, which later ones must agree with.

    Args:
        first: the one before; None when there was none.

    Raises:
        RefusedError: the orchestrator speaks of what this node does not know.
    """
    if first is None:
        if join.resumes:
            raise RefusedError("this node was started anew and knows nothing of the run")
        return join
    if join.epoch != first.epoch:
        age = "an older" if join.epoch < first.epoch else "a newer"
        raise RefusedError(f"this is {age} program of the run than the one that this node knows")
    return first


async def _read(link: Link) -> Join | None:
    """The join that a stream begins with; None when it begins with something else."""
    try:
        async with asyncio.timeout(_JOIN_TIMEOUT_S):
            envelope = await link.receive()
        if envelope is not None and envelope.kind is Kind.JOIN:
            return decode(envelope.body, Join)
        _log.warning("refused a stream that did not begin with a join")
    except TimeoutError:
        _log.warning("refused a stream that said nothing for %g s", _JOIN_TIMEOUT_S)
    except msgspec.DecodeError:
        _log.warning("refused a stream whose join cannot be read")
    return None


async def _refuse(link: Link, reason: str) -> None:
    _log.warning("refused a stream: %s", reason)
    try:
        await link.send(Envelope(Kind.REFUSED, ORCHESTRATOR, NODE, encode(Refused(reason))))
    except WireError as error:
        _log.info("who was refused had left: %s", error)
