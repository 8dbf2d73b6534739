"""What a run is expected to take grows with what is in it, and a run stays below it."""

from pathlib import Path
from typing import Any

import pytest

from agentsim.config.hostfile import Host, Hostfile
from agentsim.config.scenario import Scenario
from agentsim.plan import Memory, make, without_workers
from agentsim.results import read_manifest

LANGUAGE = {"backend": "openai", "name": "m"}


def expected(*, workers: int = 2, **fields: Any) -> Memory:
    fields = {"agents": 1000, "rounds": 1, "model": {"backend": "random"}, "game": {}} | fields
    scenario = Scenario.model_validate({"name": "t"} | fields)
    memory = make(scenario, Hostfile(hosts=[Host(workers=workers)])).memory
    assert memory is not None
    return memory


def test_the_parts_sum_to_the_total() -> None:
    memory = expected(agents=1_000_000, workers=3)
    assert len(memory.workers) == 3
    assert memory.total == memory.orchestrator + memory.node + sum(memory.workers)


def test_workers_without_agents_are_counted() -> None:
    alone, many = expected(agents=1, workers=1), expected(agents=1, workers=5)
    assert len(many.workers) == 1
    assert many.total - alone.total == pytest.approx(4 * alone.workers[0], rel=0.01)


MORE = {
    "agents": {"agents": 2_000_000},
    "rounds that wait for Parquet": {"agents": 1_000_000, "rounds": 9},
    "sessions side by side": {"sessions": 500},
    "many files": {"agents": 100_000, "rounds": 100},
    "language players": {"agents": 1_000_000, "model": LANGUAGE},
    "texts": {"agents": 1_000_000, "model": {"backend": "dummy", "text_bytes": 500}},
    "groups": {"agents": 1_000_000, "game": {"groups": {"count": 5}}},
    "markets": {"agents": 90_000, "game": {"groups": {"count": 30_000, "scope": "separate"}}},
}


@pytest.mark.parametrize("name", MORE)
def test_what_takes_more_is_expected_to(name: str) -> None:
    assert expected(**MORE[name]).total > expected().total * 1.1


@pytest.mark.parametrize(
    "more", [{"prompt": "character"}, {"memory": "transcript"}, {"memory": {"last": 3}}]
)
def test_what_language_players_keep_is_at_their_workers(more: dict[str, Any]) -> None:
    fields = {"agents": 100_000, "rounds": 5, "model": LANGUAGE}
    assert expected(**fields, **more).workers[0] > 1.2 * expected(**fields).workers[0]


def test_a_plan_without_a_game_expects_nothing() -> None:
    assert without_workers(Hostfile()).memory is None


def resident_peak(pid: int) -> int:
    """Most bytes that a process had in memory so far; 0 when it is gone."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    found = [line.split()[1] for line in status.splitlines() if line.startswith("VmHWM")]
    return int(found[0]) * 1024 if found else 0


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_run_of_two_million_stays_below_what_its_manifest_announced(
    program, scenario, tmp_path, capsys
) -> None:
    file = scenario(agents=2_000_000, rounds=3, model={"backend": "dummy", "think_s": 0.0})
    process = program.begin("run", file, "--quiet", "--out", tmp_path / "run")
    peaks: dict[str, dict[int, int]] = {
        "agentsim run": {},
        "agentsim.node": {},
        "agentsim.worker": {},
    }

    def ended() -> bool:
        for words, known in peaks.items():
            for pid in program.processes(*words.split()):
                known[pid] = max(known.get(pid, 0), resident_peak(pid))
        return process.poll() is not None

    program.wait_for(ended, timeout_s=500)
    assert process.returncode == 0, process.stderr and process.stderr.read()
    announced = read_manifest(tmp_path / "run")["plan"]["memory"]
    found = {words: sum(known.values()) for words, known in peaks.items()}
    with capsys.disabled():
        print(f"\nannounced {announced}, found {found}")
    assert len(peaks["agentsim.worker"]) == 2
    assert found["agentsim run"] <= announced["orchestrator"]
    assert max(peaks["agentsim.node"].values()) <= announced["node"]
    assert found["agentsim.worker"] <= sum(announced["workers"])
    # It is no use to announce anything.
    assert sum(found.values()) > announced["total"] / 3
