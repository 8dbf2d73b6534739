"""What users write: agents and environments, as plain classes."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from agentsim.errors import UserError

if TYPE_CHECKING:
    from agentsim.actors.proxy import Cluster, Proxy

Function = TypeVar("Function", bound=Callable[..., Any])

_EVENT = "__agentsim_event__"


class CannotMove(UserError):
    """An object cannot be distributed, and why."""


def on(event: str) -> Callable[[Function], Function]:
    """Make a method a listener: it is called with the payload when `event` reaches the object."""

    def mark(function: Function) -> Function:
        setattr(function, _EVENT, event)
        return function

    return mark


class _Remembers(type):
    """Classes whose instances remember how they were made, and what they were like then."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        self = super().__call__(*args, **kwargs)
        self._agentsim_made = (args, kwargs, _state(self))
        return self


class Agent(metaclass=_Remembers):
    """Somebody who acts. Subclass it and write `act`, plain or `async`.

    One agent handles one call at a time, in order of arrival; a call that comes back to it along
    the chain of calls that it waits for is let in. Plain methods run on the worker's loop and
    should be short; set `blocking = True` for a class whose methods block (they run in a bounded
    pool of threads), or place each agent in a process of its own.

    Attributes:
        blocking: whether methods block.
        concurrent: whether calls run side by side; only `Environment` sets it.
    """

    blocking: ClassVar[bool] = False
    concurrent: ClassVar[bool] = False

    _agentsim_made: tuple[tuple[Any, ...], dict[str, Any], dict[str, Any]]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """`agent(x)` is `agent.act(x)`."""
        return self.act(*args, **kwargs)

    def act(self, *args: Any, **kwargs: Any) -> Any:
        """What the agent does; subclasses say it."""
        raise TypeError(f"{type(self).__qualname__} has no method `act`")

    async def handle(self, event: str, payload: Any = None) -> list[Any]:
        """Give an event to the listeners that are marked with `on(event)`.

        Returns:
            What they returned, in order of their names; empty when nobody listens.
        """
        results = []
        for name in listeners(type(self)).get(event, ()):
            listener = getattr(self, name)
            if self.blocking and not inspect.iscoroutinefunction(listener):
                result = await asyncio.to_thread(listener, payload)
            else:
                result = listener(payload)
            results.append(await result if inspect.isawaitable(result) else result)
        return results

    def to_dist(self, cluster: Cluster) -> Proxy:
        """Move this object to a worker; a proxy stays.

        Only the class and the arguments of its construction travel.

        Args:
            cluster: where to: a cluster, one of its workers (`cluster.worker(0)`), or a process of
                its own (`cluster.process`).

        Raises:
            CannotMove: its state has changed since it was made, so it would not arrive as it is.
        """
        args, kwargs, state = self._agentsim_made
        for name, value in _state(self).items():
            if name not in state or not _same(state[name], value):
                raise CannotMove(
                    f"{type(self).__qualname__}.{name} has changed since the object was made, and "
                    "only what it was made from travels; move it first, or pass the value to its "
                    "constructor"
                )
        return type(self).on(cluster, *args, **kwargs)

    @classmethod
    def on(cls, cluster: Cluster, /, *args: Any, **kwargs: Any) -> Proxy:
        """Make an agent straight on a worker; the other arguments are the constructor's.

        Args:
            cluster: as for `to_dist`.

        Raises:
            CannotTravel: an argument cannot be sent.
        """
        return cluster.make(cls, args, kwargs)


class Environment(Agent):
    """Shared state behind calls: calls run side by side, each plain method as one step.

    Members and children are proxies; `emit` tells them of events.
    """

    concurrent: ClassVar[bool] = True

    async def emit(self, event: str, payload: Any = None, *, to: Any) -> list[Any]:
        """Tell agents or environments of an event, side by side.

        Args:
            to: proxies, or a group.

        Returns:
            What the listeners of each returned, in the order of `to`: a list for each.
        """
        from agentsim.actors.proxy import Group  # it needs this module

        if isinstance(to, Group):
            answers: list[Any] = await to.handle(event, payload)
            return answers
        placeholders = [proxy.handle(event, payload) for proxy in to]
        return [await placeholder for placeholder in placeholders]


def listeners(cls: type) -> dict[str, list[str]]:
    """Event → names of the methods that listen to it."""
    found: dict[str, list[str]] = {}
    for name in sorted(dir(cls)):
        event = getattr(getattr(cls, name, None), _EVENT, None)
        if isinstance(event, str):
            found.setdefault(event, []).append(name)
    return found


def public_methods(cls: type) -> frozenset[str]:
    """What may be called from elsewhere: methods without a leading underscore."""
    return frozenset(
        name
        for name in dir(cls)
        if not name.startswith("_")
        and name not in ("to_dist", "on")
        and callable(getattr(cls, name))
        and not isinstance(getattr(cls, name), type)
    )


def type_path(cls: type) -> str:
    """`module:qualname` of a class.

    Raises:
        CannotMove: the class cannot be found by a name elsewhere.
    """
    if cls.__module__ == "__main__" or "<locals>" in cls.__qualname__:
        raise CannotMove(
            f"{cls.__qualname__} is defined in {cls.__module__}, where workers cannot find it; put "
            "the class at the top level of a module and name it in `modules`"
        )
    return f"{cls.__module__}:{cls.__qualname__}"


def _state(self: object) -> dict[str, Any]:
    """The object's attributes, copied one level deep, so that a list that grows is noticed."""
    names = list(getattr(self, "__dict__", {}))
    for cls in type(self).__mro__:
        slots = cls.__dict__.get("__slots__", ())
        names += [slots] if isinstance(slots, str) else list(slots)
    return {
        name: _copied(getattr(self, name))
        for name in names
        if name not in ("_agentsim_made", "__dict__", "__weakref__") and hasattr(self, name)
    }


def _copied(value: Any) -> Any:
    if type(value) in (list, dict, set, bytearray):
        return value.copy()
    return value


def _same(before: Any, now: Any) -> bool:
    if before is now:
        return True
    try:
        return type(before) is type(now) and bool(before == now)
    except Exception:  # noqa: BLE001 - a comparison of the user's may do anything
        return False
