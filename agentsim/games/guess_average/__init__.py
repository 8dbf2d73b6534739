"""Guess the average: everybody picks a number, the closest to a function of all numbers wins."""

from agentsim.games.guess_average.equilibrium import Equilibrium, equilibrium
from agentsim.games.guess_average.groups import Membership, by_category, by_count
from agentsim.games.guess_average.market import MarketContext
from agentsim.games.guess_average.parts import AttributeGroups, CountedGroups, Winners
from agentsim.games.guess_average.people import PEOPLE, People
from agentsim.games.guess_average.player import Player
from agentsim.games.guess_average.rules import Sides, settle
from agentsim.games.guess_average.settlement import GroupSettlement, Settlement, to_settle
from agentsim.games.guess_average.spec import GuessAverageSpec

__all__ = [
    "PEOPLE",
    "AttributeGroups",
    "CountedGroups",
    "Equilibrium",
    "GroupSettlement",
    "GuessAverageSpec",
    "MarketContext",
    "Membership",
    "People",
    "Player",
    "Settlement",
    "Sides",
    "Winners",
    "by_category",
    "by_count",
    "equilibrium",
    "settle",
    "to_settle",
]
