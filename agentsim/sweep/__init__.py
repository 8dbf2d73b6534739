"""Sweeps: many runs of one scenario, one after the other."""

from agentsim.sweep.begin import begin, read_again, refuse_other
from agentsim.sweep.runner import Screen, run_sweep

__all__ = ["Screen", "begin", "read_again", "refuse_other", "run_sweep"]
