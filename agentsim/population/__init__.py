"""Distributions in, people out: attributes, background texts and the file that holds them."""

from agentsim.population.backgrounds import backgrounds
from agentsim.population.distributions import RESERVED, check
from agentsim.population.personas import digest, read_personas, write_personas
from agentsim.population.sampling import sample
from agentsim.population.shares import describe, expected, marginals

__all__ = [
    "RESERVED",
    "backgrounds",
    "check",
    "describe",
    "digest",
    "expected",
    "marginals",
    "read_personas",
    "sample",
    "write_personas",
]
