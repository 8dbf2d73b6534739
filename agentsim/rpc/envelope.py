"""Envelopes: the header that the node reads to pass a message on, and the body that it does not."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import IntEnum

_HEADER = struct.Struct("<Bii")

ORCHESTRATOR = -1
NODE = -2
"""Addresses that are no worker; workers are numbered from 0 over all hosts."""

DATA = "Data"
PULSE = "Pulse"
"""The two streams between programs: what is said, and that one is alive."""


class Kind(IntEnum):
    """What a message is. Its body's type is named behind each."""

    START = 1  # orchestrator → node: control.NodeStart
    READY = 2  # node → orchestrator: control.NodeReady
    FAILED = 3  # node, worker → orchestrator: control.Failure
    ENROL = 4  # orchestrator → worker: control.Enrol
    ASK = 5  # orchestrator → worker: control.Ask
    ANSWERS = 6  # worker → orchestrator: messages.Answers
    ATTEMPTS = 7  # worker → orchestrator: list[messages.Attempt]
    REQUESTS = 8  # worker, orchestrator → node: list[messages.Request]
    COMPLETIONS = 9  # node → who asked: list[messages.Completion]
    HELLO = 10  # worker → node: control.Hello
    PULSE = 11  # worker → node, node → orchestrator: control.Pulse
    SETUP = 12  # orchestrator → worker: control.WorkerSetup
    RETIRE = 13  # orchestrator → worker: control.Retire
    SERVE = 14  # orchestrator → node: control.ServeModels
    SERVING = 15  # node → orchestrator: control.ModelsReady
    RECALL = 19  # orchestrator → worker: control.Recall
    SPAWN = 17  # orchestrator → node: control.Spawn
    END = 18  # orchestrator → node: control.Spawn
    RECORDINGS = 30  # orchestrator → node: control.Recordings
    ACTORS = 16  # orchestrator, worker → worker, orchestrator: list[actors.ActorMessage]
    JOIN = 20  # orchestrator → node, first on a stream: control.Join
    COMMAND = 40  # owner of a cluster → node that stays: staying.Command
    ANSWER = 41  # node that stays → owner of a cluster: staying.Answer
    JOINED = 21  # node → orchestrator, the answer on a data stream: control.Joined
    REFUSED = 22  # node → orchestrator, another answer: control.Refused
    ACK = 23  # on data streams, both ways: u64, how many messages were taken
    LEAVE = 24  # orchestrator → node, empty: the run is over
    STREAM = 25  # first on a Unix socket to a node: which stream, UTF-8


@dataclass(frozen=True, slots=True)
class Envelope:
    """One message on its way.

    Attributes:
        kind: what the body is.
        to: worker index, ORCHESTRATOR or NODE.
        sender: likewise.
        body: encoded message.
    """

    kind: Kind
    to: int
    sender: int
    body: bytes


class WireError(Exception):
    """Bytes that are no envelope, or a link that was cut in the middle of one."""


class UnreadableError(WireError):
    """Bytes that are no envelope: they would be none if they were sent again."""


def pack(envelope: Envelope) -> bytes:
    """Bytes of an envelope."""
    return _HEADER.pack(envelope.kind, envelope.to, envelope.sender) + envelope.body


def unpack(data: bytes) -> Envelope:
    """The envelope in `data`.

    Raises:
        UnreadableError: the bytes are no envelope.
    """
    if len(data) < _HEADER.size:
        raise UnreadableError(f"{len(data)} bytes are too few for an envelope")
    kind, to, sender = _HEADER.unpack_from(data)
    try:
        return Envelope(Kind(kind), to, sender, data[_HEADER.size :])
    except ValueError as error:
        raise UnreadableError(f"no message has kind {kind}") from error
