"""Who will sit where: the pure, printable plan of a run."""

from agentsim.plan.memory import Memory
from agentsim.plan.plan import HostPlan, RunPlan, Shard, make, place, without_workers

__all__ = ["HostPlan", "Memory", "RunPlan", "Shard", "make", "place", "without_workers"]
