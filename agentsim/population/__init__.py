"""Distributions in, people out: attributes, background texts and the file that holds them."""

from agentsim.population.backgrounds import backgrounds
from agentsim.population.distributions import RESERVED, attribute_names, check
from agentsim.population.facts import Fact, facts_of
from agentsim.population.personas import copy_personas, digest, read_personas, write_personas
from agentsim.population.sampling import sample
from agentsim.population.shares import describe, expected, marginals
from agentsim.population.writer import Meta, PersonaWriter, Written

__all__ = [
    "RESERVED",
    "Fact",
    "Meta",
    "PersonaWriter",
    "Written",
    "attribute_names",
    "backgrounds",
    "check",
    "copy_personas",
    "describe",
    "digest",
    "expected",
    "facts_of",
    "marginals",
    "read_personas",
    "sample",
    "write_personas",
]
