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
from collections.abc import Callable, Collection, Sequence
from typing import Any

from agentsim.actors.bell import Bell
from agentsim.actors.codec import BadValue, CannotTravel, Codec
from agentsim.actors.faults import gone
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
from agentsim.actors.outbox import Post
from agentsim.actors.parts import Part
from agentsim.actors.placeholder import (
    CallCancelled,
    GroupPlaceholder,
    Placeholder,
    WouldBlock,
    failure_of,
)
from agentsim.actors.refs import AgentRef, GroupRef, Ref, ResultRef
from agentsim.errors import PeerLost, RunError

_log = logging.getLogger(__name__)

_Arguments = tuple[bytes, tuple[ResultRef, ...], Sequence[Placeholder]]


class _Pending(weakref.ref[Placeholder]):
    """A call that was made and has not ended; weak, since nobody may want the result.

    Attributes:
        pins: placeholders that stand in its arguments, kept until it has ended.
        worker: who carries it out.
        parent: the call that made it; 0 for the user's program.
    """

    __slots__ = ("parent", "pins", "worker")

    pins: Sequence[Placeholder]
    worker: int
    parent: int


class Caller:
    """Makes calls and takes their results.

    Args:
        number: of the worker, or CENTRE.
        loop: on which messages are sent and taken.
        codec: of values.
        post: sends messages.
        proxy: makes a proxy from a reference, for values that hold one.
        chain: the calls that lead to the code that runs now; empty in the user's program.
        bell: rings when something has come.
    """

    def __init__(
        self,
        number: int,
        loop: asyncio.AbstractEventLoop,
        codec: Codec,
        post: Post,
        *,
        proxy: Callable[[AgentRef | GroupRef], Any],
        chain: Callable[[], tuple[int, ...]] = tuple,
        bell: Bell | None = None,
    ) -> None:
        self._number = number
        self._loop = loop
        self._codec = codec
        self._post = post
        self._proxy = proxy
        self._chain = chain
        self._bell = bell or Bell()
        self._next = 1
        # Numbers are given in the order of sending, though many threads may call. Code of users may
        # run while it is held, when garbage is collected, and call too.
        self._numbers = threading.RLock()
        self._pending: dict[int, _Pending] = {}
        self._parts: dict[int, Part] = {}
        self._fetching: dict[int, weakref.ref[Placeholder]] = {}
        self._outbox: deque[tuple[int, ActorMessage]] = deque()
        self._released: deque[tuple[int, int]] = deque()
        self._lost: dict[int, str] = {}
        self._scheduled = False

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
        worker, chain = agent.worker, self._chain()
        with self._numbers:
            id = self._reserve(1)
            placeholder = Placeholder(self, id, worker)
            pending = self._pending[id] = _Pending(placeholder)
            pending.pins = pins
            pending.worker = worker
            pending.parent = chain[-1] if chain else 0
            call = Call(id, agent.group, agent.index, method, body, needs, chain)
            self._outbox.append((worker, call))
        if not self._scheduled:
            self._schedule()
        if worker in self._lost:
            self._lose_call(id)
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
        parent = chain[-1] if chain else 0
        total = sum(count for _, _, count in parts)
        with self._numbers:
            calls = [(self._reserve(count), first, worker, count) for worker, first, count in parts]
            placeholder = GroupPlaceholder(
                self, [(id, first, worker) for id, first, worker, _ in calls], total
            )
            for id, first, worker, count in calls:
                self._parts[id] = Part(placeholder, first, count, worker, pins, parent)
                call = CallMany(id, group, first, count, method, body, needs, chain)
                self._outbox.append((worker, call))
        self._schedule()
        for id, _, worker, _ in calls:
            if worker in self._lost:
                self._lose_part(id)
        return placeholder

    def take(self, message: Done | DoneMany | Value) -> None:
        """Take what a worker sent; on the loop."""
        if type(message) is Done:
            self._end(message.id, message.value, message.error)
        elif type(message) is DoneMany:
            self._end_many(message)
        elif type(message) is Value:
            reference = self._fetching.pop(message.id, None)
            placeholder = reference() if reference is not None else None
            if placeholder is not None:
                _settle(placeholder, message.value, message.error)

    def notify(self) -> None:
        """Wake threads that wait; after a batch of messages was taken."""
        self._bell.ring()

    def lose(self, lost: Lost) -> None:
        """A worker is gone: everything that waits for it fails at once; on the loop."""
        self._lost[lost.worker] = lost.message
        # Threads of the user's may call meanwhile; they look whether the worker is lost afterwards.
        for id in list(self._pending):
            self._lose_call(id)
        for id in list(self._parts):
            self._lose_part(id)
        for id in list(self._fetching):
            self._lose_fetch(id)
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
        if _running_loop() is self._loop:
            raise WouldBlock
        self._bell.wait(condition, timeout_s)

    def interrupt(self, error: BaseException) -> None:
        """Raise in every thread that waits, now and from now on; from any thread."""
        self._bell.interrupt(error)

    def fetch(self, placeholder: Placeholder) -> None:
        """Ask for a result that waits at its worker."""
        self._fetching[placeholder._id] = weakref.ref(placeholder)
        self.send(placeholder._worker, Fetch(placeholder._id, self._number))
        if placeholder._worker in self._lost:
            self._lose_fetch(placeholder._id)

    def cancel(self, worker: int, ids: list[int]) -> None:
        """Tell a worker that results are not wanted."""
        self.send(worker, Cancel(ids))

    def cancel_made_by(self, parents: Collection[int]) -> None:
        """Calls are cancelled, and with them what they have called for and not dropped.

        Otherwise it would go on, and might wait for agents that nobody lets it in to any more; on
        the loop.
        """
        for pending in list(self._pending.values()):
            if pending.parent in parents and (placeholder := pending()) is not None:
                placeholder.cancel()
        for part in list(self._parts.values()):
            if part.parent in parents and (group := part.placeholder()) is not None:
                group.cancel()

    def release(self, worker: int, id: int) -> None:
        """Nobody can ask for this result any more; from any thread, also while it is collected."""
        self._released.append((worker, id))
        if not self._scheduled:
            self._schedule()

    def decode(self, body: bytes) -> Any:
        """The value that came.

        Raises:
            RunError: it is none that this program can read.
        """
        if not body:
            return None
        try:
            return self._codec.decode(body, self._at_home)
        except BadValue as error:
            raise RunError(f"a result cannot be read here: {error}") from error

    def send(self, worker: int, message: ActorMessage) -> None:
        """Send a message with the next breath; from any thread."""
        self._outbox.append((worker, message))
        self._schedule()

    def on_loop(self, work: Callable[[], None]) -> None:
        """Do something on the loop's thread; at once if this is it, or if the loop has ended."""
        if self._loop.is_closed() or _running_loop() is self._loop:
            work()
        else:
            self._loop.call_soon_threadsafe(work)

    def flush(self) -> None:
        """Send what has gathered; on the loop."""
        self._scheduled = False
        # First those that are let go: a call may be made and let go between the two.
        released: dict[int, list[int]] = {}
        while self._released:
            worker, id = self._released.popleft()
            released.setdefault(worker, []).append(id)
        by_worker: dict[int, list[ActorMessage]] = {}
        while self._outbox:
            worker, message = self._outbox.popleft()
            messages = by_worker.setdefault(worker, [])
            if type(message) is Cancel and messages and type(messages[-1]) is Cancel:
                messages[-1].ids.extend(message.ids)
            else:
                messages.append(message)
        for worker, ids in released.items():
            by_worker.setdefault(worker, []).append(Release(ids))
        for worker, messages in by_worker.items():
            if worker not in self._lost:
                self._post(worker, messages)

    def _reserve(self, count: int) -> int:
        """Numbers for so many calls; the first of them."""
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

    def _encode(self, args: tuple[Any, ...], kwargs: Any, method: str) -> _Arguments:
        if not args and not kwargs:
            return b"", (), ()
        pins: list[Placeholder] = []
        body, needs = self._codec.encode_call(args, kwargs, method=method, pins=pins)
        if not pins:
            return body, (), ()
        if any(pin._caller is not self for pin in pins):
            raise CannotTravel(
                f"an argument of `{method}` is a placeholder of another cluster; read it first"
            )
        return body, tuple(needs), pins

    def _at_home(self, reference: Ref) -> Any:
        if not isinstance(reference, ResultRef):
            return self._proxy(reference)
        raise BadValue("it holds a placeholder, which only its owner keeps")

    # --- ends

    def _end(self, id: int, value: bytes | None, error: RemoteError | None) -> None:
        pending = self._pending.pop(id, None)
        if pending is None:
            return
        placeholder = pending()
        if placeholder is not None:
            _settle(placeholder, value, error)
        elif error is not None and error.type != CallCancelled.__name__:
            _log.warning("a call whose result nobody reads failed: %s", error.message)

    def _end_many(self, message: DoneMany) -> None:
        part = self._parts.get(message.id)
        if part is None:
            return
        try:
            part.take(message, self.decode)
        except (ValueError, RunError) as error:
            _log.warning("dropped results of worker %d: %s", part.worker, error)
        if part.left <= 0:
            del self._parts[message.id]

    def _lose_call(self, id: int) -> None:
        """A call fails if its worker is gone; on the loop, or where the call is made."""
        pending = self._pending.get(id)
        if pending is not None and pending.worker in self._lost:
            self._end(id, None, gone(self._lost[pending.worker]))

    def _lose_part(self, id: int) -> None:
        part = self._parts.get(id)
        if part is not None and part.worker in self._lost and self._parts.pop(id, None) is part:
            part.fail(PeerLost(self._lost[part.worker]))

    def _lose_fetch(self, id: int) -> None:
        reference = self._fetching.get(id)
        placeholder = reference() if reference is not None else None
        if placeholder is None:
            self._fetching.pop(id, None)
        elif placeholder._worker in self._lost:
            self._fetching.pop(id, None)
            placeholder._fail(PeerLost(self._lost[placeholder._worker]))


def _settle(placeholder: Placeholder, value: bytes | None, error: RemoteError | None) -> None:
    if error is not None:
        placeholder._fail(failure_of(error))
    else:
        placeholder._take(value)


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
