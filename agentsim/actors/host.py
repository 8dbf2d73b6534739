"""The executing half: hosts agents, carries calls out, keeps results until they are released."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import logging
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from agentsim.actors.agent import Agent
from agentsim.actors.arguments import Arguments
from agentsim.actors.codec import Codec
from agentsim.actors.faults import cancelled, gone, remote_error
from agentsim.actors.fetches import Fetches
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
from agentsim.actors.outbox import Outbox, Post
from agentsim.actors.outcomes import Outcomes, encode_result
from agentsim.actors.refs import AgentRef, GroupRef
from agentsim.actors.residents import MANY, House, Method, Residents
from agentsim.actors.threads import Threads, run
from agentsim.actors.wire import NUMBERS, PLAIN

_log = logging.getLogger(__name__)
# Calls of one group call that begin before the loop comes round.
_AT_ONCE = 10_000

_chain: contextvars.ContextVar[tuple[int, ...]] = contextvars.ContextVar("chain", default=())


def current_chain() -> tuple[int, ...]:
    """The calls that led to the code that runs now, outermost first."""
    return _chain.get()


@dataclass(slots=True, eq=False)
class _Queued:
    """A call that has not begun."""

    call: Call
    entry: Entry
    values: dict[int, bytes] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Many:
    """A call on many agents that begins.

    Attributes:
        arguments: that all may share; None: each reads its own.
    """

    gather: Gather
    group: Residents
    method: Method
    arguments: tuple[tuple[Any, ...], dict[str, Any]] | None


class ActorHost:
    """Hosts the agents of one worker.

    Args:
        number: of the worker.
        where: worker and host, for error messages.
        codec: of values.
        find: class path → class, in the allowed modules alone.
        post: sends messages to a worker or the centre.
        proxy: makes a proxy from a reference that stands in arguments.
        threads: for agents that block.
        abandon: cancels what calls that are interrupted have called for.
    """

    def __init__(
        self,
        number: int,
        where: str,
        codec: Codec,
        find: Callable[[str], type[Agent]],
        post: Post,
        *,
        proxy: Callable[[AgentRef | GroupRef], Any],
        threads: Threads,
        abandon: Callable[[Collection[int]], None],
    ) -> None:
        self._where = where
        self._codec = codec
        self._threads = threads
        self._abandon = abandon
        self._loop = asyncio.get_running_loop()
        self._outbox = Outbox(post, self._loop)
        self._arguments = Arguments(codec, proxy)
        self._house = House(find, self._arguments.read, self._error_of)
        self._outcomes = Outcomes(self._outbox.send)
        self._fetches = Fetches(number, self._outbox.send)
        # Calls for agents that are still on their way from the centre, by group.
        self._early: dict[int, dict[int, Call]] = {}
        # Only agents that have work have a mailbox. Those that were begun by a group call while
        # they had nothing else to do are in `_lone`, which costs less.
        self._boxes: dict[int, Mailbox] = {}
        self._lone: dict[int, int] = {}
        self._queued: dict[int, _Queued] = {}
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._gathers: dict[int, tuple[Gather, int]] = {}
        # What arrives while a call on very many agents begins; None when none does.
        self._held: list[ActorMessage] | None = None

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
        if self._held is not None:
            self._held.append(message)
            return
        match message:
            case Call():
                self._call(message)
            case CallMany():
                self._call_many(message)
            case Release(ids):
                self._outcomes.release(ids)
            case Fetch(id, to):
                self._outcomes.ask(id, to)
            case Value():
                self._fetched(message)
            case Create():
                self._house.add(message)
                for call in self._early.pop(message.group, {}).values():
                    self._enqueue(call)
            case Cancel(ids):
                self._cancel(ids)
            case Drop(group):
                self._house.drop(group)
                for call in self._early.pop(group, {}).values():
                    self._enqueue(call)
            case Lost():
                self._lose(message)
            case _:
                raise ValueError(f"a host of actors has no use for {type(message).__name__}")

    def close(self) -> None:
        """Interrupt what runs."""
        for task in self._tasks.values():
            task.cancel()
        self._threads.close()

    # --- single calls

    def _call(self, call: Call) -> None:
        if self._outcomes.begin(call.id):
            self._enqueue(call)
        else:
            _log.warning("refused a call whose number %d is taken", call.id)

    def _enqueue(self, call: Call) -> None:
        """Begin a call, now or when it may."""
        group = self._house.group(call.group)
        if group is None or call.index not in group.agents:
            self._unknown(call)
            return
        key = _key(call.group, call.index)
        if not call.needs and key not in self._boxes and key not in self._lone:
            if self._run(key, call, group, {}):
                self._boxes[key] = Mailbox({call.id})
            return
        lane = call.chain[-1] if call.chain else caller_of(call.id)
        needs = {need.call: need for need in call.needs}
        entry = Entry(call.id, lane, frozenset(call.chain), len(needs))
        self._queued[call.id] = _Queued(call, entry)
        self._box(key).add(entry)
        for need in needs.values():
            if need.worker in self._outbox.lost:
                error = gone(self._outbox.lost[need.worker])
                self._loop.call_soon(self._fetched, Value(need.call, None, error))
            self._fetches.ask(need, call.id)
        self._begin(key)

    def _unknown(self, call: Call) -> None:
        """An agent that is not here was released, or is still on its way from the centre."""
        if not self._house.dropped(call.group):
            self._early.setdefault(call.group, {})[call.id] = call
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
        if box is None:
            return
        group = self._house.group(key >> 32)
        concurrent = group is not None and group.concurrent
        while (entry := box.next(concurrent=concurrent)) is not None:
            queued = self._queued.pop(entry.id)
            if not self._run(key, queued.call, group, queued.values):
                box.end(entry.id)
        if box.idle:
            del self._boxes[key]

    def _run(self, key: int, call: Call, group: Residents | None, values: dict[int, bytes]) -> bool:
        """Carry a call out; True while it goes on."""
        chain = (*call.chain, call.id)
        value, failed, token = None, None, None
        try:
            if group is None:
                raise LookupError(f"agent {call.index} of group {call.group} was released")
            agent, method = group.called(call.index, call.method)
            args, kwargs = self._arguments.read(call.arguments, values)
            if method.waits:
                work = self._work(method, partial(method.function, agent, *args, **kwargs))
                self._go_on(key, call.id, chain, work)
                return True
            token = _chain.set(chain)
            result = method.function(agent, *args, **kwargs)
            if type(result) not in PLAIN and hasattr(type(result), "__await__"):
                self._go_on(key, call.id, chain, result)
                return True
            value = self._encoded(call.id, result)
        except BaseException as error:  # noqa: BLE001 - what is the user's may raise anything
            failed = self._error_of(error)
        finally:
            if token is not None:
                _chain.reset(token)
        self._finish(call.id, value, failed)
        return False

    def _work(self, method: Method, function: Callable[[], Any]) -> Awaitable[Any]:
        """What is awaited for the result of a method that waits."""
        if method.blocking:
            return run(self._threads, function)
        work: Awaitable[Any] = function()
        return work

    def _go_on(self, key: int, id: int, chain: tuple[int, ...], work: Awaitable[Any]) -> None:
        self._tasks[id] = self._loop.create_task(self._awaited(key, id, chain, work))

    async def _awaited(
        self, key: int, id: int, chain: tuple[int, ...], work: Awaitable[Any]
    ) -> None:
        _chain.set(chain)
        value, failed = None, None
        try:
            value = self._encoded(id, await work)
        except asyncio.CancelledError:
            failed = cancelled(self._where)
        except BaseException as error:  # noqa: BLE001 - a user's method may raise anything
            failed = self._error_of(error)
        self._finish(id, value, failed)
        self._end(key, id)

    def _end(self, key: int, id: int) -> None:
        """A call that went on has ended."""
        self._tasks.pop(id, None)
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
        send = partial(self._outbox.send, caller_of(message.id))
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
        many = _Many(gather, group, method, self._arguments.shared(message.arguments))
        if message.count >= MANY:
            # The collector would walk all that the agents need again and again, while they begin
            # and while they wait. The tasks that are made here have begun when the loop comes to
            # what is called soon after them; it leaves them alone until they have ended.
            gc.disable()
        self._begin_some(many, 0)

    def _begin_some(self, many: _Many, start: int) -> None:
        """Begin some of many calls, and the others when the loop comes round.

        A worker that begins half a million at once gives no sign of life meanwhile. What arrives
        until all have begun is held, since it came later.
        """
        end = min(start + _AT_ONCE, many.gather.call.count)
        self._begin_at_once(many, start, end)
        _chain.set(())
        if end < many.gather.call.count:
            if self._held is None:
                self._held = []
            self._loop.call_soon(self._begin_some, many, end)
            return
        if many.gather.call.count >= MANY:
            self._loop.call_soon(_collect_again, many.gather)
        held, self._held = self._held, None
        for message in held or ():
            self.take(message)  # one of them may hold up the others again

    def _begin_at_once(self, many: _Many, start: int, end: int) -> None:
        """Begin calls of agents; of those that have nothing else to do, without a mailbox."""
        gather, group, method = many.gather, many.group, many.method
        call, shared, agents = gather.call, many.arguments, group.agents
        boxes, lone, function, waits = self._boxes, self._lone, method.function, method.waits
        keys = _key(call.group, 0)
        # Results that need nothing more are handed over together.
        offsets: list[int] = []
        values: list[Any] = []
        for offset in range(start, end):
            index = call.first + offset
            agent = agents.get(index)
            key = keys | index
            if key in boxes or key in lone or not isinstance(agent, Agent):
                self._one_of_many(call, offset, gather)
                continue
            chain = (*call.chain, call.id + offset)
            if not waits:
                _chain.set(chain)  # the code of others sets it when it begins
            try:
                args, kwargs = shared or self._arguments.read(call.arguments)
                result = function(agent, *args, **kwargs)
            except BaseException as error:  # noqa: BLE001 - a user's method may raise anything
                gather.error(offset, self._error_of(error))
                continue
            if type(result) in NUMBERS:
                offsets.append(offset)
                values.append(result)
            elif waits or (type(result) not in PLAIN and hasattr(type(result), "__await__")):
                lone[key] = chain[-1]
                work = self._lone_call(chain, result, gather)
                # One name for all: a name each takes as much memory as the agent.
                self._tasks[chain[-1]] = self._loop.create_task(work, name=call.method)
            else:
                gather.value(offset, result)
        if offsets:
            gather.numbers(offsets, values)

    async def _lone_call(self, chain: tuple[int, ...], work: Any, gather: Gather) -> None:
        """Wait for one of many; what can be worked out afterwards is not kept meanwhile."""
        _chain.set(chain)
        try:
            value = await work
            gather.value(chain[-1] - gather.call.id, value)
        except asyncio.CancelledError:
            gather.error(chain[-1] - gather.call.id, cancelled(self._where))
        except BaseException as error:  # noqa: BLE001 - a user's method may raise anything
            gather.error(chain[-1] - gather.call.id, self._error_of(error))
        key = _key(gather.call.group, gather.call.first + chain[-1] - gather.call.id)
        del self._lone[key]
        self._end(key, chain[-1])

    def _one_of_many(self, message: CallMany, offset: int, gather: Gather) -> None:
        id = message.id + offset
        if id in self._gathers:
            _log.warning("refused a call whose number %d is taken", id)
            return
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

    # --- results

    def _encoded(self, id: int, value: Any) -> Any:
        """A result as it travels; of a call that is one of many, the gather encodes it."""
        return value if id in self._gathers else encode_result(self._codec, value)

    def _finish(self, id: int, value: Any, error: RemoteError | None) -> None:
        gathered = self._gathers.pop(id, None) if self._gathers else None
        if gathered is None:
            self._outcomes.end(id, value, error)
            return
        gather, offset = gathered
        if error is not None:
            gather.error(offset, error)
        else:
            gather.value(offset, value)

    # --- arguments

    def _fetched(self, value: Value) -> None:
        for id in self._fetches.come(value.id):
            queued = self._queued.get(id)
            if queued is None:
                continue
            key = _key(queued.call.group, queued.call.index)
            if value.error is not None:
                self._unqueue(queued, value.error)
            else:
                queued.values[value.id] = value.value or b""
                self._boxes[key].resolve(queued.entry)
            self._begin(key)

    # --- ends

    def _cancel(self, ids: Collection[int]) -> None:
        """Calls need not be carried out: they do not begin, or are interrupted."""
        begun = set()
        for id in ids:
            queued = self._queued.get(id)
            if queued is not None:
                self._unqueue(queued, cancelled(self._where))
                self._begin(_key(queued.call.group, queued.call.index))
            elif id in self._tasks:
                begun.add(id)
            elif self._early:
                self._cancel_early(id)
        if begun:
            # Later, so that the tasks have begun: one that is cancelled before never runs its end.
            self._loop.call_soon(self._interrupt, begun)

    def _cancel_early(self, id: int) -> None:
        for group, calls in list(self._early.items()):
            if calls.pop(id, None) is not None:
                self._finish(id, None, cancelled(self._where))
            if not calls:
                del self._early[group]

    def _interrupt(self, ids: set[int]) -> None:
        self._abandon(ids)
        for id in ids:
            if id in self._tasks:
                self._tasks[id].cancel()

    def _unqueue(self, queued: _Queued, error: RemoteError) -> None:
        call = queued.call
        del self._queued[call.id]
        self._boxes[_key(call.group, call.index)].remove(queued.entry)
        self._finish(call.id, None, error)

    def _lose(self, lost: Lost) -> None:
        self._outbox.lost[lost.worker] = lost.message
        self._outcomes.lose(lost.worker, lost.message)
        for result in self._fetches.of(lost.worker):
            self._fetched(Value(result, None, gone(lost.message)))
        early = [id for calls in self._early.values() for id in calls]
        calls = [*self._queued, *self._tasks, *early]
        self._cancel([id for id in calls if caller_of(id) == lost.worker])

    def _error_of(self, error: BaseException) -> RemoteError:
        return remote_error(error, self._where)


def _key(group: int, index: int) -> int:
    return (group << 32) | index


def _collect_again(gather: Gather) -> None:
    """The collector works again; while the calls go on, on what comes from now on."""
    if not gather.ended:
        gc.freeze()
        gather.on_end = gc.unfreeze
    gc.enable()
