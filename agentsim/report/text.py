"""What the terminal shows at the end of a run: first how far its numbers can be trusted.

Everything is plain ASCII but names and model texts, fits into 80 columns, and reads the same
without colours.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from agentsim.report import by_group, caution, rounds
from agentsim.report.words import Number, count, duration, personas, printable, table

_REASONS = 5
_INDENT = (0, 0, 0, 2)
_WIDTH = 80 - _INDENT[3]

Data = Mapping[str, Any]


def render(summary: Data, manifest: Data, *, path: Path) -> RenderableType:
    """The end of a run, for `Console.print`.

    Args:
        summary: contents of summary.json.
        manifest: contents of manifest.json.
        path: the run's directory.
    """
    number = Number.of(manifest.get("rule"))
    return Group(
        _title(summary),
        *_section(_trust(summary, manifest)),
        *_section(_rounds(summary, manifest, number)),
        *_section(_groups(summary, manifest, number)),
        *_section(_replies(summary, number)),
        *_section([*_personas(summary), *_cost(summary), *_files(path)]),
    )


def plain(summary: Data, manifest: Data, *, path: Path, width: int = 80) -> str:
    """The same as text without colours, for files and pipes."""
    out = io.StringIO()
    console = Console(file=out, width=width, color_system=None, force_terminal=False)
    console.print(render(summary, manifest, path=path))
    return "".join(line.rstrip() + "\n" for line in out.getvalue().splitlines())


def _section(blocks: Sequence[RenderableType]) -> list[RenderableType]:
    """The blocks, indented, after an empty line; nothing when there are none."""
    return [Text(), *(Padding(block, _INDENT) for block in blocks)] if blocks else []


def _title(summary: Data) -> Text:
    run = summary["run"]
    good = run["state"] == "finished"
    title = Text.assemble(
        (run["name"] or "run", "bold"), ": ", (run["state"], "bold green" if good else "bold red")
    )
    if run["wall_s"] is not None:
        title.append(f" {'in' if good else 'after'} {duration(run['wall_s'])}")
    if run["rounds_settled"] != run["rounds_expected"]:
        settled, expected = count(run["rounds_settled"]), count(run["rounds_expected"])
        title.append(f", with {settled} of {expected} rounds settled")
    if run["reason"]:
        title.append("\n" + printable(run["reason"]), "red")
    return title


def _trust(summary: Data, manifest: Data) -> list[RenderableType]:
    """How many actions are valid, and what should make the reader careful."""
    missing = caution.missing(summary)
    good = summary["actions"]["settled"] and not missing
    line = Text(caution.valid(summary), "bold green" if good else "bold yellow")
    if missing:
        line.append_text(Text(f"; {missing}", "yellow"))
    warnings = caution.warnings(summary, manifest)
    facts = [caution.replayed(summary), caution.survived(summary)]
    return [
        line,
        *(Text(fact) for fact in facts if fact),
        *(Text(warning, "yellow") for warning in warnings),
    ]


def _rounds(summary: Data, manifest: Data, number: Number) -> list[RenderableType]:
    if not summary["rounds"]:
        return []
    notes = (Text(note, "dim") for note in rounds.notes(summary, manifest))
    return [table(rounds.fitting_columns(summary, number, _WIDTH)), *notes]


def _groups(summary: Data, manifest: Data, number: Number) -> list[RenderableType]:
    cells = by_group.fitting_columns(summary, number, _WIDTH)
    if not cells:
        return []
    notes = (Text(note, "dim") for note in by_group.notes(summary))
    return [Text(by_group.title(manifest), "bold"), table(cells), *notes]


def _replies(summary: Data, number: Number) -> list[RenderableType]:
    """Every status by attempt, why replies were not valid, and what asking again changed; nothing
    for scripted players."""
    if summary["tokens"] is None:
        return []
    entries = [(entry["attempt"], entry["statuses"]) for entry in summary["attempts"]["by_attempt"]]
    names = dict.fromkeys(name for _, statuses in entries for name in statuses)
    cells = {
        "attempt": [str(attempt) for attempt, _ in entries],
        "replies": [count(sum(statuses.values())) for _, statuses in entries],
        **{name: [count(statuses.get(name, 0)) for _, statuses in entries] for name in names},
    }
    blocks: list[RenderableType] = [table(cells)]
    if reasons := summary["reasons"][:_REASONS]:
        blocks += [Text(), Text("why replies were not valid", "bold")]
        blocks += [
            Text(f"{row['count']:7,}  {row['status']}: {printable(row['reason'])}", no_wrap=True)
            for row in reasons
        ]
    if len(entries) > 1:
        title = Text("first attempts alone, beside the final actions", "bold")
        blocks += [Text(), title, table(rounds.first_and_final(summary, number))]
    return blocks


def _personas(summary: Data) -> Iterator[RenderableType]:
    """Who wrote the personas, where a model did."""
    stage = summary.get("personas")
    if stage is None:
        return
    numbers = (stage[name] for name in ("by_model", "asked_again", "from_template"))
    tokens = stage["prompt_tokens"] + stage["completion_tokens"]
    cost = f"; {count(tokens)} tokens" if tokens else ""
    yield Text(f"personas: {personas(*numbers)}{cost}")
    for row in stage["reasons"][:_REASONS]:
        yield Text(f"{row['count']:7,}  {printable(row['reason'])}", no_wrap=True)


def _cost(summary: Data) -> Iterator[RenderableType]:
    tokens = summary["tokens"]
    if tokens is None:
        return
    line = f"tokens: {count(tokens['prompt'])} in prompts, {count(tokens['completion'])} in replies"
    if (rate := summary["tokens_per_s"]) is not None:
        line += f", {rate:,.0f} a second"
    yield Text(line)
    latencies = [row["latency_s"] for row in summary["rounds"] if row["latency_s"]]
    if latencies:
        medians = sorted(latency["median"] for latency in latencies)
        worst = max(latency["p95"] for latency in latencies)
        span = duration(medians[0])
        if duration(medians[-1]) != span:
            span += f" to {duration(medians[-1])}"
        yield Text(f"a reply took {span} (median of a round); 95 % took under {duration(worst)}")


def _files(path: Path) -> Iterator[RenderableType]:
    yield Text.assemble("files: ", (str(path), "bold"), overflow="fold")
    yield Text(f'to read: agentsim.load_run("{path}")', "dim", overflow="fold")
