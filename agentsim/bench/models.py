"""`agentsim bench models`: what requests to a language model cost, its own work left out.

They go the way of a run's: through a node and its pool of connections, to the model server that
agentsim ships for tests, which makes replies up.
"""

from __future__ import annotations

import itertools
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import uvloop

from agentsim.bench import meter
from agentsim.bench.machine import machine
from agentsim.bench.programs import measured
from agentsim.bench.spread import spread
from agentsim.config import Hostfile
from agentsim.config.models import OpenAI
from agentsim.errors import RunError
from agentsim.launch import LocalLauncher
from agentsim.nodes import Nodes, open_nodes
from agentsim.plan import without_workers
from agentsim.rpc.codec import decode
from agentsim.rpc.envelope import Kind
from agentsim.rpc.messages import PLAYERS, Completion, Message, Request

_PROMPT = "You play a game with 100 others. Name a number from 0 to 100. " * 8


def bench_models(
    *,
    requests: int,
    windows: Sequence[int],
    delay_s: float,
    repeats: int,
    measured: Callable[[str, dict[str, Any]], dict[str, Any]] = measured,
    tell: Callable[[str], None] = lambda text: None,
) -> dict[str, Any]:
    """Measure, and say what a request costs; plain data, ready for JSON.

    Args:
        windows: requests that are under way at once, for each line.
        delay_s: what the model server waits before each reply.

    Returns:
        requests, delay_s, repeats, machine
        windows   a list: window, requests_per_s, and CPU ms a request of the programs: ours_ms
                  (orchestrator and node), server_ms (the model server, which is no part of a run);
                  medians, with _min and _max; no import or start-up is in them

    Raises:
        RunError: it failed.
    """
    lines = []
    for window in windows:
        tell(f"{requests:,} requests, {window:,} under way")
        settings = {
            "requests": requests,
            "window": window,
            "delay_s": delay_s,
            "repeats": repeats,
        }
        found = measured("models", settings)["runs"]
        lines.append(
            {
                "window": window,
                **spread("requests_per_s", [requests / wall_s for wall_s, _, _ in found]),
                **spread("ours_ms", [ours_s / requests * 1e3 for _, ours_s, _ in found]),
                **spread("server_ms", [server_s / requests * 1e3 for _, _, server_s in found]),
            }
        )
    return {
        "requests": requests,
        "delay_s": delay_s,
        "repeats": repeats,
        "windows": lines,
        "machine": machine(),
    }


def measure(settings: dict[str, Any]) -> dict[str, Any]:
    """For each repetition: wall seconds, our CPU seconds, the model server's CPU seconds."""
    with _server(settings["delay_s"]) as (port, pid):
        return {"runs": uvloop.run(_measure(settings, port, pid))}


async def _measure(
    settings: dict[str, Any], port: int, server: int
) -> list[tuple[float, float, float]]:
    window, requests = settings["window"], settings["requests"]
    model = OpenAI(
        backend="openai",
        name="made-up",
        base_url=f"http://127.0.0.1:{port}/v1",
        concurrency=window,
    )
    runs = []
    with tempfile.TemporaryDirectory(prefix="agentsim-bench-") as logs:
        launcher = LocalLauncher(Path(logs))
        plan = without_workers(Hostfile())
        async with open_nodes(plan, launcher, {PLAYERS: model}, lambda text: None) as nodes:
            numbers = itertools.count()
            await _ask_all(nodes, numbers, 4 * window, window)  # the window grows as it is used
            for _ in range(settings["repeats"]):
                before, began_s = _cpu_s(server), time.monotonic()
                await _ask_all(nodes, numbers, requests, window)
                wall_s, after = time.monotonic() - began_s, _cpu_s(server)
                runs.append((wall_s, after[0] - before[0], after[1] - before[1]))
    return runs


async def _ask_all(nodes: Nodes, numbers: Iterator[int], count: int, window: int) -> None:
    """Ask so many requests, with a window of them under way."""
    left = [_request(number) for number in itertools.islice(numbers, count)]
    under_way = 0
    while left or under_way:
        # In lots, as workers do.
        if left and window - under_way >= min(len(left), max(1, window // 4)):
            some, left = left[: window - under_way], left[window - under_way :]
            under_way += len(some)
            await nodes.ask(0, some)
            continue
        envelope = await nodes.receive()
        if envelope.kind is Kind.COMPLETIONS:
            completions = decode(envelope.body, list[Completion])
            under_way -= len(completions)
            bad = next((completion for completion in completions if completion.error), None)
            if bad is not None:
                raise RunError(f"a request failed: {bad.error}")


def _request(number: int) -> Request:
    messages = [Message("system", "You are a player."), Message("user", _PROMPT)]
    return Request(1, 1, number, 0, 0, messages, None, number)


def _cpu_s(server: int) -> tuple[float, float]:
    """CPU seconds of our programs, and of the model server."""
    of_server = meter.cpu_s_of(server)
    return meter.cpu_s() - of_server, of_server


@contextmanager
def _server(delay_s: float) -> Iterator[tuple[int, int]]:
    """The model server for tests: its port and the id of its process."""
    command = [sys.executable, "-P", "-m", "agentsim.testing.model_server", "--delay", str(delay_s)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            line = process.stdout.readline().split()
            if len(line) != 2:
                raise RunError("the model server for tests did not start")
            yield int(line[1]), process.pid
        finally:
            process.stdin.close()  # it ends with its stdin
            process.wait()
