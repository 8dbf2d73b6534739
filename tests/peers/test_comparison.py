"""The comparison with peers: what is planned, kept and shown."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from benchmarks import compare, tables
from benchmarks.cases import CASES, GOALS, THINKING, TOGETHER, WORKS, Goal
from benchmarks.figures import COSTS, Figures, Run, read
from benchmarks.runner import Outcome
from benchmarks.slopes import Spread
from benchmarks.venvs import REQUIREMENTS

US = 1e-6


def runs(case: str, call_us: float, *, work: str = THINKING, repeats: int = 2) -> list[Run]:
    """Runs in which one more agent costs `call_us` to call and half of that to create."""
    return [
        Run(
            case,
            work,
            agents,
            repeat,
            cpu_s=3.0 + agents * call_us * 1.5 * US,
            create_cpu_s=agents * call_us / 2 * US,
            rounds_cpu_s=0.5 + agents * call_us * US,
            rounds_wall_s=2.0,
            peak_pss_bytes=1_000_000 + 200 * agents,
            others_cpu_s=1.0,
        )
        for repeat in range(1, repeats + 1)
        for agents in (100, 1_000)
    ]


def test_goals_name_cases_and_costs() -> None:
    names = {case.name for case in CASES}
    for goal in GOALS:
        assert {goal.ours, *goal.theirs} <= names
        assert all(
            goal.work in case.full for case in CASES if case.name in (goal.ours, *goal.theirs)
        )
        assert goal.cost in COSTS


def test_every_case_is_measured_at_two_sizes_at_least() -> None:
    for case in CASES:
        assert THINKING in case.quick
        for sizes in (*case.quick.values(), *case.full.values()):
            assert len(set(sizes)) >= 2, case.name


def test_every_repeat_runs_everything_in_turn() -> None:
    options = compare.parser().parse_args(["--full"])
    planned = compare.plan(CASES, {}, options, None)
    by_repeat = [[run[:3] for run in planned if run[3] == repeat] for repeat in (1, 2, 3)]
    assert by_repeat[0] == by_repeat[1] == by_repeat[2]
    assert len(planned) == 3 * len(by_repeat[0])
    assert {run[1] for run in planned} == set(WORKS)
    assert [run[3] for run in planned] == sorted(run[3] for run in planned)


def test_repeats_are_added_behind_those_that_are_there() -> None:
    options = compare.parser().parse_args(["--repeats", "1", "--add"])
    kept = {
        "machine": {},
        "runs": [{"case": "players", "work": THINKING, "agents": 9, "repeat": 4}],
    }
    planned = compare.plan(compare.chosen("players"), {"players": (5, 50)}, options, kept)
    assert [run[1:] for run in planned] == [(THINKING, 5, 5), (THINKING, 50, 5)]


@pytest.mark.parametrize(
    "text", ["nobody=1,2", "players", "players=a,b", "players=10", "players=0,5"]
)
def test_sizes_that_give_no_slope_are_refused(text: str, capsys) -> None:
    assert compare.main(["--sizes", text]) == 2
    assert f"--sizes {text}: " in capsys.readouterr().err


def test_unknown_cases_are_refused(capsys) -> None:
    assert compare.main(["--only", "players,nobody"]) == 2
    assert "nobody is none of players, " in capsys.readouterr().err


def test_a_run_is_read_from_what_a_program_says() -> None:
    part = {"wall_s": 1.5, "cpu_s": 0.5}
    said = {"startup": part, "create": {"wall_s": 0, "cpu_s": 0.25}, "rounds": part}
    found = read(CASES[0], THINKING, 10, 1, Outcome(said, 3.0, 2.0, 1_000, 4.0))
    assert (found.cpu_s, found.create_cpu_s, found.rounds_cpu_s) == (2.0, 0.25, 0.5)
    assert (found.peak_pss_bytes, found.others_cpu_s) == (1_000, 2.0)
    # What the system has not seen, the program has.
    assert read(CASES[0], THINKING, 10, 1, Outcome(said, 3.0, 0.5, 1_000, 4.0)).cpu_s == 1.25


def test_figures_survive_being_kept() -> None:
    failed = Run("threads", THINKING, 10, 1, error="exit 1. no")
    found = {"machine": {"cores": "2"}, "runs": []}
    for run in [*runs("players", 2.0), failed]:
        found["runs"].append(compare.asdict(run))
    text = compare.text_of(found)
    again = compare.json.loads(text)
    assert compare.runs_of(again) == compare.runs_of(found)


def test_a_goal_counts_the_cheapest_peer() -> None:
    figures = Figures([*runs("players", 2.0), *runs("asyncio", 20.0), *runs("uvloop", 16.0)])
    goal = Goal(THINKING, "players", ("asyncio", "uvloop", "threads"), "call", 9)
    name, times = figures.reached(goal)
    assert name == "uvloop"
    assert times.median == pytest.approx(8.0)
    assert figures.reached(Goal(THINKING, "players", ("threads",), "call", 9)) is None


def test_tables_tell_slopes_ratios_and_missed_goals() -> None:
    figures = Figures([*runs("players", 2.0), *runs("coroutines", 10.0), *runs("asyncio", 14.0)])
    row = next(
        line for line in tables.slopes_table(figures, THINKING).splitlines() if "gather" in line
    )
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert cells == ["asyncio.gather", "14.0", "7.00", "1.40", "7.00", "21.0", "200", "500"]


def test_goals_are_looked_at_where_they_belong() -> None:
    thinking = [*runs("players", 2.0), *runs("coroutines", 99.0), *runs("asyncio", 14.0)]
    together = [*runs("coroutines", 10.0, work=TOGETHER), *runs("asyncio", 25.0, work=TOGETHER)]
    rows = tables.goals(Figures([*thinking, *together])).splitlines()[2:]
    cells = [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]
    assert [(row[0], row[2], *row[-2:]) for row in cells] == [
        ("agentsim, players", "1 s ± 0.5 s", "7.00", "**no**"),
        ("agentsim, users' coroutines", "1 s", "2.50", "yes"),
    ]


def test_runs_that_failed_are_told_and_count_nowhere() -> None:
    failed = Run("asyncio", THINKING, 1_000_000, 1, error="not done after 5 s.")
    figures = Figures([*runs("asyncio", 20.0), failed])
    assert figures.sizes("asyncio", THINKING) == [100, 1_000]
    told = tables.machine_list(figures, {"cores": "2"})
    assert "- failed: asyncio.gather, 1,000,000 agents: not done after 5 s." in told.splitlines()


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0004, "0"),
        (0.494, "0.49"),
        (23.04, "23.0"),
        (575.4, "575"),
        (457_123.0, "457,000"),
        (-3.0, "-3.00"),
    ],
)
def test_figures_have_three_digits_that_count(value: float, text: str) -> None:
    assert tables.figure(value) == text


def test_what_does_not_depend_on_agents_costs_nothing_more_of_them() -> None:
    assert tables.spread(Spread.of([-3.0, -1.0, 0.5])) == "≈ 0"
    assert tables.spread(Spread.of([1.0, 2.0, 4.0]), 10) == "20.0 (10.0 to 40.0)"
    assert tables.spread(None) == ""


def test_tables_go_to_their_places_in_a_page_and_nowhere_else() -> None:
    page = "# A\n\n<!-- a -->\nold\n<!-- /a -->\n\ntext\n\n<!-- b -->\nkept\n<!-- /b -->\n"
    once = tables.put(page, {"a": "| new |", "c": "nowhere"})
    assert tables.places(once) == {"a": "| new |", "b": "kept"}
    assert "text" in once
    assert tables.put(once, {"a": "| new |"}) == once


@pytest.mark.parametrize("file", sorted(REQUIREMENTS.glob("*.txt")), ids=lambda file: file.name)
def test_requirements_are_pinned_and_name_no_place(file: Path) -> None:
    for line in file.read_text("utf-8").splitlines():
        assert re.fullmatch(r"[a-z0-9][a-z0-9._-]*==[\w.]+", line), line


def test_every_environment_has_its_requirements() -> None:
    assert {case.venv for case in CASES} - {""} == {file.stem for file in REQUIREMENTS.iterdir()}
