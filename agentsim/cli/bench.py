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
    text: Annotated[
        int,
        typer.Option(min=0, metavar="BYTES", help="Each player says a text of this length, too."),
    ] = 0,
    coroutines: Annotated[
        bool,
        typer.Option(
            "--coroutines",
            help="Agents of a user's class, each an `async def act` that awaits `asyncio.sleep`.",
        ),
    ] = False,
    repeats: Repeats = 3,
    memory: Annotated[
        bool, typer.Option("--memory/--no-memory", help="Look at memory, in one more run.")
    ] = True,
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

    _check_jitter(think, jitter)
    if text and coroutines:
        raise UserError("--text is for players; what your own agents say is up to you")
    if out is not None:
        _make(out)
    spec = Dummies(agents, rounds, workers, think, jitter, text, coroutines, repeats, memory, out)
    found = bench_dummy(spec, tell=_tell)
    _show(found, None if json else dummy_table(found))


@bench.command()
def scaling(
    agents: Annotated[
        int, typer.Option(min=1, help="How many; with the most workers, in both tables.")
    ] = 1_000_000,
    workers: Annotated[
        str, typer.Option(metavar="LIST", help="Worker processes, e.g. 1,2,4.")
    ] = "1,2,4",
    sizes: Annotated[
        str, typer.Option(metavar="LIST", help="Numbers of agents, for the cost of one more.")
    ] = "10000,100000,1000000",
    think: Think = 1.0,
    jitter: Jitter = 0.5,
    rounds: Rounds = 5,
    coroutines: Annotated[bool, typer.Option("--coroutines", help="As of `bench dummy`.")] = False,
    repeats: Repeats = 3,
    json: Json = False,
) -> None:
    """Play rounds as `bench dummy` does, over a list of workers and a list of sizes.

    Agents a worker fixed, agents fixed, and ever more agents on two workers. CPU is that of all
    processes, without imports and start-up.

    JSON: weak, strong, sizes, each a list of {agents, workers, wall_s, cpu_s (of one round), and
    _min and _max of both, cpu_us_a_turn}; in sizes also slope_us, the CPU of one more agent's turn
    in each repeat, and _min and _max.
    """
    from agentsim.bench import Dummies, bench_scaling
    from agentsim.bench.tables import scaling_tables

    _check_jitter(think, jitter)
    spec = Dummies(agents, rounds, 2, think, jitter, 0, coroutines, repeats)
    found = bench_scaling(
        spec, workers=_numbers("--workers", workers), sizes=_numbers("--sizes", sizes), tell=_tell
    )
    _show(found, None if json else scaling_tables(found))


@bench.command()
def messages(
    calls: Annotated[
        int, typer.Option(min=1, help="Single calls, and agents of a group.")
    ] = 100_000,
    round_trips: Annotated[
        int, typer.Option(min=1, help="Calls that are each read before the next.")
    ] = 2_000,
    workers: Workers = 2,
    repeats: Repeats = 5,
    json: Json = False,
) -> None:
    """Call agents that say what they are told.

    CPU is that of all processes, without imports and start-up.

    JSON: fan_out, group_call, round_trip, each {cpu_us, wall_us of one call, and _min and _max}.
    """
    from agentsim.bench.messages import KINDS, bench_messages
    from agentsim.bench.tables import messages_table

    found = bench_messages(calls=calls, round_trips=round_trips, workers=workers, repeats=repeats)
    _show(found, None if json else messages_table(found, KINDS))


@bench.command()
def models(
    requests: Annotated[int, typer.Option(min=1, help="How many, for each window.")] = 20_000,
    windows: Annotated[
        str, typer.Option(metavar="LIST", help="Requests that are under way at once.")
    ] = "16,64,256,1024",
    delay: Annotated[float, typer.Option(min=0, help="Seconds before each reply.")] = 0.0,
    repeats: Repeats = 3,
    json: Json = False,
) -> None:
    """Send requests through a node to the model server that agentsim ships for tests.

    CPU without imports and start-up: ours is that of orchestrator and node; the server's own is
    told apart.

    JSON: windows, a list of {window, requests_per_s, ours_ms, server_ms, and _min and _max}.
    """
    from agentsim.bench.models import bench_models
    from agentsim.bench.tables import models_table

    found = bench_models(
        requests=requests,
        windows=_numbers("--windows", windows),
        delay_s=delay,
        repeats=repeats,
        tell=_tell,
    )
    _show(found, None if json else models_table(found))


@bench.command()
def results(
    rows: Annotated[int, typer.Option(min=1, help="Actions of players, in one round.")] = 1_000_000,
    attempts: Annotated[
        int, typer.Option(min=1, help="Attempts of a language model, 200 bytes of reply each.")
    ] = 50_000,
    repeats: Repeats = 5,
    json: Json = False,
) -> None:
    """Write journal and Parquet tables, without any agents.

    JSON: players and attempts_of_models, each {journal_cpu_s, gather_cpu_s, parquet_cpu_s, cpu_s
    (journal and Parquet) for a million rows, and _min and _max; journal_bytes, parquet_bytes a
    row}.
    """
    from agentsim.bench.results import bench_results
    from agentsim.bench.tables import results_table

    found = bench_results(rows=rows, attempts=attempts, repeats=repeats)
    _show(found, None if json else results_table(found))


def _numbers(flag: str, text: str) -> list[int]:
    """Whole numbers from 1 up, with commas between them."""
    from agentsim.errors import UserError

    words = text.split(",")
    if not all(word.strip().isdecimal() and int(word) for word in words):
        raise UserError(f"{flag} takes whole numbers from 1 up, e.g. 1,2,4, found {text!r}")
    return [int(word) for word in words]


def _check_jitter(think: float, jitter: float) -> None:
    from agentsim.errors import UserError

    if jitter > think:
        raise UserError(f"--jitter {jitter:g} is more than --think {think:g}")


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
