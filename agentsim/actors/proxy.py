"""What stays at the caller of an object that lives on a worker."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Protocol, overload

from agentsim.actors.agent import Agent, public_methods
from agentsim.actors.caller import Caller
from agentsim.actors.placeholder import GroupPlaceholder, Placeholder
from agentsim.actors.refs import AgentRef, GroupRef


class Cluster(Protocol):
    """Where agents can be made."""

    def make(self, cls: type[Agent], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Proxy:
        """Make an agent on a worker."""


class Proxy:
    """Stands for one agent or environment; has its class's public methods.

    A call returns a `Placeholder` at once. A proxy may be passed to other agents and kept by them.
    """

    __slots__ = ("_caller", "_find", "_methods", "_ref")

    def __init__(self, ref: AgentRef, caller: Caller, find: Callable[[str], type[Agent]]) -> None:
        self._ref = ref
        self._caller = caller
        self._find = find
        self._methods: frozenset[str] | None = None

    def __call__(self, *args: Any, **kwargs: Any) -> Placeholder:
        return self._caller.call(self._ref, "act", args, kwargs)

    def __getattr__(self, name: str) -> Callable[..., Placeholder]:
        if name.startswith("_"):
            raise AttributeError(name)
        _check(self, name)

        def method(*args: Any, **kwargs: Any) -> Placeholder:
            return self._caller.call(self._ref, name, args, kwargs)

        return method

    def __repr__(self) -> str:
        ref = self._ref
        return f"<proxy of {ref.type} {ref.index} of group {ref.group} at worker {ref.worker}>"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Proxy):
            return NotImplemented
        return self._ref == other._ref

    def __hash__(self) -> int:
        return hash(self._ref)

    def __agentsim_ref__(self) -> AgentRef:
        return self._ref

    def _whereabouts(self) -> tuple[int, list[int]]:
        """Number of its group, and its worker."""
        return self._ref.group, [self._ref.worker]


class Group(Sequence[Proxy]):
    """Stands for agents that were made together, over all workers.

    A call on it reaches all of them in one message a worker and returns a `GroupPlaceholder`. It
    may be passed to agents and kept by them, e.g. as the children of an environment.
    """

    def __init__(
        self,
        number: int,
        type: str,
        parts: Sequence[tuple[int, int, int]],
        caller: Caller,
        find: Callable[[str], type[Agent]],
    ) -> None:
        """
        Args:
            parts: (worker, first agent, count), in order of agents.
        """
        self._number = number
        self._type = type
        self._parts = list(parts)
        self._caller = caller
        self._find = find
        self._methods: frozenset[str] | None = None

    def __len__(self) -> int:
        return sum(count for _, _, count in self._parts)

    @overload
    def __getitem__(self, index: int) -> Proxy: ...

    @overload
    def __getitem__(self, index: slice) -> list[Proxy]: ...

    def __getitem__(self, index: int | slice) -> Proxy | list[Proxy]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        place = index + len(self) if index < 0 else index
        for worker, first, count in self._parts:
            if first <= place < first + count:
                ref = AgentRef(worker, self._number, place, self._type)
                return Proxy(ref, self._caller, self._find)
        raise IndexError(f"the group has {len(self)} agents, there is none at {index}")

    def __iter__(self) -> Iterator[Proxy]:
        return (self[i] for i in range(len(self)))

    def __call__(self, *args: Any, **kwargs: Any) -> GroupPlaceholder:
        return self._all("act", *args, **kwargs)

    def __getattr__(self, name: str) -> Callable[..., GroupPlaceholder]:
        if name.startswith("_"):
            raise AttributeError(name)
        _check(self, name)
        return partial(self._all, name)

    def __agentsim_ref__(self) -> GroupRef:
        return GroupRef(self._number, self._type, tuple(self._parts))

    def _whereabouts(self) -> tuple[int, list[int]]:
        """Its number, and its workers."""
        return self._number, [worker for worker, _, _ in self._parts]

    def _all(self, method: str, *args: Any, **kwargs: Any) -> GroupPlaceholder:
        return self._caller.call_many(self._number, self._parts, method, args, kwargs)


def proxy_of(
    reference: AgentRef | GroupRef, caller: Caller, find: Callable[[str], type[Agent]]
) -> Proxy | Group:
    """What stands for an agent, or for a group, where a reference arrived."""
    if isinstance(reference, AgentRef):
        return Proxy(reference, caller, find)
    return Group(reference.group, reference.type, reference.parts, caller, find)


def _check(proxy: Proxy | Group, name: str) -> None:
    """Refuse a method that the class does not have, here and not after a journey.

    Raises:
        AttributeError: it has none of this name that may be called.
    """
    type = proxy._ref.type if isinstance(proxy, Proxy) else proxy._type
    if proxy._methods is None:
        proxy._methods = public_methods(proxy._find(type))
    if name not in proxy._methods:
        raise AttributeError(
            f"{type} has no public method `{name}`; the state of an agent elsewhere is asked for "
            "by a method of its own"
        )
