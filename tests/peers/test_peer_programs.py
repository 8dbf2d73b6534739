"""The peers' programs: small, readable with a plain Python, and honest about what they took."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.cases import CASES

ROOT = Path(__file__).parents[2]
PROGRAMS = sorted({case.command[0] for case in CASES if not case.ours})


def python(*command: str, plain: bool = False, code: int = 0) -> subprocess.CompletedProcess[str]:
    """Run Python; plain: with nothing installed."""
    done = subprocess.run(
        [sys.executable, *(["-S"] if plain else []), *command],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == code, done.stderr
    return done


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_tells_its_arguments_without_its_peer(program: str) -> None:
    said = python("-m", program, "--help", plain=True).stdout
    for option in ("--agents", "--rounds", "--think", "--jitter"):
        assert option in said
    wrong = python("-m", program, "--agents", "few", plain=True, code=2).stderr
    assert "invalid int value: 'few'" in wrong


@pytest.mark.parametrize("case", [case for case in CASES if not case.ours], ids=lambda c: c.name)
def test_a_program_takes_the_options_of_its_case(case) -> None:
    python("-m", *case.command, "--help", plain=True)


@pytest.mark.parametrize("program", ["asyncio_gather", "threads"])
def test_a_program_says_what_its_parts_took(program: str) -> None:
    module = f"benchmarks.peers.{program}"
    work = ("--agents", "20", "--rounds", "2", "--think", "0.01")
    said = json.loads(python("-m", module, *work, plain=True).stdout)
    assert (said["agents"], said["calls"]) == (20, 40)
    parts = [said[part] for part in ("startup", "create", "rounds")]
    assert said["cpu_s"] == pytest.approx(sum(part["cpu_s"] for part in parts))
    assert said["wall_s"] == pytest.approx(sum(part["wall_s"] for part in parts))
    assert said["rounds"]["wall_s"] >= 0.02
    assert said["startup"]["cpu_s"] > 0
    assert said["peak_rss_bytes"] >= said["pss_bytes"] > 1_000_000


def test_cpu_of_children_and_orphans_is_counted() -> None:
    said = python(
        "-c",
        """
import os, subprocess, sys, time
from benchmarks.peers.measure import Cost
cost = Cost()
cost.stage("startup")
work = "import time\\nwhile time.process_time() < 0.3: pass\\n"
orphan = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {work!r}])"
subprocess.run([sys.executable, "-c", work], check=True)
subprocess.run([sys.executable, "-c", orphan], check=True)
os.waitpid(-1, 0)  # an orphan has become a child
cost.stage("rounds")
print(cost.stages["rounds"]["cpu_s"])
""",
        plain=True,
    )
    assert 0.6 <= float(said.stdout) < 1.5


RUN = """
import sys
from pathlib import Path
from benchmarks.runner import Failed, run
try:
    done = run([sys.executable, "-c", sys.argv[1]], cwd=Path.cwd(), timeout_s=float(sys.argv[2]))
except Failed as error:
    print("failed:", error)
else:
    print(done.said, done.cpu_s >= 0.2, done.peak_pss_bytes > 0)
"""


def watched(program: str, timeout_s: float = 30) -> str:
    """What the runner says of a program; in a process of its own, which waits for all children."""
    return python("-c", RUN, program, str(timeout_s)).stdout.strip()


def test_runner_sees_what_a_program_took() -> None:
    program = "import time\nwhile time.process_time() < 0.2: pass\nprint('{\"a\": 1}')"
    assert watched(program) == "{'a': 1} True True"


def test_runner_says_why_a_program_failed() -> None:
    assert watched("import sys; sys.exit('no memory')") == "failed: exit 1. no memory"
    assert watched("print('done')").startswith("failed: no JSON")


def test_runner_ends_what_takes_too_long_with_all_that_came_of_it() -> None:
    child = "import time; time.sleep(60)"
    program = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])"
    assert watched(program, timeout_s=1).startswith("failed: not done after 1 s")
