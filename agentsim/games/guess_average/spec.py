"""The `game:` part of a scenario, for guessing games."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Annotated, Literal

from pydantic import Field

from agentsim.config.base import FileModel
from agentsim.config.checks import GameFinding
from agentsim.config.models import CognitiveHierarchy, LevelK
from agentsim.config.scenario import Scenario
from agentsim.expressions import ExpressionError
from agentsim.games.guess_average.people import PEOPLE
from agentsim.models import theory
from agentsim.models.rule import Rule
from agentsim.models.theory import NoBestReplyError

Announced = Literal["mean", "median", "target", "winning_guess"]
Finite = Annotated[float, Field(allow_inf_nan=False)]


class Winners(FileModel):
    """Who wins and what is paid. The winner is the player whose guess is closest to the target."""

    ties: Literal["split", "each", "draw"] = "split"
    """`split`: several winners share the prize; `each`: each of them gets the whole prize; `draw`:
    one of them is drawn."""
    prize: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 100.0
    """What a round pays, in points."""
    band: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0
    """A guess also wins when it is at most this much farther from the target than the closest
    one, in the unit of the guesses."""


class GuessAverageSpec(FileModel):
    """Everybody picks a number; who is closest to a function of all numbers wins."""

    type: Literal["guess_average"]
    """Says which game this is."""
    range: tuple[Finite, Finite] = (0.0, 100.0)
    """Smallest and largest number that may be picked, both allowed."""
    target: str = "2/3 * mean"
    """The number to be close to: an expression of `mean` and `median` (over the valid numbers of
    the round) and `n` (players in the market), with `+ - * /` and brackets."""
    announce: tuple[Announced, ...] = ("mean", "target")
    """What everybody is told after a round; may be empty."""
    winners: Winners = Winners()
    """Who wins and what is paid."""
    groups: None = None
    """One market for all. Groups are not served yet."""

    @property
    def rule(self) -> Rule:
        """The game as models see it.

        Raises:
            ExpressionError: the target cannot be used; `findings` tells so first.
        """
        return Rule.of(*self.range, self.target, self.announce)

    def findings(self, scenario: Scenario) -> Iterable[GameFinding]:
        """What is wrong with the game beside its types, alone and with the rest of the scenario."""
        low, high = self.range
        if not low < high:
            yield GameFinding(
                ("game", "range"),
                "contradiction",
                f"the range starts at {low:g} and ends at {high:g}",
                "the smaller number first, e.g. [0, 100]",
            )
        elif not math.isfinite(high - low):
            yield GameFinding(("game", "range"), "out-of-range", "the range is too wide")
        if len(set(self.announce)) < len(self.announce):
            yield GameFinding(
                ("game", "announce"), "contradiction", "a name stands twice", "each name once"
            )
        try:
            rule = self.rule
        except ExpressionError as error:
            yield GameFinding(
                ("game", "target"),
                "bad-expression",
                f"{error.message} (character {error.column} of the expression)",
                "an expression of mean, median and n, e.g. 2/3 * mean",
            )
            return
        if low < high:
            yield from _in_scenario(rule, scenario)


def _in_scenario(rule: Rule, scenario: Scenario) -> Iterator[GameFinding]:
    if isinstance(scenario.model, CognitiveHierarchy | LevelK):
        try:
            theory.check(rule, scenario.agents)
        except NoBestReplyError as error:
            yield GameFinding(
                ("game", "target"),
                "contradiction",
                f"{error}; `{scenario.model.backend}` players cannot play this",
                "a target such as 2/3 * mean or 5 + mean / 2, or another backend",
                beside=((("model", "backend"), "the players"),),
            )
    if scenario.compare is not None:
        people = PEOPLE[scenario.compare]
        theirs = (people.low, people.high, people.slope, people.intercept)
        if (rule.low, rule.high, rule.slope, rule.intercept) != theirs:
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
