"""A node that stays: several runs, shared model servers, its own end."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from agentsim.config.models import LlamaCpp, OpenAI
from agentsim.logs import LogSettings
from agentsim.node import reports, servers
from agentsim.node.daemon import Daemon
from agentsim.rpc.codec import decode, encode
from agentsim.rpc.control import Failure, Join, NodeConfig, NodeReady, NodeStart
from agentsim.rpc.envelope import NODE, ORCHESTRATOR, Envelope, Kind
from agentsim.rpc.links import MemoryLink, memory_pair
from agentsim.rpc.messages import PLAYERS, Message, Request
from agentsim.rpc.staying import (
    Answer,
    Carried,
    Command,
    Drain,
    EndNode,
    EndRun,
    LogPart,
    Logs,
    NodeReport,
    Opened,
    OpenRun,
    ReadLog,
    Refused,
    Status,
    Stay,
    TakeLogs,
    read_answer,
)
from agentsim.testing import FakeModelServer, Mode
from agentsim.version import __version__


class FakeServer:
    """Stands for a server of our own: it is a fake model server that somebody else runs."""

    pid = None

    def __init__(self, base_url: str) -> None:
        self.base_url = base_url
        self.api_key = "key"
        self.running = True
        self.made: Iterator[int] = itertools.repeat(1)

    async def steps(self) -> int | None:
        return next(self.made)

    def poll(self) -> int | None:
        return None if self.running else 0

    async def stop(self) -> None:
        self.running = False


@pytest.fixture
async def fake() -> AsyncIterator[FakeModelServer]:
    async with FakeModelServer() as server:
        yield server


@pytest.fixture
def asked_for() -> list[str]:
    """Names of the models whose servers were started."""
    return []


@pytest.fixture
def started(
    fake: FakeModelServer, asked_for: list[str], monkeypatch: pytest.MonkeyPatch
) -> list[FakeServer]:
    """The servers of our own that were started."""
    found: list[FakeServer] = []

    async def start(spec: LlamaCpp, *, log_dir: Path) -> FakeServer:
        asked_for.append(spec.name)
        found.append(FakeServer(fake.base_url))
        return found[-1]

    monkeypatch.setattr(servers, "start", start)
    return found


class Bed:
    """A daemon in this process, and what speaks to it."""

    def __init__(self, daemon: Daemon) -> None:
        self.daemon = daemon
        self._tasks: list[asyncio.Task[None]] = []

    def connect(self, handler: Callable[[MemoryLink], Awaitable[None]]) -> MemoryLink:
        ours, theirs = memory_pair()
        self._tasks.append(asyncio.ensure_future(handler(theirs)))  # type: ignore[arg-type]
        return ours

    async def tell(self, command: Command) -> Answer:
        link = self.connect(self.daemon.control)
        await link.send(Envelope(Kind.COMMAND, NODE, ORCHESTRATOR, encode(command)))
        envelope = await asyncio.wait_for(link.receive(), 10)
        assert envelope is not None
        await link.close()
        return read_answer(envelope.body)

    async def open(self, run_id: str, **fields: Any) -> Answer:
        return await self.tell(OpenRun(run_id, f"name-{run_id}", __version__, **fields))

    async def report(self) -> NodeReport:
        report = await self.tell(Status())
        assert isinstance(report, NodeReport)
        return report

    async def join(self, run_id: str) -> MemoryLink:
        link = self.connect(self.daemon.data)
        await link.send(Envelope(Kind.JOIN, NODE, ORCHESTRATOR, encode(Join(run_id, 1, 1))))
        return link

    async def begin(self, run_id: str, *models: str, workers: int = 0) -> MemoryLink:
        """A run whose model serves, and which has no workers."""
        assert isinstance(await self.open(run_id), Opened)
        return await self.start(run_id, *models, workers=workers)

    async def start(self, run_id: str, *models: str, workers: int = 0) -> MemoryLink:
        link = await self.join(run_id)
        start = NodeStart("here", 0, workers, dict(zip([PLAYERS, "two"], models, strict=False)))
        await link.send(Envelope(Kind.START, NODE, ORCHESTRATOR, encode(start)))
        return link

    async def close(self) -> None:
        await self.daemon.stop()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


async def message(link: MemoryLink, type: type[Any]) -> Any:
    """The next message of the run's."""
    while True:
        envelope = await asyncio.wait_for(link.receive(), 10)
        assert envelope is not None
        if envelope.kind in (Kind.READY, Kind.FAILED, Kind.COMPLETIONS):
            return decode(envelope.body, type)


def write(path: Path, data: bytes) -> None:
    path.write_bytes(data)


@pytest.fixture
async def make_bed(tmp_path: Path) -> AsyncIterator[Callable[..., Bed]]:
    beds = []

    def make(*, slots: int | None = 4, idle_s: float = 3600.0) -> Bed:
        config = NodeConfig(
            address="",
            folder=str(tmp_path),
            log_dir=str(tmp_path / "logs"),
            log=LogSettings(str(tmp_path / "node.log")),
            stay=Stay("lab", "here", slots, idle_s),
        )
        beds.append(Bed(Daemon(config)))
        return beds[-1]

    yield make
    for bed in beds:
        await bed.close()


@pytest.fixture
async def bed(make_bed: Callable[..., Bed]) -> Bed:
    return make_bed()


def llama(**fields: Any) -> str:
    return LlamaCpp(backend="llama_cpp", **fields).model_dump_json()


async def test_a_server_serves_one_run_after_another(bed: Bed, started: list[FakeServer]) -> None:
    for run_id in ("one", "two"):
        link = await bed.begin(run_id, llama())
        await message(link, NodeReady)
        assert await bed.tell(EndRun(run_id)) == Carried(f"ended name-{run_id}")
        assert [server.running for server in started] == [True]
    assert (await bed.report()).runs == []


async def test_runs_at_once_share_a_server(bed: Bed, started: list[FakeServer]) -> None:
    for run_id in ("one", "two"):
        await message(await bed.begin(run_id, llama()), NodeReady)
    report = await bed.report()
    assert [run.name for run in report.runs] == ["name-one", "name-two"]
    assert [server.runs for server in report.servers] == [["name-one", "name-two"]]
    await bed.tell(EndRun("one"))
    assert [server.running for server in started] == [True]


async def test_an_unused_server_makes_room_for_another_model(
    bed: Bed, started: list[FakeServer]
) -> None:
    await message(await bed.begin("one", llama(slots=2)), NodeReady)
    await bed.tell(EndRun("one"))
    await message(await bed.begin("two", llama(slots=4)), NodeReady)
    assert [server.running for server in started] == [False, True]


async def test_a_server_in_use_is_left_alone(bed: Bed, started: list[FakeServer]) -> None:
    await message(await bed.begin("one", llama(slots=2)), NodeReady)
    await message(await bed.begin("two", llama(slots=4)), NodeReady)
    assert [server.running for server in started] == [True, True]


async def test_a_server_that_died_is_started_anew(bed: Bed, started: list[FakeServer]) -> None:
    await message(await bed.begin("one", llama()), NodeReady)
    await bed.tell(EndRun("one"))
    started[0].running = False
    assert [server.state for server in (await bed.report()).servers] == ["ended"]
    await message(await bed.begin("two", llama()), NodeReady)
    assert [server.running for server in started] == [False, True]


async def test_more_workers_than_slots_are_refused(make_bed: Callable[..., Bed]) -> None:
    bed = make_bed(slots=2)
    failure = await message(await bed.begin("one", workers=3), Failure)
    assert failure.kind == "LaunchError"
    assert "2 worker slots, 2 of them free, and name-one wants 3 workers" in failure.message
    assert "agentsim cluster stop" in failure.message


async def test_a_drained_node_takes_no_runs_until_it_is_told_to(bed: Bed) -> None:
    await bed.tell(Drain())
    refused = await bed.open("one")
    assert isinstance(refused, Refused)
    assert "agentsim cluster drain here --undo" in refused.message
    assert (await bed.report()).draining
    await bed.tell(Drain(on=False))
    assert isinstance(await bed.open("one"), Opened)


async def test_another_version_is_refused(bed: Bed) -> None:
    refused = await bed.tell(OpenRun("one", "one", "0.0.0"))
    assert isinstance(refused, Refused)
    assert "0.0.0" in refused.message
    assert __version__ in refused.message


@pytest.mark.parametrize("run_id", ["", "../../up", "a/b", "x" * 65])
async def test_a_run_id_names_no_file(bed: Bed, run_id: str) -> None:
    assert isinstance(await bed.open(run_id), Refused)


async def test_a_run_id_is_taken_once(bed: Bed) -> None:
    assert isinstance(await bed.open("one"), Opened)
    assert isinstance(await bed.open("one"), Refused)


async def test_bytes_that_are_no_command_are_refused(bed: Bed) -> None:
    link = bed.connect(bed.daemon.control)
    await link.send(Envelope(Kind.COMMAND, NODE, ORCHESTRATOR, b"\xc1"))
    envelope = await asyncio.wait_for(link.receive(), 10)
    assert envelope is not None
    assert isinstance(read_answer(envelope.body), Refused)


async def test_the_orchestrator_hears_why_its_run_was_ended(bed: Bed) -> None:
    link = await bed.begin("one")
    await message(link, NodeReady)
    ending = asyncio.ensure_future(bed.tell(EndRun("one", "ended by its owner")))
    failure = await message(link, Failure)
    assert (failure.kind, failure.message) == ("RunError", "here: ended by its owner")
    await bed.tell(EndRun("one"))  # as it leaves
    assert isinstance(await ending, Carried)


async def test_an_idle_node_ends(make_bed: Callable[..., Bed]) -> None:
    bed = make_bed(idle_s=0.05)
    await asyncio.wait_for(bed.daemon.ended.wait(), 10)


async def test_a_node_with_a_run_is_not_idle(make_bed: Callable[..., Bed]) -> None:
    bed = make_bed(idle_s=0.2)
    await message(await bed.begin("one"), NodeReady)
    report = await bed.report()
    assert (report.ends_in_s, report.idle_s) == (None, 0.0)
    await asyncio.sleep(0.4)
    assert not bed.daemon.ended.is_set()
    await bed.tell(EndRun("one"))
    await asyncio.wait_for(bed.daemon.ended.wait(), 10)


async def test_the_end_says_what_it_ended(bed: Bed, started: list[FakeServer]) -> None:
    await message(await bed.begin("one", llama()), NodeReady)
    answer = await bed.tell(EndNode())
    assert answer == Carried("ended, with 1 run, 1 model server")
    assert [server.running for server in started] == [False]
    assert isinstance(await bed.open("two"), Refused)


async def test_requests_without_replies_are_not_healthy(
    bed: Bed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reports, "STUCK_S", 0.1)
    holding = False
    async with FakeModelServer(faults=lambda ask: Mode.NEVER if holding else None) as server:
        spec = OpenAI(backend="openai", name="m", base_url=server.base_url)
        link = await bed.begin("one", spec.model_dump_json())
        await message(link, NodeReady)
        assert [s.state for s in (await bed.report()).servers] == ["idle"]
        holding = True
        request = Request(1, 1, 0, 0, 0, [Message("user", "hello")], None, seed=3, model=PLAYERS)
        await link.send(Envelope(Kind.REQUESTS, NODE, ORCHESTRATOR, encode([request])))
        await server.arrived(len(server.asked) + 1)
        report = await bed.report()
        assert [(s.state, s.in_flight) for s in report.servers] == [("stuck", 1)]
        assert report.servers[0].quiet_s > 0.1


async def test_a_long_reply_is_no_server_that_hangs(
    bed: Bed, started: list[FakeServer], fake: FakeModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reports, "STUCK_S", 0.1)
    monkeypatch.setattr(reports, "_WORK_S", 0.01)
    link = await bed.begin("one", llama(max_tokens=100_000))
    await message(link, NodeReady)
    monkeypatch.setattr(fake, "_faults", lambda ask: Mode.NEVER)
    request = Request(1, 1, 0, 0, 0, [Message("user", "hello")], None, seed=3, model=PLAYERS)
    asked = len(fake.asked)
    await link.send(Envelope(Kind.REQUESTS, NODE, ORCHESTRATOR, encode([request])))
    await fake.arrived(asked + 1)
    assert [server.state for server in (await bed.report()).servers] == ["stuck"]
    started[0].made = itertools.count()
    assert [server.state for server in (await bed.report()).servers] == ["serving"]


async def test_files_of_models_are_named_from_where_the_run_is(
    bed: Bed, started: list[FakeServer], asked_for: list[str]
) -> None:
    assert isinstance(await bed.open("one", folder="/home/sim"), Opened)
    assert isinstance(await bed.open("far"), Opened)
    for run_id, name in (("one", "models/a.gguf"), ("far", "/models/a.gguf")):
        link = await bed.start(run_id, llama(name=name))
        await message(link, NodeReady)
    assert asked_for == ["/home/sim/models/a.gguf", "/models/a.gguf"]
    assert isinstance(await bed.open("farther"), Opened)
    failure = await message(await bed.start("farther", llama(name="models/a.gguf")), Failure)
    assert (failure.kind, "name the file in full" in failure.message) == ("UserError", True)


async def test_logs_of_a_run_are_taken_once(bed: Bed) -> None:
    opened = await bed.open("one")
    assert isinstance(opened, Opened)
    write(Path(opened.log_dir, "worker-0.log"), b"x" * 2**20)
    assert isinstance(await bed.tell(TakeLogs("one")), Refused)  # it goes on
    await bed.tell(EndRun("one"))
    taken = await bed.tell(TakeLogs("one"))
    assert isinstance(taken, Logs)
    assert {name: len(data) for name, data in taken.files.items()} == {"worker-0.log": 2**18}
    assert await bed.tell(TakeLogs("one")) == Logs({})
    assert isinstance(await bed.tell(TakeLogs("../logs")), Refused)


async def test_the_log_is_read_in_parts(bed: Bed, tmp_path: Path) -> None:
    (tmp_path / "node.log").write_bytes(b"one\ntwo\n")
    assert await bed.tell(ReadLog()) == LogPart(b"one\ntwo\n", 8)
    assert await bed.tell(ReadLog(4)) == LogPart(b"two\n", 8)
    assert await bed.tell(ReadLog(-4)) == LogPart(b"two\n", 8)
    assert await bed.tell(ReadLog(100)) == LogPart(b"", 8)


def test_reports_say_no_secret() -> None:
    assert "key" not in {field.name for field in msgspec.structs.fields(NodeReport)}
