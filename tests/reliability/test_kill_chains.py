"""Whole runs that are killed again and again end in the table of an undisturbed run."""

import os
import random
import secrets
import signal
from pathlib import Path

import pytest
from kills import assert_equal_tables, chain

from agentsim.results import load_run

HOWS = ("before", "torn", "after")


def big(scenario, **fields):
    """2,000 agents, 20 rounds, two workers: 120 records and more, of which a start writes a few."""
    return scenario(
        agents=2_000, rounds=20, seed=9, model={"backend": "cognitive_hierarchy"}, **fields
    )


def points(count: int, draw: random.Random | None = None) -> list[str]:
    """Where a chain of starts is killed: each gets a little further."""
    if draw is not None:
        return [f"{draw.randint(1, 9)}:{draw.choice(HOWS)}" for _ in range(count)]
    return [f"{2 + i % 4}:{HOWS[i % 3]}" for i in range(count)]


def undisturbed(program, file):
    program.run("run", file, "--out", "U", "--quiet")
    return program.folder / "U"


@pytest.mark.quick
@pytest.mark.parametrize("count", [len(HOWS), pytest.param(50, marks=pytest.mark.slow)])
@pytest.mark.timeout(900)
def test_a_chain_of_kills_ends_in_the_undisturbed_table(program, scenario, count) -> None:
    file = big(scenario)
    whole = undisturbed(program, file)
    run = chain(program, file, "R", points(count))
    assert run["resumes"] == count
    assert_equal_tables(program.folder / "R", whole)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_chain_of_kills_at_random_ends_in_the_undisturbed_table(program, scenario) -> None:
    seed = secrets.randbelow(2**32)
    print(f"seed {seed}")
    file = big(scenario, sessions=2)
    whole = undisturbed(program, file)
    chain(program, file, "R", points(15, random.Random(seed)))
    assert_equal_tables(program.folder / "R", whole)


@pytest.mark.slow
def test_a_run_goes_on_with_other_workers_and_hosts(program, scenario) -> None:
    file = big(scenario, sessions=3)
    whole = undisturbed(program, file)
    hosts = program.folder / "hosts.yaml"
    hosts.write_text("hosts: [{address: one, workers: 1}, {address: two, workers: 2}]\n")
    chain(program, file, "R", ["9:torn"], "--workers", "5")
    assert_equal_tables(program.folder / "R", whole)
    program.run("run", file, "--out", "S", "--quiet", "--set", "limits.wall_s=0.001", code=1)
    program.run("resume", "S", "--hosts", hosts, "--set", "limits.wall_s=1000", "--quiet")
    assert_equal_tables(program.folder / "S", whole)


THINKING = {"backend": "dummy", "think_s": 1.0, "jitter_s": 0.5}


@pytest.mark.quick
@pytest.mark.parametrize(
    "victims", [1, pytest.param(4, marks=pytest.mark.slow)], ids=["one", "four"]
)
def test_agents_go_on_in_another_worker_when_theirs_is_killed(program, scenario, victims) -> None:
    file = scenario(agents=200, rounds=3, model=THINKING)
    process = program.begin("run", file, "--out", "R")
    assert process.stderr is not None
    killed: set[int] = set()
    said = []
    for line in iter(process.stderr.readline, ""):
        said.append(line)
        # When they play, and each time when others have taken over.
        if ("placing" in line or "go on in worker" in line) and len(killed) < victims:
            program.wait_for(lambda: set(program.processes("agentsim.worker")) - killed)
            victim = max(set(program.processes("agentsim.worker")) - killed)
            killed.add(victim)
            os.kill(victim, signal.SIGKILL)
    assert process.wait(timeout=60) == 0, "".join(said)
    whole = program.folder / "U"
    program.run("run", file, "--out", "U", "--quiet", "--workers", "3")
    assert_equal_tables(program.folder / "R", whole)
    run = load_run(program.folder / "R").summary["run"]
    assert run["restarts"] + run["moves"] == victims


def test_the_run_ends_when_more_workers_are_lost_than_may_be(program, scenario) -> None:
    file = scenario(agents=20, model={"backend": "dummy", "think_s": 60}, limits={"restarts": 0})
    process = program.begin("run", file, "--out", "R")
    program.reach_play()
    os.kill(program.processes("agentsim.worker")[0], signal.SIGKILL)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 1, err
    assert "limits.restarts" in err
    assert "to go on: agentsim resume R" in err


def test_a_run_is_not_gone_on_with_another_scenario(program, scenario) -> None:
    program.run("run", scenario(), "--out", "R", "--quiet")
    other = scenario(name="other", rounds=3)
    _, err = program.run("run", other, "--resume", "R", code=2)
    assert 'name: "test" in the run, "other" now' in err
    assert "rounds: 2 in the run, 3 now" in err
    _, err = program.run("resume", "R", "--set", "agents=5", code=2)
    assert "only its limits can be others" in err
    _, err = program.run("resume", "R", "--quiet")
    assert "has finished" in err


@pytest.mark.skipif(
    not os.access("/sys/fs/cgroup/memory/cgroup.procs", os.W_OK),
    reason="the right to limit a process's memory by a control group (version 1) is needed",
)
def test_agents_go_on_in_another_worker_when_theirs_is_out_of_memory(program, scenario) -> None:
    model = {"backend": "dummy", "think_s": 1.0}
    file = scenario(agents=300_000, rounds=3, model=model)
    group = Path(f"/sys/fs/cgroup/memory/agentsim-{secrets.token_hex(4)}")
    group.mkdir()
    try:
        process = program.begin("run", file, "--out", "R")
        program.reach_play("R")
        # What it has counts for the group that it came from; the next round's columns are too much.
        (group / "memory.limit_in_bytes").write_text(str(1024 * 1024))
        (group / "cgroup.procs").write_text(str(program.processes("agentsim.worker")[0]))
        _, err = process.communicate(timeout=100)
    finally:
        group.rmdir()
    assert process.returncode == 0, err
    assert "was ended by signal 9" in err
    assert load_run(program.folder / "R").summary["run"]["restarts"] == 1
    program.run("run", file, "--out", "U", "--quiet")
    assert_equal_tables(program.folder / "R", program.folder / "U")
