"""What the rest of a scenario has to do with its guessing game."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from agentsim.config.checks import GameFinding
from agentsim.config.models import CognitiveHierarchy, LevelK
from agentsim.config.population import Categories, Integer, Population, Real
from agentsim.config.scenario import Scenario
from agentsim.games.guess_average.parts import Announcement, AttributeGroups, CountedGroups
from agentsim.games.guess_average.people import PEOPLE
from agentsim.models import theory
from agentsim.models.rule import Rule
from agentsim.models.theory import NoBestReplyError

if TYPE_CHECKING:
    from agentsim.games.guess_average.spec import GuessAverageSpec

_GROUPS = ("game", "groups")
_TO = ("game", "announce", "to")


def of_groups(
    spec: GuessAverageSpec, scenario: Scenario, population: Population | None
) -> Iterator[GameFinding]:
    """Groups that cannot be formed."""
    groups = spec.groups
    if groups is None:
        if isinstance(spec.announce, Announcement) and spec.announce.to == "group":
            message = "announce.to is `group`, and there are no groups"
            yield GameFinding(_TO, "contradiction", message, "all, or `groups`")
        return
    if isinstance(groups, AttributeGroups):
        yield from _of_attribute(groups.by, scenario, population)
    elif groups.count > scenario.agents:
        yield GameFinding(
            (*_GROUPS, "count"),
            "contradiction",
            f"there are {groups.count:,} groups, and {scenario.agents:,} agents",
            "at most as many groups as agents",
            beside=((("agents",), "the agents of a session"),),
        )


def _of_attribute(
    name: str, scenario: Scenario, population: Population | None
) -> Iterator[GameFinding]:
    place = (*_GROUPS, "by")
    if scenario.population is None:
        yield GameFinding(
            place,
            "contradiction",
            f"groups are by `{name}`, and there is no population",
            "for example population: ../populations/adults.yaml",
            beside=((("population",), "there is none because of this"),),
        )
    if population is None:
        return
    known = [
        key
        for key, attribute in population.attributes.items()
        if not isinstance(attribute, Integer | Real)
    ]
    expected = f"one of: {', '.join(known)}" if known else "groups by count"
    if name not in population.attributes:
        close = difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean `{close[0]}`?" if close else ""
        message = f"groups.by: the population has no attribute `{name}`"
        yield GameFinding(place, "unknown-value", message, expected, hint)
    elif name not in known:
        message = f"groups.by: `{name}` is a number and has no categories"
        yield GameFinding(place, "contradiction", message, expected)


def of_players(
    spec: GuessAverageSpec, rule: Rule, scenario: Scenario, population: Population | None
) -> Iterator[GameFinding]:
    """Players of theory in a game that has no theory."""
    if not isinstance(scenario.model, CognitiveHierarchy | LevelK):
        return
    backend = scenario.model.backend
    beside = ((("model", "backend"), "the players"),)
    if spec.scope == "between":
        yield GameFinding(
            (*_GROUPS, "scope"),
            "contradiction",
            f"there is no theory of a game between groups; `{backend}` players cannot play this",
            "pooled or separate, or another backend",
            beside=beside,
        )
        return
    for n in market_sizes(spec, scenario, population):
        try:
            theory.check(rule, n)
        except NoBestReplyError as error:
            where = f" (a group of {n})" if spec.scope == "separate" else ""
            yield GameFinding(
                ("game", "target"),
                "contradiction",
                f"{error}{where}; `{backend}` players cannot play this",
                "a target such as 2/3 * mean or 5 + mean / 2, or another backend",
                beside=beside,
            )
            return


def market_sizes(
    spec: GuessAverageSpec, scenario: Scenario, population: Population | None
) -> list[int]:
    """How many players a market may have, ascending; of categories that are drawn at random or
    depend on others, the smallest numbers, which are the hard ones."""
    n, groups = scenario.agents, spec.groups
    if groups is None or groups.scope != "separate":
        return [n]
    if isinstance(groups, CountedGroups):
        sizes = {n // groups.count, -(-n // groups.count)}
        return sorted(size for size in sizes if size)
    attribute = population.attributes.get(groups.by) if population else None
    if population is None or not isinstance(attribute, Categories):
        return []
    shares = attribute.categories.values()
    if population.allocation != "quota":
        return [size for size in (1, 2, 3) if size <= n and max(shares) > 0]
    sizes = {bound for share in shares for bound in (math.floor(n * share), math.ceil(n * share))}
    return sorted(size for size in sizes if size)


def of_people(rule: Rule, scenario: Scenario) -> Iterator[GameFinding]:
    """People who played another game."""
    if scenario.compare is None:
        return
    people = PEOPLE[scenario.compare]
    theirs = (people.low, people.high, people.slope, people.intercept)
    if (rule.low, rule.high, rule.slope, rule.intercept) == theirs:
        return
    yield GameFinding(
        ("compare",),
        "contradiction",
        f"`{scenario.compare}` is about another game: range [{people.low:g}, "
        f"{people.high:g}], target {people.target}",
        "the same range and target, or no comparison",
        beside=(
            (("game", "range"), "the range of this game"),
            (("game", "target"), "the target of this game"),
        ),
    )
