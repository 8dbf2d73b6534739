"""summary.json: counts and statistics of a run, computed from its tables.

    run            id, name, state (finished | failed | interrupted | running), reason, started,
                   wall_s, cpu_s (of all starts that ended in order), rounds_expected and
                   rounds_settled (over all sessions), and what happened: see `story`
    actions        expected (agents x rounds x sessions of the scenario), settled (rows there are),
                   valid, missing (of those settled), valid_share, statuses (final ones)
    attempts       total, by_attempt: [{attempt (from 1), statuses}, ...]
    rounds         one for each (session, round): see `_round`
    groups         one for each (session, round, group), by round and group: see `by_group`; empty
                   when there are none
    over_sessions  one for each round: session means as the independent units, with a 95 %
                   Student's t interval (null for one session)
    tokens         prompt, completion, total; null for scripted players
    tokens_per_s   completion tokens by the run's wall time
    reasons        why attempts were not valid, the most frequent first: status, reason, count
    personas       who wrote them and what it took: see `persona_stage`; null when no model did
    replay         how far a replay asked what was asked before: see `replayed`; null for other runs
    people         published results to compare with, as the manifest has them

A number that does not exist is null. The summary of a user's program is described in `workflow`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from agentsim.errors import ResultsError
from agentsim.ids import Round
from agentsim.replies import STATUSES, Status
from agentsim.results.by_group import group_rows, named, of_session, rule_of_session
from agentsim.results.directory import RunDirectory
from agentsim.results.framing import Kind, is_being_written, last_frame
from agentsim.results.manifest import read_manifest
from agentsim.results.parts import parts, read_part
from agentsim.results.persona_stage import persona_summary
from agentsim.results.records import RunEnd, from_json
from agentsim.results.replayed import replay_summary
from agentsim.results.statistics import bounds, moments, over_sessions
from agentsim.results.storage import read_json, write_json
from agentsim.results.story import story
from agentsim.results.tally import (
    TOP_REASONS,
    RoundTally,
    Tally,
    column,
    group_codes,
    stretches,
    tally,
)
from agentsim.results.workflow import counts

_OK = STATUSES.index(Status.OK)


def summarise(directory: RunDirectory) -> dict[str, Any]:
    """Counts and statistics of the rounds that are settled; the module says what is in it.

    Raises:
        ResultsError: manifest, journal or tables cannot be read.
    """
    manifest = read_manifest(directory.path)
    if (manifest.get("scenario") or {}).get("workflow"):
        return _of_workflow(directory, manifest)
    attempts = tally(directory)
    announced = _announced(directory)
    rounds, groups = [], []
    for path in parts(directory, "actions"):
        table = read_part(path, ["session", "round", "group", "status", "value"])
        names, codes = group_codes(table)
        columns = {name: column(table, name) for name in table.column_names if name != "group"}
        for key, rows in stretches(columns["session"], columns["round"]):
            statuses, values = columns["status"][rows], columns["value"][rows]
            told = announced.get(key, {})
            rule = rule_of_session(manifest.get("rule"), told)
            facts = (of_session(told), attempts.rounds.get(key), rule)
            rounds.append(_round(key, statuses, values, facts))
            if names:
                groups += group_rows(key, statuses, values, names, codes[rows], told)
    rounds.sort(key=lambda row: (row["session"], row["round"]))
    groups.sort(key=lambda row: (row["session"], row["round"]))
    return _whole(directory, manifest, (rounds, groups), attempts)


def write_summary(directory: RunDirectory) -> dict[str, Any]:
    """Compute summary.json, write it and return its contents.

    Raises:
        ResultsError: something cannot be read or written.
    """
    contents = summarise(directory)
    write_json(directory.summary, contents)
    return contents


def read_summary(path: Path) -> dict[str, Any]:
    """The contents of summary.json.

    Args:
        path: the run's directory.

    Raises:
        ResultsError: it is not there, or damaged.
    """
    return read_json(RunDirectory(path).summary)


def run_end(directory: RunDirectory) -> tuple[str, RunEnd | None]:
    """The state of a run, and the record of its end when it has one.

    Returns:
        finished, failed or interrupted as the run itself said; `running` while a process writes
        it; `interrupted` when none does and it did not say (it was killed).

    Raises:
        ResultsError: the journal cannot be read.
    """
    frame = last_frame(directory.journal)
    if frame is not None and frame.kind is Kind.END:
        try:
            end = from_json(frame.body, RunEnd)
        except msgspec.DecodeError as error:
            raise ResultsError(
                f"{directory.journal}: its last record is no end: {error}"
            ) from error
        return end.state, end
    return ("running" if is_being_written(directory.journal) else "interrupted"), None


def _round(
    key: Round,
    statuses: NDArray[np.uint8],
    values: NDArray[np.float64],
    facts: tuple[Mapping[str, Any], RoundTally | None, Mapping[str, Any] | None],
) -> dict[str, Any]:
    """One round of one session.

    n, valid, missing · mean, sd, min, q1, median, q3, max of valid values · target,
    winning_guess, winners · statuses (final), statuses_by_attempt · first_attempt and final:
    {n, mean} · bounds: mean_low, mean_high, target_low, target_high had the missing answered ·
    tokens: {prompt, completion} · latency_s of an attempt: {median, p95} · wall_s.
    """
    announced, tally, rule = facts
    valid = values[statuses == _OK]
    counts = np.bincount(statuses, minlength=len(STATUSES))
    described = moments(valid)
    final = {"n": valid.size, "mean": described["mean"]}
    return {
        "session": key.session,
        "round": key.round,
        "n": statuses.size,
        "valid": valid.size,
        "missing": statuses.size - valid.size,
        **described,
        "target": announced.get("target"),
        "winning_guess": announced.get("winning_guess"),
        "winners": announced.get("winners"),
        "statuses": named(counts),
        "statuses_by_attempt": _by_attempt(counts[None] if tally is None else tally.by_attempt),
        "first_attempt": (
            final if tally is None else {"n": tally.first_n, "mean": tally.first_mean}
        ),
        "final": final,
        "bounds": bounds(described["mean"], valid.size, statuses.size, rule),
        "tokens": tally and {"prompt": tally.prompt_tokens, "completion": tally.completion_tokens},
        "latency_s": tally and {"median": tally.latency_median_s, "p95": tally.latency_p95_s},
        "wall_s": announced.get("wall_s"),
    }


def _whole(
    directory: RunDirectory,
    manifest: dict[str, Any],
    rows: tuple[list[dict[str, Any]], list[dict[str, Any]]],
    tally: Tally,
) -> dict[str, Any]:
    """The summary, from its rows by round and by group."""
    rounds, groups = rows
    state, end = run_end(directory)
    scenario = manifest.get("scenario") or {}
    statuses: Counter[str] = Counter()
    for row in rounds:
        statuses.update(row["statuses"])
    valid, settled = sum(row["valid"] for row in rounds), sum(row["n"] for row in rounds)
    pairs = scenario.get("rounds", 0) * scenario.get("sessions", 0)
    told = story(directory)
    tokens = _tokens(tally)
    return {
        "run": {
            "id": manifest.get("run_id"),
            "name": scenario.get("name"),
            "state": state,
            "reason": end.reason if end else "",
            "started": manifest.get("created"),
            "wall_s": told.wall_s,
            "cpu_s": told.cpu_s,
            "rounds_expected": pairs,
            "rounds_settled": len(rounds),
            **told.to_dict(),
        },
        "actions": {
            "expected": scenario.get("agents", 0) * pairs,
            "settled": settled,
            "valid": valid,
            "missing": settled - valid,
            "valid_share": valid / settled if settled else None,
            "statuses": {str(s): statuses[s] for s in STATUSES if statuses[s]},
        },
        "attempts": _attempts(rounds, tally),
        "rounds": rounds,
        "groups": groups,
        "over_sessions": _over_sessions(rounds),
        "tokens": tokens,
        "tokens_per_s": tokens["completion"] / told.wall_s if tokens and told.wall_s else None,
        "reasons": [
            {"status": status, "reason": reason, "count": count}
            for (status, reason), count in tally.reasons.most_common(TOP_REASONS)
        ],
        "personas": persona_summary(directory),
        "replay": replay_summary(directory, manifest),
        "people": manifest.get("people"),
    }


def _of_workflow(directory: RunDirectory, manifest: dict[str, Any]) -> dict[str, Any]:
    """The summary of a user's program; see `workflow`."""
    state, end = run_end(directory)
    scenario = manifest["scenario"]
    return {
        "run": {
            "id": manifest.get("run_id"),
            "name": scenario.get("name"),
            "state": state,
            "reason": end.reason if end else "",
            "started": manifest.get("created"),
            "wall_s": end.wall_s if end else None,
            "cpu_s": end.cpu_s if end else None,
        },
        "workflow": scenario["workflow"],
        "sessions": scenario.get("sessions"),
        "personas": persona_summary(directory),
        **counts(directory, end.wall_s if end else None),
    }


def _attempts(rounds: list[dict[str, Any]], tally: Tally) -> dict[str, Any]:
    depth = max((len(row["statuses_by_attempt"]) for row in rounds), default=0)
    counts = [Counter[str]() for _ in range(depth)]
    for row in rounds:
        for entry in row["statuses_by_attempt"]:
            counts[entry["attempt"] - 1].update(entry["statuses"])
    return {
        "total": sum(count.total() for count in counts),
        "by_attempt": [
            {"attempt": i, "statuses": {str(s): count[s] for s in STATUSES if count[s]}}
            for i, count in enumerate(counts, 1)
        ],
    }


def _over_sessions(rounds: list[dict[str, Any]]) -> list[dict[str, Any]]:
    means: dict[int, list[float]] = {}
    for row in rounds:
        of_round = means.setdefault(row["round"], [])
        if row["mean"] is not None:
            of_round.append(row["mean"])
    return [{"round": round, **over_sessions(means[round])} for round in sorted(means)]


def _tokens(tally: Tally) -> dict[str, int] | None:
    if not tally.rounds:
        return None
    prompt = sum(row.prompt_tokens for row in tally.rounds.values())
    completion = sum(row.completion_tokens for row in tally.rounds.values())
    return {"prompt": prompt, "completion": completion, "total": prompt + completion}


def _announced(directory: RunDirectory) -> dict[Round, dict[str | None, dict[str, Any]]]:
    """What was announced in each round, by group; None: of the whole session."""
    columns = ["session", "round", "group", "target", "winning_guess", "winners", "wall_s"]
    announced: dict[Round, dict[str | None, dict[str, Any]]] = {}
    for path in parts(directory, "announcements"):
        for row in read_part(path, columns).to_pylist():
            of_round = announced.setdefault(Round(row["session"], row["round"]), {})
            of_round[row.get("group")] = row
    return announced


def _by_attempt(counts: NDArray[np.int64]) -> list[dict[str, Any]]:
    return [{"attempt": i, "statuses": named(row)} for i, row in enumerate(counts, 1)]
