"""Threads for methods that block, so many at a time; those that wait for a result do not count."""

from __future__ import annotations

import asyncio
import contextvars
import itertools
import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

_IDLE_S = 10.0


class Threads:
    """A bounded pool whose threads may wait for each other's work.

    A thread that waits gives its place to another one. So calls that wait for calls cannot use up
    the pool, however many there are; when its result comes it goes on at once, and for a while one
    thread more than `most` runs.

    Args:
        most: threads that run at once.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._work: deque[tuple[Future[Any], Callable[[], Any]]] = deque()
        self._changed = threading.Condition()
        self._idle = 0
        self._running = 0
        self._mine = threading.local()
        self._numbers = itertools.count()
        self._closed = False

    def submit(self, function: Callable[[], Any]) -> Future[Any]:
        """Run a function in a thread, as soon as one is free."""
        future: Future[Any] = Future()
        with self._changed:
            self._work.append((future, function))
            self._staff()
        return future

    def close(self) -> None:
        """Begin nothing more."""
        with self._changed:
            self._closed = True
            for future, _ in self._work:
                future.cancel()
            self._work.clear()
            self._changed.notify_all()

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """While the thread waits, if it is one of the pool's, another may run."""
        if not getattr(self._mine, "one", False):
            yield
            return
        with self._changed:
            self._running -= 1
            self._staff()
        try:
            yield
        finally:
            with self._changed:
                self._running += 1

    def _staff(self) -> None:
        """See that somebody does what waits; with the lock held."""
        if self._work and self._running < self._most:
            if self._idle:
                self._changed.notify()
            else:
                self._running += 1
                name = f"agents-{next(self._numbers)}"
                threading.Thread(target=self._live, name=name, daemon=True).start()

    def _live(self) -> None:
        self._mine.one = True
        while True:
            with self._changed:
                task = self._next()
                if task is None:
                    self._running -= 1
                    return
            future, function = task
            if not future.set_running_or_notify_cancel():
                continue
            try:
                future.set_result(function())
            except BaseException as error:  # noqa: BLE001 - it is raised where it is awaited
                future.set_exception(error)
            del future, function, task

    def _next(self) -> tuple[Future[Any], Callable[[], Any]] | None:
        """Work for this thread, which counts as running; None when there is none for long."""
        while not self._closed:
            if self._work and self._running <= self._most:
                task = self._work.popleft()
                self._staff()  # whom `submit` has called may be this thread, twice
                return task
            self._running -= 1
            self._idle += 1
            told = self._changed.wait(_IDLE_S)
            self._idle -= 1
            self._running += 1
            if not told and not self._work:
                return None
        return None


async def run(pool: Threads, function: Callable[[], Any]) -> Any:
    """What a function returns that runs in a thread, in the context of the caller.

    A thread cannot be interrupted: who is cancelled meanwhile goes on when it has ended.

    Raises:
        BaseException: what the function raises.
    """
    context = contextvars.copy_context()
    work = pool.submit(partial(context.run, _captured, function))
    try:
        result, error = await asyncio.wrap_future(work)
    except asyncio.CancelledError:
        await _ended(work)
        raise
    if error is not None:
        raise error
    return await result if hasattr(type(result), "__await__") else result


async def _ended(work: Future[Any]) -> None:
    ended, loop = asyncio.Event(), asyncio.get_running_loop()
    work.add_done_callback(lambda _: loop.call_soon_threadsafe(ended.set))
    while not ended.is_set():
        with suppress(asyncio.CancelledError):
            await ended.wait()


def _captured(function: Callable[[], Any]) -> tuple[Any, BaseException | None]:
    """What a function returns or raises; a future cannot hold each exception."""
    try:
        return function(), None
    except BaseException as error:  # noqa: BLE001 - it is raised again by who awaits
        return None, error
