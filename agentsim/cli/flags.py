"""Flags that several commands take."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from agentsim.cli.failures import ErrorFormat

_WHAT = "In place of the scenario's"
File = Annotated[Path, typer.Argument(help="The scenario.", show_default=False)]
Agents = Annotated[int | None, typer.Option(help=f"{_WHAT} agents.")]
Sessions = Annotated[int | None, typer.Option(help=f"{_WHAT} sessions.")]
Rounds = Annotated[int | None, typer.Option(help=f"{_WHAT} rounds.")]
Seed = Annotated[int | None, typer.Option(help=f"{_WHAT} seed.")]
Hosts = Annotated[Path | None, typer.Option(help="A hostfile.")]
Cluster = Annotated[
    str | None, typer.Option(metavar="NAME", help="Nodes that stay; see `agentsim cluster up`.")
]
Workers = Annotated[int | None, typer.Option(help="Worker processes on each host.")]
Set = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Any field, e.g. model.temperature=0.5."),
]
Errors = Annotated[
    ErrorFormat, typer.Option(help="How errors are written to stderr; json is for programs.")
]


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


@contextmanager
def named_runs() -> Iterator[None]:
    """What is no run, or cannot be read, is a mistake of who named it.

    Raises:
        UserError: in place of a `ResultsError`.
    """
    from agentsim.errors import ResultsError, UserError

    try:
        yield
    except ResultsError as error:
        raise UserError(str(error)) from None


def hosts_of(hosts: Path | None, cluster: str | None) -> Path | None:
    """The hostfile that the command line names, if any.

    Raises:
        UserError: it names two, or a cluster that is not there.
    """
    if cluster is None:
        return hosts
    from agentsim.errors import UserError
    from agentsim.launch.registry import hostfile_of

    if hosts is not None:
        raise UserError("--hosts and --cluster both say where to run; give one of them")
    return hostfile_of(cluster)
