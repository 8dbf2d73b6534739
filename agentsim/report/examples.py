"""A few raw replies of each status, so that a reader can judge how they were read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from agentsim.errors import ResultsError
from agentsim.replies import STATUSES
from agentsim.report.words import visible
from agentsim.results.directory import RunDirectory
from agentsim.results.parts import parts
from agentsim.results.tally import column

PER_STATUS = 3
LONGEST = 600
_LOOKED_AT = 200
_COLUMNS = ["session", "round", "agent", "attempt", "status", "value", "reason", "text", "error"]


@dataclass(frozen=True, slots=True)
class Example:
    """One reply.

    Attributes:
        session, round, agent: whose; the agent from 0, the others from 1.
        attempt: from 1.
        status: how it was read.
        value: the number that was read; None unless the status is ok.
        reason: why the status is not ok.
        text: the reply, at most `LONGEST` characters, control characters made visible.
        cut: characters that were left out.
    """

    session: int
    round: int
    agent: int
    attempt: int
    status: str
    value: float | None
    reason: str
    text: str
    cut: int


def read_examples(directory: RunDirectory, summary: Mapping[str, Any]) -> list[Example]:
    """The first replies of each status that differ, statuses in their order.

    Texts are read only where a status still wants examples.

    Raises:
        ResultsError: the table cannot be read.
    """
    wanted = {str(status): 0 for status in STATUSES}
    for entry in summary["attempts"]["by_attempt"]:
        for status, n in entry["statuses"].items():
            wanted[status] = min(PER_STATUS, wanted[status] + n)
    found: dict[str, list[Example]] = {status: [] for status in wanted}
    # Equal replies are one example, so a status may never get its share: look at so many.
    looked = dict.fromkeys(wanted, 0)
    for path in parts(directory, "requests"):
        open_ = [s for s in wanted if len(found[s]) < wanted[s] and looked[s] < _LOOKED_AT]
        if not open_:
            break
        _look(path, wanted, found, looked)
    return [example for status in wanted for example in found[status]]


def _look(
    path: Path,
    wanted: dict[str, int],
    found: dict[str, list[Example]],
    looked: dict[str, int],
) -> None:
    try:
        with pq.ParquetFile(path) as file:
            for group in range(file.num_row_groups):
                statuses = column(file.read_row_group(group, ["status"]), "status")
                rows = []
                for k, status in enumerate(map(str, STATUSES)):
                    room = _LOOKED_AT - looked[status]
                    if len(found[status]) < wanted[status] and room > 0:
                        places = np.flatnonzero(statuses == k)[:room]
                        looked[status] += len(places)
                        rows += places.tolist()
                if rows:
                    table = file.read_row_group(group, _COLUMNS).take(sorted(rows))
                    for row in table.to_pylist():
                        _take(row, wanted, found)
    except (OSError, pa.ArrowException) as error:
        raise ResultsError(f"{path}: cannot read the table: {error}") from error


def _take(row: dict[str, Any], wanted: dict[str, int], found: dict[str, list[Example]]) -> None:
    so_far = found[row["status"]]
    raw = row["text"] or row["error"]
    text = visible(raw[:LONGEST])
    if len(so_far) >= wanted[row["status"]] or text in (each.text for each in so_far):
        return
    so_far.append(
        Example(
            session=row["session"],
            round=row["round"],
            agent=row["agent"],
            attempt=row["attempt"] + 1,
            status=row["status"],
            value=row["value"],
            reason=visible(row["reason"]),
            text=text,
            cut=max(0, len(raw) - LONGEST),
        )
    )
