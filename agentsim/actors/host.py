"""The executing half: hosts agents, carries calls out, keeps results until they are released."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import logging
import traceback
from collections import defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from agentsim.actors.agent import Agent
from agentsim.actors.codec import Codec
from agentsim.actors.gather import Gather
from agentsim.actors.mailbox import Entry, Mailbox
from agentsim.actors.messages import (
    ActorMessage,
    Call,
    CallMany,
    Cancel,
    Create,
    Drop,
    Fetch,
    Lost,
    Release,
    RemoteError,
    Value,
    caller_of,
)
from agentsim.actors.outcomes import Outcomes
from agentsim.actors.placeholder import CallCancelled, RemoteFailure
from agentsim.actors.refs import AgentRef, ResultRef
from agentsim.actors.residents import MANY, CouldNotBeMade, House
from agentsim.errors import PeerLost

_log = logging.getLogger(__name__)

Post = Callable[[int, Sequence[ActorMessage]], None]
"""Sends messages to a worker or the centre, in order; called on the loop."""

_chain: contextvars.ContextVar[tuple[int, ...]] = contextvars.ContextVar("chain", default=())


def current_chain() -> list[int]:
    """The calls that led to the code that runs now, outermost first."""
    return list(_chain.get())


@dataclass(slots=True, eq=False)
class _Queued:
    """A call that has not begun."""

    call: Call
    entry: Entry
    values: dict[int, bytes] = field(default_factory=dict)


class ActorHost:
    """Hosts the agents of one worker.

    Args:
        number: of the worker.
        where: worker and host, for error messages.
        codec: of values.
        find: class path → class, in the allowed modules alone.
        post: sends messages to a worker or the centre.
        proxy: makes a proxy from a reference that stands in arguments.
        threads: most threads for agents that block.
    """

    def __init__(
        self,
        number: int,
        where: str,
        codec: Codec,
        find: Callable[[str], type[Agent]],
        post: Post,
        *,
        proxy: Callable[[AgentRef], Any],
        threads: int = 32,
    ) -> None:
        self._number = number
        self._where = where
        self._codec = codec
        self._find = find
        self._post = post
        self._proxy = proxy
        self._loop = asyncio.get_running_loop()
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="agents")
        self._house = House(find, self._made_from, self._error_of)
        self._outcomes = Outcomes(self._out)
        # Calls for agents that are still on their way from the centre, by group.
        self._early: dict[int, list[Call]] = {}
        # Only agents that have work have a mailbox. Those that were begun by a group call while
        # they had nothing else to do are in `_lone`, which costs less.
        self._boxes: dict[int, Mailbox] = {}
        self._lone: dict[int, int] = {}
        self._queued: dict[int, _Queued] = {}
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._fetching: dict[int, tuple[int, list[int]]] = {}
        self._gathers: dict[int, tuple[Gather, int]] = {}
        self._outbox: dict[int, list[ActorMessage]] = defaultdict(list)
        self._scheduled = False
        self._lost: dict[int, str] = {}

    @property
    def agents(self) -> int:
        """Agents that live here."""
        return len(self._house)

    @property
    def kept(self) -> int:
        """Results that are kept for somebody."""
        return len(self._outcomes)

    def take(self, message: ActorMessage) -> None:
        """Do what a message says; on the loop.

        Raises:
            ValueError: it is none for a host.
        """
        match message:
            case Call():
                self._enqueue(message)
            case CallMany():
                self._call_many(message)
            case Release(ids):
                self._outcomes.release(ids)
            case Fetch(id, to):
                self._outcomes.ask(id, to)
            case Value():
                self._fetched(message)
            case Create():
                self._create(message)
            case Cancel(ids):
                for id in ids:
                    self._cancel(id)
            case Drop(group):
                self._house.drop(group)
            case Lost():
                self._lose(message)
            case _:
                raise ValueError(f"a host of actors has no use for {type(message).__name__}")

    async def close(self) -> None:
        """Interrupt what runs."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _create(self, message: Create) -> None:
        self._house.add(message)
        for call in self._early.pop(message.group, []):
            self._enqueue(call)

    # --- single calls

    def _enqueue(self, call: Call) -> None:
        self._outcomes.begin(call.id)
        group = self._house.group(call.group)
        if group is None or call.index not in group.agents:
            self._unknown(call)
            return
        lane = call.chain[-1] if call.chain else caller_of(call.id)
        needs = dict.fromkeys(need.call for need in call.needs)
        entry = Entry(call.id, lane, frozenset(call.chain), len(needs))
        self._queued[call.id] = _Queued(call, entry)
        key = _key(call.group, call.index)
        self._box(key).add(entry)
        for need in {need.call: need for need in call.needs}.values():
            self._fetch(need, call.id)
        self._begin(key)

    def _unknown(self, call: Call) -> None:
        """An agent that is not here was released, or is still on its way from the centre."""
        if not self._house.dropped(call.group):
            self._early.setdefault(call.group, []).append(call)
            return
        message = f"agent {call.index} of group {call.group} was released"
        self._finish(call.id, None, RemoteError("LookupError", message, "", self._where))

    def _box(self, key: int) -> Mailbox:
        box = self._boxes.get(key)
        if box is None:
            box = self._boxes[key] = Mailbox()
            if key in self._lone:
                box.running.add(self._lone[key])
        return box

    def _begin(self, key: int) -> None:
        """Begin the calls of an agent that may begin."""
        box = self._boxes.get(key)
        group = self._house.group(key >> 32)
        if box is None:
            return
        concurrent = group is not None and group.concurrent
        while (entry := box.next(concurrent=concurrent)) is not None:
            queued = self._queued.pop(entry.id)
            if not self._run(key, queued):
                box.end(entry.id)
        if box.idle:
            del self._boxes[key]

    def _run(self, key: int, queued: _Queued) -> bool:
        """Carry a call out; True while it goes on."""
        call = queued.call
        group = self._house.group(call.group)
        try:
            if group is None:
                raise LookupError(f"agent {call.index} of group {call.group} was released")
            agent, method = group.called(call.index, call.method)
            args, kwargs = self._arguments(call.arguments, queued.values)
        except Exception as error:  # noqa: BLE001 - what a peer sent may be anything
            self._finish(call.id, None, self._error_of(error))
            return False
        function = partial(method.function, agent, *args, **kwargs)
        chain = (*call.chain, call.id)
        if method.waits:
            work = self._awaited(key, call.id, chain, function, method.blocking)
            self._tasks[call.id] = self._loop.create_task(work)
            return True
        token = _chain.set(chain)
        value, failed = None, None
        try:
            value = self._encoded(call.id, function())
        except Exception as error:  # noqa: BLE001 - a user's method may raise anything
            failed = self._error_of(error)
        finally:
            _chain.reset(token)
        self._finish(call.id, value, failed)
        return False

    async def _awaited(
        self,
        key: int,
        id: int,
        chain: tuple[int, ...],
        function: Callable[[], Any],
        blocking: bool,
    ) -> None:
        _chain.set(chain)
        value, failed = None, None
        try:
            if blocking:
                context = contextvars.copy_context()
                result = await self._loop.run_in_executor(self._pool, context.run, function)
            else:
                result = await function()
            value = self._encoded(id, result)
        except asyncio.CancelledError:
            failed = self._cancelled()
        except Exception as error:  # noqa: BLE001 - a user's method may raise anything
            failed = self._error_of(error)
        self._tasks.pop(id, None)
        self._finish(id, value, failed)
        box = self._boxes.get(key)
        if box is not None:
            box.end(id)
            self._begin(key)

    # --- group calls

    def _call_many(self, message: CallMany) -> None:
        """A call on many agents of a group.

        Those that have nothing else to do begin at once; for the others it is a call like any
        other, whose result goes the same way.
        """
        send = partial(self._out, caller_of(message.id))
        gather = Gather(message, send, self._codec, self._where, self._loop)
        group = self._house.group(message.group)
        method = group.method(message.method) if group is not None else None
        slow = group is None or method is None or method.blocking or group.concurrent
        if slow or message.needs:
            for offset in range(message.count):
                self._one_of_many(message, offset, gather)
            return
        assert group is not None
        assert method is not None
        arguments = self._shared_arguments(message.arguments)
        if method.waits and message.count >= MANY:
            gc.disable()
        for offset in range(message.count):
            index = message.first + offset
            agent = group.agents.get(index)
            key = _key(message.group, index)
            if key in self._boxes or key in self._lone or not isinstance(agent, Agent):
                self._one_of_many(message, offset, gather)
                continue
            args, kwargs = arguments or self._arguments(message.arguments, {})
            chain = (*message.chain, message.id + offset)
            if method.waits:
                work = method.function(agent, *args, **kwargs)
                self._lone[key] = chain[-1]
                task = self._loop.create_task(self._lone_call(key, chain, work, gather, offset))
                self._tasks[chain[-1]] = task
                continue
            token = _chain.set(chain)
            try:
                gather.value(offset, method.function(agent, *args, **kwargs))
            except Exception as error:  # noqa: BLE001 - a user's method may raise anything
                gather.error(offset, self._error_of(error))
            finally:
                _chain.reset(token)

    async def _lone_call(
        self, key: int, chain: tuple[int, ...], work: Any, gather: Gather, offset: int
    ) -> None:
        _chain.set(chain)
        try:
            gather.value(offset, await work)
        except asyncio.CancelledError:
            gather.error(offset, self._cancelled())
        except Exception as raised:  # noqa: BLE001 - a user's method may raise anything
            gather.error(offset, self._error_of(raised))
        id = chain[-1]
        self._tasks.pop(id, None)
        del self._lone[key]
        box = self._boxes.get(key)
        if box is not None:
            box.end(id)
            self._begin(key)
        if not gather.left:
            gc.enable()

    def _one_of_many(self, message: CallMany, offset: int, gather: Gather) -> None:
        id = message.id + offset
        self._gathers[id] = (gather, offset)
        self._enqueue(
            Call(
                id,
                message.group,
                message.first + offset,
                message.method,
                message.arguments,
                message.needs,
                message.chain,
            )
        )

    def _shared_arguments(self, body: bytes) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
        """Arguments that all agents may share, since nobody can change them; else None."""
        try:
            args, kwargs = self._arguments(body, {})
        except Exception:  # noqa: BLE001 - each call tells of it
            return None
        if all(map(_immutable, (*args, *kwargs.values()))):
            return args, kwargs
        return None

    # --- results

    def _encoded(self, id: int, value: Any) -> Any:
        """A result as it travels; of a call that is one of many, the gather encodes it."""
        if id in self._gathers:
            return value
        return b"" if value is None else self._codec.encode(value, path="result")

    def _finish(self, id: int, value: Any, error: RemoteError | None) -> None:
        gathered = self._gathers.pop(id, None)
        if gathered is None:
            self._outcomes.end(id, value, error)
            return
        gather, offset = gathered
        if error is not None:
            gather.error(offset, error)
        else:
            gather.value(offset, value)

    # --- arguments

    def _made_from(self, body: bytes) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return self._arguments(body, {})

    def _arguments(
        self, body: bytes, values: dict[int, bytes]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        if not body:
            return (), {}

        def stand_in(reference: AgentRef | ResultRef) -> Any:
            if isinstance(reference, AgentRef):
                return self._proxy(reference)
            value = values[reference.call]
            return self._codec.decode(value, stand_in) if value else None

        args, kwargs = self._codec.decode(body, stand_in)
        return args, kwargs

    def _fetch(self, need: ResultRef, id: int) -> None:
        _, waiting = self._fetching.setdefault(need.call, (need.worker, []))
        waiting.append(id)
        if len(waiting) > 1:
            return
        if need.worker in self._lost:
            message = self._lost[need.worker]
            self._loop.call_soon(self._fetched, Value(need.call, None, _gone(message)))
        elif need.worker == self._number:
            self._outcomes.ask(need.call, self._number)
        else:
            self._out(need.worker, Fetch(need.call, self._number))

    def _fetched(self, value: Value) -> None:
        _, waiting = self._fetching.pop(value.id, (0, []))
        for id in waiting:
            queued = self._queued.get(id)
            if queued is None:
                continue
            key = _key(queued.call.group, queued.call.index)
            if value.error is not None:
                self._unqueue(queued, value.error)
            else:
                queued.values[value.id] = value.value or b""
                queued.entry.missing -= 1
            self._begin(key)

    # --- ends

    def _cancel(self, id: int) -> None:
        queued = self._queued.get(id)
        if queued is not None:
            self._unqueue(queued, self._cancelled())
            self._begin(_key(queued.call.group, queued.call.index))
        elif id in self._tasks:
            # Later, so that the task has begun: one that is cancelled before never runs its end.
            self._loop.call_soon(self._tasks[id].cancel)

    def _unqueue(self, queued: _Queued, error: RemoteError) -> None:
        call = queued.call
        del self._queued[call.id]
        self._boxes[_key(call.group, call.index)].remove(call.id)
        self._finish(call.id, None, error)

    def _lose(self, lost: Lost) -> None:
        self._lost[lost.worker] = lost.message
        for call, (worker, _) in list(self._fetching.items()):
            if worker == lost.worker:
                self._fetched(Value(call, None, _gone(lost.message)))

    def _cancelled(self) -> RemoteError:
        return RemoteError(CallCancelled.__name__, "the call was cancelled", "", self._where)

    def _error_of(self, error: Exception) -> RemoteError:
        if isinstance(error, PeerLost):
            return _gone(str(error))
        if isinstance(error, RemoteFailure | CouldNotBeMade):
            return error.remote
        name = type(error).__qualname__
        if type(error).__module__ != "builtins":
            name = f"{type(error).__module__}.{name}"
        text = "".join(traceback.format_exception(error, limit=20))
        return RemoteError(name, str(error), text, self._where)

    # --- messages

    def _out(self, to: int, message: ActorMessage) -> None:
        self._outbox[to].append(message)
        if not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        self._scheduled = False
        outbox, self._outbox = self._outbox, defaultdict(list)
        for to, messages in outbox.items():
            if to not in self._lost:
                self._post(to, messages)


def _key(group: int, index: int) -> int:
    return (group << 32) | index


def _gone(message: str) -> RemoteError:
    return RemoteError(PeerLost.__name__, message, "", "")


def _immutable(value: Any) -> bool:
    if type(value) in (float, int, str, bytes, bool, type(None)):
        return True
    return type(value) is tuple and all(map(_immutable, value))
