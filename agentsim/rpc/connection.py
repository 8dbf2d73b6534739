"""The orchestrator's side of one node: joined, and joined again when a connection breaks."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable

import msgspec

from agentsim.rpc.codec import decode, encode
from agentsim.rpc.control import Join, Joined, Pulse, Refused
from agentsim.rpc.envelope import DATA, NODE, ORCHESTRATOR, PULSE, Envelope, Kind, WireError
from agentsim.rpc.links import Link
from agentsim.rpc.resumable import Resumable
from agentsim.rpc.streams import Client

_log = logging.getLogger(__name__)
_JOIN_TIMEOUT_S = 10.0
_FIRST_PAUSE_S = 0.1
_LONGEST_PAUSE_S = 1.0
# A connection that broke earlier than this was no good one: the next one is waited for longer.
_GOOD_S = 2.0


class JoinRefused(Exception):
    """The node lives and does not serve this run (any more), for the reason given."""


class Connection:
    """Keeps the way to one node open for as long as `run` runs.

    Args:
        client: of the node's address.
        run_id: of the run.
        epoch: of this program; see `control.Join`.
        on_pulse: is given each pulse while the data stream is joined too.

    Attributes:
        leaving: set when the node was told to end: then no further connection is made.
        wire: what is said to the node and comes from it, over whatever connection.
        trouble: why there is no connection at the moment; empty when there is one.
    """

    def __init__(
        self, client: Client, *, run_id: str, epoch: int, on_pulse: Callable[[Pulse], None]
    ) -> None:
        self.leaving = False
        self.wire = Resumable()
        self.trouble = "not connected yet"
        self._client = client
        self._run_id = run_id
        self._epoch = epoch
        self._on_pulse = on_pulse
        self._connections = 0
        self._known = False

    async def run(self) -> None:
        """Connect, and connect again, until the node is left.

        Raises:
            JoinRefused: the node serves somebody else, or was started anew.
        """
        loop = asyncio.get_running_loop()
        pause_s = _FIRST_PAUSE_S
        while not self.leaving:
            try:
                link, received = await self._join()
            except WireError as error:
                self.trouble = str(error)
            else:
                began_s = loop.time()
                await self._go_on(link, received)
                if loop.time() - began_s > _GOOD_S:
                    pause_s = _FIRST_PAUSE_S
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)

    async def _join(self) -> tuple[Link, int]:
        """A data stream that the node has taken, and how many messages it has."""
        self._connections += 1
        link = await self._client.open(DATA)
        try:
            async with asyncio.timeout(_JOIN_TIMEOUT_S):
                await link.send(self._hello())
                answer = await link.receive()
            if answer is None:
                raise WireError("the node closed the connection")
            if answer.kind is Kind.REFUSED:
                raise JoinRefused(decode(answer.body, Refused).reason)
            if answer.kind is not Kind.JOINED:
                raise WireError(f"the node answered with {answer.kind.name}")
            received = decode(answer.body, Joined).received
        except BaseException as error:
            await link.close()
            if isinstance(error, TimeoutError):
                raise WireError(f"the node did not answer within {_JOIN_TIMEOUT_S:g} s") from None
            if isinstance(error, msgspec.DecodeError):
                raise WireError(f"the node's answer cannot be read: {error}") from None
            raise
        return link, received

    async def _go_on(self, link: Link, received: int) -> None:
        """Use a connection until it breaks."""
        if self._known:
            _log.info("connected again after: %s", self.trouble)
        self._known = True
        self.trouble = ""
        pulses = asyncio.ensure_future(self._read_pulses())
        try:
            self.trouble = await self.wire.run(link, received)
        except WireError as error:
            self.trouble = str(error)
        finally:
            pulses.cancel()
            await asyncio.gather(pulses, return_exceptions=True)
            await link.close()
        _log.info("the connection broke: %s", self.trouble)

    async def _read_pulses(self) -> None:
        while True:
            try:
                await self._read_pulse(await self._client.open(PULSE))
            except (WireError, msgspec.DecodeError) as error:
                _log.info("the pulse broke: %s", error)
            await asyncio.sleep(_LONGEST_PAUSE_S)

    async def _read_pulse(self, link: Link) -> None:
        try:
            await link.send(self._hello())
            while (envelope := await link.receive()) is not None:
                if envelope.kind is Kind.PULSE:
                    self._on_pulse(decode(envelope.body, Pulse))
        finally:
            with contextlib.suppress(WireError):
                await link.close()

    def _hello(self) -> Envelope:
        join = Join(self._run_id, self._epoch, self._connections, self.wire.received, self._known)
        return Envelope(Kind.JOIN, NODE, ORCHESTRATOR, encode(join))
