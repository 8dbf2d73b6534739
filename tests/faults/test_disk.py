"""A run directory that cannot be written."""

import asyncio
import contextlib
import os
import resource
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from whole_runs import ROOT, table

from agentsim.testing import Ask, FakeModelServer
from agentsim.testing.answers import made_up


@pytest.mark.quick
def test_the_directory_exists(program, scenario) -> None:
    (program.folder / "R").mkdir()
    _, err = program.run("run", scenario(), "--out", "R", code=2)
    assert "R: exists already" in err
    assert not list((program.folder / "R").iterdir())


def test_a_parent_is_a_file(program, scenario) -> None:
    (program.folder / "file").write_text("")
    _, err = program.run("run", scenario(), "--out", "file/R", code=1)
    assert "cannot make the run's directory" in err


@pytest.mark.parametrize("limit_bytes", [20_000, 400_000])
def test_the_disk_is_full(program, scenario, limit_bytes) -> None:
    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit_bytes, limit_bytes))

    file = scenario(agents=50_000, rounds=3)
    _, err = program.run("run", file, "--out", "R", code=1, preexec_fn=limited)
    assert "Traceback" not in err
    assert "R" in err
    assert "File too large" in err or "full" in err


class SmallDisk:
    """A file system of its own that the test fills and frees."""

    def __init__(self, path: Path, mib: int) -> None:
        self.path = path
        path.mkdir()
        options = ["-t", "tmpfs", "-o", f"size={mib}m", "tmpfs", str(path)]
        done = subprocess.run(["mount", *options], capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.skip(f"no file system can be mounted here: {done.stderr.strip()}")

    def fill(self) -> None:
        """Leave no room at all."""
        with (self.path / "filler").open("ab", buffering=0) as file:
            for size in (1 << 20, 1 << 12, 1):
                with contextlib.suppress(OSError):
                    while True:
                        file.write(bytes(size))

    def free(self) -> None:
        (self.path / "filler").unlink()

    def unmount(self) -> None:
        subprocess.run(["umount", "-l", str(self.path)], check=True)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    if os.geteuid():
        pytest.skip("only root can mount a small disk")
    disk = SmallDisk(tmp_path / "disk", 32)
    yield disk
    disk.unmount()


class Spoken:
    """What a program says on stderr, line by line."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.lines: list[str] = []
        self._stream = process.stderr
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        assert self._stream is not None
        for line in self._stream:
            self.lines.append(line)

    def has(self, words: str) -> bool:
        return any(words in line for line in list(self.lines))


FULL, ROOM = "is full; waiting for room", "there is room again"
# Rounds take a while, so that the disk is full in the middle of them.
SLOW_ROUNDS = {
    "agents": 2000,
    "rounds": 12,
    "model": {"backend": "dummy", "think_s": 0.5, "jitter_s": 0},
}


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_run_goes_on_when_there_is_room(program, scenario, disk) -> None:
    file = scenario(**SLOW_ROUNDS)
    run = disk.path / "R"
    process = program.begin("run", file, "--out", run)
    spoken = Spoken(process)
    program.wait_for(lambda: spoken.has("round 3 of"), 120)
    disk.fill()
    program.wait_for(lambda: spoken.has(FULL), 120)
    size = (run / "journal.log").stat().st_size
    assert process.poll() is None
    disk.free()
    program.wait_for(lambda: spoken.has(ROOM), 120)
    assert process.wait(120) == 0, spoken.lines
    assert (run / "journal.log").stat().st_size > size
    program.run("run", file, "--out", "undisturbed", "--quiet", timeout_s=120)
    assert table(run) == table(program.folder / "undisturbed")
    assert not [path for path in run.rglob("*") if path.name.endswith(".tmp")]


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_run_that_is_interrupted_on_a_full_disk_goes_on_later(program, scenario, disk) -> None:
    file = scenario(**SLOW_ROUNDS)
    run = disk.path / "R"
    process = program.begin("run", file, "--out", run)
    spoken = Spoken(process)
    program.wait_for(lambda: spoken.has("round 3 of"), 120)
    disk.fill()
    program.wait_for(lambda: spoken.has(FULL), 120)
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 130, spoken.lines
    program.assert_nothing_left()
    disk.free()
    program.run("resume", run, "--quiet", timeout_s=120)
    program.run("run", file, "--out", "undisturbed", "--quiet", timeout_s=120)
    assert table(run) == table(program.folder / "undisturbed")


@pytest.fixture
def counting() -> Iterator[Callable[..., tuple[str, list[Ask]]]]:
    """Starts a model server in a thread; its address, and what it was asked."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    servers: list[FakeModelServer] = []

    def start(say: Callable[[Ask], str]) -> tuple[str, list[Ask]]:
        servers.append(FakeModelServer(say))
        asyncio.run_coroutine_threadsafe(servers[-1].start(), loop).result(20)
        return servers[-1].base_url, servers[-1].asked

    yield start
    for server in servers:
        asyncio.run_coroutine_threadsafe(server.stop(), loop).result(20)
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_no_more_is_asked_of_a_model_while_there_is_no_room(
    program, scenario, disk, counting
) -> None:
    """What was asked by then fills the queues between the programs, which are bounded."""
    agents = 4000
    url, asked = counting(lambda ask: made_up(ask, structured=True))
    model = {"backend": "openai", "name": "fake", "base_url": url, "concurrency": 4}
    file = scenario(agents=agents, rounds=1, model=model)
    # 32 MiB may wait at a node; with less the queues are full sooner.
    (program.folder / "sitecustomize.py").write_text(
        "from agentsim.rpc.resumable import Resumable\n"
        "Resumable.__init__.__kwdefaults__['bound_bytes'] = 50_000\n"
    )
    path = os.pathsep.join([str(program.folder), str(ROOT)])
    process = program.begin("run", file, "--out", disk.path / "R", env={"PYTHONPATH": path})
    spoken = Spoken(process)
    program.wait_for(lambda: len(asked) > 20, 120)
    disk.fill()
    program.wait_for(lambda: spoken.has(FULL), 120)
    seen: list[int] = []

    def stands_still() -> bool:
        seen.append(len(asked))
        time.sleep(1)
        return len(seen) > 10 and seen[-10] == len(asked)

    program.wait_for(stands_still, 200)
    assert len(asked) < agents / 2, seen
    disk.free()
    program.wait_for(lambda: len(asked) > seen[-1] + 100, 60)
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 130, spoken.lines


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("then", ["room", "interrupted"])
def test_a_program_of_the_users_own_waits_as_well(program, disk, then) -> None:
    """Its state cannot be made again, so it loses most when a run ends."""
    (program.folder / "mine.py").write_text(
        "import pathlib, time\n"
        "def main(run):\n"
        "    for number in range(400):\n"
        "        run.record('t', number=number, text='x' * 4000)\n"
        "        pathlib.Path('at').write_text(str(number))\n"
        "        time.sleep(0.01)\n"
    )
    file = program.folder / "mine.yaml"
    file.write_text("name: mine\nworkflow: mine:main\nagents: 1\n")
    at = program.folder / "at"
    run = disk.path / "R"
    process = program.begin("run", file, "--out", run)
    spoken = Spoken(process)
    program.wait_for(lambda: at.exists() and at.read_text() > "10", 120)
    disk.fill()
    program.wait_for(lambda: spoken.has(FULL), 120)
    if then == "interrupted":
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130, spoken.lines
        return
    disk.free()
    assert process.wait(120) == 0, spoken.lines
    rows = pq.read_table(run / "tables" / "t.parquet").to_pylist()
    assert [row["number"] for row in rows] == list(range(400))
