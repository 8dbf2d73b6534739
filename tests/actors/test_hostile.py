"""What is hostile or broken is refused and logged, and nothing else is disturbed."""

import asyncio
import contextlib
import os
import socket
import stat
import struct
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from hostile_agents import Intruder, Rude
from my_agents import Echo

from agentsim.actors import RemoteFailure
from agentsim.actors.codec import Codec
from agentsim.actors.find import unpack
from agentsim.actors.messages import (
    CENTRE,
    Call,
    CallMany,
    Cancel,
    Create,
    Done,
    DoneMany,
    Drop,
    Fetch,
    Lost,
    Release,
    RemoteError,
    Setup,
    Value,
    call_id,
)
from agentsim.actors.proxy import Proxy
from agentsim.actors.refs import AgentRef, ResultRef
from agentsim.cluster import Cluster
from agentsim.errors import PeerLost
from agentsim.node.workers import Workers
from agentsim.rpc.codec import encode
from agentsim.rpc.control import Hello, Pulse, Spawn
from agentsim.rpc.envelope import DATA, NODE, ORCHESTRATOR, Envelope, Kind, pack
from agentsim.rpc.links import MAX_MESSAGE_BYTES

WAIT_S = 20
MODULES = ["my_agents", "hostile_agents"]


class Scene:
    """A cluster of two workers, an intruder on the first, and the logs."""

    def __init__(self, cluster: Cluster, logs: Path) -> None:
        self.cluster = cluster
        self.logs = logs
        self.intruder = Intruder.on(cluster.worker(0))
        self.agents = [Echo.on(cluster.worker(i)) for i in range(2)]
        self.folder = cluster._centre.nodes._nodes[0].handle.folder

    def works(self) -> None:
        """Whether both workers answer, and reach each other."""
        one, two = self.agents
        assert one.ask(two, 5).result(WAIT_S) == 5
        assert two.ask(one, 6).result(WAIT_S) == 6

    def send(self, kind: Kind, to: int, message: object, sender: int = 0) -> None:
        body = message if isinstance(message, bytes) else encode(message)
        self.intruder.send(kind.value, to, sender, body).result(WAIT_S)

    @contextlib.contextmanager
    def logged(self, file: str, text: str) -> Iterator[None]:
        """What is said meanwhile in a log; everything still works afterwards."""
        log = self.logs / file
        before = len(log.read_text())
        yield
        deadline = time.monotonic() + WAIT_S
        while text not in (said := log.read_text()[before:]):
            assert time.monotonic() < deadline, f"{text!r} is not in {said!r}"
            time.sleep(0.02)
        self.works()


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    logs = tmp_path_factory.mktemp("logs")
    with Cluster.local(workers=2, modules=MODULES, log_dir=logs) as cluster:
        scene = Scene(cluster, logs)
        scene.works()
        yield scene
        scene.works()


# --- strangers at the socket


def frame(data: bytes, length: int | None = None) -> bytes:
    return struct.pack("<I", len(data) if length is None else length) + data


def hello(worker: int, token: str) -> bytes:
    body = encode(Hello(worker, 1, DATA, token))
    return frame(pack(Envelope(Kind.HELLO, NODE, worker, body)))


STRANGERS = {
    "garbage": (frame(os.urandom(100)), "connection"),
    "no envelope": (frame(b"xx"), "broke"),
    "no hello": (frame(pack(Envelope(Kind.PULSE, NODE, 0, encode(Pulse())))), "say hello"),
    "an unreadable hello": (frame(pack(Envelope(Kind.HELLO, NODE, 0, b"\xc1"))), "cannot be read"),
    "a wrong token": (hello(0, "0" * 32), "wrong token"),
    "no such worker": (hello(77, "0" * 32), "wrong token"),
    "an oversized frame": (frame(b"", MAX_MESSAGE_BYTES + 1), "is over"),
    "a truncated frame": (frame(b"abc", 50), "cut inside a message"),
    "half a length": (b"\x01\x00", "cut inside a message"),
}


@pytest.mark.parametrize("which", STRANGERS)
def test_a_stranger_at_the_workers_socket_is_refused(scene: Scene, which: str) -> None:
    sent, said = STRANGERS[which]
    with scene.logged("node-0.log", said), socket.socket(socket.AF_UNIX) as peer:
        peer.settimeout(WAIT_S)
        peer.connect(str(scene.folder / "workers.sock"))
        peer.sendall(sent)
        peer.shutdown(socket.SHUT_WR)
        assert peer.recv(1) == b""


def test_sockets_lie_in_a_folder_of_the_user_alone(scene: Scene) -> None:
    mode = scene.folder.stat()
    assert stat.S_IMODE(mode.st_mode) == 0o700
    assert mode.st_uid == os.getuid()
    assert {p.name for p in scene.folder.iterdir()} >= {"node.sock", "workers.sock"}


async def test_another_runs_token_is_refused(tmp_path: Path, caplog: Any) -> None:
    async def take(_: Envelope) -> None:
        raise AssertionError("a stranger's message was taken")

    runs = []
    for name in ("one", "two"):
        folder = tmp_path / name
        folder.mkdir()
        runs.append(Workers(folder, folder, take, lambda *_: None))
        runs[-1].expect([0])
        await runs[-1].start([0])
    try:
        reader, writer = await asyncio.open_unix_connection(str(tmp_path / "one" / "workers.sock"))
        writer.write(hello(0, runs[1]._tokens[0]))
        assert await asyncio.wait_for(reader.read(), WAIT_S) == b""
        writer.close()
        assert "wrong token" in caplog.text
    finally:
        for run in runs:
            await run.stop()


# --- a worker that has been taken over

NOT_FOR_WORKERS = [kind for kind in Kind if kind is not Kind.ACTORS]


@pytest.mark.parametrize("kind", [k for k in NOT_FOR_WORKERS if k is not Kind.PULSE])
def test_a_worker_may_only_say_to_another_what_actors_say(scene: Scene, kind: Kind) -> None:
    with scene.logged("node-0.log", f"kind {kind.name} of worker 0 to 1"):
        scene.send(kind, 1, b"")


@pytest.mark.parametrize("kind", [Kind.READY, Kind.SERVING, Kind.COMPLETIONS, Kind.ENROL])
def test_a_worker_may_not_speak_as_the_node(scene: Scene, kind: Kind) -> None:
    with scene.logged("node-0.log", f"kind {kind.name} of worker 0 to -1"):
        scene.send(kind, ORCHESTRATOR, b"")


@pytest.mark.parametrize("kind", [Kind.SPAWN, Kind.START, Kind.END, Kind.SERVE])
def test_a_worker_may_not_command_the_node(scene: Scene, kind: Kind) -> None:
    with scene.logged("node-0.log", f"kind {kind.name} of worker 0 to -2"):
        scene.send(kind, NODE, Spawn([9]))


def test_a_worker_may_not_speak_in_anothers_name(scene: Scene) -> None:
    for sender in (1, ORCHESTRATOR, NODE, 50):
        with scene.logged("node-0.log", "in another's name"):
            scene.send(Kind.ACTORS, 1, [Drop(1)], sender)


def test_addresses_that_nobody_has_lead_nowhere(scene: Scene) -> None:
    for to in (-3, -(2**31)):
        with scene.logged("node-0.log", f"to {to}"):
            scene.send(Kind.ACTORS, to, b"")
    scene.send(Kind.ACTORS, 2**31 - 1, b"")
    scene.works()


def test_requests_that_cannot_be_read_are_refused(scene: Scene) -> None:
    with scene.logged("node-0.log", "refused requests of worker 0"):
        scene.send(Kind.REQUESTS, NODE, b"\xc1")


@pytest.mark.parametrize(
    "body", [b"", b"\xc1", os.urandom(200), encode([1, 2]), encode([["call", "x"]])]
)
def test_bodies_that_are_no_messages_are_refused(scene: Scene, body: bytes) -> None:
    with scene.logged("worker-1.log", "cannot be read"):
        scene.send(Kind.ACTORS, 1, body)
    scene.send(Kind.ACTORS, ORCHESTRATOR, body)
    scene.works()


@pytest.mark.parametrize(
    "message",
    [
        Setup(["os"], {"../x.py": b"raise SystemExit"}, ["a"], 1),
        Create(1, "os:system", 0, 1, [b""]),
        Drop(1),
        Lost(0, "ha"),
    ],
    ids=lambda message: type(message).__name__,
)
def test_only_the_centre_makes_and_ends(scene: Scene, message: object) -> None:
    with scene.logged("worker-1.log", f"refused {type(message).__name__} of worker 0"):
        scene.send(Kind.ACTORS, 1, [message])


def hostile_calls() -> dict[str, list[object]]:
    """Messages that any worker may send, with nonsense in them."""
    codec = Codec(MODULES)
    ids = (call_id(0, 10**9 + i) for i in range(10**6))

    def call(method: str, body: bytes = b"", **more: Any) -> Call:
        return Call(next(ids), more.pop("group", 2), more.pop("index", 0), method, body, **more)

    twice = call("slow", codec.encode(((0.2,), {})))
    held = call("act", b"", needs=(ResultRef(1, call_id(0, 3 * 10**9)),))
    many = next(ids)
    return {
        "private": [call("_private"), call("__init__"), call("__class__"), call("")],
        "of the class": [call("to_dist"), call("on"), call("calls"), call("name")],
        "garbage arguments": [call("act", b"\xc1"), call("act", os.urandom(50))],
        "arguments that are none": [call("act", codec.encode(v)) for v in (5, [1], (1, 2, 3))],
        "names that are none": [call("act", codec.encode(((), {5: 1})))],
        "a class that is not allowed": [
            call("act", codec.encode(((1,), {})).replace(b"\x01", b"\xc1")),
            call("act", b"\x94\xc7\x00\x01\x91\x92\xa9os:system\xa1x\x90\x01"),
        ],
        "no such agent": [call("act", group=999), call("act", index=2**40), call("act", index=-1)],
        "a number twice": [twice, twice, twice],
        "a chain that is none": [call("act", chain=(5, -1, 2**60))],
        "a result that never comes": [held, Cancel([held.id])],
        "a result that did not come": [
            call("act", codec.encode_with_refs(((ResultRef(1, 5),), {}))[0])
        ],
        "a group that is none": [CallMany(next(ids), 999, 0, 5, "act", b"")],
        "a group call with garbage": [CallMany(next(ids), 2, 0, 3, "act", b"\xc1")],
        "a group call twice": [
            CallMany(many, 2, 0, 1, "slow", codec.encode(((0.1,), {}))),
            CallMany(many, 2, 0, 1, "slow", codec.encode(((0.1,), {}))),
        ],
        "results of nobody": [
            Done(7, b"\xc1"),
            DoneMany(7, b"abc", b"\xc1"),
            Value(7, None, RemoteError("x", "y", "z", "w")),
        ],
        "numbers of nobody": [Release([1, 2, 2**60]), Cancel([-5, 3]), Fetch(-9, 77), Fetch(3, 1)],
    }


@pytest.mark.parametrize("which", hostile_calls())
def test_hostile_calls_harm_nobody_else(scene: Scene, which: str) -> None:
    victim = Echo.on(scene.cluster.worker(1), "victim")
    assert victim(0).result(WAIT_S) == 0
    messages = hostile_calls()[which]
    group = victim.__agentsim_ref__().group
    messages = [_aimed(message, group) for message in messages]
    scene.send(Kind.ACTORS, 1, messages)
    assert victim(1).result(WAIT_S) == 1
    scene.works()


def _aimed(message: Any, group: int) -> Any:
    if isinstance(message, Call | CallMany) and message.group == 2:
        fields = {name: getattr(message, name) for name in message.__struct_fields__}
        return type(message)(**{**fields, "group": group})
    return message


def test_private_methods_are_not_called(scene: Scene) -> None:
    """The proxy refuses them; so does the worker, for a peer that does not ask the proxy."""
    ref = scene.agents[1].__agentsim_ref__()
    for method in ("_private", "__init__", "to_dist", "on", "__class__", "calls"):
        placeholder = scene.cluster._caller.call(ref, method, (), {})
        with pytest.raises(RemoteFailure, match="has no method"):
            placeholder.result(WAIT_S)


@pytest.mark.parametrize(
    "result",
    [
        lambda id: Done(id, b"\xc1"),
        lambda id: Done(id, os.urandom(30) + b"\xc1"),
        lambda id: Done(id, Codec().encode_with_refs([ResultRef(0, 1)])[0]),
        lambda id: Done(id, b"\x94\xc7\x00\x01\x91\x92\xa9os:system\xa1x\x90\x01"),
    ],
)
def test_a_hostile_result_fails_its_own_call(scene: Scene, result: Callable[[int], Done]) -> None:
    slow = scene.agents[1].slow(30)
    scene.send(Kind.ACTORS, ORCHESTRATOR, [result(slow._id)])
    with pytest.raises(Exception, match="cannot be read here"):
        slow.result(WAIT_S)
    scene.cluster._caller.cancel(1, [slow._id])
    scene.works()


@pytest.mark.parametrize(
    "result",
    [
        lambda id: DoneMany(id, b"abc", b"\x90"),
        lambda id: DoneMany(id, struct.pack("<I", 9), Codec().encode([1])),
        lambda id: DoneMany(id, struct.pack("<I", 0), Codec().encode([1, 2])),
        lambda id: DoneMany(id, struct.pack("<I", 0), Codec().encode(5)),
        lambda id: DoneMany(id, struct.pack("<II", 0, 0), b"\xc1"),
        lambda id: DoneMany(id, struct.pack("<I", 0)),
    ],
)
def test_hostile_results_of_a_group_are_dropped(
    scene: Scene, result: Callable[[int], DoneMany]
) -> None:
    group = scene.cluster.worker(1).group(Echo, count=3)
    slow = group.slow(0.3, 1)
    scene.send(Kind.ACTORS, ORCHESTRATOR, [result(slow._calls[0][0])])
    assert slow.result(WAIT_S) == [1, 1, 1]
    scene.works()


# --- classes and sources

CLASSES = [
    "os:system",
    "subprocess:Popen",
    "agentsim.actors.agent:Agent",
    "my_agents:Agent",
    "my_agents:os.system",
    "my_agents:asyncio.Task",
    "my_agents:Plan",
    "my_agents:Nobody",
    "my_agents:Echo.act",
    "my_agents:__builtins__",
    "my_agents",
    ":",
    "",
    "../my_agents:Echo",
]


@pytest.mark.parametrize("path", CLASSES)
def test_classes_that_are_not_the_runs_are_refused(scene: Scene, path: str) -> None:
    number = next(scene.cluster._groups)
    with scene.logged("worker-1.log", "cannot make agents of"):
        scene.cluster._caller.send(1, Create(number, path, 0, 1, [b""]))
        proxy = Proxy(
            AgentRef(1, number, 0, "my_agents:Echo"), scene.cluster._caller, lambda _: Echo
        )
        with pytest.raises(RemoteFailure, match="LookupError"):
            proxy(1).result(WAIT_S)


def test_a_worker_is_set_up_once(scene: Scene) -> None:
    with scene.logged("worker-1.log", "refused a second setup"):
        scene.cluster._caller.send(1, Setup(["os"], {"os.py": b""}, ["a", "b"], 1))


@pytest.mark.parametrize("name", ["../x.py", "a/../../x.py", "/tmp/agentsim-x.py", "a/../../../x"])
def test_sources_stay_in_their_folder(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "one" / "modules"
    with pytest.raises(ValueError, match="outside its folder"):
        unpack({"fine.py": b"", name: b"raise SystemExit"}, folder)
    assert not list(tmp_path.rglob("*.py"))
    assert str(folder) not in sys.path


def test_a_proxy_of_a_worker_that_is_not_there_fails(scene: Scene) -> None:
    for worker in (77, CENTRE, -5):
        ref = AgentRef(worker, 1, 0, "my_agents:Echo")
        proxy = Proxy(ref, scene.cluster._caller, lambda _: Echo)
        with pytest.raises(PeerLost, match="there is no worker"):
            proxy(1).result(WAIT_S)
    scene.works()


# --- users' agents that raise and return odd things

ODD = {
    "leave": "SystemExit: 3",
    "surrogate": r"ValueError: \\ud800",
    "silent": "cannot be shown",
    "verbose": "characters",
    "needs": "missing 1 required positional argument",
    "awaits": "missing 1 required positional argument",
    "generator": "generator; pass a list",
    "agenerator": "generator; pass a list",
    "stop": "StopIteration",
}


@pytest.mark.parametrize("method", ODD)
def test_what_an_agent_raises_is_its_callers(scene: Scene, method: str) -> None:
    rude = Rude.on(scene.cluster.worker(1))
    with pytest.raises(RemoteFailure, match=ODD[method]) as caught:
        getattr(rude, method)().result(WAIT_S)
    assert len(str(caught.value)) < 500_000
    group = scene.cluster.worker(1).group(Rude, count=3)
    for failure in getattr(group, method)().results(WAIT_S):
        assert isinstance(failure, RemoteFailure)
    scene.works()


def test_methods_of_any_kind_are_called(scene: Scene) -> None:
    rude = Rude.on(scene.cluster.worker(1))
    group = scene.cluster.group(Rude, count=2)
    for each, of in ((rude, lambda x: x), (group, lambda x: [x, x])):
        assert each.coroutine().result(WAIT_S) == of(5)
        assert each.static(1).result(WAIT_S) == of(["static", 1])
        assert each.of_class(1).result(WAIT_S) == of(["Rude", 1])
        assert each.static_later(1).result(WAIT_S) == of(["later", 1])
    with pytest.raises(AttributeError):
        rude.Inner()
    (proxy,) = rude.me(rude).result(WAIT_S)
    assert proxy == rude
    assert proxy.static(2).result(WAIT_S) == ["static", 2]


def test_a_result_is_as_it_was_when_its_call_ended(scene: Scene) -> None:
    group = scene.cluster.worker(0).group(Rude, count=2)
    calls = [group.grow() for _ in range(3)]
    assert [call.result(WAIT_S) for call in calls] == [[[1] * n] * 2 for n in (1, 2, 3)]


# --- large


@pytest.mark.slow
def test_what_is_too_large_is_refused_and_what_is_not_arrives(scene: Scene) -> None:
    rude = [Rude.on(scene.cluster.worker(i)) for i in range(2)]
    with pytest.raises(RemoteFailure, match="at most 64 MiB"):
        rude[0].large(64 * 2**20 + 1).result(WAIT_S)
    most = 64 * 2**20 - 100
    assert len(rude[0].large(most).result(WAIT_S)) == most
    assert len(rude[1].needs(rude[0].large(most)).result(WAIT_S)) == most
    # Together they are more than an envelope holds.
    several = [rude[0].large(24 * 2**20) for _ in range(3)]
    group = scene.cluster.worker(1).group(Rude, count=24)
    assert [len(r) for r in group.large(3 * 2**20).result(WAIT_S)] == [3 * 2**20] * 24
    assert [len(p.result(WAIT_S)) for p in several] == [24 * 2**20] * 3
    small = [rude[0].large(60_000) for _ in range(1200)]
    assert sum(len(p.result(WAIT_S)) for p in small) == 1200 * 60_000
    scene.works()
