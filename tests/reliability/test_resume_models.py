"""Runs of language models that are killed: nothing that was completed is asked again."""

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest
from kills import KILLED_RUN, assert_equal_tables, journaled
from whole_runs import Program

from agentsim.testing import FakeModelServer
from agentsim.testing.answers import Ask, made_up

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
