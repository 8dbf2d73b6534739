"""The agents of one worker: made, found, and what may be called on them."""

from __future__ import annotations

import gc
import inspect
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from agentsim.actors.agent import Agent, public_methods
from agentsim.actors.messages import Create, RemoteError

_log = logging.getLogger(__name__)

MANY = 10_000
"""The garbage collector would walk all agents again and again while this many begin to act."""


@dataclass(frozen=True, slots=True)
class Method:
    """A method that may be called.

    Attributes:
        waits: whether it is a coroutine, or runs in a thread.
        blocking: whether it runs in a thread.
    """

    function: Callable[..., Any]
    waits: bool
    blocking: bool


@dataclass(slots=True)
class Residents:
    """Agents that were made together and live here.

    Attributes:
        agents: index → the agent, or why it could not be made.
    """

    cls: type[Agent]
    agents: dict[int, Agent | RemoteError] = field(default_factory=dict)
    _allowed: frozenset[str] = frozenset()
    _methods: dict[str, Method | None] = field(default_factory=dict)

    @property
    def concurrent(self) -> bool:
        """Whether calls of one agent run side by side."""
        return self.cls.concurrent

    def method(self, name: str) -> Method | None:
        """The method of this name, None when the class has none that may be called."""
        if name not in self._methods:
            found = None
            if name in self._allowed:
                function = _function(self.cls, name)
                is_async = inspect.iscoroutinefunction(function)
                blocking = self.cls.blocking and not is_async
                found = Method(function, is_async or blocking, blocking)
            self._methods[name] = found
        return self._methods[name]

    def called(self, index: int, name: str) -> tuple[Agent, Method]:
        """An agent and its method.

        Raises:
            CouldNotBeMade: the agent's constructor failed.
            AttributeError: its class has no method of this name that may be called.
        """
        agent = self.agents[index]
        if isinstance(agent, RemoteError):
            raise CouldNotBeMade(agent)
        method = self.method(name)
        if method is None:
            raise AttributeError(f"{self.cls.__qualname__} has no method `{name}`")
        return agent, method


def _function(cls: type[Agent], name: str) -> Callable[..., Any]:
    """What is called with the agent and the arguments."""
    function: Callable[..., Any] = getattr(cls, name)
    if not isinstance(inspect.getattr_static(cls, name), staticmethod | classmethod):
        return function
    if inspect.iscoroutinefunction(function):

        async def waits(_: Agent, *args: Any, **kwargs: Any) -> Any:
            return await function(*args, **kwargs)

        return waits
    return lambda _, *args, **kwargs: function(*args, **kwargs)


class CouldNotBeMade(Exception):
    """An agent's constructor failed.

    Attributes:
        remote: how.
    """

    def __init__(self, remote: RemoteError) -> None:
        super().__init__(remote.message)
        self.remote = remote


class House:
    """All groups of one worker.

    Args:
        find: class path → class, in the allowed modules alone.
        arguments: bytes → positional and keyword arguments.
        error_of: an exception as it travels.
    """

    def __init__(
        self,
        find: Callable[[str], type[Agent]],
        arguments: Callable[[bytes], tuple[tuple[Any, ...], dict[str, Any]]],
        error_of: Callable[[BaseException], RemoteError],
    ) -> None:
        self._find = find
        self._arguments = arguments
        self._error_of = error_of
        self._groups: dict[int, Residents] = {}
        self._dropped: set[int] = set()

    def __len__(self) -> int:
        return sum(len(group.agents) for group in self._groups.values())

    def group(self, number: int) -> Residents | None:
        """A group, as far as it lives here."""
        return self._groups.get(number)

    def dropped(self, number: int) -> bool:
        """Whether a group was here and is not any more."""
        return number in self._dropped

    def drop(self, number: int) -> None:
        """Forget a group."""
        group = self._groups.pop(number, None)
        self._dropped.add(number)
        if group is not None and len(group.agents) >= MANY:
            gc.unfreeze()  # see `add`

    def add(self, message: Create) -> None:
        """Make agents; those that cannot be made say why when they are called."""
        indices = range(message.first, message.first + message.count)
        try:
            cls = self._find(message.path)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - a module may raise anything
            refused = self._error_of(error)
            _log.warning("cannot make agents of %s: %s", message.path, refused.message)
            group = self._groups.setdefault(message.group, Residents(Agent))
            group.agents.update(dict.fromkeys(indices, refused))
            return
        if message.group not in self._groups:
            self._groups[message.group] = Residents(cls, _allowed=public_methods(cls))
        group = self._groups[message.group]
        shared = len(message.arguments) == 1  # also of one agent alone
        for place, index in enumerate(indices):
            group.agents[index] = self._make(cls, message.arguments[0 if shared else place])
        if message.count >= MANY:
            gc.freeze()  # they stay; the collector need not walk them again and again

    def _make(self, cls: type[Agent], body: bytes) -> Agent | RemoteError:
        try:
            args, kwargs = self._arguments(body)
            # Past the metaclass, which remembers how an object was made so that it can move.
            agent: Agent = type.__call__(cls, *args, **kwargs)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - so may a user's constructor
            return self._error_of(error)
        return agent
