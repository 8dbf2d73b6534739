"""The other measurements of `agentsim bench`: their arithmetic, and the commands at small sizes."""

import json

import pytest

from agentsim.bench import Dummies, bench_scaling
from agentsim.bench.messages import bench_messages
from agentsim.bench.models import bench_models
from agentsim.bench.results import bench_results


def test_scaling_fixes_agents_a_worker_and_then_agents_and_tells_the_cost_of_one_more() -> None:
    played: list[tuple[int, int, int, bool]] = []

    def bench(spec: Dummies) -> dict:
        played.append((spec.agents, spec.workers, spec.repeats, spec.memory))
        repeat = played.count(played[-1])
        return {"round": {"wall_s": float(repeat), "cpu_s": repeat * (0.5 + spec.agents * 2e-6)}}

    spec = Dummies(agents=400_000, workers=2, repeats=3)
    found = bench_scaling(
        spec, workers=[1, 2, 4], sizes=[1_000_000, 10_000, 100_000, 10_000], bench=bench
    )
    assert [line["agents"] for line in found["weak"]] == [100_000, 200_000, 400_000]
    assert [line["agents"] for line in found["strong"]] == [400_000] * 3
    assert [line["workers"] for line in found["weak"]] == [1, 2, 4]
    assert [line["agents"] for line in found["sizes"]] == [10_000, 100_000, 1_000_000]
    assert "slope_us" not in found["sizes"][0]
    for line in found["sizes"][1:]:
        slopes = [line[f"slope_us{which}"] for which in ("_min", "", "_max")]
        assert slopes == pytest.approx([2.0, 4.0, 6.0])
    line = found["strong"][0]
    assert [line[f"wall_s{which}"] for which in ("_min", "", "_max")] == [1.0, 2.0, 3.0]
    assert [line[f"cpu_s{which}"] for which in ("_min", "", "_max")] == pytest.approx(
        [1.3, 2.6, 3.9]
    )
    assert line["cpu_us_a_turn"] == pytest.approx(6.5)
    # A repeat of all, each once, before the next.
    once = played[: len(set(played))]
    assert played == once * 3
    assert all(repeats == 1 and not memory for _, _, repeats, memory in played)


def test_messages_are_told_in_microseconds_a_call() -> None:
    costs = [[2e-6, 1e-6], [4e-6, 3e-6], [3e-6, 5e-6]]
    found = bench_messages(
        calls=10,
        round_trips=5,
        workers=2,
        repeats=3,
        measured=lambda name, settings: dict.fromkeys(
            ("fan_out", "group_call", "round_trip"), costs
        ),
    )
    assert found["fan_out"] == pytest.approx(
        {
            "cpu_us": 3.0,
            "cpu_us_min": 1.0,
            "cpu_us_max": 5.0,
            "wall_us": 3.0,
            "wall_us_min": 2.0,
            "wall_us_max": 4.0,
        }
    )


def test_models_are_told_by_window_without_the_servers_own_cpu() -> None:
    found = bench_models(
        requests=100,
        windows=[4, 8],
        delay_s=0.0,
        repeats=1,
        measured=lambda name, settings: {"runs": [[2.0, 0.1 * settings["window"], 0.5]]},
    )
    assert [line["window"] for line in found["windows"]] == [4, 8]
    assert [line["requests_per_s"] for line in found["windows"]] == [50.0, 50.0]
    assert [line["ours_ms"] for line in found["windows"]] == pytest.approx([4.0, 8.0])
    assert found["windows"][0]["server_ms"] == pytest.approx(5.0)


def test_results_are_told_for_a_million_rows() -> None:
    def measured(name: str, settings: dict) -> dict:
        return {
            "runs": [{"journal": 0.01, "gather": 0.02, "parquet": 0.03}],
            "journal_bytes": 12 * settings["rows"],
            "parquet_bytes": 8 * settings["rows"],
        }

    found = bench_results(rows=100_000, attempts=10_000, repeats=1, measured=measured)
    assert found["players"]["journal_cpu_s"] == pytest.approx(0.1)
    assert found["players"]["cpu_s"] == pytest.approx(0.4)
    assert found["attempts_of_models"]["parquet_cpu_s"] == pytest.approx(3.0)
    assert found["players"]["journal_bytes"] == 12


SMALL = {
    "messages": ("--calls", "200", "--round-trips", "20", "--workers", "1", "--repeats", "1"),
    "models": ("--requests", "50", "--windows", "4,16", "--repeats", "1"),
    "results": ("--rows", "5000", "--attempts", "100", "--repeats", "1"),
    "scaling": (
        *("--agents", "200", "--workers", "1,2", "--sizes", "100,200", "--rounds", "1"),
        *("--think", "0", "--jitter", "0", "--repeats", "1"),
    ),
}


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("command", SMALL)
def test_the_commands_print_json_and_tables_of_eighty_columns(program, command) -> None:
    out, _ = program.run("bench", command, *SMALL[command], "--json", timeout_s=200)
    found = json.loads(out)
    assert found["machine"]["cores"] >= 1
    out, _ = program.run("bench", command, *SMALL[command], timeout_s=200)
    lines = [line.rstrip() for line in out.splitlines()]
    assert max(map(len, lines)) <= 80
    assert lines[-1].startswith(f"{found['machine']['cores']} cores")


@pytest.mark.parametrize("text", ["", "1,,2", "0", "1.5", "two"])
def test_a_list_that_is_none_is_refused(program, text) -> None:
    _, err = program.run("bench", "models", "--windows", text, code=2)
    assert "--windows takes whole numbers from 1 up" in err
