"""Runs of language models that are killed: nothing that was completed is asked again."""

import asyncio
import json
import signal
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml
from kills import KILLED_RUN, assert_equal_tables, journaled
from whole_runs import Program

from agentsim.results import load_run
from agentsim.testing import Ask, FakeModelServer, Mode
from agentsim.testing.answers import made_up

AGENTS, ROUNDS = 12, 4


def say(ask: Ask) -> str:
    """A number from the seed; every third request gets none, so that it is asked again."""
    return "I would rather not say." if ask.seed % 3 == 0 else made_up(ask, structured=True)


async def agentsim(program: Program, *args: str | Path, point: str = "") -> int:
    """Run a command, killed at a point if there is one; its exit code."""
    start = [str(KILLED_RUN), point] if point else ["-m", "agentsim"]
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, *start, *map(str, args)),
        env=program.env,
        cwd=program.folder,
        stdin=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.DEVNULL,
    )
    _, err = await asyncio.wait_for(process.communicate(), 100)
    assert process.returncode in (0, -9), err.decode()
    return process.returncode


def scenario_of(url: str, **fields: Any) -> dict[str, Any]:
    return {
        "agents": AGENTS,
        "rounds": ROUNDS,
        "model": {"backend": "openai", "base_url": url, "name": "fake", "concurrency": 3},
        "limits": {"missing_share": 1.0},
        "memory": "transcript",
    } | fields


async def killed_and_gone_on(
    program: Program, server: FakeModelServer, file: Path, points: list[str]
) -> None:
    """A chain of kills; after each, what the journal holds is not asked again."""
    command: tuple[str | Path, ...] = ("run", file, "--out", "R")
    known: set[int] = set()
    for point in [*points, ""]:
        before = len(server.asked)
        await agentsim(program, *command, "--quiet", point=point)
        again = [ask.seed for ask in server.asked[before:] if ask.seed in known]
        assert not again
        known = {attempt.seed for attempt in journaled(program.folder / "R")}
        command = ("resume", "R")


@pytest.mark.quick
@pytest.mark.parametrize(
    ("memory", "prompt"),
    [
        ("transcript", "step_by_step"),
        *(
            pytest.param(memory, prompt, marks=pytest.mark.slow)
            for memory, prompt in [
                ("numbers", "direct"),
                ({"last": 2}, "character"),
                ("none", "direct"),
            ]
        ),
    ],
)
async def test_no_completed_request_is_sent_again_when_runs_are_killed(
    program, scenario, memory, prompt
) -> None:
    people = program.folder / "people.yaml"
    people.write_text("attributes:\n  age: {integer: {uniform: {low: 20, high: 60}}}\n")
    async with FakeModelServer(say) as server:
        fields = scenario_of(server.base_url, memory=memory, prompt=prompt)
        file = scenario(population=str(people), **fields)
        await agentsim(program, "run", file, "--out", "U", "--quiet")
        points = ["4:before", "9:torn", "7:after", "11:torn"]
        await killed_and_gone_on(program, server, file, points)
    assert_equal_tables(program.folder / "R", program.folder / "U")
    prompts = {(a.seed, str(a.messages)) for a in journaled(program.folder / "R")}
    undisturbed = {(a.seed, str(a.messages)) for a in journaled(program.folder / "U")}
    assert prompts == undisturbed


def write_or_play(ask: Ask) -> str:
    """A persona that states its facts, or a number."""
    if "The facts: " not in ask.text:
        return say(ask)
    at = ask.text.index("The facts: ") + len("The facts: ")
    age = json.JSONDecoder().raw_decode(ask.text, at)[0]["age"]
    if ask.seed % 3 == 0:
        return "Once upon a time."
    parts = {"name": "Ada Berg", "age": age, "gender": "female", "job": "clerk"}
    return json.dumps(parts | {"description": f"You are calm. Your age is {age}. You like tea."})


@pytest.mark.slow
@pytest.mark.timeout(400)
async def test_personas_are_not_written_twice_when_their_stage_is_killed(program, scenario) -> None:
    async with FakeModelServer(write_or_play) as server:
        model = {
            "backend": "openai",
            "base_url": server.base_url,
            "name": "fake",
            "concurrency": 3,
        }
        writer = {"writer": "model", "model": model}
        people = program.folder / "people.yaml"
        ages = {"age": {"integer": {"uniform": {"low": 20, "high": 60}}}}
        people.write_text(yaml.safe_dump({"attributes": ages, "persona": writer}))
        fields = scenario_of(server.base_url, prompt="character", population=str(people))
        file = scenario(**fields)
        await agentsim(program, "run", file, "--out", "U", "--quiet")
        points = ["3:before", "4:torn", "3:after", "9:before", "7:torn"]
        await killed_and_gone_on(program, server, file, points)
    assert_equal_tables(program.folder / "R", program.folder / "U")
    one, other = (pq.read_table(program.folder / run / "personas.parquet") for run in "RU")
    assert one.equals(other)
    both = [load_run(program.folder / run).summary for run in "RU"]
    assert both[0]["personas"] == both[1]["personas"]
    assert both[0]["tokens"] == both[1]["tokens"]


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_a_run_that_was_interrupted_goes_on(program, scenario, number) -> None:
    async with FakeModelServer([Mode.OK] * 20 + [Mode.HOLD]) as server:
        file = scenario(**scenario_of(server.base_url))
        process = program.begin("run", file, "--out", "R")
        await server.arrived(22)
        process.send_signal(number)
        _, err = await asyncio.to_thread(process.communicate, timeout=60)
        assert "to go on: agentsim resume R" in err
        known = {attempt.seed for attempt in journaled(program.folder / "R")}
        before = len(server.asked)
        server.release()
        await agentsim(program, "resume", "R", "--quiet")
        again = [ask.seed for ask in server.asked[before:] if ask.seed in known]
    assert known
    assert not again
    assert load_run(program.folder / "R").summary["actions"]["settled"] == AGENTS * ROUNDS
