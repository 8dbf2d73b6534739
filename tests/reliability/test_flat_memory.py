"""Memory does not grow with rounds: what was settled is on disk, and nowhere else."""

import threading
from pathlib import Path

import pytest

# Allocators and libraries have what they want after some rounds.
ROUNDS, WARM, LATE = 620, 200, 600
# They come and go by 2 MB. A single column of 2,000 numbers kept for each round would be 6 MB, and
# a round has several.
GROWTH_MIB = 5.0


def resident_mib(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("VmRSS:"))
    return int(line.split()[1]) / 1024


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_it_is_flat_in_rounds(program, scenario) -> None:
    file = scenario(agents=2000, rounds=ROUNDS, model={"backend": "dummy", "think_s": 0.0})
    process = program.begin("run", file, "--out", "R")
    measured: dict[int, dict[str, float]] = {}

    def measure() -> None:
        for line in process.stderr:
            for round in (WARM, LATE):
                if line.startswith(f"round {round} of"):
                    measured[round] = {
                        f"{name} {pid}": resident_mib(pid)
                        for name in ("agentsim run", "agentsim.worker", "agentsim.node")
                        for pid in program.processes(name)
                    }

    reader = threading.Thread(target=measure)
    reader.start()
    reader.join(280)
    assert process.wait(20) == 0
    early, late = measured[WARM], measured[LATE]
    assert set(early) == set(late)
    grown = {name: late[name] - early[name] for name in late}
    assert max(grown.values()) < GROWTH_MIB, grown
