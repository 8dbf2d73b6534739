"""Guess the average: everybody picks a number, the closest to a function of all numbers wins."""

from agentsim.games.guess_average.equilibrium import Equilibrium, equilibrium
from agentsim.games.guess_average.people import PEOPLE, People
from agentsim.games.guess_average.player import MarketContext, Player
from agentsim.games.guess_average.rules import Settlement, settle, to_settle
from agentsim.games.guess_average.spec import GuessAverageSpec, Winners

__all__ = [
    "PEOPLE",
    "Equilibrium",
    "GuessAverageSpec",
    "MarketContext",
    "People",
    "Player",
    "Settlement",
    "Winners",
    "equilibrium",
    "settle",
    "to_settle",
]
