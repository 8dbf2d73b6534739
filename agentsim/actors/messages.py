"""What the two halves of the actor runtime say to each other.

The calling half (`caller`) sends Create, Call, CallMany, Fetch, Release and Cancel; the executing
half (`host`) answers with Done, DoneMany and Value. Values are opaque bytes of `codec` here.

Messages never hold each other, so the garbage collector need not look at them.
"""

from __future__ import annotations

import msgspec
from msgspec import Struct

from agentsim.actors.refs import ResultRef

CENTRE = -1
"""The user's program, beside the workers that are numbered from 0."""

_CALLER_SHIFT = 40


def call_id(caller: int, count: int) -> int:
    """A call's number, unique in a run: who calls, and a count of that caller's calls."""
    return ((caller + 1) << _CALLER_SHIFT) | count


def caller_of(call: int) -> int:
    """Who made a call: a worker's index or CENTRE."""
    return (call >> _CALLER_SHIFT) - 1


class RemoteError(Struct, frozen=True, array_like=True):
    """An exception on its way.

    Attributes:
        type: qualified name of its class, e.g. `ValueError` or `my_agents.Refused`.
        message: its text.
        traceback: where it was raised, as text.
        where: worker and host.
    """

    type: str
    message: str
    traceback: str
    where: str


class Setup(Struct, frozen=True, array_like=True, tag="setup"):
    """What a worker needs before it hosts actors.

    Attributes:
        modules: names of the modules whose classes may be used.
        sources: file name, relative to a folder on the import path → contents.
        workers: worker index → its host's name, for error messages.
        threads: most threads for agents that block.
    """

    modules: list[str]
    sources: dict[str, bytes]
    workers: list[str]
    threads: int


class Create(Struct, frozen=True, array_like=True, tag="create"):
    """Make the agents `first`, `first + 1`, … of a group, one for each arguments' bytes.

    Attributes:
        arguments: bytes of (positional, keyword) for each agent; a single one with `count`
            above 1 serves all.
    """

    group: int
    path: str
    first: int
    count: int
    arguments: list[bytes]


class Drop(Struct, frozen=True, array_like=True, tag="drop"):
    """A group is not needed any more."""

    group: int


class Call(Struct, frozen=True, array_like=True, gc=False, tag="call"):
    """Call a method of one agent.

    Attributes:
        arguments: bytes of (positional, keyword).
        needs: results that stand in the arguments and must be fetched first.
        chain: the calls that led to this one, outermost first; agents in it may be re-entered.
    """

    id: int
    group: int
    index: int
    method: str
    arguments: bytes
    needs: tuple[ResultRef, ...] = ()
    chain: tuple[int, ...] = ()


class CallMany(Struct, frozen=True, array_like=True, gc=False, tag="many"):
    """Call a method of the agents `first` to `first + count - 1` of a group, same arguments.

    The call of agent `first + i` has the number `id + i`.
    """

    id: int
    group: int
    first: int
    count: int
    method: str
    arguments: bytes
    needs: tuple[ResultRef, ...] = ()
    chain: tuple[int, ...] = ()


class Done(Struct, frozen=True, array_like=True, gc=False, tag="done"):
    """A call has ended.

    Attributes:
        value: its result; None when it is large and waits to be fetched, or with an error.
        error: why it failed.
    """

    id: int
    value: bytes | None = None
    error: RemoteError | None = None


class DoneMany(Struct, frozen=True, array_like=True, gc=False, tag="dones"):
    """Calls of one CallMany have ended.

    Attributes:
        id: of the CallMany.
        offsets: uint32 little-endian, which of its calls.
        plain: their results as one list, when all are plain values.
        values: their results otherwise.
        errors: offset → error, of those that failed; their place in the column means nothing.
    """

    id: int
    offsets: bytes
    plain: bytes | None = None
    values: list[bytes] | None = None
    errors: dict[int, RemoteError] = {}


class Fetch(Struct, frozen=True, array_like=True, gc=False, tag="fetch"):
    """Send a call's result to `to`, as soon as there is one."""

    id: int
    to: int


class Value(Struct, frozen=True, array_like=True, gc=False, tag="value"):
    """A result that was fetched."""

    id: int
    value: bytes | None = None
    error: RemoteError | None = None


class Release(Struct, frozen=True, array_like=True, gc=False, tag="release"):
    """Results that nobody will ask for any more."""

    ids: list[int]


class Cancel(Struct, frozen=True, array_like=True, gc=False, tag="cancel"):
    """Calls that need not be carried out."""

    ids: list[int]


class Lost(Struct, frozen=True, array_like=True, tag="lost"):
    """A worker is gone, and with it its agents and results."""

    worker: int
    message: str


ActorMessage = (
    Setup
    | Create
    | Drop
    | Call
    | CallMany
    | Done
    | DoneMany
    | Fetch
    | Value
    | Release
    | Cancel
    | Lost
)

# Made once: to make it takes longer than to read a message with it.
_DECODER = msgspec.msgpack.Decoder(list[ActorMessage])


def read_messages(body: bytes) -> list[ActorMessage]:
    """The messages in the body of an envelope.

    Raises:
        msgspec.DecodeError: the bytes are not such messages.
    """
    return _DECODER.decode(body)
