"""Which mean number of thinking steps would give the mean of round 1: the Poisson cognitive
hierarchy (Camerer, Ho, Chong 2004), turned round. Where it is not identified, this says why."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from agentsim.models import theory
from agentsim.models.rule import Rule

LARGEST = 20.0
_SMALLEST = 1e-6
_STEPS = 200
_HALVINGS = 60

Data = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Tau:
    """A fitted tau.

    Attributes:
        value: mean of the Poisson distribution of levels; None when there is none.
        words: what can be said of it, one sentence; when there is none, why.
        low, high: the interval between sessions; None where there is none, or no end.
        missing_low, missing_high: between what it would lie, had the missing players answered
            anything in the range; None where there is no such end, or nobody is missing.
    """

    value: float | None
    words: str
    low: float | None = None
    high: float | None = None
    missing_low: float | None = None
    missing_high: float | None = None


def fit(summary: Data, manifest: Data) -> Tau:
    """Fit tau to the mean of round 1."""
    round_1 = next((row for row in summary["over_sessions"] if row["round"] == 1), None)
    if round_1 is None or round_1["mean_of_means"] is None:
        return Tau(None, "tau: none, since round 1 has no mean")
    if ((manifest.get("game") or {}).get("groups") or {}).get("scope") == "separate":
        return Tau(None, "tau: none, since each group is a market of its own")
    rule, n = _rule(manifest), int((manifest.get("scenario") or {}).get("agents") or 0)
    if rule is None or n < 1:
        return Tau(None, "tau: none, since theory has no best reply to a target of this form")
    try:
        theory.check(rule, n)
    except theory.NoBestReplyError as error:
        return Tau(None, f"tau: none, since {error}")
    invert = _inverse(rule, n)
    mean = round_1["mean_of_means"]
    roots = invert(mean)
    if len(roots) != 1:
        return Tau(None, _why_not(rule, n, mean, len(roots)))
    ends = _ends(invert, round_1["low"], round_1["high"])
    missing = _missing(summary, invert)
    return Tau(
        roots[0], _words(roots[0], ends, missing, round_1), *ends, *(missing or (None, None))
    )


def mean_of_round_1(rule: Rule, n: int, tau: float) -> float:
    """Mean guess of round 1 that the theory expects; tau 0: nobody reasons."""
    if tau < _SMALLEST:
        return rule.middle
    levels = theory.poisson_levels(tau, 0.0)
    return float(levels.shares @ theory.level_means(levels, rule, n, rule.middle))


def _rule(manifest: Data) -> Rule | None:
    rule = manifest.get("rule")
    if not rule or rule.get("slope") is None or rule.get("intercept") is None:
        return None
    return Rule(rule["low"], rule["high"], "", (), rule["slope"], rule["intercept"])


def _inverse(rule: Rule, n: int) -> Callable[[float], list[float]]:
    """All tau from 0 to `LARGEST` with a given mean; the grid is computed once."""
    grid = [LARGEST * i / _STEPS for i in range(_STEPS + 1)]
    means = [mean_of_round_1(rule, n, tau) for tau in grid]

    def invert(mean: float) -> list[float]:
        roots = []
        for i in range(_STEPS):
            left, right = means[i] - mean, means[i + 1] - mean
            if left == 0:
                roots.append(grid[i])
            elif left * right < 0:
                roots.append(_bisect(rule, n, mean, (grid[i], grid[i + 1])))
        return roots

    return invert


def _bisect(rule: Rule, n: int, mean: float, bracket: tuple[float, float]) -> float:
    low, high = bracket
    falling = mean_of_round_1(rule, n, low) > mean
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if (mean_of_round_1(rule, n, middle) > mean) == falling:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _why_not(rule: Rule, n: int, mean: float, roots: int) -> str:
    if roots:
        return f"tau: none, since {roots} values of it give the mean of round 1 equally well"
    unthinking, most = rule.middle, mean_of_round_1(rule, n, LARGEST)
    if (mean > unthinking) != (most > unthinking):
        side = "above" if mean > unthinking else "below"
        return (
            f"tau: none, since the mean of round 1 is {mean:.4g}, {side} the {unthinking:.4g} of "
            "players who do not reason at all"
        )
    return (
        f"tau: none, since no tau up to {LARGEST:g} gives the mean of round 1, {mean:.4g}; "
        f"the closest it comes is {most:.4g}"
    )


def _ends(
    invert: Callable[[float], list[float]], low: float | None, high: float | None
) -> tuple[float | None, float | None]:
    """The values of tau at the two ends of an interval of means, ascending; None: no such end."""
    if low is None or high is None:
        return None, None
    at_low, at_high = (roots[0] if len(roots := invert(end)) == 1 else None for end in (low, high))
    middle = invert((low + high) / 2)
    falls = _falls(middle, at_low, at_high)
    return (at_high, at_low) if falls else (at_low, at_high)


def _falls(middle: list[float], at_low: float | None, at_high: float | None) -> bool:
    """Whether tau falls as the mean rises."""
    if at_low is not None and at_high is not None:
        return at_low > at_high
    if at_low is not None:
        return not middle or at_low > middle[0]
    return at_high is None or not middle or at_high < middle[0]


def _missing(
    summary: Data, invert: Callable[[float], list[float]]
) -> tuple[float | None, float | None] | None:
    """Tau at the bounds of the mean of round 1, averaged over sessions."""
    rows = [row for row in summary["rounds"] if row["round"] == 1 and row["bounds"]]
    if not any(row["missing"] for row in rows):
        return None
    low, high = (
        math.fsum(row["bounds"][key] for row in rows) / len(rows)
        for key in ("mean_low", "mean_high")
    )
    return _ends(invert, low, high)


def _words(
    value: float,
    ends: tuple[float | None, float | None],
    missing: tuple[float | None, float | None] | None,
    round_1: Data,
) -> str:
    words = f"tau: {value:.2f} thinking steps on average would give the mean of round 1"
    if round_1["low"] is None:
        words += "; one session: no interval between sessions"
    else:
        words += f"; 95 % interval between sessions: {_span(*ends)}"
    if missing is not None:
        words += f"; had the missing answered anything: {_span(*missing)}"
    return words


def _span(low: float | None, high: float | None) -> str:
    if low is None and high is None:
        return "not bounded"
    if low is None:
        return f"up to {high:.2f}, with no lower end"
    if high is None:
        return f"from {low:.2f}, with no upper end"
    return f"{low:.2f} to {high:.2f}"
