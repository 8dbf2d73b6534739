"""The CSV files hold the right numbers, and none where there is none."""

from __future__ import annotations

import csv
import io
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_runs import TALKING, MadeRun, one_session, three_sessions, with_groups

from agentsim.report.groups import group_means, group_names
from agentsim.report.tables import tables
from agentsim.report.write import read_numbers
from agentsim.results import RunDirectory, load_run

HALVES = {"side": {"categories": {"left": 0.5, "right": 0.5}}}


def rows(run: Path, table: str) -> list[dict[str, str]]:
    numbers = read_numbers(RunDirectory.open(run))
    files = tables(numbers.summary, numbers.manifest, numbers.counts, numbers.tau)
    return list(csv.DictReader(io.StringIO(files[table].decode(), newline="")))


def test_rounds_have_bounds_for_what_is_missing(tmp_path: Path) -> None:
    run = one_session(tmp_path / "run")
    first, second = rows(run, "rounds")
    assert (first["n"], first["valid"], first["missing"]) == ("4", "3", "1")
    assert float(first["mean"]) == 20.0
    assert (float(first["mean_low"]), float(first["mean_high"])) == (15.0, 40.0)
    assert (first["ok"], first["out_of_range"], first["failed"]) == ("3", "1", "0")
    assert float(second["mean"]) == 10.0


def test_histogram_counts_each_valid_guess_once(tmp_path: Path) -> None:
    edges = [0.0, 4.999, 5.0, 95.0, 100.0]
    run = MadeRun(tmp_path / "run", {(1, 1): edges}).write()
    counts = {float(row["bin_low"]): int(row["count"]) for row in rows(run, "histogram")}
    assert len(counts) == 20
    assert {low: n for low, n in counts.items() if n} == {0.0: 2, 5.0: 1, 95.0: 2}
    shares = [float(row["share"]) for row in rows(run, "histogram")]
    assert math.fsum(shares) == pytest.approx(1)


def test_bins_start_at_their_own_number_when_they_are_fine(tmp_path: Path) -> None:
    values = [float(i % 50 * 2) for i in range(2000)]
    run = MadeRun(tmp_path / "run", {(1, 1): values}).write()
    counts = [int(row["count"]) for row in rows(run, "histogram")]
    assert counts == [40] * 50


def test_statuses_and_attempts(tmp_path: Path) -> None:
    run = one_session(tmp_path / "run")
    found = {
        (row["round"], row["status"]): (row["group"], int(row["count"]), float(row["share"]))
        for row in rows(run, "statuses")
    }
    assert found["1", "ok"] == ("", 3, 0.75)
    assert found["2", "out_of_range"] == ("", 1, 0.25)
    assert found["2", "failed"] == ("", 0, 0.0)
    attempts = {
        (row["round"], row["attempt"], row["status"]): row["count"] for row in rows(run, "attempts")
    }
    assert attempts["1", "1", "ok"] == "3"
    assert attempts["1", "2", "out_of_range"] == "1"
    (reason,) = rows(run, "reasons")
    assert reason == {
        "status": "out_of_range",
        "reason": "the answer is outside the range",
        "count": "4",
    }


def test_statuses_are_told_by_group(tmp_path: Path) -> None:
    run = with_groups(one_session(tmp_path / "run"), ["red", "blue"])
    found = {
        (row["round"], row["group"], row["status"]): row["count"] for row in rows(run, "statuses")
    }
    assert found["1", "red", "ok"] == "2"
    assert found["1", "blue", "ok"] == "1"
    assert found["1", "blue", "out_of_range"] == "1"
    assert found["2", "blue", "ok"] == "1"


def test_means_of_groups(tmp_path: Path) -> None:
    run = with_groups(one_session(tmp_path / "run"), ["red", "blue"])
    found = {(row["round"], row["group"]): row for row in rows(run, "groups")}
    assert (found["1", "red"]["mean"], found["1", "red"]["n"]) == ("20.0", "2")
    assert (found["1", "blue"]["mean"], found["1", "blue"]["valid"]) == ("20.0", "1")
    several = with_groups(three_sessions(tmp_path / "three"), ["red", "blue"])
    summary = load_run(several).summary
    assert group_names(summary) == ["red", "blue"]
    first = group_means(summary, ["red"])[0]
    # 4 and 12 in the first session, ten more in each other: means 18, 28, 38.
    assert (first.mean, first.n, first.valid) == (28.0, 6, 6)
    assert first.high == pytest.approx(28 + 4.302652729911275 * 10 / math.sqrt(3))


def test_no_tau_where_each_group_is_a_market(tmp_path: Path) -> None:
    game = {"type": "guess_average", "groups": {"count": 2, "scope": "separate"}}
    run = one_session(tmp_path / "run", scenario={"game": game})
    (row,) = rows(run, "tau")
    assert (row["tau"], row["words"]) == ("", "tau: none, since each group is a market of its own")


def test_intervals_come_from_sessions_alone(tmp_path: Path) -> None:
    run = three_sessions(tmp_path / "run", attributes=HALVES)
    first = rows(run, "over_sessions")[0]
    # Means 20, 30, 40: sd 10, and t(2) at 97.5 % is 4.302653.
    half = 4.302652729911275 * 10 / math.sqrt(3)
    assert float(first["mean_of_means"]) == 30.0
    assert float(first["low"]) == pytest.approx(30 - half)
    assert float(first["high"]) == pytest.approx(30 + half)


def test_means_by_attribute_are_means_of_sessions(tmp_path: Path) -> None:
    run = three_sessions(tmp_path / "run", attributes=HALVES)
    frame = load_run(run).actions.merge(load_run(run).personas, on=["session", "agent"])
    for row in rows(run, "means_by_attribute"):
        mine = frame[(frame.side == row["cell"]) & (frame["round"] == int(row["round"]))]
        means = mine.groupby("session").value.mean().to_numpy()
        assert row["attribute"] == "side"
        assert int(row["n"]) == len(mine) == 6
        assert int(row["sessions"]) == 3
        assert float(row["mean"]) == pytest.approx(means.mean())
        assert float(row["sd_between_sessions"]) == pytest.approx(np.std(means, ddof=1))
        half = 4.302652729911275 * np.std(means, ddof=1) / math.sqrt(3)
        assert float(row["high"]) - float(row["mean"]) == pytest.approx(half)


def test_one_session_has_no_interval_by_attribute(tmp_path: Path) -> None:
    run = one_session(tmp_path / "run", attributes=HALVES)
    for row in rows(run, "means_by_attribute"):
        assert row["low"] == row["high"] == row["sd_between_sessions"] == ""
        assert row["sessions"] == "1"
        assert row["mean"] != ""


def test_missing_answers_are_in_no_cell(tmp_path: Path) -> None:
    run = one_session(tmp_path / "run", attributes=HALVES)
    assert sum(int(row["n"]) for row in rows(run, "means_by_attribute")) == 6


def test_numbers_of_people_are_binned_by_quantiles(tmp_path: Path) -> None:
    people = {
        "age": {"integer": {"uniform": {"low": 18, "high": 97}}},
        "kids": {"integer": {"uniform": {"low": 0, "high": 2}}},
        "income": {"real": {"uniform": {"low": 0, "high": 1000}}},
    }
    values = {(1, 1): [float(i) for i in range(80)]}
    run = MadeRun(tmp_path / "run", values, attributes=people).write()
    cells: dict[str, dict[str, int]] = {}
    for row in rows(run, "means_by_attribute"):
        cells.setdefault(row["attribute"], {})[row["cell"]] = int(row["n"])
    assert list(cells["kids"]) == ["0", "1", "2"]
    assert set(cells["income"].values()) == {20}
    assert len(cells["age"]) == 4
    frame = load_run(run).personas
    for cell, n in cells["age"].items():
        low, high = map(int, cell.split(" to "))
        assert frame.age.between(low, high).sum() == n


def test_the_rarest_of_many_categories_stand_together(tmp_path: Path) -> None:
    people = {"town": {"categories": {f"t{i}": 0.05 for i in range(20)}}}
    values = {(1, 1): [1.0] * 40}
    run = MadeRun(tmp_path / "run", values, attributes=people).write()
    found = {row["cell"]: int(row["n"]) for row in rows(run, "means_by_attribute")}
    assert len(found) == 12
    assert found["9 others"] == 18


@pytest.mark.parametrize(
    ("mean", "tau"),
    [(33.503, 1.5), (40.0, None), (22.0, None)],
)
def test_tau_inverts_what_theory_expects(tmp_path: Path, mean: float, tau: float | None) -> None:
    from agentsim.models import theory
    from agentsim.models.rule import Rule

    values = {(1, 1): [mean] * 200}
    (row,) = rows(MadeRun(tmp_path / "run", values).write(), "tau")
    fitted = float(row["tau"])
    rule = Rule.of(0.0, 100.0, "2/3 * mean", ("mean",))
    levels = theory.poisson_levels(fitted, 10.0)
    assert theory.expected_means(levels, rule, 200, 1)[0] == pytest.approx(mean, abs=1e-6)
    if tau is not None:
        assert fitted == pytest.approx(tau, abs=0.02)
    assert row["low"] == row["high"] == ""
    assert "one session: no interval between sessions" in row["words"]


def test_no_tau_above_players_who_do_not_reason(tmp_path: Path) -> None:
    run = MadeRun(tmp_path / "run", {(1, 1): [60.0, 64.0, 62.0]}).write()
    (row,) = rows(run, "tau")
    assert row["tau"] == ""
    assert row["words"] == (
        "tau: none, since the mean of round 1 is 62, above the 50 of players who do not reason "
        "at all"
    )


def test_no_tau_without_a_straight_rule(tmp_path: Path) -> None:
    rule = {"low": 0.0, "high": 100.0, "slope": None, "intercept": None}
    run = MadeRun(tmp_path / "run", {(1, 1): [30.0] * 3}, facts={"rule": rule}).write()
    (row,) = rows(run, "tau")
    assert row["tau"] == ""
    assert "no best reply" in row["words"]


def test_tau_that_many_values_give_is_none(tmp_path: Path) -> None:
    rule = {"low": 0.0, "high": 100.0, "slope": 1.0, "intercept": 0.0}
    run = MadeRun(tmp_path / "run", {(1, 1): [50.0] * 3}, facts={"rule": rule}).write()
    (row,) = rows(run, "tau")
    assert row["tau"] == ""
    assert "equally well" in row["words"]


def test_tau_has_an_interval_between_sessions_and_open_ends(tmp_path: Path) -> None:
    run = three_sessions(tmp_path / "three")
    (row,) = rows(run, "tau")
    # The interval of the mean, 5.2 to 54.8, reaches beyond 50: tau has no lower end.
    assert row["low"] == ""
    assert float(row["high"]) > float(row["tau"]) > 0
    assert "with no lower end" in row["words"]
    close: Any = {(s, 1): [30.0 + s] * 20 for s in (1, 2, 3)}
    (row,) = rows(MadeRun(tmp_path / "close", close).write(), "tau")
    assert float(row["low"]) < float(row["tau"]) < float(row["high"])


def test_tau_says_what_the_missing_could_change(tmp_path: Path) -> None:
    values = {(1, 1): [30.0] * 19 + [None]}
    run = MadeRun(tmp_path / "run", values, model=dict(TALKING)).write()
    (row,) = rows(run, "tau")
    assert float(row["missing_low"]) < float(row["tau"]) < float(row["missing_high"])
    assert "had the missing answered anything" in row["words"]


def test_people_stand_beside_the_rounds_that_they_played(tmp_path: Path) -> None:
    people = {"source": "N", "note": "n", "means": [39.7], "medians": [33.0]}
    first, second = rows(
        three_sessions(tmp_path / "run", facts={"people": people}), "over_sessions"
    )
    assert (first["people_mean"], first["people_median"]) == ("39.7", "33.0")
    assert (second["people_mean"], second["people_median"]) == ("", "")
