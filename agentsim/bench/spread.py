"""Repeated figures in one: their median, the least and the most."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median


def spread(name: str, values: Sequence[float]) -> dict[str, float]:
    """`{name, name_min, name_max}`: the median, the least and the most."""
    return {name: median(values), f"{name}_min": min(values), f"{name}_max": max(values)}
