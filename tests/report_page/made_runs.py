"""Small runs with numbers that can be worked out by hand."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from matplotlib.figure import Figure

from agentsim.config.population import Population
from agentsim.population import write_personas
from agentsim.replies import STATUSES, Status
from agentsim.results import (
    Journal,
    Kind,
    RoundColumns,
    RunDirectory,
    RunEnd,
    RunFacts,
    RunStart,
    TableWriter,
    make_manifest,
    to_json,
    write_manifest,
    write_summary,
)
from agentsim.results.schema import ANNOUNCEMENTS
from agentsim.rpc.messages import Attempt, Message, Settle

RULE = {"low": 0.0, "high": 100.0, "slope": 2 / 3, "intercept": 0.0}
SCRIPTED = {"backend": "cognitive_hierarchy", "tau": 1.5}
TALKING = {"backend": "openai", "name": "some-model", "max_tokens": 64}
EVIL = "<script>alert(1)</script><img src=http://evil.example/x onerror=alert(2)>\x1b[31m\u202ered"


@dataclass
class MadeRun:
    """Writes a run's directory the way a run does.

    Attributes:
        values: by (session, round), one value an agent; None: no valid answer (out of range).
        model: the scenario's model; one with `max_tokens` talks.
        attributes: of the population; None: nobody has a persona.
        texts: of the replies, by agent; others say their number.
        scenario: more fields of the scenario.
        facts: more fields of the manifest.
        end: how the run ended; None: it was killed.
    """

    path: Path
    values: Mapping[tuple[int, int], Sequence[float | None]]
    model: dict[str, Any] = field(default_factory=lambda: dict(SCRIPTED))
    attributes: dict[str, Any] | None = None
    texts: dict[int, str] = field(default_factory=dict)
    scenario: dict[str, Any] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)
    end: RunEnd | None = field(default_factory=lambda: RunEnd("finished", wall_s=10.0, cpu_s=3.0))

    def write(self) -> Path:
        directory = RunDirectory.create(self.path)
        self.agents = max((len(row) for row in self.values.values()), default=4)
        sessions = max((session for session, _ in self.values), default=1)
        rounds = max((round for _, round in self.values), default=1)
        population = self.attributes and Population.model_validate({"attributes": self.attributes})
        scenario = {
            "name": "made",
            "seed": 7,
            "agents": self.agents,
            "sessions": sessions,
            "rounds": rounds,
            "prompt": "step_by_step",
            "game": {"type": "guess_average", "range": [0, 100], "target": "2/3 * mean"},
            "model": self.model,
        } | self.scenario
        facts: dict[str, Any] = {
            "run_id": "r1",
            "scenario": scenario,
            "files": {"scenarios/made.yaml": "name: made\n"},
            "rule": RULE,
            "population": population and population.model_dump(mode="json"),
            "equilibrium": {"guesses": [0.0], "words": "0"},
        } | self.facts
        write_manifest(directory, make_manifest(RunFacts(**facts)))
        journal = Journal.create(directory.journal)
        start = RunStart("r1", self.agents, sessions, rounds, "m", "2026-11-29T23:19:00+00:00")
        journal.append(Kind.RUN, to_json(start))
        if population:
            write_personas(
                directory.personas, population, agents=self.agents, sessions=sessions, seed=7
            )
        writer = TableWriter(directory)
        for (session, round), row in sorted(self.values.items()):
            writer.write(*self._round(session, round, row))
        writer.flush()
        if self.end is not None:
            journal.append(Kind.END, to_json(self.end))
        journal.close()
        if self.end is not None:
            write_summary(directory)
        return self.path

    def _round(
        self, session: int, round: int, row: Sequence[float | None]
    ) -> tuple[RoundColumns, list[Attempt], Settle]:
        talks = "max_tokens" in self.model
        n = len(row)
        ok = np.array([value is not None for value in row])
        values = np.array([np.nan if value is None else value for value in row])
        mean = float(values[ok].mean()) if ok.any() else None
        attempts = self._attempts(session, round, row) if talks else []
        columns = RoundColumns(
            agents=np.arange(n, dtype=np.uint32),
            values=values,
            statuses=np.where(
                ok, STATUSES.index(Status.OK), STATUSES.index(Status.OUT_OF_RANGE)
            ).astype(np.uint8),
            won=np.arange(n) == 0,
            payoffs=np.where(np.arange(n) == 0, 100.0, 0.0),
            attempts=np.where(ok | (not talks), 1, 2).astype(np.int16),
            model="m",
            text=[None] * n if talks else None,
            prompt_tokens=np.full(n, 10, np.int32) if talks else None,
            completion_tokens=np.full(n, 5, np.int32) if talks else None,
            latency_s=np.full(n, 0.5, np.float32) if talks else None,
        )
        settle = Settle(
            session=session,
            round=round,
            n=n,
            statuses={"ok": int(ok.sum()), "out_of_range": int((~ok).sum())},
            target=None if mean is None else mean * 2 / 3,
            mean=mean,
            median=float(np.median(values[ok])) if ok.any() else None,
            winning_guess=row[0],
            winners=[0] if ok[0] else [],
            payoffs=[100.0] if ok[0] else [],
            announced={} if mean is None else {"mean": mean},
            wall_s=1.0,
        )
        return columns, attempts, settle

    def _attempts(self, session: int, round: int, row: Sequence[float | None]) -> list[Attempt]:
        """One attempt where the answer is valid, two where none is."""
        result = []
        for agent, value in enumerate(row):
            for number in range(1 if value is not None else 2):
                ask = [Message("system", "the rules"), Message("user", f"round {round}?")]
                if number:
                    ask[1] = Message("user", f"round {round}?\n\nThat was outside.")
                result.append(
                    Attempt(
                        session=session,
                        round=round,
                        agent=agent,
                        step=0,
                        attempt=number,
                        messages=ask,
                        format="text",
                        seed=1,
                        text=self.texts.get(agent, f"I say {value} ({agent}, {number})"),
                        finish_reason="stop",
                        status="ok" if value is not None else "out_of_range",
                        value=value,
                        reason="" if value is not None else "the answer is outside the range",
                        final=value is not None or number == 1,
                        error="",
                        prompt_tokens=10,
                        completion_tokens=5,
                        latency_s=0.5,
                        tries=1,
                        endpoint="http://127.0.0.1:9/v1",
                        request_id="",
                        choice=0,
                        worker=0,
                    )
                )
        return result


@contextmanager
def svg_alone() -> Iterator[None]:
    """PNGs and PDFs stay empty: the page shows none, and they take most of a report's time."""
    savefig = Figure.savefig

    def save(figure: Figure, out: Any, *, format: str, **more: Any) -> None:
        if format == "svg":
            savefig(figure, out, format=format, **more)

    with mock.patch.object(Figure, "savefig", save):
        yield


def one_session(path: Path, **options: Any) -> Path:
    """One session of a language model: two rounds, one agent without a valid answer in each."""
    values: Any = {
        (1, 1): [10.0, 20.0, 30.0, None],
        (1, 2): [5.0, None, 10.0, 15.0],
    }
    return MadeRun(path, **({"values": values, "model": dict(TALKING)} | options)).write()


def three_sessions(path: Path, **options: Any) -> Path:
    """Three sessions of scripted players with means 20, 30 and 40 in round 1, half in round 2."""
    values: Any = {
        (session, round): [(10.0 + 10 * session + shift) / round for shift in (-6, -2, 2, 6)]
        for session in (1, 2, 3)
        for round in (1, 2)
    }
    return MadeRun(path, **({"values": values} | options)).write()


def with_groups(run: Path, names: Sequence[str], *, separate: bool = False) -> Path:
    """Divide the agents of a finished run into groups, in turn; where they are separate, the
    announcements have no row of the whole session."""
    session_rounds = _divide_actions(run, names)
    (part,) = (run / "announcements").glob("*.parquet")
    rows = [row | {"group": None} for row in pq.read_table(part).to_pylist()]
    for row in list(rows):
        for group in session_rounds[row["session"], row["round"]]:
            rows.append(row | {key: group[key] for key in ("group", "n", "mean")})
            rows[-1]["ok"] = group["valid"]
    if separate:
        rows = [row for row in rows if row["group"] is not None]
    schema = pa.schema([field for field in ANNOUNCEMENTS if field.name != "group"]).append(
        pa.field("group", pa.string())
    )
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), part)
    summary = json.loads((run / "summary.json").read_text())
    summary["groups"] = [row for rows in session_rounds.values() for row in rows]
    (run / "summary.json").write_text(json.dumps(summary))
    return run


def _divide_actions(run: Path, names: Sequence[str]) -> dict[tuple[int, int], list[dict[str, Any]]]:
    """Give every action a group; what summary.json says of the groups, by session and round."""
    (part,) = (run / "actions").glob("*.parquet")
    table = pq.read_table(part)
    groups = [names[agent % len(names)] for agent in table["agent"].to_pylist()]
    index = table.schema.get_field_index("group")
    pq.write_table(table.set_column(index, "group", pa.array(groups).dictionary_encode()), part)
    found: dict[tuple[int, int], list[dict[str, Any]]] = {}
    frame = table.to_pandas().assign(group=groups)
    for (session, round, group), rows in frame.groupby(["session", "round", "group"], sort=False):
        values = rows.value.dropna()
        row = dict.fromkeys(("sd", "min", "q1", "median", "q3", "max", "winning_guess"))
        found.setdefault((session, round), []).append(
            {
                **row,
                "session": int(session),
                "round": int(round),
                "group": group,
                "n": len(rows),
                "valid": len(values),
                "missing": len(rows) - len(values),
                "mean": float(values.mean()) if len(values) else None,
                "target": float(values.mean()) * 2 / 3 if len(values) else None,
                "winners": 0,
            }
        )
    return found
