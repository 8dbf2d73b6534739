"""Faults between the orchestrator and a node, in each phase of a run: nothing of it is to be seen
in the result, and what was asked is not asked again."""

from __future__ import annotations

import asyncio
import os
import re
import signal
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from wire_runs import PHASES, WireRun

from agentsim import nodes
from agentsim.errors import PeerLost
from agentsim.rpc.silence import Silence
from agentsim.testing import Answer, FakeModelServer

FAULT_S = 4.0
_undisturbed: list[tuple[object, ...]] = []


def cut(run: WireRun) -> None:
    run.proxies[0].cut()
    run.later(FAULT_S, run.proxies[0].heal)


def drop(run: WireRun) -> None:
    run.proxies[0].drop()
    run.later(FAULT_S, run.proxies[0].heal)


def long_drop(run: WireRun) -> None:
    """So long that both sides give the connection up."""
    run.proxies[0].drop()
    run.later(10.0, run.proxies[0].heal)


def reset(run: WireRun) -> None:
    run.proxies[0].reset()


def stop_node(run: WireRun) -> None:
    _stop(run, "agentsim.node")


def stop_worker(run: WireRun) -> None:
    if run.program.processes("agentsim.worker"):
        _stop(run, "agentsim.worker")


def _stop(run: WireRun, what: str) -> None:
    pid = run.program.processes(what)[0]
    os.kill(pid, signal.SIGSTOP)
    run.later(FAULT_S, lambda: os.kill(pid, signal.SIGCONT))


FAULTS = [cut, drop, long_drop, reset, stop_node, stop_worker]


@pytest.fixture
async def server() -> AsyncIterator[FakeModelServer]:
    async with FakeModelServer(lambda ask: Answer(delay_s=0.05)) as server:
        yield server


@pytest.fixture
def wire(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> WireRun:
    monkeypatch.setattr(nodes, "SILENCE", Silence(notice_s=2.0, grace_s=60.0))
    return WireRun(tmp_path)


@pytest.fixture
def scenario(tmp_path: Path, server: FakeModelServer) -> Path:
    model = {"backend": "openai", "name": "m", "base_url": server.base_url, "concurrency": 4}
    population: dict[str, Any] = {
        "attributes": {"age": {"integer": {"uniform": {"low": 18, "high": 90}}}},
        "persona": {"writer": "model", "model": model, "attempts": 1},
    }
    contents = {
        "name": "wire",
        "agents": 12,
        "rounds": 3,
        "seed": 5,
        "game": {"type": "guess_average"},
        "population": "people.yaml",
        "prompt": "character",
        "model": model,
        "limits": {"missing_share": 1.0},
        "hosts": "hosts.yaml",
    }
    hosts = {"launcher": "local", "hosts": [{"address": "localhost", "workers": 2}]}
    (tmp_path / "people.yaml").write_text(yaml.safe_dump(population))
    (tmp_path / "hosts.yaml").write_text(yaml.safe_dump(hosts))
    (tmp_path / "wire.yaml").write_text(yaml.safe_dump(contents))
    return tmp_path / "wire.yaml"


async def undisturbed(wire: WireRun, scenario: Path) -> list[tuple[object, ...]]:
    """The table of the same run without a fault; made once."""
    if not _undisturbed:
        _undisturbed.extend(await WireRun(wire.folder).play(scenario))
    return _undisturbed


async def plays_as_if_nothing_had_happened(
    wire: WireRun,
    scenario: Path,
    server: FakeModelServer,
    phase: str,
    fault: Callable[[WireRun], None],
) -> None:
    played = await wire.play(scenario, phase, fault)
    asked_again = [ask.text for ask in server.repeated if ask.text != "Say ok."]
    assert asked_again == []
    await asyncio.to_thread(wire.program.assert_nothing_left)
    assert played == await undisturbed(wire, scenario)


async def test_a_run_is_the_same_when_the_link_is_cut_during_a_round(
    wire, scenario, server
) -> None:
    await plays_as_if_nothing_had_happened(wire, scenario, server, "first round", cut)
    silent, back = wire.watching.notices
    assert re.match(r"the node of localhost has been silent for \d+ s \(.+\); waiting 60 s", silent)
    assert "; see its log: " in silent
    assert back.startswith("the node of localhost is back after ")


@pytest.mark.parametrize(
    ("fault", "phase"),
    [
        # Each fault in one phase is the fast tier's; what takes ten seconds, and the others, not.
        pytest.param(
            *(fault, phase),
            marks=()
            if phase == "first round" and fault not in (cut, long_drop)
            else pytest.mark.slow,
        )
        for fault in FAULTS
        for phase in PHASES
    ],
)
async def test_a_run_is_the_same_when_the_wire_fails(wire, scenario, server, fault, phase) -> None:
    await plays_as_if_nothing_had_happened(wire, scenario, server, phase, fault)


@pytest.mark.parametrize(
    "phase",
    [
        pytest.param(phase, marks=() if phase == "first round" else pytest.mark.slow)
        for phase in PHASES[:-1]
    ],
)
async def test_a_run_ends_at_once_when_its_only_node_is_killed(wire, scenario, phase) -> None:
    def kill(run: WireRun) -> None:
        os.kill(run.nodes[0].process.pid, signal.SIGKILL)

    with pytest.raises(PeerLost, match=r"the node of localhost was ended by signal 9; .* its log"):
        await wire.play(scenario, phase, kill)
    assert not wire.watching.notices, "nobody waits for what is known to be gone"
    await asyncio.to_thread(wire.program.assert_nothing_left)


@pytest.mark.slow
@pytest.mark.parametrize("phase", PHASES[:-1])
async def test_a_node_that_stays_away_is_given_up(wire, scenario, phase, monkeypatch) -> None:
    monkeypatch.setattr(nodes, "SILENCE", Silence(notice_s=2.0, grace_s=2.0))
    with pytest.raises(
        PeerLost, match=r"has been silent for \d+ s .* and was given up; see its log: "
    ):
        await wire.play(scenario, phase, lambda run: run.proxies[0].cut())
    await asyncio.to_thread(wire.program.assert_nothing_left)
