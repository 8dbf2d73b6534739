"""Processes that are killed or interrupted: the run says so, and nothing is left running."""

import json
import os
import signal

import pytest

from agentsim.results import load_run

SLOW_DUMMY = {"backend": "dummy", "think_s": 60}
PHASES = ["starting", "playing"]


def reach(program, process, phase: str) -> None:
    """Wait until the program is in the phase."""
    if phase == "starting":
        program.wait_for(lambda: program.processes("agentsim.node"))
        return
    program.reach_play()


@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_the_run_ends_in_order_when_interrupted(program, scenario, phase, number, code) -> None:
    process = program.begin("run", scenario(model=SLOW_DUMMY), "--out", "R")
    reach(program, process, phase)
    process.send_signal(number)
    _, err = process.communicate(timeout=30)
    assert process.returncode == code, err
    assert "interrupted; what was completed is in R" in err
    assert "Traceback" not in err
    program.assert_nothing_left()
    assert load_run(program.folder / "R").summary["run"]["state"] == "interrupted"


@pytest.mark.quick
@pytest.mark.parametrize("phase", PHASES)
def test_nothing_is_left_when_the_orchestrator_is_killed(program, scenario, phase) -> None:
    process = program.begin("run", scenario(model=SLOW_DUMMY), "--out", "R")
    reach(program, process, phase)
    process.kill()
    process.communicate()
    program.assert_nothing_left()


@pytest.mark.quick
def test_the_run_fails_and_names_the_victim_when_the_only_node_is_killed(program, scenario) -> None:
    process = program.begin("run", scenario(model=SLOW_DUMMY, limits={"restarts": 0}), "--out", "R")
    reach(program, process, "playing")
    os.kill(program.processes("agentsim.node")[0], signal.SIGKILL)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 1, err
    assert "localhost was ended by signal 9" in err
    assert "its log: R/logs/" in err or f"its log: {program.folder}/R/logs/" in err
    assert "to go on: agentsim resume R" in err
    assert "Traceback" not in err
    program.assert_nothing_left()
    run = json.loads((program.folder / "R" / "summary.json").read_text())["run"]
    assert run["state"] == "failed"
    assert "signal 9" in run["reason"]


def test_a_frozen_worker_ends_with_its_run(program, scenario) -> None:
    process = program.begin("run", scenario(model=SLOW_DUMMY), "--out", "R")
    reach(program, process, "playing")
    os.kill(program.processes("agentsim.worker")[0], signal.SIGSTOP)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)
    assert process.returncode == 130
    program.assert_nothing_left()


@pytest.mark.quick
def test_a_frozen_worker_is_told_of_within_seconds(program, scenario) -> None:
    process = program.begin("run", scenario(model=SLOW_DUMMY), "--out", "R")
    reach(program, process, "playing")
    victim = program.processes("agentsim.worker")[0]
    os.kill(victim, signal.SIGSTOP)
    assert process.stderr is not None
    lines = iter(process.stderr.readline, "")
    silent = next(line for line in lines if "silent" in line)
    assert "on localhost has been silent for" in silent
    os.kill(victim, signal.SIGCONT)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)
