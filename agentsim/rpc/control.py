"""Messages that start, watch and stop the programs of a run. See `messages` for the game's."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

from agentsim.logs import LogSettings
from agentsim.rpc.identity import Identity
from agentsim.rpc.messages import Completion, Groups, Observation
from agentsim.rpc.staying import Stay


class Join(Struct, frozen=True):
    """First message of the orchestrator on each data and pulse stream.

    Attributes:
        run_id: the run's; names whom the stream is for, where a node serves several runs.
        epoch: of the orchestrator's program: one that resumes a run has a greater one, and so
            begins anew at the nodes.
        connection: counts the connections of one epoch, from 1; a smaller one than the last is a
            late one, and refused.
        received: messages of the node that have arrived over earlier connections.
        resumes: whether the node has ever answered this epoch; a node that knows nothing of it
            then refuses, since what it had is gone.
    """

    run_id: str
    epoch: int
    connection: int
    received: int = 0
    resumes: bool = False


class Joined(Struct, frozen=True):
    """A node's answer to a `Join` on a data stream.

    Attributes:
        received: messages of the orchestrator that have arrived over earlier connections.
    """

    received: int


class Refused(Struct, frozen=True):
    """A node's other answer to a `Join`; the stream ends, and nothing else is disturbed."""

    reason: str


class NodeStart(Struct, frozen=True):
    """What a node is to start.

    Attributes:
        host: the host's name in the hostfile.
        first_worker: index of the node's first worker over all hosts.
        workers: how many; may be 0, for a node that only calls models.
        models: JSON of each language model by the name that requests use; none for scripted
            players, which workers play.
    """

    host: str
    first_worker: int
    workers: int
    models: dict[str, str] = {}


class ModelFile(Struct, frozen=True):
    """The weights that a node's server has loaded.

    Attributes:
        name: of the file.
        bytes: its size.
        sha256: of all of it, in hexadecimal; or, where `whole` is false, of its beginning and end.
    """

    name: str
    bytes: int
    sha256: str
    whole: bool = True


class ModelReady(Struct, frozen=True):
    """A language model of a node answers.

    Attributes:
        structured: whether its servers enforce a JSON schema (found by trying).
        endpoints: base URLs of the servers.
        in_flight: requests that they take at once.
        file: the weights, where the node serves them itself.
        about: what the servers say of the model; see `EndpointPool.about`.
    """

    structured: bool = False
    endpoints: list[str] = []
    in_flight: int = 1
    file: ModelFile | None = None
    about: dict[str, Any] = {}


class NodeReady(Struct, frozen=True):
    """A node's workers and model servers are up.

    Attributes:
        pids: of the workers, in order.
        models: by name.
    """

    pids: list[int]
    models: dict[str, ModelReady] = {}


class ServeModels(Struct, frozen=True):
    """The language models that a node is to serve from now on, and no others.

    Attributes:
        models: JSON of each by the name that requests use. What was served before and is among
            them goes on; the servers of others are stopped.
    """

    models: dict[str, str]


class ModelsReady(Struct, frozen=True):
    """A node serves what `ServeModels` named.

    Attributes:
        models: by name.
    """

    models: dict[str, ModelReady]


class Recordings(Struct, frozen=True):
    """Replies of an earlier run, which a model of a node gives again.

    Attributes:
        model: name of the node's model.
        replies: some of them; each message is of bounded size.
    """

    model: str
    replies: list[Completion]


class Failure(Struct, frozen=True):
    """Something that ends the run.

    Attributes:
        kind: name of the error class of `errors` to raise at the orchestrator; `Bug` for an
            unexpected exception.
        message: what happened, where, and the next step.
        traceback: of an unexpected exception; empty otherwise.
        workers: indices of workers that are gone.
    """

    kind: str
    message: str
    traceback: str = ""
    workers: list[int] = []


class Spawn(Struct, frozen=True):
    """Workers that a node is to start, or to end, while the run goes on."""

    workers: list[int]


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
        groups: the session's groups, with the codes of these agents; None when there are none.
    """

    session: int
    first: int
    count: int
    backgrounds: list[str] = []
    groups: Groups | None = None


class Retire(Struct, frozen=True):
    """A session has ended; its agents are not asked again."""

    session: int


class Recall(Struct, frozen=True):
    """What agents were told and did in a round that was played before their worker had them.

    Rounds are recalled in order, before anything is asked. More than one message may be about a
    round.

    Attributes:
        observations: what the round told, to each of the groups that are to know it.
        agents: uint32, who remembers something; empty where memory holds nothing.
        values: float64, the number of each; nan where its final action was not valid.
        texts: the reply that each number was read from; empty where memory holds numbers alone.
    """

    observations: list[Observation]
    agents: bytes = b""
    values: bytes = b""
    texts: list[str] = []


class Tried(Struct, frozen=True, array_like=True):
    """How far an agent is in a round that is open.

    Attributes:
        attempts: that were made and read; the next one follows.
        refused: the status of the latest of them that had a reply; empty when none had.
    """

    agent: int
    attempts: int
    refused: str


class Ask(Struct, frozen=True):
    """All of a worker's agents of one session are to act, but those that have.

    Attributes:
        done: uint32, agents that have acted on it already.
        tried: agents that were asked already and have not acted.
    """

    observation: Observation
    done: bytes = b""
    tried: list[Tried] = []


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
    """A sign of life, sent each half second by the event loop that does the work.

    Attributes:
        silent_s: seconds since the last pulse, by worker (node → orchestrator only).
        in_flight: requests to language models under way.
        tokens: prompt and completion tokens so far.
        agents: that the worker hosts (worker → node only).
    """

    silent_s: dict[int, float] = {}
    in_flight: int = 0
    tokens: int = 0
    agents: int = 0


class NodeConfig(Struct, frozen=True):
    """First line on a node's stdin, as JSON. What is secret travels here and nowhere else.

    Attributes:
        address: where the node listens; see `streams.serve`. `unix:` is a socket in the folder.
        folder: private folder (0700) for Unix sockets; empty: the node makes one, and logs into it
            rather than to the paths given here. It belongs to who starts nodes from elsewhere.
        log_dir: where the logs of workers and model servers go.
        logs_come_to: folder of the orchestrator's machine that they come to at the end, as
            messages name it; empty: they stay where they are.
        api_keys: of model endpoints, by the name of the variable that holds each.
        identity: for mutual TLS; None only on a Unix socket.
        log: how the node logs; its workers do likewise.
        lease_s: None: the node ends when its stdin does (its launcher is on the same machine). A
            number: the end of stdin means nothing; the node ends when no orchestrator has been
            connected for that many seconds of its own time, or when it is told to.
        stay: makes the node stay when its run has ended; None: it ends with it.
    """

    address: str
    folder: str
    log_dir: str
    logs_come_to: str = ""
    api_keys: dict[str, str] = {}
    identity: Identity | None = None
    log: LogSettings = LogSettings()
    lease_s: float | None = None
    stay: Stay | None = None


class Listening(Struct, frozen=True):
    """The line on a node's stdout that says that it listens, as JSON.

    Attributes:
        ready: always true; the line begins with it.
        port: the TCP port; 0 for a Unix socket.
        pid: of the node.
        version: of agentsim.
        folder: the private folder that the node has made for itself; empty: it was given one.
    """

    ready: bool
    port: int
    pid: int
    version: str
    folder: str = ""


class WorkerConfig(Struct, frozen=True):
    """First line on a worker's stdin, as JSON.

    Attributes:
        socket: the node's Unix socket.
        token: what the worker's hello must show.
        log: how it logs.
    """

    socket: str
    worker: int
    token: str
    log: LogSettings = LogSettings()


def log_name(node: str, log: str) -> str:
    """What a log of a host is called beside those of other hosts.

    Nodes and workers are numbered over all hosts; other logs get the node's name.

    Args:
        node: name of the node's log without its end, as `node-1`.
        log: file name on the host.
    """
    own = log.startswith((f"{node}.", "worker-"))
    return log if own else f"{node}-{log}"
