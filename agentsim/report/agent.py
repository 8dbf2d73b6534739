"""One agent of a run, from its directory: who it is, what it was asked, what it answered and how
that was read. Everything that a model wrote is made unable to steer the terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from agentsim.errors import ResultsError, UserError
from agentsim.ids import Round
from agentsim.population import attribute_names, read_personas
from agentsim.report.words import NOTHING, Number, printable, visible
from agentsim.results import RunDirectory, read_manifest
from agentsim.results.parts import part_of, parts, read_part
from agentsim.results.tally import column

_WIDTH = 80
_STEP = "  "

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Who:
    """Whom to show.

    Attributes:
        session: from 1.
        agent: from 0.
        round: from 1; None: all.
    """

    session: int = 1
    agent: int = 0
    round: int | None = None


def show_agent(path: Path, who: Who) -> str:
    """Persona, prompts, replies and readings of one agent, as text of 80 columns.

    Args:
        path: the run's directory.
        who: the agent.

    Raises:
        UserError: there is no such agent, session or round; says what there is.
        ResultsError: no run is at `path`, or it cannot be read.
    """
    directory = RunDirectory.open(path)
    manifest = read_manifest(directory.path)
    scenario = manifest.get("scenario") or {}
    _check(who, scenario)
    lines = [f"{scenario.get('name', 'run')}: session {who.session}, agent {who.agent}", ""]
    if scenario.get("workflow"):
        lines += [*_persona(directory, who), *_calls(directory, who)]
        return "\n".join(lines).rstrip() + "\n"
    actions = _rows(directory, "actions", who)
    if not actions:
        raise UserError(_not_settled(directory, who))
    lines += _persona(directory, who)
    requests = _rows(directory, "requests", who)
    number = Number.of(manifest.get("rule"))
    before: dict[str, str] = {}
    for action in sorted(actions, key=lambda row: row["round"]):
        attempts = sorted(
            (row for row in requests if row["round"] == action["round"]),
            key=lambda row: (row["step"], row["attempt"]),
        )
        lines += _round(action, attempts, number, before)
    return "\n".join(lines).rstrip() + "\n"


def _check(who: Who, scenario: Mapping[str, Any]) -> None:
    agents, sessions, rounds = (scenario.get(key, 0) for key in ("agents", "sessions", "rounds"))
    if sessions and not 1 <= who.session <= sessions:
        raise UserError(f"there is no session {who.session}: {_has('sessions', 1, sessions)}")
    if agents and not 0 <= who.agent < agents:
        raise UserError(f"there is no agent {who.agent}: {_has('agents', 0, agents - 1)}")
    if rounds and who.round is not None and not 1 <= who.round <= rounds:
        raise UserError(f"there is no round {who.round}: {_has('rounds', 1, rounds)}")


def _has(what: str, first: int, last: int) -> str:
    if first == last:
        return f"the run has {what.removesuffix('s')} {first} alone"
    return f"the run has {what} {first} to {last:,}"


def _not_settled(directory: RunDirectory, who: Who) -> str:
    """Which rounds can be shown, when the wanted one cannot."""
    settled: dict[int, set[int]] = {}
    for path in parts(directory, "announcements"):
        for row in read_part(path, ["session", "round"]).to_pylist():
            settled.setdefault(row["session"], set()).add(row["round"])
    what = f"round {who.round}" if who.round is not None else "no round"
    wanted = f"{what} of session {who.session} is {'not ' if who.round is not None else ''}settled"
    if who.session in settled:
        rounds = sorted(settled[who.session])
        return f"{wanted}; settled are rounds {rounds[0]} to {rounds[-1]}"
    if settled:
        return f"{wanted}; sessions with settled rounds are {_listed(sorted(settled))}"
    return f"{wanted}, nor of any other session"


def _listed(numbers: Sequence[int]) -> str:
    if len(numbers) > 10:
        return f"{', '.join(map(str, numbers[:9]))}, … ({len(numbers):,} in all)"
    return ", ".join(map(str, numbers))


def _rows(directory: RunDirectory, table: str, who: Who) -> list[dict[str, Any]]:
    """The agent's rows of a table; row groups without any are not read."""
    result: list[dict[str, Any]] = []
    for path in parts(directory, table):
        first, last = part_of(path)
        if not (first.session <= who.session <= last.session):
            continue
        if who.round is not None and not first <= Round(who.session, who.round) <= last:
            continue
        try:
            with pq.ParquetFile(path) as file:
                for group in range(file.num_row_groups):
                    result += _rows_of_group(file, group, who)
        except (OSError, pa.ArrowException) as error:
            raise ResultsError(f"{path}: cannot read the table: {error}") from error
    return result


def _rows_of_group(file: pq.ParquetFile, group: int, who: Who) -> list[dict[str, Any]]:
    wanted = {"session": who.session, "agent": who.agent}
    if who.round is not None:
        wanted["round"] = who.round
    metadata = file.metadata.row_group(group)
    for i in range(metadata.num_columns):
        facts = metadata.column(i)
        value, ends = wanted.get(facts.path_in_schema), facts.statistics
        if value is None or ends is None or not ends.has_min_max:
            continue
        if ends.min is not None and ends.max is not None and not ends.min <= value <= ends.max:
            return []
    keys = file.read_row_group(group, list(wanted))
    found = np.ones(len(keys), np.bool_)
    for name, value in wanted.items():
        found &= column(keys, name) == value
    if not found.any():
        return []
    rows: list[dict[str, Any]] = file.read_row_group(group).take(np.flatnonzero(found)).to_pylist()
    return rows


def _persona(directory: RunDirectory, who: Who) -> list[str]:
    if not directory.personas.exists():
        return ["no persona: the run has no population", ""]
    (row,) = read_personas(
        directory.personas, session=who.session, first=who.agent, count=1
    ).to_pylist()
    lines = ["persona", *_block(row.get("background") or "", 1)]
    attributes = {name: row[name] for name in attribute_names(list(row))}
    width = max(map(len, attributes), default=0)
    for name, value in attributes.items():
        shown = f"{value:,.6g}" if isinstance(value, float) else str(value)
        lines.append(f"{_STEP}{printable(name):{width}}  {printable(shown)}")
    return [*lines, ""]


def _round(
    action: Row, attempts: Sequence[Row], number: Number, before: dict[str, str]
) -> Iterator[str]:
    """One round; `before` has the last message of each role, and is kept up to date."""
    yield f"round {action['round']}: {_outcome(action, number)}"
    if not attempts:
        model = printable(action["model"])
        scripted = action["text"] is None and action["attempts"] == 1
        yield f"{_STEP}no prompt and no reply: " + (
            f"a player of {model} computes its guess" if scripted else "nothing came back"
        )
    messages: list[Any] = []
    for row in attempts:
        asked = row["messages"]
        if asked == messages:
            yield f"{_STEP}asked again, with the same prompt"
        else:
            new = asked[len(messages) :] if asked[: len(messages)] == messages else asked
            yield from _messages(new, before)
        messages = asked
        yield from _attempt(row, number)
    yield ""


def _calls(directory: RunDirectory, who: Who) -> Iterator[str]:
    """What an agent of a user's program asked the model, in order."""
    calls = sorted(_rows(directory, "requests", Who(who.session, who.agent)), key=_order)
    if not calls:
        yield "no calls of the model are bound to this agent (`run.model.of(persona)` binds them)"
    before: dict[str, str] = {}
    for row in calls:
        yield f"call {row['step'] + 1}"
        yield from _messages(row["messages"], before)
        yield from _attempt(row, Number.of(None))
        yield ""


def _order(row: Row) -> tuple[int, int, int]:
    return row["round"], row["step"], row["attempt"]


def _outcome(action: Row, number: Number) -> str:
    value = number(action["value"]) if action["value"] is not None else "no value"
    words = f"{action['status']}, {value}"
    if action["attempts"] != 1:
        words += f", after {action['attempts']} attempts"
    if action["group"] is not None:
        words += f", group {printable(action['group'])}"
    if action["won"]:
        words += f"; won {action['payoff']:,.6g}"
    return words


def _messages(messages: Sequence[Row], before: dict[str, str]) -> Iterator[str]:
    """What is new in the messages."""
    for message in messages:
        role, content = message["role"], message["content"]
        known = before.get(role, "")
        before[role] = content
        if content == known:
            yield f"{_STEP}{printable(role)}: as before"
        elif known and content.startswith(known):
            yield f"{_STEP}{printable(role)}: as before, and then"
            yield from _block(content.removeprefix(known).lstrip("\n"), 2)
        else:
            yield f"{_STEP}{printable(role)}"
            yield from _block(content, 2)


def _attempt(row: Row, number: Number) -> Iterator[str]:
    final = ", final" if row["final"] else ""
    yield f"{_STEP}reply {row['attempt'] + 1}{final}"
    if row["text"] or not row["error"]:
        yield from _block(row["text"] or "(nothing)", 2)
    read = f"read as {row['format']}: {row['status']}"
    if row["status"] != "ok":
        read += f": {printable(row['reason'])}"
    elif row["value"] is not None:
        read += f", {number(row['value'])}"
    facts = [
        f"{row['prompt_tokens']:,} tokens in, {row['completion_tokens']:,} out",
        f"{row['latency_s']:.2f} s",
        f"finish: {printable(row['finish_reason']) or NOTHING}",
    ]
    if row["tries"] != 1:
        facts.append(f"{row['tries']} tries")
    if row["error"]:
        facts.append(f"error: {printable(row['error'])}")
    facts.append(printable(row["endpoint"]) or "no endpoint")
    for line in (read, ", ".join(facts)):
        yield from textwrap.wrap(
            line,
            _WIDTH,
            initial_indent=_STEP,
            subsequent_indent=_STEP * 2,
            break_on_hyphens=False,
        )


def _block(text: str, depth: int) -> list[str]:
    """Text of somebody else, indented, its lines wrapped and otherwise as they were."""
    lines: list[str] = []
    for line in visible(text).split("\n"):
        lines += textwrap.wrap(
            line,
            _WIDTH,
            initial_indent=_STEP * depth,
            subsequent_indent=_STEP * depth,
            replace_whitespace=False,
            break_on_hyphens=False,
        ) or [""]
    return [line.rstrip() for line in lines]
