"""Groups and markets in the tables: who is whose, a round whole, and the same from the journal."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from recorded_runs import FINISHED, Recorder, attempt

from agentsim.results import (
    Grouping,
    Kind,
    RecordedAttempts,
    RoundGatherer,
    RunDirectory,
    load_run,
    rebuild,
    summarise,
)
from agentsim.rpc import codec
from agentsim.rpc.messages import Answers, GroupOutcome, Settle

TABLES = ("actions", "requests", "announcements")
CODES = np.array([1, 0, 1, 0, 1], np.uint32)


def groups(*, separate: bool = True) -> Grouping:
    """Agents 1 and 3 are `a`, the others `b`."""
    return Grouping(5, ("a", "b"), CODES, separate)


def settle(gatherer: RoundGatherer, round: int, market: int = 0, markets: int = 1) -> Settle:
    """By hand: the first agent of the market wins; groups' numbers are of their valid actions."""
    values, codes = gatherer.values, gatherer.groups
    assert codes is not None
    outcomes = []
    for code, (name, statuses) in enumerate(
        zip(gatherer.group_names, gatherer.group_statuses, strict=True)
    ):
        own = values[codes == code]
        mean = float(np.nanmean(own))
        won = int(codes[0] == code)
        outcomes.append(
            GroupOutcome(
                name, own.size, statuses, mean, float(np.nanmedian(own)), won, {"mean": mean}
            )
        )
    return Settle(
        session=1,
        round=round,
        n=values.size,
        statuses=gatherer.statuses,
        target=10.0 + market,
        mean=float(np.nanmean(values)),
        median=float(np.nanmedian(values)),
        winning_guess=float(values[0]),
        winners=[int(gatherer.agents[0])],
        payoffs=[100.0],
        announced={},
        wall_s=1.0 + market,
        market=market,
        markets=markets,
        groups=outcomes,
    )


class Run(Recorder):
    """A run with groups."""

    def begin(self, grouping: Grouping) -> None:
        self.grouping = grouping
        record = grouping.record(1)
        assert record is not None
        self.journal.append(Kind.GROUPS, codec.encode(record))
        self.recorded: dict[int, RecordedAttempts] = {}

    def play(self, market: int, round: int, values: list[float]) -> None:
        """A market's round of scripted players, which are the values' agents in order."""
        gatherer = RoundGatherer(self.grouping, market)
        agents = self.grouping.players(market)
        column = codec.to_bytes(np.asarray(values, np.float64))
        answers = Answers(1, round, 0, codec.to_bytes(agents), column)
        self.journal.append(Kind.ANSWERS, codec.encode(answers))
        gatherer.add_answers(answers)
        self.take(gatherer, market, round)

    def take(self, gatherer: RoundGatherer, market: int, round: int) -> None:
        record = settle(gatherer, round, market, self.grouping.markets)
        self.journal.append(Kind.SETTLE, codec.encode(record))
        recorded = self.recorded.setdefault(round, RecordedAttempts(self.directory.journal))
        self.writer.write(gatherer.columns(record, model=self.model), recorded, record)

    def finish(self) -> RunDirectory:
        self.writer.finish()
        return self.end(FINISHED)


def separate_run(path: Path) -> RunDirectory:
    """Market `b` plays two rounds before `a` has played one."""
    run = Run(path, agents=5, rounds=2)
    run.begin(groups())
    run.play(1, 1, [10.0, 30.0, 50.0])
    run.play(1, 2, [1.0, 3.0, 5.0])
    run.play(0, 1, [20.0, 40.0])
    run.play(0, 2, [2.0, 4.0])
    return run.finish()


@given(st.integers(1, 60), st.integers(0, 99), st.booleans(), st.data())
def test_nobody_is_lost_and_nobody_plays_twice(
    n: int, seed: int, separate: bool, data: st.DataObject
) -> None:
    count = data.draw(st.integers(1, n))
    codes = np.random.default_rng(seed).permutation(np.arange(n, dtype=np.uint32) % count)
    grouping = Grouping(n, tuple(map(str, range(count))), codes, separate)
    players = [grouping.players(market).tolist() for market in range(grouping.markets)]
    assert sorted(agent for market in players for agent in market) == list(range(n))
    asked = np.random.default_rng(seed).permutation(n)[: data.draw(st.integers(1, n))]
    found = {m: asked[rows].tolist() for m, rows in grouping.split(asked.astype(np.uint32))}
    assert sorted(agent for market in found.values() for agent in market) == sorted(asked.tolist())
    assert all(set(agents) <= set(players[market]) for market, agents in found.items())
    record = grouping.record(3)
    assert record is not None
    again = Grouping.of(record)
    assert (again.names, again.separate) == (grouping.names, separate)
    assert again.codes is not None
    assert again.codes.tolist() == codes.tolist()


@pytest.mark.parametrize("codes", [[0, 0, 0], [0, 2, 1], [0, 1]])
def test_a_grouping_that_makes_no_sense_is_refused(codes: list[int]) -> None:
    with pytest.raises(ValueError, match="group"):
        Grouping(3, ("a", "b"), np.array(codes, np.uint32))


def test_agents_of_another_market_are_refused() -> None:
    gatherer = RoundGatherer(groups(), 0)
    with pytest.raises(IndexError):
        gatherer.add_values(np.array([1, 2], np.uint32), np.array([1.0, 2.0]))
    with pytest.raises(IndexError):
        list(groups().split(np.array([5], np.uint32)))


def test_a_gatherer_of_one_market_counts_its_groups() -> None:
    gatherer = RoundGatherer(groups(separate=False))
    gatherer.add_values(np.array([1, 0, 4], np.uint32), np.array([1.0, 2.0, 3.0]))
    gatherer.add_attempts([attempt(3, 0, "empty", final=True)])
    assert gatherer.group_names == ["a", "b"]
    assert gatherer.group_statuses == [{"ok": 1, "empty": 1}, {"ok": 2}]


def test_markets_of_a_round_stand_in_the_table_in_order_of_agents(tmp_path: Path) -> None:
    run = load_run(separate_run(tmp_path / "R").path)
    actions = run.actions
    assert actions["agent"].tolist() == [0, 1, 2, 3, 4] * 2
    assert actions["round"].tolist() == [1] * 5 + [2] * 5
    assert actions["group"].tolist() == ["b", "a", "b", "a", "b"] * 2
    assert actions["value"].tolist() == [10, 20, 30, 40, 50, 1, 2, 3, 4, 5]
    assert actions["agent"][actions["won"]].tolist() == [0, 1, 0, 1]
    told = run.announcements
    assert told["group"].tolist() == ["a", "b"] * 2
    assert told["n"].tolist() == [2, 3] * 2
    assert told["target"].tolist() == [10, 11] * 2
    assert told["mean"].tolist() == [30, 30, 3, 3]


def test_one_market_has_a_row_for_all_and_one_for_each_group(tmp_path: Path) -> None:
    run = Run(tmp_path / "R", agents=5)
    run.begin(groups(separate=False))
    run.play(0, 1, [10.0, 20.0, 30.0, 40.0, 50.0])
    told = load_run(run.finish().path).announcements
    assert [None if group != group else group for group in told["group"]] == [None, "a", "b"]
    assert told["n"].tolist() == [5, 2, 3]
    assert told["winners"].tolist() == [1, 0, 1]
    assert told["ok"].tolist() == [5, 2, 3]
    assert told["target"].tolist() == [10, 10, 10]
    assert told["announced"].tolist() == [[], [("mean", 30.0)], [("mean", 30.0)]]


@pytest.mark.parametrize("separate", [True, False])
def test_the_journal_alone_gives_the_same_tables(tmp_path: Path, separate: bool) -> None:
    if separate:
        directory = separate_run(tmp_path / "R")
    else:
        run = Run(tmp_path / "R", agents=5)
        run.begin(groups(separate=False))
        run.play(0, 1, [10.0, 20.0, 30.0, 40.0, 50.0])
        directory = run.finish()
    before = {name: pq.read_table(directory.table(name)) for name in TABLES}
    rebuild(directory)
    for name in TABLES:
        assert pq.read_table(directory.table(name)).equals(before[name]), name


def test_markets_that_were_settled_when_a_run_was_cut_are_kept(tmp_path: Path) -> None:
    """Attempts of both markets lie in one frame; only those of the settled one are shown."""
    run = Run(tmp_path / "R", agents=5, model="m")
    run.begin(groups())
    batch = [attempt(agent, 0, "ok", float(agent)) for agent in range(4)]
    offset = run.journal.append(Kind.ATTEMPTS, codec.encode(batch))
    run.recorded[1] = RecordedAttempts(run.directory.journal)
    run.recorded[1].add(offset, len(batch))
    gatherer = RoundGatherer(run.grouping, 0)
    gatherer.add_attempts([batch[1], batch[3]])
    run.take(gatherer, 0, 1)
    directory = run.finish()
    for _ in range(2):
        loaded = load_run(directory.path)
        assert loaded.actions["agent"].tolist() == [1, 3]
        assert loaded.actions["text"].tolist() == ["I guess 1.0", "I guess 3.0"]
        assert loaded.actions["group"].tolist() == ["a", "a"]
        assert loaded.requests["agent"].tolist() == [1, 3]
        assert summarise(directory)["actions"]["settled"] == 2
        rebuild(directory)


def test_the_summary_tells_of_groups_beside_the_whole(tmp_path: Path) -> None:
    summary = summarise(separate_run(tmp_path / "R"))
    assert [(row["round"], row["group"], row["n"], row["mean"]) for row in summary["groups"]] == [
        (1, "a", 2, 30.0),
        (1, "b", 3, 30.0),
        (2, "a", 2, 3.0),
        (2, "b", 3, 3.0),
    ]
    first = summary["groups"][0]
    assert (first["target"], first["winners"], first["statuses"]) == (10.0, 1, {"ok": 2})
    assert (first["median"], first["min"], first["max"]) == (30.0, 20.0, 40.0)
    whole = summary["rounds"][0]
    assert (whole["n"], whole["mean"], whole["target"], whole["winners"]) == (5, 30.0, None, 2)
    assert whole["wall_s"] == 2.0
    # There is no target for all, so there are no bounds on it.
    assert whole["bounds"]["target_low"] is None
    assert whole["bounds"]["mean_low"] == 30.0
    assert len(summary["rounds"]) == 2
    assert summary["actions"]["settled"] == 10


def test_the_summary_of_one_market_keeps_its_target(tmp_path: Path) -> None:
    run = Run(tmp_path / "R", agents=5)
    run.begin(groups(separate=False))
    run.play(0, 1, [10.0, 20.0, 30.0, 40.0, 50.0])
    summary = summarise(run.finish())
    assert summary["rounds"][0]["target"] == 10.0
    assert [row["winners"] for row in summary["groups"]] == [0, 1]


def test_a_run_without_groups_has_none_in_its_summary(tmp_path: Path) -> None:
    run = Recorder(tmp_path / "R", agents=4)
    run.scripted(1, 1, [1.0, 2.0, 3.0, 4.0])
    assert summarise(run.end(FINISHED))["groups"] == []
