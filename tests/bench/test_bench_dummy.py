"""The arithmetic of `bench dummy`, and the command itself at small sizes."""

import json

import pyarrow.parquet as pq
import pytest

from agentsim.bench import Dummies, bench_dummy
from agentsim.bench.dummy import PARTS
from agentsim.results import RunDirectory
from agentsim.results.rebuild import rebuild


class Measured:
    """Measurements that are made up: each run costs one CPU second more than the one before."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, dict]] = []

    def __call__(self, name: str, settings: dict) -> dict:
        self.asked.append((name, settings))
        cpu_s = float(len(self.asked))
        kib = 1024
        return {
            "parts": {part: [10.0 * cpu_s, cpu_s] for part in PARTS},
            "rounds_s": [1.0, 3.0],
            "memory": {
                "startup": {"orchestrator": 100 * kib, "workers": 100 * kib},
                "create": {"orchestrator": 100 * kib, "workers": 300 * kib},
                "rounds": {"orchestrator": 200 * kib, "workers": 300 * kib},
                "most": {"orchestrator": 400 * kib, "workers": 800 * kib},
            },
            "disk_bytes": 7,
        }


def test_repeated_runs_give_medians_and_spread() -> None:
    measured = Measured()
    found = bench_dummy(Dummies(agents=1000, rounds=2, repeats=3), measured=measured)
    assert found["rounds"] == {
        "wall_s": 20.0,
        "wall_s_min": 10.0,
        "wall_s_max": 30.0,
        "cpu_s": 2.0,
        "cpu_s_min": 1.0,
        "cpu_s_max": 3.0,
    }
    assert found["total"]["cpu_s"] == len(PARTS) * 2.0
    assert found["round"] == {"wall_s": 2.0, "cpu_s": 1.0}
    assert found["turns_per_cpu_s"] == 1000.0
    assert found["cpu_us_a_turn"] == pytest.approx(1000.0)
    assert len(found["runs"]) == 3


def test_memory_is_looked_at_in_a_run_that_is_not_timed() -> None:
    measured = Measured()
    found = bench_dummy(Dummies(agents=1024, repeats=1), measured=measured)
    assert [settings["memory"] for _, settings in measured.asked] == [False, True]
    assert found["memory"]["startup_bytes"] == 200 * 1024
    assert found["memory"]["bytes_an_agent_idle"] == 200.0
    assert found["memory"]["bytes_an_agent_in_flight"] == 1000.0
    assert found["memory"]["peak_bytes"] == 1200 * 1024


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("flags", [(), ("--coroutines",)], ids=["players", "coroutines"])
def test_the_command_measures_a_whole_run(program, flags) -> None:
    size = ("--agents", "500", "--rounds", "2", "--think", "0.02", "--jitter", "0.01")
    args = ("bench", "dummy", *size, "--workers", "1", "--repeats", "1", *flags)
    out, err = program.run(*args, "--json", timeout_s=120)
    found = json.loads(out)
    assert "500 agents" in err
    assert all(found[part]["cpu_s"] >= 0 for part in PARTS)
    # All imports are in the first part, and nothing of it in the rounds.
    assert found["startup"]["cpu_s"] > found["rounds"]["cpu_s"]
    whole = sum(found["runs"][0][part]["cpu_s"] for part in PARTS)
    assert found["total"]["cpu_s"] == pytest.approx(whole)
    assert set(found["memory"]["by_program"]["most"]) == {"orchestrator", "nodes", "workers"}
    assert (found["disk_bytes"] > 0) == (not flags)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_runs_are_kept_where_the_user_says(program, tmp_path) -> None:
    args = ("bench", "dummy", "--agents", "50", "--think", "0", "--jitter", "0", "--repeats", "1")
    out, _ = program.run(*args, "--out", tmp_path / "kept", timeout_s=120)
    assert "50 players" in out
    assert max(len(line.rstrip()) for line in out.splitlines()) <= 80
    assert (tmp_path / "kept" / "run-1" / "summary.json").exists()


@pytest.mark.quick
def test_a_jitter_above_the_thinking_time_is_refused(program) -> None:
    _, err = program.run("bench", "dummy", "--think", "0.1", "--jitter", "0.5", code=2)
    assert "--jitter 0.5 is more than --think 0.1" in err


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_players_say_texts_that_the_journal_keeps(program, tmp_path) -> None:
    size = ("--agents", "300", "--rounds", "2", "--think", "0.02", "--jitter", "0.01")
    args = ("bench", "dummy", *size, "--text", "200", "--repeats", "1", "--no-memory")
    program.run(*args, "--out", tmp_path / "kept", timeout_s=120)
    directory = RunDirectory(tmp_path / "kept" / "run-1")
    before = pq.read_table(directory.actions).sort_by(
        [("round", "ascending"), ("agent", "ascending")]
    )
    assert {len(text) for text in before.column("text").to_pylist()} == {200}
    rebuild(directory)
    after = pq.read_table(directory.actions).sort_by(
        [("round", "ascending"), ("agent", "ascending")]
    )
    assert after.equals(before)


def test_texts_are_for_players(program) -> None:
    _, err = program.run("bench", "dummy", "--text", "10", "--coroutines", code=2)
    assert "--text is for players" in err
