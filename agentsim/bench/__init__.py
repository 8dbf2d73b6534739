"""What agentsim itself costs on this machine, measured: `agentsim bench`.

Each measurement runs in a process of its own, so that its figures include that process's imports
and leave no memory behind. CPU is that of all processes: orchestrator, nodes and workers. The other
measurements (`messages`, `models`, `results`) are imported where they are used, since what they
measure is.
"""

from __future__ import annotations

from agentsim.bench.dummy import Dummies, bench_dummy
from agentsim.bench.scaling import bench_scaling

__all__ = ["Dummies", "bench_dummy", "bench_scaling"]
