"""The `game:` part of a scenario, for guessing games."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import Annotated, Literal

from pydantic import Field

from agentsim.config.base import FileModel
from agentsim.config.checks import GameFinding
from agentsim.config.population import Population
from agentsim.config.scenario import Scenario
from agentsim.expressions import ExpressionError
from agentsim.games.guess_average import checks
from agentsim.games.guess_average.parts import (
    Announced,
    Announcement,
    Finite,
    Groups,
    Scope,
    Winners,
)
from agentsim.models.rule import Rule


class GuessAverageSpec(FileModel):
    """Everybody picks a number; who is closest to a function of all numbers wins."""

    type: Literal["guess_average"]
    """Says which game this is."""
    range: tuple[Finite, Finite] = (0.0, 100.0)
    """Smallest and largest number that may be picked, both allowed."""
    target: str = "2/3 * mean"
    """The number to be close to: an expression of `mean` and `median` (over the valid numbers of
    the round) and `n` (players in the market), with `+ - * /` and brackets."""
    announce: Annotated[
        tuple[Announced, ...] | Announcement, Field(examples=[["mean", "target"]])
    ] = ("mean", "target")
    """What is told after a round: a list, which may be empty, of what everybody is told, or a map
    that also says to whom, such as `{what: [mean], to: group}`."""
    winners: Winners = Winners()
    """Who wins and what is paid."""
    groups: Annotated[Groups | None, Field(examples=[{"count": 3, "scope": "separate"}])] = None
    """Groups of agents; none: one market for all."""

    @property
    def told(self) -> tuple[Announced, ...]:
        """What is announced after a round."""
        return self.announce.what if isinstance(self.announce, Announcement) else self.announce

    @property
    def tells_groups(self) -> bool:
        """Whether mean and median are those of the player's own group, in a market of several."""
        to_group = isinstance(self.announce, Announcement) and self.announce.to == "group"
        return to_group and self.scope in ("pooled", "between")

    @property
    def scope(self) -> Scope | None:
        """What groups are for; None when there are none."""
        return None if self.groups is None else self.groups.scope

    @property
    def rule(self) -> Rule:
        """The game as models see it. Between groups, the target is no function of the mean guess.

        Raises:
            ExpressionError: the target cannot be used; `findings` tells so first.
        """
        rule = Rule.of(*self.range, self.target, self.told)
        if self.scope == "between":
            return replace(rule, slope=None, intercept=None)
        return rule

    def findings(
        self, scenario: Scenario, population: Population | None = None
    ) -> Iterable[GameFinding]:
        """What is wrong with the game beside its types, alone and with the rest of the scenario.

        Args:
            scenario: around the game.
            population: None where the scenario names none, or one that is not right.
        """
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
        if len(set(self.told)) < len(self.told):
            yield GameFinding(
                ("game", "announce"), "contradiction", "a name stands twice", "each name once"
            )
        yield from checks.of_groups(self, scenario, population)
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
            yield from checks.of_players(self, rule, scenario, population)
            yield from checks.of_people(rule, scenario)
