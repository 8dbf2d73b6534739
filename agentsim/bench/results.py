"""`agentsim bench results`: what it costs to keep what agents did."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from agentsim.bench.machine import machine
from agentsim.bench.programs import measured
from agentsim.bench.spread import spread
from agentsim.results import Journal, Kind, RoundGatherer, RunDirectory, write_round
from agentsim.rpc.codec import decode, encode, to_bytes
from agentsim.rpc.messages import Answers, Attempt, Message, Settle

KINDS = {
    "players": "actions of scripted players",
    "attempts": "attempts of a language model, 200 B reply",
}
STEPS = ("journal", "gather", "parquet")
_ROWS_A_MESSAGE = 65_536
_ATTEMPTS_A_MESSAGE = 500
_PROMPT = "You play a game with 100 others. Name a number from 0 to 100. " * 8
_WORDS = ("I", "think", "that", "others", "will", "say", "forty", "so", "something", "below", "is")


def bench_results(
    *,
    rows: int,
    attempts: int,
    repeats: int,
    measured: Callable[[str, dict[str, Any]], dict[str, Any]] = measured,
) -> dict[str, Any]:
    """Measure, and say what a million rows cost; plain data, ready for JSON.

    Args:
        rows: actions of scripted players in one round.
        attempts: of language players in one round; each is a row of actions and one of requests.

    Returns:
        rows, attempts, repeats, machine
        players, attempts_of_models   CPU s a million rows: journal_cpu_s, gather_cpu_s (decoding,
            and putting in order), parquet_cpu_s, cpu_s (journal and Parquet), medians with _min
            and _max; journal_bytes and parquet_bytes a row
    """
    found = {
        "players": measured("results", {"kind": "players", "rows": rows, "repeats": repeats}),
        "attempts": measured("results", {"kind": "attempts", "rows": attempts, "repeats": repeats}),
    }
    counts = {"players": rows, "attempts": attempts}
    made: dict[str, Any] = {"rows": rows, "attempts": attempts, "repeats": repeats}
    for kind, name in (("players", "players"), ("attempts", "attempts_of_models")):
        runs, scale = found[kind]["runs"], 1e6 / counts[kind]
        made[name] = {}
        for step in STEPS:
            made[name] |= spread(f"{step}_cpu_s", [run[step] * scale for run in runs])
        both = [(run["journal"] + run["parquet"]) * scale for run in runs]
        made[name] |= spread("cpu_s", both)
        for size in ("journal_bytes", "parquet_bytes"):
            made[name][size] = found[kind][size] / counts[kind]
    return {**made, "machine": machine()}


def measure(settings: dict[str, Any]) -> dict[str, Any]:
    """CPU seconds of each step, for each repetition, and the sizes of the files."""
    rows, runs = settings["rows"], []
    bodies = _players(rows) if settings["kind"] == "players" else _attempts(rows)
    with tempfile.TemporaryDirectory(prefix="agentsim-bench-") as folder:
        for repeat in range(settings["repeats"] + 1):
            directory = RunDirectory.create(Path(folder) / str(repeat))
            run, sizes = _keep(directory, bodies, rows, settings["kind"])
            if repeat:  # the first one imports and fills caches
                runs.append(run)
    return {"runs": runs, **sizes}


def _keep(
    directory: RunDirectory, bodies: list[bytes], rows: int, kind: str
) -> tuple[dict[str, float], dict[str, int]]:
    marks = [time.process_time()]
    players = kind == "players"
    with Journal.create(directory.journal) as journal:
        for body in bodies:
            journal.append(Kind.ANSWERS if players else Kind.ATTEMPTS, body)
        journal.sync()
    marks.append(time.process_time())
    gatherer, attempts = RoundGatherer(rows), []
    for body in bodies:
        if players:
            gatherer.add_answers(decode(body, Answers))
        else:
            some = decode(body, list[Attempt])
            gatherer.add_attempts(some)
            attempts += some
    settle = Settle(
        session=1,
        round=1,
        n=rows,
        statuses={"ok": rows},
        target=33.0,
        mean=50.0,
        median=50.0,
        winning_guess=33.0,
        winners=[0],
        payoffs=[1.0],
        announced={"mean": 50.0},
        wall_s=1.0,
    )
    columns = gatherer.columns(settle, model="dummy")
    marks.append(time.process_time())
    write_round(directory, columns, attempts, settle)
    marks.append(time.process_time())
    steps = {step: marks[i + 1] - marks[i] for i, step in enumerate(STEPS)}
    tables = list(directory.path.rglob("*.parquet"))
    sizes = {
        "journal_bytes": directory.journal.stat().st_size,
        "parquet_bytes": sum(path.stat().st_size for path in tables),
    }
    return steps, sizes


def _players(rows: int) -> list[bytes]:
    random = np.random.default_rng(1)
    agents = random.permutation(rows).astype(np.uint32)
    values = random.uniform(0, 100, rows)
    return [
        encode(Answers(1, 1, 0, to_bytes(agents[part]), to_bytes(values[part])))
        for part in (slice(i, i + _ROWS_A_MESSAGE) for i in range(0, rows, _ROWS_A_MESSAGE))
    ]


def _attempts(rows: int) -> list[bytes]:
    random = np.random.default_rng(1)
    messages = [Message("system", "You are a player."), Message("user", _PROMPT)]
    made = [
        Attempt(
            session=1,
            round=1,
            agent=agent,
            step=0,
            attempt=0,
            messages=messages,
            format="json",
            seed=agent,
            text=" ".join(random.choice(_WORDS, 40))[:200],
            finish_reason="stop",
            status="ok",
            value=float(agent % 100),
            reason="",
            final=True,
            error="",
            prompt_tokens=150,
            completion_tokens=40,
            latency_s=1.5,
            tries=1,
            endpoint="http://127.0.0.1:8000/v1",
            request_id=f"chat-{agent}",
            choice=0,
            worker=0,
        )
        for agent in range(rows)
    ]
    parts = range(0, rows, _ATTEMPTS_A_MESSAGE)
    return [encode(made[i : i + _ATTEMPTS_A_MESSAGE]) for i in parts]
