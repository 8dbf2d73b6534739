"""What a replay has to do with the run that it replays: were the prompts the same?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from agentsim.errors import ResultsError
from agentsim.results.aligned import Pairs, differing
from agentsim.results.compare_requests import (
    aligned_requests,
    difference_of_messages,
    place_of_request,
)
from agentsim.results.difference import Difference
from agentsim.results.directory import RunDirectory
from agentsim.results.pieces import Pieces, Rows

_SHOWN = 5


def replay_summary(directory: RunDirectory, manifest: Mapping[str, Any]) -> dict[str, Any] | None:
    """The summary's part about a replay; None for a run that is none.

    Returns:
        run, run_id and model of the run that is replayed; requests of the settled rounds, and how
        many of them have the recorded prompt (same), another one (other), or no recording
        (unrecorded); recordings that nobody asked for (unused); the first requests with another
        prompt (first, see `Difference`; left is the recorded one); problem: why nothing can be
        said of prompts, else empty.
    """
    replay = manifest.get("replay")
    if not replay:
        return None
    about = {name: replay.get(name) for name in ("run", "run_id", "model")}
    try:
        with ExitStack() as stack:
            recorded = RunDirectory.open(Path(str(replay.get("run"))))
            left, right, pairs = aligned_requests(stack, recorded, directory)
            other = np.flatnonzero(differing(left, right, pairs, "messages"))
            return {
                **about,
                "requests": len(pairs) + len(pairs.only_right),
                "same": len(pairs) - len(other),
                "other": len(other),
                "unrecorded": len(pairs.only_right),
                "unused": len(pairs.only_left),
                "first": [
                    asdict(item) for item in islice(_first(left, right, pairs, other), _SHOWN)
                ],
                "problem": "",
            }
    except ResultsError as error:
        counts = dict.fromkeys(("requests", "same", "other", "unrecorded", "unused"))
        return {**about, **counts, "first": [], "problem": str(error)}


def _first(left: Pieces, right: Pieces, pairs: Pairs, other: Rows) -> Iterator[Difference]:
    for pair in other.tolist():
        mine, its = int(pairs.left[pair]), int(pairs.right[pair])
        place, where = place_of_request(left, mine)
        prompts = left.value(mine, "messages"), right.value(its, "messages")
        yield difference_of_messages(*prompts, place, **where)
