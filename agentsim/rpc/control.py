"""Messages that start, watch and stop the programs of a run. See `messages` for the game's."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from agentsim.rpc.messages import Observation


class NodeStart(Struct, frozen=True):
    """What a node is to start.

    Attributes:
        host: the host's name in the hostfile.
        first_worker: index of the node's first worker over all hosts.
        workers: how many.
        model: JSON of the scenario's model, None when it is scripted (workers play it).
    """

    host: str
    first_worker: int
    workers: int
    model: str | None


class NodeReady(Struct, frozen=True):
    """A node's workers and model server are up.

    Attributes:
        pids: of the workers, in order.
        structured: whether the model's server enforces a JSON schema (found by trying).
        endpoints: base URLs of the model servers.
        in_flight: requests that the endpoints take at once.
    """

    pids: list[int]
    structured: bool = False
    endpoints: list[str] = []
    in_flight: int = 1


class Failure(Struct, frozen=True):
    """Something that ends the run.

    Attributes:
        kind: name of the error class of `errors` to raise at the orchestrator; `Bug` for an
            unexpected exception.
        message: what happened, where, and the next step.
        traceback: of an unexpected exception; empty otherwise.
    """

    kind: str
    message: str
    traceback: str = ""


class WorkerSetup(Struct, frozen=True):
    """What a worker needs to know of the run.

    Attributes:
        scenario: JSON of the scenario, the game's fields filled in.
        format: how replies are asked for and read.
        window: requests that this worker may have in flight.
    """

    scenario: str
    format: Literal["json", "text"]
    window: int


class Enrol(Struct, frozen=True):
    """Agents that a worker hosts in one session: `first` to `first + count - 1`.

    More than one message may enrol agents of a session; each goes on where the last one ended.

    Attributes:
        backgrounds: their persona texts, in order; empty when no prompt shows them.
    """

    session: int
    first: int
    count: int
    backgrounds: list[str] = []


class Retire(Struct, frozen=True):
    """A session has ended; its agents are not asked again."""

    session: int


class Ask(Struct, frozen=True):
    """All of a worker's agents of one session are to act."""

    observation: Observation


class Hello(Struct, frozen=True):
    """A worker's first message on each of its two connections to the node.

    Attributes:
        stream: `Data` or `Pulse`.
        token: the secret that the node gave to the worker on its stdin.
    """

    worker: int
    pid: int
    stream: str
    token: str


class Pulse(Struct, frozen=True):
    """A sign of life, sent each second by the event loop that does the work.

    Attributes:
        silent_s: seconds since the last pulse of each worker (node → orchestrator only).
        in_flight: requests to language models under way.
        tokens: prompt and completion tokens so far.
    """

    silent_s: list[float] = []
    in_flight: int = 0
    tokens: int = 0


class NodeConfig(Struct, frozen=True):
    """First line on a node's stdin, as JSON. What is secret travels here and nowhere else.

    Attributes:
        address: where the node listens, as a gRPC target.
        folder: private folder (0700) for Unix sockets.
        log_dir: where the logs of workers and model servers go.
        api_key: of the model's endpoint; None when it needs none.
    """

    address: str
    folder: str
    log_dir: str
    api_key: str | None = None


class WorkerConfig(Struct, frozen=True):
    """First line on a worker's stdin, as JSON.

    Attributes:
        socket: the node's Unix socket.
        token: what the worker's hello must show.
    """

    socket: str
    worker: int
    token: str
