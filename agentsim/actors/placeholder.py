"""What a proxy call returns at once: it stands for a result that comes later."""

from __future__ import annotations

import asyncio
import contextlib
from array import array
from collections.abc import Generator, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from agentsim.actors.messages import RemoteError
from agentsim.actors.refs import ResultRef
from agentsim.errors import AgentsimError, PeerLost, RunError

if TYPE_CHECKING:
    from agentsim.actors.caller import Caller


class RemoteFailure(RunError):
    """A call failed where it was carried out.

    Attributes:
        remote: type, message, traceback and place of the exception.
    """

    def __init__(self, remote: RemoteError) -> None:
        super().__init__(
            f"{remote.type}: {remote.message} (on {remote.where})\n{remote.traceback}".rstrip()
        )
        self.remote = remote


class CallCancelled(AgentsimError):
    """The call was cancelled before it had a result."""


class WouldBlock(AgentsimError):
    """A placeholder was read on a worker's loop, where waiting would stop all its agents."""

    def __init__(self) -> None:
        super().__init__(
            "a placeholder was read inside an agent before its result was there; make the method "
            "`async` and `await` the placeholder, or set `blocking = True` on the agent's class"
        )


class Placeholder:
    """The result of one call, now or later.

    Await it in coroutines; elsewhere `result()` waits, and so do attributes and items, which are
    the result's. Pass it to other agents without waiting: they get the result. A waiting
    placeholder holds no thread.
    """

    __slots__ = (
        "__weakref__",
        "_caller",
        "_error",
        "_id",
        "_state",
        "_value",
        "_waiters",
        "_worker",
    )

    _PENDING, _BYTES, _AWAY, _READ, _FAILED = range(5)

    def __init__(self, caller: Caller, id: int, worker: int) -> None:
        self._caller = caller
        self._id = id
        self._worker = worker
        self._state = self._PENDING
        self._value: Any = None
        self._error: AgentsimError | None = None
        self._waiters: list[asyncio.Future[None]] | None = None

    @property
    def done(self) -> bool:
        """Whether the call has ended, with a result or an error."""
        return self._state != self._PENDING

    def result(self, timeout_s: float | None = None) -> Any:
        """The result, waiting for it.

        Args:
            timeout_s: most seconds to wait; None: as long as it takes.

        Raises:
            TimeoutError: it is not there yet.
            RemoteFailure: the call raised; the remote traceback is in the message.
            PeerLost: the worker that had the call is gone.
            CallCancelled: it was cancelled.
            WouldBlock: this is a worker's loop.
        """
        if not self._here():
            self._caller.wait(self._here_or_asked_for, timeout_s)
        return self._read()

    def cancel(self) -> None:
        """The result is not wanted: what has not begun does not, what awaits is interrupted."""
        if self._state == self._PENDING:
            self._caller.cancel(self._worker, [self._id])
            self._fail(CallCancelled("the call was cancelled"))
            self._caller.notify()

    def __await__(self) -> Generator[Any, None, Any]:
        while not self._here():
            self._fetch()
            future = asyncio.get_running_loop().create_future()
            # The loop that takes results may be another thread's, and take the list meanwhile.
            waiters = self._waiters
            if waiters is None:
                waiters = self._waiters = []
            waiters.append(future)
            if not self._here():
                yield from future
        return self._read()

    def __copy__(self) -> Placeholder:
        return self  # a second one would release the result twice

    def __deepcopy__(self, _: object) -> Placeholder:
        return self

    def __reduce__(self) -> str:
        raise TypeError("a placeholder cannot be pickled; pass it to an agent, or read it")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.result(), name)

    def __getitem__(self, item: Any) -> Any:
        return self.result()[item]

    def __repr__(self) -> str:
        names = ("waiting", "here", "away", "here", "failed")
        return f"<placeholder of call {self._id} at worker {self._worker}: {names[self._state]}>"

    def __agentsim_ref__(self) -> ResultRef:
        return ResultRef(self._worker, self._id)

    def __del__(self) -> None:
        # Whoever keeps the result need not any more.
        self._caller.release(self._worker, self._id)

    def _here(self) -> bool:
        return self._state not in (self._PENDING, self._AWAY)

    def _here_or_asked_for(self) -> bool:
        """Whether the result is here; asks for one that waits at its worker."""
        self._fetch()
        return self._here()

    def _fetch(self) -> None:
        if self._state == self._AWAY:
            self._state = self._PENDING
            self._caller.fetch(self)

    def _read(self) -> Any:
        if self._error is not None:
            raise self._error.with_traceback(None)
        if self._state == self._BYTES:
            self._value = self._caller.decode(self._value)
            self._state = self._READ
        return self._value

    def _take(self, value: bytes | None) -> None:
        """The result came; None: it waits at its worker."""
        if self._state == self._FAILED:
            return  # it was cancelled, and had ended already
        self._value = value
        self._state = self._AWAY if value is None else self._BYTES
        self._wake()

    def _fail(self, error: AgentsimError) -> None:
        if self._here():
            return
        self._error = error
        self._state = self._FAILED
        self._wake()

    def _wake(self) -> None:
        waiters, self._waiters = self._waiters, None
        if waiters:
            _finish_all(waiters)


def _finish_all(waiters: list[asyncio.Future[None]]) -> None:
    """Wake who waits, each on the loop that it is of."""
    for future in waiters:
        # A loop that is closed has nobody who waits.
        with contextlib.suppress(RuntimeError):
            future.get_loop().call_soon_threadsafe(_finish, future)


def _finish(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


class GroupPlaceholder:
    """The results of one call on all agents of a group.

    `result()` and `await` give the list of all results in order of the agents. Iterating gives
    (agent, result) as they come. One that failed raises when it is read.
    """

    def __init__(self, caller: Caller, calls: list[tuple[int, int, int]], count: int) -> None:
        """
        Args:
            calls: (first call number, first agent, worker) of each part.
            count: agents of the group.
        """
        self._caller = caller
        self._calls = calls
        self._count = count
        self._results: list[Any] = [None] * count
        self._errors: dict[int, AgentsimError] = {}
        self._order = array("I")  # a list of numbers takes nine times as much
        self._done = bytearray(count)
        self._waiters: list[asyncio.Future[None]] = []

    def __len__(self) -> int:
        return self._count

    @property
    def done(self) -> int:
        """How many calls have ended."""
        return len(self._order)

    def result(self, timeout_s: float | None = None) -> list[Any]:
        """All results in order of the agents.

        Raises:
            TimeoutError: some are not there yet.
            AgentsimError: a call failed (see `Placeholder.result`); raised at once, not when all
                have ended.
        """
        self._caller.wait(self._decided, timeout_s)
        return self._all()

    def results(self, timeout_s: float | None = None) -> list[Any]:
        """All results in order of the agents, with the error in place of a result that failed."""
        self._caller.wait(self._complete, timeout_s)
        return [self._errors.get(i, value) for i, value in enumerate(self._results)]

    def __await__(self) -> Generator[Any, None, list[Any]]:
        while not self._decided():
            future = asyncio.get_running_loop().create_future()
            self._waiters.append(future)
            if not self._decided():
                yield from future
        return self._all()

    def __iter__(self) -> Iterator[tuple[int, Any]]:
        """(agent, result) in the order in which they come, waiting for each."""
        for place in range(self._count):
            self._caller.wait(partial(self._have, place + 1), None)
            agent = self._order[place]
            if agent in self._errors:
                raise self._errors[agent]
            yield agent, self._results[agent]

    def cancel(self) -> None:
        """What has not begun does not, what awaits is interrupted."""
        self._caller.on_loop(self._cancel)

    def _cancel(self) -> None:
        """On the loop, where results come too."""
        left = [agent for agent in range(self._count) if not self._done[agent]]
        by_worker: dict[int, list[int]] = {}
        for agent in left:
            first, start, worker = self._part(agent)
            by_worker.setdefault(worker, []).append(first + agent - start)
        for worker, ids in by_worker.items():
            self._caller.cancel(worker, ids)
        for agent in left:
            self._fail(agent, CallCancelled("the call was cancelled"))
        self._wake()
        self._caller.notify()

    def _part(self, agent: int) -> tuple[int, int, int]:
        return next(part for part in reversed(self._calls) if part[1] <= agent)

    def _complete(self) -> bool:
        return len(self._order) == self._count

    def _have(self, count: int) -> bool:
        return len(self._order) >= count

    def _decided(self) -> bool:
        return self._complete() or bool(self._errors)

    def _all(self) -> list[Any]:
        if self._errors:
            raise self._errors[min(self._errors)]
        return list(self._results)

    def _take(self, start: int, offsets: range | list[int], values: list[Any]) -> None:
        """Results of agents came.

        Args:
            start: agent of offset 0.
        """
        results, done, order = self._results, self._done, self._order
        if isinstance(offsets, range):
            agents = range(start + offsets.start, start + offsets.stop)
            row = slice(agents.start, agents.stop)
            if done.find(1, row.start, row.stop) < 0:
                results[row] = values
                done[row] = b"\1" * len(agents)
                order.extend(agents)
                return
        for offset, value in zip(offsets, values, strict=True):
            agent = start + offset
            if not done[agent]:
                done[agent] = 1
                results[agent] = value
                order.append(agent)

    def _fail(self, agent: int, error: AgentsimError) -> None:
        if not self._done[agent]:
            self._done[agent] = 1
            self._errors[agent] = error
            self._order.append(agent)

    def _wake(self) -> None:
        if not self._decided():
            return
        waiters, self._waiters = self._waiters, []
        _finish_all(waiters)


def failure_of(error: RemoteError) -> AgentsimError:
    """The exception to raise for a remote error."""
    if error.type == PeerLost.__name__:
        return PeerLost(error.message)
    if error.type == CallCancelled.__name__:
        return CallCancelled(error.message)
    return RemoteFailure(error)


__all__ = [
    "CallCancelled",
    "GroupPlaceholder",
    "Placeholder",
    "RemoteFailure",
    "WouldBlock",
    "failure_of",
]
