"""Faults between real hosts: a link that is down, packets that vanish, resets."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from beds.ssh_hosts import SshHosts
from wire_runs import WireRun

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

# A machine with other work to do takes its time.
PATIENCE_S = 240


def scenario(folder: Path, name: str, rounds: int, **fields: Any) -> Path:
    contents = {
        "name": "far",
        "agents": 40,
        "rounds": rounds,
        "seed": 1,
        "game": {"type": "guess_average"},
        "model": {"backend": "dummy", "think_s": 5, "jitter_s": 0},
        **fields,
    }
    (folder / name).write_text(yaml.safe_dump(contents))
    return folder / name


async def here(folder: Path, rounds: int) -> list[tuple[object, ...]]:
    """The table of the same run without hosts."""
    file = scenario(folder, "here.yaml", rounds)
    return await WireRun(folder).play(file, timeout_s=PATIENCE_S, proxied=False)


@pytest.mark.parametrize("transport", ["direct", "tunnel"])
@pytest.mark.parametrize("fault", ["cut", "drop", "reset"])
async def test_ten_seconds_without_a_host_lose_nothing(
    tmp_path: Path, ssh_hosts: SshHosts, fault: str, transport: str
) -> None:
    ssh_hosts.hostfile(tmp_path / "h.yaml", transport=transport)
    file = scenario(tmp_path, "far.yaml", 4, hosts="h.yaml")
    living: list[set[int]] = []

    def begin(run: WireRun) -> None:
        living.append(set(ssh_hosts.left("node2")))
        getattr(ssh_hosts, fault)("node2")
        run.later(10, end)

    def end() -> None:
        ssh_hosts.heal("node2")
        living.append(set(ssh_hosts.left("node2")))

    run = WireRun(tmp_path)
    rows = await run.play(file, "asked", begin, timeout_s=PATIENCE_S, proxied=False)
    told = [text for text in run.watching.notices if "node of node2" in text]
    print(run.watching.notices)
    assert "has been silent for 5 s (" in told[0] or "has been silent for 4 s (" in told[0]
    assert "is back after" in told[1]
    assert len(told) == 2
    assert len(living[0] & living[1]) >= 2, "node and worker have lived on"
    assert rows == await here(tmp_path, 4)


async def test_a_host_that_stays_away_is_given_up_and_ends_by_itself(
    tmp_path: Path, ssh_hosts: SshHosts
) -> None:
    ssh_hosts.hostfile(tmp_path / "h.yaml")
    file = scenario(tmp_path, "far.yaml", 4, hosts="h.yaml")
    began_s = 0.0

    def cut(run: WireRun) -> None:
        nonlocal began_s
        began_s = time.monotonic()
        ssh_hosts.cut("node3")

    run = WireRun(tmp_path)
    rows = await run.play(file, "asked", cut, timeout_s=PATIENCE_S, proxied=False)
    print(run.watching.notices)
    assert any("node of node3 has been silent for" in text for text in run.watching.notices)
    async with asyncio.timeout(120):
        while ssh_hosts.left("node3"):  # noqa: ASYNC110 - nothing tells of it
            await asyncio.sleep(0.2)
    took_s = time.monotonic() - began_s
    print(f"node3 ended {took_s:.0f} s after it was cut off")
    assert took_s > 55
    assert rows == await here(tmp_path, 4)


async def test_a_slow_and_lossy_network_changes_nothing(
    tmp_path: Path, ssh_hosts: SshHosts
) -> None:
    """Every fifth packet to one host is lost, another one has a link of a megabit a second."""
    ssh_hosts.hostfile(tmp_path / "h.yaml")
    model = {"backend": "dummy", "think_s": 1, "jitter_s": 0}
    file = scenario(tmp_path, "far.yaml", 4, agents=4000, model=model, hosts="h.yaml")
    ssh_hosts.lose("node2", 20)
    ssh_hosts.slow("node3")
    run = WireRun(tmp_path)
    rows = await run.play(file, timeout_s=PATIENCE_S, proxied=False)
    assert not [text for text in run.watching.notices if "given up" in text]
    whole = scenario(tmp_path, "whole.yaml", 4, agents=4000, model=model)
    assert rows == await WireRun(tmp_path).play(whole, timeout_s=PATIENCE_S, proxied=False)
