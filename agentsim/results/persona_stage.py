"""The stage that writes personas: its part of the table `requests`, and its counts.

Its attempts have round 0. Of their statuses `no_answer` says that the text lacks a part or does
not state an attribute, and `ambiguous` that it contradicts one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from agentsim.errors import ResultsError
from agentsim.ids import Round
from agentsim.results.directory import RunDirectory
from agentsim.results.parts import part_of, parts, read_part
from agentsim.results.recorded import RecordedAttempts
from agentsim.results.rows import request_tables
from agentsim.results.schema import REQUESTS
from agentsim.results.tables import part_name, write_part

PERSONA_ROUND = 0
TOP_REASONS = 10
_COLUMNS = ["round", "attempt", "status", "reason", "prompt_tokens", "completion_tokens"]


def write_persona_requests(
    directory: RunDirectory, recorded: Mapping[int, RecordedAttempts]
) -> None:
    """Write the stage's attempts into the table `requests`, by session.

    Raises:
        ResultsError: they cannot be read or written.
    """
    if not recorded:
        return
    sessions = sorted(recorded)
    name = part_name(Round(sessions[0], PERSONA_ROUND), Round(sessions[-1], PERSONA_ROUND))
    tables = (table for session in sessions for table in request_tables(recorded[session]))
    write_part(directory.requests / name, REQUESTS, tables)


def persona_counts(path: Path) -> dict[str, Any] | None:
    """Who wrote the personas of a file; None when no model was asked.

    Returns:
        by_model, asked_again (those of them for which the model was asked more than once),
        from_template, and on_attempt: how many the model wrote on each attempt, from 1.

    Raises:
        ResultsError: the file cannot be read.
    """
    try:
        if "writer" not in pq.read_schema(path).names or not _is_by_model(path):
            return None
        table = pq.read_table(path, columns=["writer", "attempts"])
    except (OSError, pa.ArrowException) as error:
        raise ResultsError(f"cannot read the personas in {path}: {error}") from error
    attempts = Counter[int](
        row["attempts"] for row in table.to_pylist() if row["writer"] == "model"
    )
    by_model = attempts.total()
    return {
        "by_model": by_model,
        "asked_again": by_model - attempts[1],
        "from_template": len(table) - by_model,
        "on_attempt": [{"attempt": n, "count": attempts[n]} for n in sorted(attempts)],
    }


def _is_by_model(path: Path) -> bool:
    """Whether the columns are the stage's: a population may have an attribute called `writer`."""
    return "profile" in pq.read_schema(path).names


def persona_reasons(pairs: Iterable[tuple[str, str]]) -> list[dict[str, Any]]:
    """Why attempts were not used, the most frequent first: `{status, reason, count}`.

    Args:
        pairs: status and reason of every attempt.
    """
    bad = Counter(pair for pair in pairs if pair[0] != "ok")
    return [
        {"status": status, "reason": reason, "count": count}
        for (status, reason), count in bad.most_common(TOP_REASONS)
    ]


def persona_summary(directory: RunDirectory) -> dict[str, Any] | None:
    """The summary's part about personas; None when no model wrote any.

    Returns:
        What `persona_counts` says; requests, prompt_tokens and completion_tokens of this run's
        stage (0 where the personas were made before); reasons: see `persona_reasons`.

    Raises:
        ResultsError: a file cannot be read.
    """
    if not directory.personas.exists():
        return None
    counts = persona_counts(directory.personas)
    if counts is None:
        return None
    rows = list(_rows(directory))
    return {
        **counts,
        "requests": len(rows),
        "prompt_tokens": sum(row["prompt_tokens"] for row in rows),
        "completion_tokens": sum(row["completion_tokens"] for row in rows),
        "reasons": persona_reasons((row["status"], row["reason"]) for row in rows),
    }


def _rows(directory: RunDirectory) -> Iterator[dict[str, Any]]:
    for path in parts(directory, "requests"):
        if part_of(path)[0].round == PERSONA_ROUND:
            rows = read_part(path, _COLUMNS).to_pylist()
            yield from (row for row in rows if row["round"] == PERSONA_ROUND)
