"""`agentsim personas`: make the people of a population ahead."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agentsim.cli.failures import ErrorFormat, told_as
from agentsim.cli.flags import Cluster, hosts_of

if TYPE_CHECKING:
    from agentsim.cli.live import Live
    from agentsim.personas import Order


def personas(
    population: Annotated[Path, typer.Argument(help="The population file.", show_default=False)],
    number: Annotated[
        int, typer.Option("-n", "--number", min=1, help="How many people.", show_default=False)
    ],
    out: Annotated[
        Path,
        typer.Option(
            "-o", "--out", help="The file, e.g. people.parquet; must not exist.", show_default=False
        ),
    ],
    seed: Annotated[int, typer.Option(min=0, help="As the scenario's seed.")] = 1,
    sessions: Annotated[
        int, typer.Option(min=1, help="Draws of that many people each, for as many sessions.")
    ] = 1,
    model: Annotated[
        str | None,
        typer.Option(
            metavar="BACKEND:NAME",
            help="Who writes, e.g. llama_cpp:smollm2-135m-instruct; else as the file says.",
        ),
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="KEY=VALUE", help="Any field, e.g. persona.model.temperature=0.5."
        ),
    ] = None,
    hosts: Annotated[Path | None, typer.Option(help="A hostfile.")] = None,
    cluster: Cluster = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show no progress, only the end.")] = False,
    error_format: Annotated[
        ErrorFormat,
        typer.Option(help="How errors are written to stderr; json is for programs."),
    ] = ErrorFormat.TEXT,
) -> None:
    """Make the people of a population, for scenarios to name in its place.

    A file of personas and, where a model writes, a journal beside it with every prompt and reply.
    When it is interrupted, the same command goes on; nobody is written twice.
    """
    from agentsim.config import load_population, split_set
    from agentsim.personas import Order

    with told_as(error_format):
        overrides = [*_model_flag(model), *(split_set(text) for text in set_ or ())]
        loaded = load_population(population, overrides=overrides, hosts=hosts_of(hosts, cluster))
        order = Order(loaded.population, number, sessions, seed, loaded.hostfile, out)
        sys.exit(_make(order, quiet=quiet))


def _model_flag(model: str | None) -> list[tuple[str, str, str]]:
    """What `--model` changes in the population."""
    if model is None:
        return []
    from agentsim.errors import UserError

    backend, colon, name = model.partition(":")
    if not (backend and colon and name):
        raise UserError(
            f"--model takes BACKEND:NAME, e.g. llama_cpp:smollm2-135m-instruct, found {model!r}"
        )
    values = {"writer": "model", "model.backend": backend, "model.name": name}
    return [(f"persona.{key}", json.dumps(value), "--model") for key, value in values.items()]


def _make(order: Order, *, quiet: bool) -> int:
    """Make the file and say how it went; the exit code."""
    from contextlib import nullcontext

    import uvloop

    from agentsim.cli.signals import until_signal
    from agentsim.orchestrator.observer import Silent
    from agentsim.personas import make

    live = None if quiet else _live(order)
    with live or nullcontext():
        code = uvloop.run(until_signal(make(order, live or Silent())))
    if code:
        print(
            f"interrupted; what was written is in {order.journal}, and the same command goes on",
            file=sys.stderr,
        )
        return code
    print(order.path if quiet else _ended(order))
    return 0


def _live(order: Order) -> Live:
    from rich.console import Console

    from agentsim.cli.live import Live

    return Live(
        sessions=order.sessions, rounds=0, agents=order.agents, console=Console(stderr=True)
    )


def _ended(order: Order) -> str:
    """What there is to say at the end."""
    from agentsim.personas import reasons_of
    from agentsim.report.words import count, personas, printable
    from agentsim.results.persona_stage import persona_counts

    total = count(order.agents * order.sessions)
    counts = persona_counts(order.path)
    if counts is None:
        return f"{total} personas from the template\nfile: {order.path}"
    numbers = (counts[name] for name in ("by_model", "asked_again", "from_template"))
    lines = [f"{total} personas: {personas(*numbers)}"]
    if reasons := reasons_of(order.journal):
        lines += ["", "why replies were not used"]
        lines += [f"{row['count']:7,}  {printable(row['reason'])}" for row in reasons]
        lines.append("")
    return "\n".join([*lines, f"file: {order.path}", f"prompts and replies: {order.journal}"])
