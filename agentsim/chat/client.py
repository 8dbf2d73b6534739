"""Carries out the model calls of one process: numbers them, waits for them, tells of each."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import lru_cache
from typing import Any

import numpy as np

from agentsim import draws
from agentsim.chat.model import CURRENT, Model, Reply
from agentsim.draws import Stream
from agentsim.errors import ModelError
from agentsim.replies import Status
from agentsim.rpc.messages import Attempt, Completion, Message, Request

ROUND = 1
"""The round of all calls: 0 is when personas are written."""
NOBODY = 2**32 - 1
"""The agent of a call that is bound to nobody, in the record."""

_SEED_BLOCK = 64
_CUT = ("length", "max_tokens")

_Key = tuple[int, int, int]
"""Session, agent and step of a call: unique in a process."""


class Client:
    """Asks the models of a node for one process.

    Args:
        worker: index of the worker; -1 for the user's program.
        loop: on which requests are sent and completions taken.
        ask: sends requests to a node.
        record: is given what came of each call, before whoever asked goes on.
    """

    def __init__(
        self,
        worker: int,
        loop: asyncio.AbstractEventLoop,
        ask: Callable[[list[Request]], None],
        record: Callable[[list[Attempt]], None],
    ) -> None:
        self._worker = worker
        self._loop = loop
        self._ask = ask
        self._record = record
        self._lock = threading.Lock()
        self._steps: Counter[tuple[int, int]] = Counter()
        self._open: dict[_Key, tuple[Request, Future[Reply]]] = {}
        self._outbox: list[Request] = []
        self._scheduled = False
        self._stopped: BaseException | None = None

    def submit(
        self, model: Model, messages: list[Message], schema: dict[str, Any] | None
    ) -> Future[Reply]:
        """Begin a call, from any thread; requests of one breath leave in one message."""
        if self._stopped is not None:
            raise self._stopped
        # Distinct for each process, so that equal prompts of two of them are sampled apart.
        agent = NOBODY - 1 - self._worker if model.agent is None else model.agent
        with self._lock:
            step = self._steps[model.session, agent]
            self._steps[model.session, agent] += 1
        block, place = divmod(agent, _SEED_BLOCK)
        request = Request(
            session=model.session,
            round=ROUND,
            agent=agent,
            step=step,
            attempt=0,
            messages=messages,
            schema=schema,
            seed=_seeds(model.seed, model.session, step, block)[place],
            model=model.name,
        )
        future: Future[Reply] = Future()
        with self._lock:
            self._open[_key(request)] = (request, future)
            self._outbox.append(request)
            scheduled, self._scheduled = self._scheduled, True
        if not scheduled:
            self._loop.call_soon_threadsafe(self._flush)
        return future

    def take(self, completions: Sequence[Completion]) -> None:
        """Completions have arrived: record them, and tell who waits; on the loop."""
        attempts, tell = self.arrived(completions)
        if attempts:
            self._record(attempts)
        tell()

    def arrived(
        self, completions: Sequence[Completion]
    ) -> tuple[list[Attempt], Callable[[], None]]:
        """Completions have arrived; on the loop.

        Returns:
            What is to be recorded, and what tells those who wait: to be called after that.
        """
        known = [done for done in completions if _key(done) in self._open]
        calls = [(self._open.pop(_key(done)), done) for done in known]

        def tell() -> None:
            for (request, future), done in calls:
                _settle(future, request, done)

        return [self._attempt(request, done) for (request, _), done in calls], tell

    def stop(self, error: BaseException) -> None:
        """Nothing more is asked: what is open fails, and so does what comes; from any thread."""
        self._stopped = error
        while self._open:
            _, (_, future) = self._open.popitem()
            if future.set_running_or_notify_cancel():
                future.set_exception(error)

    def _flush(self) -> None:
        with self._lock:
            requests, self._outbox = self._outbox, []
            self._scheduled = False
        self._ask(requests)

    def _attempt(self, request: Request, done: Completion) -> Attempt:
        status = _status(done)
        return Attempt(
            session=request.session,
            round=request.round,
            agent=request.agent if request.agent < NOBODY // 2 else NOBODY,
            step=request.step,
            attempt=request.attempt,
            messages=request.messages,
            format=_format(request),
            seed=request.seed,
            text=done.text,
            finish_reason=done.finish_reason,
            status=str(status),
            value=None,
            reason=_REASONS.get(status, done.error),
            final=True,
            error=done.error,
            prompt_tokens=done.prompt_tokens,
            completion_tokens=done.completion_tokens,
            latency_s=done.latency_s,
            tries=done.tries,
            endpoint=done.endpoint,
            request_id=done.request_id,
            choice=done.choice,
            worker=self._worker,
        )


_REASONS = {
    Status.OK: "",
    Status.EMPTY: "there is no text",
    Status.TRUNCATED: "cut at the most tokens of a reply",
}


def use(client: Client) -> None:
    """Carry out the calls of the code that runs now, and of what it begins, by a client."""
    CURRENT.set(client)


def _status(done: Completion) -> Status:
    """What became of a call; how its reply is read is the business of whoever asked."""
    if done.error:
        return Status.FAILED
    if done.finish_reason in _CUT:
        return Status.TRUNCATED
    return Status.OK if done.text.strip() else Status.EMPTY


def _settle(future: Future[Reply], request: Request, done: Completion) -> None:
    if not future.set_running_or_notify_cancel():
        return
    if done.error:
        future.set_exception(ModelError(f"the model gave no reply: {done.error}"))
        return
    future.set_result(
        Reply(
            text=done.text,
            finish_reason=done.finish_reason,
            prompt_tokens=done.prompt_tokens,
            completion_tokens=done.completion_tokens,
            latency_s=done.latency_s,
            format=_format(request),
        )
    )


def _format(request: Request) -> str:
    return "json" if request.schema is not None else "text"


def _key(message: Request | Completion) -> _Key:
    return message.session, message.agent, message.step


@lru_cache(maxsize=4096)
def _seeds(seed: int, session: int, step: int, block: int) -> list[int]:
    """Sampling seeds of a block of agents, 31 bits each: a column costs little more than one."""
    agents = np.arange(block * _SEED_BLOCK, (block + 1) * _SEED_BLOCK, dtype=np.uint32)
    words = draws.integers(
        Stream.MODEL_SEED, agents, seed=seed, session=session, round=ROUND, step=step
    )
    seeds: list[int] = (words >> np.uint64(33)).tolist()
    return seeds
