"""Games whose orchestrator dies and whose workers are lost end in the undisturbed table."""

from __future__ import annotations

import asyncio
import os
import random
import shutil
from pathlib import Path
from typing import Any

import pytest
from example_counts import examples
from hosts_in_process import Game, scenario
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kills import assert_equal_tables, journaled

from agentsim.results import Journal, Kind, frames, write_manifest
from agentsim.results.framing import frames as read_frames

SEPARATE = {"type": "guess_average", "groups": {"count": 2, "scope": "separate"}}
TOLD = {
    "type": "guess_average",
    "groups": {"by": "side"},
    "announce": {"what": ["mean"], "to": "group"},
}
GAMES: dict[str, dict[str, Any]] = {
    "transcript": {},
    "numbers": {"memory": "numbers", "prompt": "direct"},
    "last": {"memory": {"last": 1}, "prompt": "character"},
    "none": {"memory": "none"},
    "separate": {"game": SEPARATE},
    "told": {"game": TOLD, "memory": "numbers"},
    "theory": {"model": {"backend": "cognitive_hierarchy"}, "sessions": 2},
    "dummy-groups": {
        "model": {"backend": "dummy", "think_s": 0.01, "jitter_s": 0.01},
        "game": SEPARATE,
    },
}


def played(path: Path, **fields: Any) -> Game:
    """An undisturbed game."""
    game = Game(scenario(**fields), path)
    assert asyncio.run(game.play())
    _summable(path)
    return game


def _summable(path: Path) -> None:
    """The tables are read with the run's directory alone."""
    from agentsim.results import RunDirectory, make_manifest
    from agentsim.results.manifest import RunFacts

    facts = RunFacts(run_id="id", scenario={"rounds": 3}, files={})
    write_manifest(RunDirectory(path), make_manifest(facts))


# A journal's bytes in turn belong to one of the parts, of which the fast tier has the first.
PARTS = 8
parts = pytest.mark.parametrize(
    "part", [0, *(pytest.param(part, marks=pytest.mark.slow) for part in range(1, PARTS))]
)
# The fast tier plays three of them.
FAST = ("transcript", "separate", "theory")


@pytest.fixture(
    scope="module",
    params=[name if name in FAST else pytest.param(name, marks=pytest.mark.slow) for name in GAMES],
)
def whole(request, tmp_path_factory) -> Game:
    return played(tmp_path_factory.mktemp(request.param) / "U", **GAMES[request.param])


def assert_same(game: Game, whole: Game) -> None:
    _summable(game.path)
    assert_equal_tables(game.path, whole.path)
    # Asked with the same prompts, and what is in the journal was asked once.
    assert {(a.seed, str(a.messages)) for a in journaled(game.path)} == {
        (a.seed, str(a.messages)) for a in journaled(whole.path)
    }


def test_a_game_ends_right_when_its_orchestrator_is_killed_at_every_record(whole, tmp_path) -> None:
    """One game that is killed at its 2nd record, goes on, is killed at its 3rd, and so on."""
    game = Game(whole.scenario, tmp_path / "R")
    for last in range(2, 60):
        if asyncio.run(game.play(until=lambda n, last=last: n == last)):
            break
    else:
        pytest.fail("it never ended")
    assert_same(game, whole)


def test_a_game_goes_on_from_every_record_of_its_journal(whole, tmp_path) -> None:
    offsets = [frame.offset for frame in frames(whole.path / "journal.log")][1:]
    for offset in offsets[:: max(1, len(offsets) // 12)]:
        path = tmp_path / str(offset)
        shutil.copytree(whole.path, path)
        os.truncate(path / "journal.log", offset)
        recorded = [(a.session, a.round, a.agent, a.attempt) for a in journaled(path)]
        game = Game(whole.scenario, path, nodes=1, workers=3)
        assert asyncio.run(game.play())
        assert_same(game, whole)
        assert not set(recorded) & set(game.asked)
        assert len(game.asked) == len(set(game.asked))


@parts
def test_a_journal_cut_at_any_byte_keeps_every_whole_record(whole, tmp_path, part) -> None:
    """What is left is what stands before the cut: so the test above speaks for every byte."""
    journal = whole.path / "journal.log"
    data = journal.read_bytes()
    ends = [frame.offset for frame in read_frames(journal)] + [len(data)]
    cut = tmp_path / "journal.log"
    step = 1 if len(data) < 4000 else 23
    for length in range(part * step, len(data) + 1, PARTS * step):
        cut.write_bytes(data[:length])
        Journal.open(cut).close()
        whole_records = max((end for end in ends if end <= length), default=16)
        assert cut.stat().st_size == max(16, whole_records)


def test_a_game_ends_right_when_workers_are_lost(whole, tmp_path) -> None:
    game = Game(whole.scenario, tmp_path / "R")
    lost = {2: [0], 4: [1], 5: [0, 2], 9: [3], 11: [0]}
    assert asyncio.run(game.play(lose=lambda n: lost.get(n, [])))
    assert_same(game, whole)
    kinds = [frame.kind for frame in frames(game.path / "journal.log")]
    assert Kind.EVENT in kinds


def test_what_comes_twice_is_counted_once(whole, tmp_path) -> None:
    game = Game(whole.scenario, tmp_path / "R")
    assert asyncio.run(game.play(twice=lambda n: n % 3 == 0))
    _summable(game.path)
    assert_equal_tables(game.path, whole.path)


@settings(
    max_examples=examples(30),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.integers(0, 2**32))
def test_a_game_ends_right_whatever_happens(whole, tmp_path_factory, seed) -> None:
    """Deaths, losses, repetitions and orders at random."""
    draw = random.Random(seed)
    game = Game(
        whole.scenario,
        tmp_path_factory.mktemp("random") / "R",
        nodes=draw.randint(1, 3),
        workers=draw.randint(1, 3),
        choose=draw,
    )
    for _ in range(6):
        at = draw.randint(2, 25)
        if asyncio.run(
            game.play(
                until=lambda n, at=at: n == at,
                lose=lambda n: [draw.randrange(9)] if draw.random() < 0.1 else [],
                twice=lambda n: draw.random() < 0.1,
                restarts=1000,
            )
        ):
            break
    else:
        assert asyncio.run(game.play())
    _summable(game.path)
    assert_equal_tables(game.path, whole.path)


@parts
def test_a_small_game_goes_on_from_every_byte_of_its_journal(tmp_path, part) -> None:
    whole = played(tmp_path / "U", agents=2, rounds=1, model={"backend": "level_k"})
    size = (whole.path / "journal.log").stat().st_size
    first = [frame.offset for frame in frames(whole.path / "journal.log")][1]
    for length in range(first + part, size, PARTS):
        path = tmp_path / str(length)
        shutil.copytree(whole.path, path)
        os.truncate(path / "journal.log", length)
        assert asyncio.run(Game(whole.scenario, path, nodes=1, workers=1).play())
        assert_equal_tables(path, whole.path)
        shutil.rmtree(path)
