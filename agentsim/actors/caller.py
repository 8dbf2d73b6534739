"""The calling half: numbers calls, keeps what is pending, pins what is passed on, releases.

One lives beside the user's program and one in each worker. Calls that are made in one breath leave
in one message: they gather in an outbox, which the loop empties when it comes round.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from agentsim.actors.codec import Codec
from agentsim.actors.messages import (
    ActorMessage,
    Call,
    CallMany,
    Cancel,
    Done,
    DoneMany,
    Fetch,
    Lost,
    Release,
    RemoteError,
    Value,
    call_id,
)
from agentsim.actors.placeholder import (
    GroupPlaceholder,
    Placeholder,
    WouldBlock,
    failure_of,
)
from agentsim.actors.refs import AgentRef, ResultRef
from agentsim.errors import PeerLost

_log = logging.getLogger(__name__)

Post = Callable[[int, Sequence[ActorMessage]], None]
"""Sends messages to a worker or the centre, in order; called on the loop."""


class _Pending:
    """A call that was made and has not ended.

    Attributes:
        placeholder: weak, since nobody may want the result.
        pins: placeholders that stand in its arguments, kept until it has ended.
        worker: who carries it out.
    """

    __slots__ = ("pins", "placeholder", "worker")

    def __init__(
        self,
        placeholder: weakref.ref[Placeholder],
        pins: Sequence[Placeholder],
        worker: int,
    ) -> None:
        self.placeholder = placeholder
        self.pins = pins
        self.worker = worker


class _Part:
    """One worker's part of a group call."""

    __slots__ = ("count", "left", "pins", "placeholder", "start", "worker")

    def __init__(
        self,
        placeholder: GroupPlaceholder,
        start: int,
        count: int,
        worker: int,
        pins: Sequence[Placeholder],
    ) -> None:
        self.placeholder = placeholder
        self.start = start
        self.count = count
        self.left = count
        self.worker = worker
        self.pins = pins


class Caller:
    """Makes calls and takes their results.

    Args:
        number: of the worker, or CENTRE.
        loop: on which messages are sent and taken.
        codec: of values.
        post: sends messages.
        proxy: makes a proxy from a reference, for values that hold one.
        chain: the calls that lead to the code that runs now; empty in the user's program.
    """

    def __init__(
        self,
        number: int,
        loop: asyncio.AbstractEventLoop,
        codec: Codec,
        post: Post,
        *,
        proxy: Callable[[AgentRef], Any],
        chain: Callable[[], list[int]] = list,
    ) -> None:
        self._number = number
        self._loop = loop
        self._codec = codec
        self._post = post
        self._proxy = proxy
        self._chain = chain
        self._next = 1
        self._numbers = threading.Lock()
        self._pending: dict[int, _Pending] = {}
        self._parts: dict[int, _Part] = {}
        self._fetching: dict[int, weakref.ref[Placeholder]] = {}
        self._outbox: deque[tuple[int, ActorMessage]] = deque()
        self._released: deque[tuple[int, int]] = deque()
        self._lost: dict[int, str] = {}
        self._scheduled = False
        self._arrived = threading.Condition()
        self._interrupted: BaseException | None = None

    @property
    def pending(self) -> int:
        """Calls that have not ended."""
        return len(self._pending) + sum(part.left for part in self._parts.values())

    def call(self, agent: AgentRef, method: str, args: tuple[Any, ...], kwargs: Any) -> Placeholder:
        """Call one agent's method.

        Raises:
            CannotTravel: an argument cannot be sent.
        """
        body, needs, pins = self._encode(args, kwargs, method)
        id = self._reserve(1)
        placeholder = Placeholder(self, id, agent.worker)
        self._pending[id] = _Pending(weakref.ref(placeholder), pins, agent.worker)
        self.send(
            agent.worker,
            Call(id, agent.group, agent.index, method, body, needs, self._chain()),
        )
        self._check_lost(agent.worker)
        return placeholder

    def call_many(
        self,
        group: int,
        parts: Sequence[tuple[int, int, int]],
        method: str,
        args: tuple[Any, ...],
        kwargs: Any,
    ) -> GroupPlaceholder:
        """Call a method of all agents of a group.

        Args:
            parts: (worker, first agent, count), in order of agents.

        Raises:
            CannotTravel: an argument cannot be sent.
        """
        body, needs, pins = self._encode(args, kwargs, method)
        chain = self._chain()
        total = sum(count for _, _, count in parts)
        calls = [(self._reserve(count), first, worker, count) for worker, first, count in parts]
        placeholder = GroupPlaceholder(
            self, [(id, first, worker) for id, first, worker, _ in calls], total
        )
        for id, first, worker, count in calls:
            self._parts[id] = _Part(placeholder, first, count, worker, pins)
            self.send(worker, CallMany(id, group, first, count, method, body, needs, chain))
            self._check_lost(worker)
        return placeholder

    def take(self, message: Done | DoneMany | Value) -> None:
        """Take what a worker sent; on the loop."""
        match message:
            case Done(id, value, error):
                self._end(id, value, error)
            case DoneMany():
                self._end_many(message)
            case Value(id, value, error):
                reference = self._fetching.pop(id, None)
                placeholder = reference() if reference is not None else None
                if placeholder is not None:
                    _settle(placeholder, value, error)

    def notify(self) -> None:
        """Wake threads that wait; after a batch of messages was taken."""
        with self._arrived:
            self._arrived.notify_all()

    def lose(self, lost: Lost) -> None:
        """A worker is gone: everything that waits for it fails at once; on the loop."""
        self._lost[lost.worker] = lost.message
        for id, pending in list(self._pending.items()):
            if pending.worker == lost.worker:
                self._end(id, None, _gone(lost.message))
        for id, part in list(self._parts.items()):
            if part.worker == lost.worker:
                del self._parts[id]
                for offset in range(part.count):
                    part.placeholder._fail(part.start + offset, PeerLost(lost.message))
                part.placeholder._wake()
        for id, reference in list(self._fetching.items()):
            placeholder = reference()
            if placeholder is None or placeholder._worker == lost.worker:
                del self._fetching[id]
                if placeholder is not None:
                    placeholder._fail(PeerLost(lost.message))
        self.notify()

    def wait(self, condition: Callable[[], bool], timeout_s: float | None) -> None:
        """Wait in a thread until the condition holds.

        Raises:
            TimeoutError: it does not hold in time.
            WouldBlock: this is the loop's own thread.
            BaseException: what `interrupt` was given.
        """
        if condition():
            return
        if self._interrupted is not None:
            raise self._interrupted
        if _running_loop() is self._loop:
            raise WouldBlock
        with self._arrived:
            ended = self._arrived.wait_for(
                lambda: condition() or self._interrupted is not None, timeout_s
            )
        if self._interrupted is not None:
            raise self._interrupted
        if not ended:
            raise TimeoutError(f"no result within {timeout_s:g} s")

    def interrupt(self, error: BaseException) -> None:
        """Raise in every thread that waits, now and from now on; from any thread."""
        self._interrupted = error
        self.notify()

    def fetch(self, placeholder: Placeholder) -> None:
        """Ask for a result that waits at its worker."""
        self._fetching[placeholder._id] = weakref.ref(placeholder)
        self.send(placeholder._worker, Fetch(placeholder._id, self._number))
        self._check_lost(placeholder._worker)

    def cancel(self, worker: int, ids: list[int]) -> None:
        """Tell a worker that results are not wanted."""
        self.send(worker, Cancel(ids))

    def release(self, worker: int, id: int) -> None:
        """Nobody can ask for this result any more; from any thread, also while it is collected."""
        self._released.append((worker, id))
        self._schedule()

    def decode(self, body: bytes) -> Any:
        """The value that came."""
        return self._codec.decode(body, self._at_home) if body else None

    def send(self, worker: int, message: ActorMessage) -> None:
        """Send a message with the next breath; from any thread."""
        self._outbox.append((worker, message))
        self._schedule()

    def flush(self) -> None:
        """Send what has gathered; on the loop."""
        self._scheduled = False
        by_worker: dict[int, list[ActorMessage]] = {}
        while self._outbox:
            worker, message = self._outbox.popleft()
            by_worker.setdefault(worker, []).append(message)
        released: dict[int, list[int]] = {}
        while self._released:
            worker, id = self._released.popleft()
            released.setdefault(worker, []).append(id)
        for worker, ids in released.items():
            by_worker.setdefault(worker, []).append(Release(ids))
        for worker, messages in by_worker.items():
            if worker not in self._lost:
                self._post(worker, messages)

    def _reserve(self, count: int) -> int:
        """Numbers for so many calls; the first of them."""
        with self._numbers:
            first = self._next
            self._next += count
        return call_id(self._number, first)

    def _schedule(self) -> None:
        if self._scheduled:
            return
        self._scheduled = True
        if self._loop.is_closed():
            return
        if _running_loop() is self._loop:
            self._loop.call_soon(self.flush)
        else:
            self._loop.call_soon_threadsafe(self.flush)

    def _encode(
        self, args: tuple[Any, ...], kwargs: Any, method: str
    ) -> tuple[bytes, list[ResultRef], list[Placeholder]]:
        if not args and not kwargs:
            return b"", [], []
        pins: list[Placeholder] = []
        body, needs = self._codec.encode_call(args, kwargs, method=method, pins=pins)
        return body, needs, pins

    def _at_home(self, reference: AgentRef | ResultRef) -> Any:
        if isinstance(reference, AgentRef):
            return self._proxy(reference)
        raise ValueError("a result holds a placeholder; await it before returning it")

    def _check_lost(self, worker: int) -> None:
        """A call to a worker that is gone fails too, once the loop comes round."""
        if worker in self._lost:
            lost = Lost(worker, self._lost[worker])
            self._loop.call_soon_threadsafe(self.lose, lost)

    def _end(self, id: int, value: bytes | None, error: RemoteError | None) -> None:
        pending = self._pending.pop(id, None)
        if pending is None:
            return
        placeholder = pending.placeholder()
        if placeholder is not None:
            _settle(placeholder, value, error)
        elif error is not None:
            _log.warning("a call whose result nobody reads failed: %s", error.message)

    def _end_many(self, message: DoneMany) -> None:
        part = self._parts.get(message.id)
        if part is None:
            return
        offsets = np.frombuffer(message.offsets, dtype="<u4").tolist()
        if message.floats is not None:
            values: list[Any] = np.frombuffer(message.floats, dtype="<f8").tolist()
        else:
            assert message.values is not None
            values = [self.decode(value) for value in message.values]
        for offset, error in message.errors.items():
            part.placeholder._fail(part.start + offset, failure_of(error))
        part.placeholder._take(part.start, offsets, values)
        part.left -= len(offsets)
        if part.left <= 0:
            del self._parts[message.id]
        part.placeholder._wake()


def _settle(placeholder: Placeholder, value: bytes | None, error: RemoteError | None) -> None:
    if error is not None:
        placeholder._fail(failure_of(error))
    else:
        placeholder._take(value)


def _gone(message: str) -> RemoteError:
    return RemoteError(PeerLost.__name__, message, "", "")


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
