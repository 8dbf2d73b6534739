"""Flags that several commands take."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

WHAT = "In place of the scenario's"


def overrides(
    flags: Mapping[str, int | None], set_: Iterable[str] | None
) -> list[tuple[str, str, str]]:
    """What the command line changes in a scenario, in the order in which it applies.

    Args:
        flags: values of flags that are called like a key.
        set_: what stood behind each `--set`.

    Raises:
        ConfigError: a `--set` is not KEY=VALUE.
    """
    from agentsim.config import split_set

    given = [(key, str(value), f"--{key}") for key, value in flags.items() if value is not None]
    return [*given, *(split_set(text) for text in set_ or ())]
