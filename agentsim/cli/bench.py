"""`agentsim bench`: what agentsim itself costs on this machine."""

from __future__ import annotations

import json as json_
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rich.console import RenderableType

bench = typer.Typer(
    help="Measure what agentsim itself costs on this machine, without any language model.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

Agents = Annotated[int, typer.Option(min=1, help="How many.")]
Rounds = Annotated[int, typer.Option(min=1, help="How many.")]
Workers = Annotated[int, typer.Option(min=1, help="Worker processes.")]
Think = Annotated[float, typer.Option(min=0, help="Seconds that each agent thinks in a round.")]
Jitter = Annotated[float, typer.Option(min=0, help="Half-width of the draw around it, seconds.")]
Repeats = Annotated[int, typer.Option(min=1, help="Runs; their median and spread are told.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON in place of tables.")]


@bench.command()
def dummy(
    agents: Agents = 1_000_000,
    think: Think = 1.0,
    jitter: Jitter = 0.5,
    rounds: Rounds = 1,
    workers: Workers = 2,
    coroutines: Annotated[
        bool,
        typer.Option(
            "--coroutines",
            help="Agents of a user's class, each an `async def act` that awaits `asyncio.sleep`.",
        ),
    ] = False,
    repeats: Repeats = 3,
    out: Annotated[
        Path | None,
        typer.Option(help="Keep the runs' directories in this one; must not exist."),
    ] = None,
    json: Json = False,
) -> None:
    """Play rounds with agents that think for a time and then answer.

    By default players of the dummy model in a whole run: journal, and rows in Parquet. CPU is that
    of all processes. The imports of all of them are in `startup`, and in no other part but `total`.

    JSON: startup, create, rounds, end, total, each {wall_s, cpu_s, and _min and _max of both};
    round {wall_s, cpu_s}; turns_per_cpu_s, cpu_us_a_turn; memory {startup_bytes, peak_bytes,
    bytes_an_agent_idle, bytes_an_agent_in_flight, by_program}; disk_bytes; machine; runs.
    """
    from agentsim.bench import Dummies, bench_dummy
    from agentsim.bench.tables import dummy_table
    from agentsim.errors import UserError

    if jitter > think:
        raise UserError(f"--jitter {jitter:g} is more than --think {think:g}")
    if out is not None:
        _make(out)
    spec = Dummies(agents, rounds, workers, think, jitter, coroutines, repeats, out)
    found = bench_dummy(spec, tell=_tell)
    _show(found, None if json else dummy_table(found))


def _make(out: Path) -> None:
    from agentsim.errors import UserError

    try:
        out.mkdir(parents=True)
    except OSError as error:
        raise UserError(f"{out}: cannot make the directory: {error.strerror}") from None


def _tell(text: str) -> None:
    print(text, file=sys.stderr)


def _show(found: dict[str, Any], shown: RenderableType | None) -> None:
    """Print tables, or JSON when there are none."""
    if shown is None:
        print(json_.dumps(found, indent=2))
        return
    from rich.console import Console

    console = Console() if sys.stdout.isatty() else Console(width=80, color_system=None)
    console.print(shown, highlight=False)
