"""The executing half: hosts agents, carries calls out, keeps results until they are released."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import inspect
import logging
import traceback
from collections import defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from agentsim.actors.agent import Agent, public_methods
from agentsim.actors.codec import Codec
from agentsim.actors.gather import Gather
from agentsim.actors.mailbox import Entry, Mailbox
from agentsim.actors.messages import (
    ActorMessage,
    Call,
    CallMany,
    Cancel,
    Create,
    Done,
    Drop,
    Fetch,
    Lost,
    Release,
    RemoteError,
    Value,
    caller_of,
)
from agentsim.actors.placeholder import CallCancelled, RemoteFailure
from agentsim.actors.refs import AgentRef, ResultRef
from agentsim.errors import PeerLost

_log = logging.getLogger(__name__)

Post = Callable[[int, Sequence[ActorMessage]], None]
"""Sends messages to a worker or the centre, in order; called on the loop."""

# Results up to this size travel with the news that they are there; larger ones when asked for.
_INLINE_BYTES = 64 * 1024
# The garbage collector would walk all agents again and again while this many begin to act.
_MANY = 10_000

_chain: contextvars.ContextVar[tuple[int, ...]] = contextvars.ContextVar("chain", default=())


def current_chain() -> list[int]:
    """The calls that led to the code that runs now, outermost first."""
    return list(_chain.get())


@dataclass(frozen=True, slots=True)
class _Method:
    function: Callable[..., Any]
    is_async: bool
    blocking: bool


@dataclass(slots=True)
class _Group:
    """Agents that were made together.

    Attributes:
        agents: index → the agent, or why it could not be made.
    """

    cls: type[Agent]
    allowed: frozenset[str] = frozenset()
    agents: dict[int, Agent | RemoteError] = field(default_factory=dict)
    methods: dict[str, _Method | None] = field(default_factory=dict)

    def method(self, name: str) -> _Method | None:
        """The method of this name, None when the class has none that may be called."""
        if name not in self.methods:
            found = None
            if name in self.allowed:
                function = getattr(self.cls, name)
                is_async = inspect.iscoroutinefunction(function)
                found = _Method(function, is_async, self.cls.blocking and not is_async)
            self.methods[name] = found
        return self.methods[name]


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
        self._groups: dict[int, _Group] = {}
        # Only agents that have work have a mailbox. Agents that were begun by a group call while
        # they had nothing else to do are in `_lone`, which costs less.
        self._dropped: set[int] = set()
        self._early: dict[int, list[Call]] = {}
        self._boxes: dict[int, Mailbox] = {}
        self._lone: dict[int, int] = {}
        self._queued: dict[int, _Queued] = {}
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._unfinished: set[int] = set()
        self._unwanted: set[int] = set()
        self._results: dict[int, Value] = {}
        self._asked: dict[int, list[int]] = {}
        self._fetching: dict[int, tuple[int, list[int]]] = {}
        self._gathers: dict[int, tuple[Gather, int]] = {}
        self._outbox: dict[int, list[ActorMessage]] = defaultdict(list)
        self._scheduled = False
        self._lost: dict[int, str] = {}

    @property
    def agents(self) -> int:
        """Agents that live here."""
        return sum(len(group.agents) for group in self._groups.values())

    @property
    def kept(self) -> int:
        """Results that are kept for somebody."""
        return len(self._results)

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
                self._release(ids)
            case Fetch(id, to):
                self._serve(id, to)
            case Value():
                self._fetched(message)
            case Create():
                self._create(message)
            case Cancel(ids):
                for id in ids:
                    self._cancel(id)
            case Drop(group):
                self._groups.pop(group, None)
                self._dropped.add(group)
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

    # --- agents

    def _create(self, message: Create) -> None:
        self._add(message)
        for call in self._early.pop(message.group, []):
            self._enqueue(call)

    def _add(self, message: Create) -> None:
        indices = range(message.first, message.first + message.count)
        try:
            cls = self._find(message.path)
        except Exception as error:  # noqa: BLE001 - the user's module may raise anything
            refused = self._error_of(error)
            _log.warning("cannot make agents of %s: %s", message.path, refused.message)
            group = self._groups.setdefault(message.group, _Group(Agent))
            group.agents.update(dict.fromkeys(indices, refused))
            return
        group = self._groups.setdefault(message.group, _Group(cls, public_methods(cls)))
        shared = len(message.arguments) == 1  # also of one agent alone
        for place, index in enumerate(indices):
            group.agents[index] = self._make(cls, message.arguments[0 if shared else place])
        if message.count >= _MANY:
            gc.freeze()

    def _make(self, cls: type[Agent], body: bytes) -> Agent | RemoteError:
        try:
            args, kwargs = self._arguments(body, {})
            # Past the metaclass, which remembers how an object was made so that it can move.
            agent: Agent = type.__call__(cls, *args, **kwargs)
        except Exception as error:  # noqa: BLE001 - a user's constructor may raise anything
            return self._error_of(error)
        return agent

    # --- single calls

    def _enqueue(self, call: Call) -> None:
        self._unfinished.add(call.id)
        group = self._groups.get(call.group)
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
        if call.group not in self._dropped:
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
        group = self._groups.get(key >> 32)
        if box is None:
            return
        concurrent = group is not None and group.cls.concurrent
        while (entry := box.next(concurrent=concurrent)) is not None:
            queued = self._queued.pop(entry.id)
            if not self._run(key, queued):
                box.end(entry.id)
        if box.idle:
            del self._boxes[key]

    def _run(self, key: int, queued: _Queued) -> bool:
        """Carry a call out; True while it goes on."""
        call = queued.call
        try:
            group = self._groups[call.group]
            agent = group.agents[call.index]
            if isinstance(agent, RemoteError):
                self._finish(call.id, None, agent)
                return False
            method = group.method(call.method)
            if method is None:
                raise AttributeError(f"{group.cls.__qualname__} has no method `{call.method}`")
            args, kwargs = self._arguments(call.arguments, queued.values)
        except Exception as error:  # noqa: BLE001 - what a peer sent may be anything
            self._finish(call.id, None, self._error_of(error))
            return False
        function = partial(method.function, agent, *args, **kwargs)
        chain = (*call.chain, call.id)
        if method.is_async or method.blocking:
            work = self._awaited(key, call.id, chain, function, method.blocking)
            self._tasks[call.id] = self._loop.create_task(work)
            return True
        token = _chain.set(chain)
        try:
            value, error = self._encoded(call.id, function()), None
        except Exception as raised:  # noqa: BLE001 - a user's method may raise anything
            value, error = None, self._error_of(raised)
        finally:
            _chain.reset(token)
        self._finish(call.id, value, error)
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
        value, error = None, None
        try:
            if blocking:
                context = contextvars.copy_context()
                result = await self._loop.run_in_executor(self._pool, context.run, function)
            else:
                result = await function()
            value = self._encoded(id, result)
        except asyncio.CancelledError:
            error = self._cancelled()
        except Exception as raised:  # noqa: BLE001 - a user's method may raise anything
            error = self._error_of(raised)
        self._tasks.pop(id, None)
        self._finish(id, value, error)
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
        group = self._groups.get(message.group)
        method = group.method(message.method) if group is not None else None
        slow = group is None or method is None or method.blocking or group.cls.concurrent
        if slow or message.needs:
            for offset in range(message.count):
                self._one_of_many(message, offset, gather)
            return
        assert group is not None
        assert method is not None
        arguments = self._shared_arguments(message.arguments)
        if method.is_async and message.count >= _MANY:
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
            if method.is_async:
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
        self._unfinished.discard(id)
        gathered = self._gathers.pop(id, None)
        if gathered is not None:
            gather, offset = gathered
            if error is not None:
                gather.error(offset, error)
            else:
                gather.value(offset, value)
            return
        result = Value(id, value, error)
        wanted = id not in self._unwanted
        self._unwanted.discard(id)
        if wanted:
            self._results[id] = result
        inline = value is None or len(value) <= _INLINE_BYTES
        self._out(caller_of(id), Done(id, value if inline else None, error))
        for to in self._asked.pop(id, ()):
            self._out(to, result)

    def _release(self, ids: list[int]) -> None:
        for id in ids:
            if self._results.pop(id, None) is None and id in self._unfinished:
                self._unwanted.add(id)

    def _serve(self, id: int, to: int) -> None:
        """Send a result, or note who wants it.

        A result that is wanted is pinned by its caller, so a call that is not known here has not
        arrived yet: the question came by a shorter way.
        """
        if id in self._results:
            self._out(to, self._results[id])
        else:
            self._asked.setdefault(id, []).append(to)

    # --- arguments

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
            self._serve(need.call, self._number)
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
        if isinstance(error, RemoteFailure):
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
