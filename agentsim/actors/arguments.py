"""Arguments from their bytes, and from the results that stand in them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from agentsim.actors.codec import BadValue, Codec
from agentsim.actors.refs import AgentRef, GroupRef, Ref, ResultRef
from agentsim.actors.wire import PLAIN

_Arguments = tuple[tuple[Any, ...], dict[str, Any]]
_NONE: Final[Mapping[int, bytes]] = MappingProxyType({})


class Arguments:
    """Reads arguments.

    Args:
        codec: of values.
        proxy: makes a proxy from a reference.
    """

    def __init__(self, codec: Codec, proxy: Callable[[AgentRef | GroupRef], Any]) -> None:
        self._codec = codec
        self._proxy = proxy

    def read(self, body: bytes, results: Mapping[int, bytes] = _NONE) -> _Arguments:
        """Positional and keyword arguments.

        Args:
            body: of `Codec.encode_call`; empty when there are none.
            results: of other calls, by their number.

        Raises:
            BadValue: the bytes are of no arguments.
        """
        if not body:
            return (), {}

        def stand_in(reference: Ref) -> Any:
            if not isinstance(reference, ResultRef):
                return self._proxy(reference)
            if reference.call not in results:
                raise BadValue(f"the result of call {reference.call} did not come with it")
            result = results[reference.call]
            return self._codec.decode(result, self._agent) if result else None

        decoded = self._codec.decode(body, stand_in)
        match decoded:
            case (tuple() as args, dict() as kwargs):
                return args, kwargs
        raise BadValue("the bytes are of no arguments")

    def shared(self, body: bytes) -> _Arguments | None:
        """Arguments that many agents may share, since nobody can change them; else None."""
        try:
            args, kwargs = self.read(body)
        except Exception:  # noqa: BLE001 - each call tells of it
            return None
        return (args, kwargs) if all(map(_immutable, (*args, *kwargs.values()))) else None

    def _agent(self, reference: Ref) -> Any:
        if isinstance(reference, ResultRef):
            raise BadValue("a result holds a placeholder, which only its owner keeps")
        return self._proxy(reference)


def _immutable(value: Any) -> bool:
    return type(value) in PLAIN or (type(value) is tuple and all(map(_immutable, value)))
