"""The queue in front of one endpoint: first come, first served, as wide as its health allows."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable

from agentsim.models.limits import EndpointHealth, Verdict


class Gate:
    """Lets requests in by order of arrival. A request that is tried again keeps its place.

    Args:
        health: decides how many are let in, and when.
        clock: monotonic seconds of the running loop.
    """

    def __init__(self, health: EndpointHealth, clock: Callable[[], float]) -> None:
        self.health = health
        self.waiting = 0
        self._clock = clock
        self._queue: list[tuple[int, asyncio.Future[int | None]]] = []
        self._timer: asyncio.TimerHandle | None = None
        self._closed = False

    async def enter(self, order: int) -> int | None:
        """Waits for a place.

        Args:
            order: arrival number of the request, unlike that of any other that waits.

        Returns:
            A ticket for `leave`; None when the endpoint was given up while waiting.
        """
        now = self._clock()
        if self._closed or not self.health.usable(now):
            return None
        if not self.waiting and self.health.capacity(now) > 0:
            return self.health.send()
        loop = asyncio.get_running_loop()
        place: asyncio.Future[int | None] = loop.create_future()
        heapq.heappush(self._queue, (order, place))
        self.waiting += 1
        self._wake()
        try:
            return await place
        except asyncio.CancelledError:
            if not place.cancelled() and place.done() and place.result() is not None:
                self.forget()
            raise
        finally:
            self.waiting -= 1

    def leave(self, ticket: int, verdict: Verdict, *, pause_s: float | None, jitter: float) -> None:
        """The request of this ticket ended; lets others in. See `EndpointHealth.end`."""
        self.health.end(ticket, verdict, self._clock(), pause_s=pause_s, jitter=jitter)
        self._wake()

    def forget(self) -> None:
        """A request that had a ticket was cancelled; lets others in."""
        self.health.forget()
        self._wake()

    def close(self) -> None:
        """Sends everybody who waits away, and all who come later."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        self._wake()

    def _wake(self) -> None:
        now = self._clock()
        queue = self._queue
        send_away = self._closed or not self.health.usable(now)
        while queue and (send_away or self.health.capacity(now) > 0):
            place = heapq.heappop(queue)[1]
            if not place.done():
                place.set_result(None if send_away else self.health.send())
        if queue and now < self.health.paused_until:
            if self._timer is not None:
                self._timer.cancel()
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(self.health.paused_until - now, self._wake)
