"""What people did, as published, to be printed beside a run.

Rosemarie Nagel, "Unraveling in Guessing Games: An Experimental Study", American Economic Review
85(5), 1995, pp. 1313-1326: groups of 15 to 18 students guess a number from 0 to 100, the target is
2/3 of the mean, and there are four rounds. After a round all choices, the mean, the target and the
payoffs were shown. The means and medians by round are those of session 4, one of several; the first
round's number is over all sessions with this target. Only moments are published here, so there is
no test of whole distributions against them.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class People:
    """Published moments of people playing one game.

    Attributes:
        source: short reference.
        note: what the numbers are, one sentence.
        low, high: the range of the guesses.
        target: the rule, as a scenario would write it.
        slope, intercept: the same as numbers: the target is slope * mean + intercept.
        means: mean guess of each round.
        medians: median guess of each round.
        first_round_mean: mean guess of round 1 over all sessions.
        first_round_n: people in it.
    """

    source: str
    note: str
    low: float
    high: float
    target: str
    slope: float
    intercept: float
    means: tuple[float, ...]
    medians: tuple[float, ...]
    first_round_mean: float
    first_round_n: int


NAGEL_1995 = People(
    source="Nagel (1995), session 4",
    note="one session of 15 to 18 students, who saw all choices, mean, target and payoffs",
    low=0.0,
    high=100.0,
    target="2/3 * mean",
    slope=2 / 3,
    intercept=0.0,
    means=(39.7, 28.6, 20.2, 16.7),
    medians=(33.0, 29.0, 14.0, 10.0),
    first_round_mean=36.73,
    first_round_n=67,
)

PEOPLE: dict[str, People] = {"nagel-1995": NAGEL_1995}
