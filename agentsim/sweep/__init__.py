"""Sweeps: many runs of one scenario, one after the other."""

from agentsim.sweep.begin import Changes, begin, read_again, refuse_other
from agentsim.sweep.people import people_key
from agentsim.sweep.runner import Screen, run_sweep

__all__ = ["Changes", "Screen", "begin", "people_key", "read_again", "refuse_other", "run_sweep"]
