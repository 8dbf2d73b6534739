"""What the commands for clusters that stay share."""

from __future__ import annotations

import re
import sys
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

if TYPE_CHECKING:
    from agentsim.launch.registry import Staying

T = TypeVar("T")

Name = Annotated[
    str | None, typer.Option("--name", help="Of the cluster. [default: the only one there is]")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]

_UNITS_S = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
_LONGEST_S = 366 * 86_400.0


def the_cluster(name: str | None) -> Staying:
    """The cluster of a name, or the only one.

    Raises:
        UserError: there is none, or there are several.
    """
    from agentsim.errors import UserError
    from agentsim.launch import registry

    if name is None:
        names = registry.names()
        if len(names) > 1:
            raise UserError(f"there are several clusters, so name one: --name {' | '.join(names)}")
        if not names:
            raise UserError("there is no cluster; to start one: agentsim cluster up HOSTFILE")
        name = names[0]
    return registry.registry(name).read()


def finish(work: Coroutine[Any, Any, T]) -> T:
    """Do something to its end, and give what comes of it."""
    import uvloop

    return uvloop.run(work)


class OnStderr:
    """Tells how a start goes. See `launch.preflight.Watcher`."""

    def stage(self, name: str) -> None:
        """What is done now."""
        print(name, file=sys.stderr)

    def notice(self, message: str) -> None:
        """What the user should know."""
        print(message, file=sys.stderr)


def seconds(text: str, option: str) -> float:
    """A time as people write it: 90s, 30m, 8h, 2d.

    Raises:
        UserError: it is none, or none that makes sense.
    """
    from agentsim.errors import UserError

    found = re.fullmatch(r"(\d+(?:\.\d+)?)([smhd])", text.strip())
    value_s = float(found[1]) * _UNITS_S[found[2]] if found else 0.0
    if not 1 <= value_s <= _LONGEST_S:
        raise UserError(f"{option} takes a time such as 90s, 30m, 8h or 2d, found {text!r}")
    return value_s
