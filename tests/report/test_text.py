from __future__ import annotations

import copy
import io
import re
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from agentsim.report import plain, render

PATH = Path("runs/guess-two-thirds-20261129-231900-a1b2c3")
PEOPLE = {
    "source": "Nagel (1995), session 4",
    "note": "one session of 15 to 18 students, who saw all choices, mean, target and payoffs",
    "means": [39.7, 28.6, 20.2, 16.7],
}
MANIFEST = {
    "rule": {"low": 0.0, "high": 100.0, "slope": 2 / 3, "intercept": 0.0},
    "equilibrium": {"guesses": [0.0], "words": "0 is the only equilibrium"},
    "scenario": {
        "model": {"backend": "llama_cpp", "name": "smollm2-135m-instruct", "max_tokens": 128}
    },
}


def a_round(session: int, round: int, mean: float, missing: int = 0, **other: Any) -> Any:
    by_attempt = [
        {"attempt": 1, "statuses": {"ok": 30, "truncated": 4, "no_answer": 6}},
        {"attempt": 2, "statuses": {"ok": 10 - missing, "out_of_range": missing}},
    ]
    return {
        "session": session,
        "round": round,
        "n": 40,
        "valid": 40 - missing,
        "missing": missing,
        "mean": mean,
        "sd": 18.25,
        "median": mean - 1,
        "target": mean * 2 / 3,
        "winning_guess": 21.0,
        "winners": round,
        "statuses": {"ok": 40 - missing, "out_of_range": missing},
        "statuses_by_attempt": by_attempt,
        "first_attempt": {"n": 30, "mean": mean + 2},
        "final": {"n": 40 - missing, "mean": mean},
        "bounds": {
            "mean_low": mean - missing,
            "mean_high": mean + missing,
            "target_low": 0.0,
            "target_high": 1.0,
        },
        "tokens": {"prompt": 4000, "completion": 1000},
        "latency_s": {"median": 1.25, "p95": 3.5},
        "wall_s": 20.0,
    } | other


def a_summary(rounds: list[Any], **run: Any) -> Any:
    sessions = len({row["session"] for row in rounds})
    valid = sum(row["valid"] for row in rounds)
    missing = sum(row["missing"] for row in rounds)
    several = sessions > 1
    return {
        "run": {
            "id": "r1",
            "name": "guess-two-thirds",
            "state": "finished",
            "reason": "",
            "wall_s": 134.2,
            "rounds_expected": len(rounds),
            "rounds_settled": len(rounds),
        }
        | run,
        "actions": {
            "expected": valid + missing,
            "settled": valid + missing,
            "valid": valid,
            "missing": missing,
            "valid_share": 1.0,
            "statuses": {"ok": valid} | ({"out_of_range": missing} if missing else {}),
        },
        "attempts": {
            "total": 50 * len(rounds),
            "by_attempt": [
                {
                    "attempt": 1,
                    "statuses": {
                        "ok": 30 * len(rounds),
                        "truncated": 4 * len(rounds),
                        "no_answer": 6 * len(rounds),
                    },
                },
                {
                    "attempt": 2,
                    "statuses": {"ok": 10 * len(rounds) - missing, "out_of_range": missing},
                },
            ],
        },
        "rounds": rounds,
        "over_sessions": [
            {
                "round": round,
                "sessions": sessions,
                "mean_of_means": 30.0 / round,
                "sd_between_sessions": 2.5 if several else None,
                "low": 28.0 / round if several else None,
                "high": 32.0 / round if several else None,
            }
            for round in sorted({row["round"] for row in rounds})
        ],
        "tokens": {"prompt": 12000, "completion": 3000, "total": 15000},
        "tokens_per_s": 22.35,
        "reasons": [
            {"status": "no_answer", "reason": "there is no number in it", "count": 18},
            {"status": "truncated", "reason": "cut after 128 tokens", "count": 12},
        ],
        "people": PEOPLE,
    }


ONE = a_summary([a_round(1, 1, 32.5, 2), a_round(1, 2, 24.0), a_round(1, 3, 18.125, 1)])
SEVERAL = a_summary([a_round(s, r, 30.0 + s, 1) for s in (1, 2, 3) for r in (1, 2)])


def scripted(summary: Any) -> Any:
    summary = copy.deepcopy(summary)
    for row in summary["rounds"]:
        row |= {"tokens": None, "latency_s": None}
    summary |= {"tokens": None, "tokens_per_s": None, "reasons": [], "people": None}
    total = summary["actions"]["valid"]
    by_attempt = [{"attempt": 1, "statuses": {"ok": total}}]
    summary["attempts"] = {"total": total, "by_attempt": by_attempt}
    return summary


def test_one_session_of_a_small_language_model() -> None:
    assert (
        plain(ONE, MANIFEST, path=PATH)
        == """\
guess-two-thirds: finished in 2 min 14 s

  117 of 120 actions are valid (97.5 %); 3 missing: 3 out_of_range
  12 replies (8 %) were truncated: raise model.max_tokens (now 128)
  a 135M model proves the plumbing, not a hypothesis

  round  valid   mean        could be     sd  median  target    won by  people
      1     38  32.50  30.50 to 34.50  18.25   31.50   21.67     21.00   39.70
      2     40  24.00               -  18.25   23.00   16.00  21.00 x2   28.60
      3     39  18.12  17.12 to 19.12  18.25   17.12   12.08  21.00 x3   20.20
  could be: the mean if those missing had answered anything in the range
  one session: no interval between sessions
  people: Nagel (1995), session 4, one session of 15 to 18 students, who saw all
  choices, mean, target and payoffs
  equilibrium: 0 is the only equilibrium

  attempt  replies  ok  truncated  no_answer  out_of_range
        1      120  90         12         18             0
        2       30  27          0          0             3

  why replies were not valid
       18  no_answer: there is no number in it
       12  truncated: cut after 128 tokens

  first attempts alone, beside the final actions
  round  first valid  first mean  final valid  final mean
      1           30       34.50           38       32.50
      2           30       26.00           40       24.00
      3           30       20.12           39       18.12

  tokens: 12,000 in prompts, 3,000 in replies, 22 a second
  a reply took 1.2 s (median of a round); 95 % took under 3.5 s
  files: runs/guess-two-thirds-20261129-231900-a1b2c3
  to read: agentsim.load_run("runs/guess-two-thirds-20261129-231900-a1b2c3")
"""
    )


def test_several_sessions_are_shown_by_round_with_their_spread() -> None:
    shown = plain(scripted(SEVERAL), MANIFEST | {"scenario": None}, path=PATH)
    assert (
        shown
        == """\
guess-two-thirds: finished in 2 min 14 s

  234 of 240 actions are valid (97.5 %); 6 missing: 6 out_of_range

  round  sessions  valid   mean        interval        could be    sd  target
      1         3    117  30.00  28.00 to 32.00  31.00 to 33.00  2.50   21.33
      2         3    117  15.00  14.00 to 16.00  31.00 to 33.00  2.50   21.33
  could be: the mean if those missing had answered anything in the range
  mean: of the sessions' means, the independent units; sd: between these means
  interval: 95 % for the mean, Student's t
  equilibrium: 0 is the only equilibrium

  files: runs/guess-two-thirds-20261129-231900-a1b2c3
  to read: agentsim.load_run("runs/guess-two-thirds-20261129-231900-a1b2c3")
"""
    )


def test_scripted_players_need_few_words() -> None:
    summary = scripted(a_summary([a_round(1, r, 30.0) for r in (1, 2)]))
    assert (
        plain(summary, {}, path=Path("runs/a"))
        == """\
guess-two-thirds: finished in 2 min 14 s

  80 of 80 actions are valid (100 %)

  round  valid   mean     sd  median  target    won by
      1     40  30.00  18.25   29.00   20.00     21.00
      2     40  30.00  18.25   29.00   20.00  21.00 x2
  one session: no interval between sessions

  files: runs/a
  to read: agentsim.load_run("runs/a")
"""
    )


@pytest.mark.parametrize("summary", [ONE, SEVERAL, scripted(ONE)])
def test_a_terminal_adds_colours_only(summary: Any) -> None:
    out = io.StringIO()
    console = Console(file=out, width=80, force_terminal=True, color_system="standard")
    console.print(render(summary, MANIFEST, path=PATH))
    shown = out.getvalue()
    assert "\x1b[" in shown
    bare = re.sub(r"\x1b\[[0-9;]*m", "", shown)
    lines = [line.rstrip() for line in bare.splitlines()]
    assert lines == plain(summary, MANIFEST, path=PATH).splitlines()


@pytest.mark.parametrize("summary", [ONE, SEVERAL, scripted(ONE), scripted(SEVERAL)])
def test_it_is_ascii_and_fits_into_80_columns(summary: Any) -> None:
    shown = plain(summary, MANIFEST, path=PATH)
    assert shown.isascii()
    assert max(map(len, shown.splitlines())) <= 80


def test_what_is_wrong_stands_before_the_numbers() -> None:
    shown = plain(ONE, MANIFEST, path=PATH)
    order = ["valid (97.5 %)", "truncated: raise", "135M", "round  valid", "attempt  replies"]
    positions = [shown.index(words) for words in order]
    assert positions == sorted(positions)


def test_a_run_that_failed_says_why_and_how_far_it_came() -> None:
    summary = a_summary(
        [a_round(1, 1, 30.0)],
        state="failed",
        reason="limits.tokens: 15,000 of 15,000 tokens are used",
        rounds_expected=3,
    )
    first, second = plain(summary, MANIFEST, path=PATH).splitlines()[:2]
    assert first == "guess-two-thirds: failed after 2 min 14 s, with 1 of 3 rounds settled"
    assert second == "limits.tokens: 15,000 of 15,000 tokens are used"


def test_a_run_without_any_settled_round_can_be_shown() -> None:
    summary = scripted(a_summary([], state="interrupted", wall_s=None, rounds_expected=3))
    assert (
        plain(summary, {}, path=Path("runs/a"))
        == """\
guess-two-thirds: interrupted, with 0 of 3 rounds settled

  0 of 0 actions are valid

  files: runs/a
  to read: agentsim.load_run("runs/a")
"""
    )


def test_few_cut_replies_are_no_reason_to_warn() -> None:
    summary = copy.deepcopy(ONE)
    summary["attempts"]["by_attempt"][0]["statuses"]["truncated"] = 1
    assert "max_tokens" not in plain(summary, MANIFEST, path=PATH)
    summary["attempts"]["by_attempt"][0]["statuses"]["truncated"] = 2
    assert "raise model.max_tokens (now 128)" in plain(summary, MANIFEST, path=PATH)


@pytest.mark.parametrize(
    ("model", "small"),
    [
        ({"backend": "llama_cpp", "name": "smollm2-135m-instruct"}, True),
        ({"backend": "llama_cpp", "name": "/models/SmolLM2-135M-Q4.gguf"}, True),
        ({"backend": "llama_cpp", "name": "/models/qwen3-8b.gguf"}, False),
        ({"backend": "openai", "name": "smollm2-135m-instruct"}, False),
        ({"backend": "cognitive_hierarchy"}, False),
    ],
)
def test_a_toy_model_is_called_one(model: dict[str, str], small: bool) -> None:
    shown = plain(ONE, MANIFEST | {"scenario": {"model": model}}, path=PATH)
    assert ("proves the plumbing" in shown) is small


def test_nobody_was_asked_again() -> None:
    summary = copy.deepcopy(ONE)
    del summary["attempts"]["by_attempt"][1]
    assert "first attempts" not in plain(summary, MANIFEST, path=PATH)


def test_a_round_without_valid_answers_is_a_row_of_dashes() -> None:
    nothing = dict.fromkeys(("mean", "sd", "median", "target", "winning_guess"))
    row = a_round(1, 1, 50.0, 40, winners=0) | nothing
    row["first_attempt"] = row["final"] = {"n": 0, "mean": None}
    line = plain(a_summary([row]), MANIFEST, path=PATH).splitlines()[7]
    assert line.split() == ["1", "0", "-", "10.00", "to", "90.00", *"----", "39.70"]


def test_markup_and_control_characters_of_a_model_are_shown_as_text() -> None:
    summary = copy.deepcopy(ONE)
    summary["reasons"] = [
        {"status": "no_answer", "reason": "[bold red]no[/] \x1b[31mnumber", "count": 1}
    ]
    shown = plain(summary, MANIFEST, path=PATH)
    assert "[bold red]no[/]" in shown
    assert "\x1b" not in shown


def test_long_paths_are_whole() -> None:
    path = Path("/scratch") / ("x" * 100) / "run"
    joined = "".join(line.strip() for line in plain(ONE, MANIFEST, path=path).splitlines())
    assert str(path) in joined
