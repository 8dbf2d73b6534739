"""What the terminal shows at the end of a user's program."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from agentsim.report.words import count, duration, printable

_INDENT = (0, 0, 0, 2)


def render_workflow(summary: Mapping[str, Any], *, path: Path) -> RenderableType:
    """The end of a run, for `Console.print`.

    Args:
        summary: contents of summary.json.
        path: the run's directory.
    """
    run = summary["run"]
    good = run["state"] == "finished"
    title = Text.assemble(
        (run["name"] or "run", "bold"), ": ", (run["state"], "bold green" if good else "bold red")
    )
    if run["wall_s"] is not None:
        title.append(f" {'in' if good else 'after'} {duration(run['wall_s'])}")
    if run["reason"]:
        title.append("\n" + printable(run["reason"]), "red")
    lines = [*_tables(summary), *_calls(summary), *_files(summary, path)]
    return Group(title, Text(), *(Padding(line, _INDENT) for line in lines))


def plain_workflow(summary: Mapping[str, Any], *, path: Path, width: int = 80) -> str:
    """The same as text without colours, for files and pipes."""
    out = io.StringIO()
    console = Console(file=out, width=width, color_system=None, force_terminal=False)
    console.print(render_workflow(summary, path=path))
    return "".join(line.rstrip() + "\n" for line in out.getvalue().splitlines())


def _tables(summary: Mapping[str, Any]) -> Iterator[Text]:
    tables = summary["tables"]
    if not tables:
        yield Text("no table was recorded", "yellow")
    width = max(map(len, tables), default=0)
    for name, rows in tables.items():
        yield Text(f"{name:{width}}  {count(rows)} {'row' if rows == 1 else 'rows'}")


def _calls(summary: Mapping[str, Any]) -> Iterator[Text]:
    calls, tokens = summary["calls"], summary["tokens"]
    if not calls["total"]:
        return
    statuses = ", ".join(f"{count(n)} {status}" for status, n in calls["statuses"].items())
    yield Text(f"calls of the model: {statuses}")
    line = f"tokens: {count(tokens['prompt'])} in prompts, {count(tokens['completion'])} in replies"
    if (rate := summary["tokens_per_s"]) is not None:
        line += f", {rate:,.0f} a second"
    yield Text(line)
    latency = summary["latency_s"]
    yield Text(
        f"a reply took {duration(latency['median'])} (median); 95 % took under "
        f"{duration(latency['p95'])}"
    )


def _files(summary: Mapping[str, Any], path: Path) -> Iterator[Text]:
    yield Text.assemble("files: ", (str(path), "bold"), overflow="fold")
    name = next(iter(summary["tables"]), "requests")
    yield Text(
        f'to read: agentsim.load_run("{path}").table("{name}").to_pandas()', "dim", overflow="fold"
    )
