"""Checks of the file models beyond types and bounds. Each raises a finding in words.

The codes are those of `codes.CODES`; texts of users go in by the context, never by the template.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Sequence
from typing import Any, TypeVar
from urllib.parse import urlsplit

from pydantic import BaseModel, Discriminator
from pydantic_core import PydanticCustomError

from agentsim.config.masking import is_secret

Shares = TypeVar("Shares", dict[str, float], list[float])

SHARES_TOLERANCE = 1e-6
SMALLEST_MASS = 1e-6
LARGEST_WHOLE = 2.0**53
LARGEST_LEVEL = 100
_MODULE = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*")
NO_KIND = "no-kind"
"""Type of the error for a map with none of the keys that would say what it is."""
BESIDE = "beside"
"""In the context of an error: the key in the same map whose value contradicts this one."""


def tag_by_key(*keys: str) -> Discriminator:
    """Tells maps apart by which key they have; the tags are the keys in angle brackets."""

    def tag(value: Any) -> str | None:
        names = type(value).model_fields if isinstance(value, BaseModel) else value
        for key in keys:
            if isinstance(names, dict) and key in names:
                return f"<{key}>"
        return None

    return Discriminator(
        tag,
        custom_error_type=NO_KIND,
        custom_error_message="a map with one of {keys}",
        custom_error_context={"keys": ", ".join(keys)},
    )


def sums_to_one(shares: Shares) -> Shares:
    """Shares sum to 1 within 1e-6."""
    total = math.fsum(shares.values() if isinstance(shares, dict) else shares)
    if abs(total - 1) > SHARES_TOLERANCE:
        raise PydanticCustomError(
            "shares-sum", "the shares sum to {total}, not to 1", {"total": f"{total:.10g}"}
        )
    return shares


def level(name: str) -> str:
    """A level is a whole number from 0 to 100."""
    if not re.fullmatch(r"0|[1-9][0-9]{0,2}", name) or int(name) > LARGEST_LEVEL:
        raise PydanticCustomError(
            "out-of-range",
            "a level must be a whole number from 0 to {largest}, found `{name}`",
            {"name": name[:40], "largest": LARGEST_LEVEL},
        )
    return name


def above(high: float, low: float | None) -> float:
    """The upper bound is larger than the lower one, by a finite width."""
    if low is None:
        return high
    if high <= low:
        raise PydanticCustomError(
            "contradiction",
            "high must be above low, found low {low} and high {high}",
            {"low": f"{low:.10g}", "high": f"{high:.10g}", BESIDE: "low"},
        )
    if not math.isfinite(high - low):
        raise PydanticCustomError("out-of-range", "low and high are too far apart")
    return high


def ascending(edges: list[float]) -> list[float]:
    """Edges ascend, by finite widths."""
    for left, right in itertools.pairwise(edges):
        if right <= left:
            raise PydanticCustomError(
                "bad-value",
                "edges must ascend, found {left} before {right}",
                {"left": f"{left:.10g}", "right": f"{right:.10g}"},
            )
    if not math.isfinite(edges[-1] - edges[0]):
        raise PydanticCustomError("out-of-range", "the edges are too far apart")
    return edges


def same_number(shares: list[float], edges: Sequence[float] | None) -> list[float]:
    """There is one edge more than there are shares."""
    if edges is not None and len(edges) != len(shares) + 1:
        raise PydanticCustomError(
            "contradiction",
            "{shares} shares need {need} edges, found {edges}",
            {"shares": len(shares), "need": len(shares) + 1, "edges": len(edges), BESIDE: "edges"},
        )
    return shares


def has_mass(mean: float, sd: float, low: float, high: float) -> None:
    """A truncated normal distribution keeps a part of the whole one that can be drawn from."""
    left, right = (low - mean) / sd, (high - mean) / sd
    if left > 0:  # the upper tail has the precision
        left, right = -right, -left
    mass = (math.erfc(-right / math.sqrt(2)) - math.erfc(-left / math.sqrt(2))) / 2
    if not mass >= SMALLEST_MASS:
        raise PydanticCustomError(
            "contradiction",
            "almost nothing of a normal with mean {mean} and sd {sd} lies from {low} to {high}",
            {"mean": f"{mean:g}", "sd": f"{sd:g}", "low": f"{low:g}", "high": f"{high:g}"},
        )


def holds_whole_numbers(low: float, high: float) -> None:
    """An interval of an integer attribute holds a whole number, and none too large for a float."""
    if max(abs(low), abs(high)) > LARGEST_WHOLE:
        raise PydanticCustomError("out-of-range", "whole numbers go from -2^53 to 2^53")
    if math.ceil(low) > math.floor(high):
        raise PydanticCustomError(
            "bad-value",
            "no whole number lies from {low} to {high}",
            {"low": f"{low:.10g}", "high": f"{high:.10g}"},
        )


def within_thinking_time(jitter_s: float, think_s: float | None) -> float:
    """Nobody thinks for less than no time."""
    if think_s is not None and jitter_s > think_s:
        raise PydanticCustomError(
            "contradiction",
            "jitter_s must be at most think_s, found {jitter_s} and {think_s}",
            {"jitter_s": f"{jitter_s:g}", "think_s": f"{think_s:g}", BESIDE: "think_s"},
        )
    return jitter_s


def needs_no_password(url: str) -> str:
    """An address holds no user and no password."""
    try:
        parts = urlsplit(url)
        inside = parts.username is not None or parts.password is not None
    except ValueError:
        raise PydanticCustomError("bad-value", "base_url is not an address") from None
    if inside:
        raise PydanticCustomError("secret-in-file", "an address with a user or a password")
    return url


def module_name(name: str) -> str:
    """A name that a module can have."""
    if not _MODULE.fullmatch(name):
        raise PydanticCustomError(
            "bad-value", "`{name}` is not the name of a module", {"name": name[:60]}
        )
    return name


def function_path(path: str) -> str:
    """`module:function`."""
    module, _, function = path.partition(":")
    if not (_MODULE.fullmatch(module) and function.isidentifier()):
        raise PydanticCustomError(
            "bad-value",
            "a workflow is written module:function, as in debate:main; found `{path}`",
            {"path": path[:60]},
        )
    return path


def ports(value: int | str) -> int | str:
    """A port, or a range of them as in 7000-7099."""
    first, dash, last = str(value).partition("-")
    if dash and first.isdigit() and last.isdigit() and 0 < int(first) <= int(last) < 2**16:
        return value
    if isinstance(value, int) and 0 <= value < 2**16:
        return value
    raise PydanticCustomError(
        "bad-value",
        "a port is a number from 0 to 65535 or a range as in 7000-7099, found `{value}`",
        {"value": str(value)[:30]},
    )


def no_secret(name: str) -> str:
    """The name of a variable that holds no secret, as far as a name can tell."""
    if is_secret(name):
        raise PydanticCustomError(
            "secret-in-file",
            "a secret does not belong into a file; set the variable on the host, in its shell's "
            "startup file or in one that `setup` reads",
        )
    return name
