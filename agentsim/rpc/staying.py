"""What the owner of a cluster and its staying nodes say to each other.

A node that stays serves, beside the streams of runs, the stream CONTROL: one command, one answer.
Who may open it is decided below it: by a certificate of the cluster, or by the folder that the
Unix socket lies in.
"""

from __future__ import annotations

import msgspec
from msgspec import Struct

from agentsim.rpc.identity import Identity

CONTROL = "Control"
"""The stream of commands."""


class Stay(Struct, frozen=True):
    """Makes a node stay when its run has ended, and serve several at once.

    Attributes:
        cluster: its name, for messages.
        host: the host's name in the hostfile.
        slots: worker processes that it may have at once, over all runs; None: any number.
        idle_s: it ends by itself after so long without a run.
    """

    cluster: str
    host: str
    slots: int | None
    idle_s: float


# --- commands


class OpenRun(Struct, frozen=True, tag=True):
    """A run is about to connect.

    Attributes:
        run_id: what its streams will join.
        name: for people.
        version: of agentsim, at the orchestrator; another one is refused.
        directory: the run's, as its orchestrator names it. An earlier run there whose orchestrator
            has left is ended first: this one goes on with it.
        log_dir: where the run's workers log, when it is on this machine; else the node chooses.
        folder: that the orchestrator works in, when it is on this machine; names of files of models
            are from there.
        api_keys: of model endpoints, by the name of the variable that holds each.
        lease_s: how long the run lives without its orchestrator.
    """

    run_id: str
    name: str
    version: str
    directory: str = ""
    log_dir: str = ""
    folder: str = ""
    api_keys: dict[str, str] = {}
    lease_s: float = 60.0


class EndRun(Struct, frozen=True, tag=True):
    """End a run: its workers go, model servers stay.

    Attributes:
        why: for the log, and for the orchestrator if it is there.
    """

    run_id: str
    why: str = ""


class Here(Struct, frozen=True, tag=True):
    """Say that it is there."""


class Status(Struct, frozen=True, tag=True):
    """Say how it goes; the answer is a `NodeReport`."""


class Drain(Struct, frozen=True, tag=True):
    """Take no new runs; or take them again."""

    on: bool = True


class ReadLog(Struct, frozen=True, tag=True):
    """Give a part of the node's log.

    Attributes:
        offset: bytes from the start; below 0: from the end.
    """

    offset: int = 0


class TakeLogs(Struct, frozen=True, tag=True):
    """Give the logs of a run that has ended here, and keep them no longer; the answer is `Logs`.

    Attributes:
        run_id: of a run whose workers logged where the node chose.
    """

    run_id: str


class Renew(Struct, frozen=True, tag=True):
    """Show this identity to whoever connects from now on."""

    identity: Identity


class EndNode(Struct, frozen=True, tag=True):
    """End the node, its runs and its model servers."""


Command = OpenRun | EndRun | Here | Status | Drain | ReadLog | TakeLogs | Renew | EndNode


# --- answers


class Refused(Struct, frozen=True, tag=True):
    """The command was not carried out.

    Attributes:
        kind: name of the error class of `errors` to raise.
    """

    kind: str
    message: str


class Carried(Struct, frozen=True, tag=True):
    """The command was carried out.

    Attributes:
        what: was done, in a few words; may be empty.
    """

    what: str = ""


class Opened(Struct, frozen=True, tag=True):
    """The run may connect.

    Attributes:
        log_dir: where its workers log, on the node's machine.
    """

    log_dir: str


class LogPart(Struct, frozen=True, tag=True):
    """A part of the node's log.

    Attributes:
        end: offset behind it.
    """

    data: bytes
    end: int


class Logs(Struct, frozen=True, tag=True):
    """The ends of logs, by file name."""

    files: dict[str, bytes]


class WorkerReport(Struct, frozen=True):
    """A worker process.

    Attributes:
        agents: that it hosts, as it said last.
        cpu: share of one CPU; 1 is all of it.
        memory_bytes: resident.
        silent_s: since its last sign of life.
    """

    worker: int
    pid: int
    agents: int
    cpu: float
    memory_bytes: int
    silent_s: float


class RunReport(Struct, frozen=True):
    """A run, as one of its nodes sees it.

    Attributes:
        up_s: since it was opened.
        away_s: since its orchestrator was last connected; 0 while it is.
        lease_s: how long it lives without.
    """

    run_id: str
    name: str
    up_s: float
    away_s: float
    lease_s: float
    workers: list[WorkerReport]


class ServerReport(Struct, frozen=True):
    """A model server, ours or at a URL.

    Attributes:
        pid: of ours; 0 for another's.
        runs: that use it.
        state: `idle`, `serving`, `stuck` (requests and no replies) or `ended`.
        in_flight: requests at the server.
        waiting: requests that wait for a place there.
        tokens_per_s: of replies in the last 10 s.
        quiet_s: since the last reply, while there are requests.
    """

    model: str
    url: str
    pid: int
    runs: list[str]
    state: str
    up_s: float
    in_flight: int
    waiting: int
    tokens_per_s: float
    quiet_s: float
    memory_bytes: int = 0


class GpuReport(Struct, frozen=True):
    """A GPU.

    Attributes:
        busy: share of the time that it worked, as its driver says.
        errors: what is wrong with it; empty when nothing is known.
    """

    index: int
    name: str
    memory_used_bytes: int
    memory_bytes: int
    busy: float
    errors: str = ""


class NodeReport(Struct, frozen=True, tag=True):
    """How a staying node and its machine are.

    Attributes:
        idle_s: since the last run has ended; 0 while there is one.
        ends_in_s: when it will end by itself if no run comes; None while there is one.
        cpu: share of all CPUs that is busy.
        load: average over a minute.
        certificate_until: when its certificate ends, ISO 8601; empty on a Unix socket.
    """

    host: str
    hostname: str
    version: str
    pid: int
    up_s: float
    idle_s: float
    ends_in_s: float | None
    slots: int | None
    draining: bool
    cpus: int
    cpu: float
    load: float
    memory_used_bytes: int
    memory_bytes: int
    runs: list[RunReport] = []
    servers: list[ServerReport] = []
    gpus: list[GpuReport] = []
    certificate_until: str = ""


Answer = Refused | Carried | Opened | LogPart | Logs | NodeReport

_commands: msgspec.msgpack.Decoder[Command] = msgspec.msgpack.Decoder(Command)
_answers: msgspec.msgpack.Decoder[Answer] = msgspec.msgpack.Decoder(Answer)


def read_command(body: bytes) -> Command:
    """The command in a message.

    Raises:
        msgspec.DecodeError: there is none.
    """
    return _commands.decode(body)


def read_answer(body: bytes) -> Answer:
    """The answer in a message.

    Raises:
        msgspec.DecodeError: there is none.
    """
    return _answers.decode(body)
