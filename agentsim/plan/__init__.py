"""Who will sit where: the pure, printable plan of a run."""

from agentsim.plan.plan import HostPlan, RunPlan, Shard, make, place, without_workers

__all__ = ["HostPlan", "RunPlan", "Shard", "make", "place", "without_workers"]
