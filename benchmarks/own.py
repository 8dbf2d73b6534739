"""agentsim's own figures, by `agentsim bench`, for docs/performance.md.

Each command prints JSON, which is kept in benchmarks/figures/own.json; the tables of the page come
of it.
"""

from __future__ import annotations

import argparse
import json
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.compare import KEPT, PAGE, ROOT, alone
from benchmarks.slopes import Spread
from benchmarks.tables import figure, put, spread, table

FILE = KEPT / "own.json"
COMMANDS = {
    "players": "dummy --agents 1000000 --rounds 5",
    "coroutines": "dummy --agents 1000000 --coroutines --repeats 2",
    "coroutines-together": "dummy --agents 1000000 --coroutines --jitter 0 --repeats 2",
    "ten-million": "dummy --agents 10000000 --think 0 --jitter 0 --repeats 1",
    "scaling": "scaling --repeats 5 --rounds 10",
    "scaling-coroutines": (
        "scaling --repeats 3 --rounds 1 --coroutines --agents 200000 --sizes 10000,100000,1000000"
    ),
    "messages": "messages",
    "results": "results",
    "models": "models --repeats 2",
}
"""Behind `agentsim bench`, by the names that they have here."""

_LIMIT_S = 1800
_DUMMIES = {
    "players": "1,000,000 players, 5 rounds",
    "coroutines": "1,000,000 users' coroutines, 1 round",
    "coroutines-together": "the same, all with the same thinking time",
    "ten-million": "10,000,000 players that do not think",
}
_PARTS = {"startup": "start-up", "create": "creation", "rounds": "rounds", "end": "end"}
_CALLS = {
    "fan_out": "single calls, all made, then all read",
    "group_call": "one call on a group, for an agent",
    "round_trip": "single calls, each read before the next",
}
_ROWS = {
    "players": "actions of players",
    "attempts_of_models": "attempts of a language model, 200 bytes of reply",
}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.own", description=__doc__)
    parser.add_argument("--only", help=f"of {', '.join(COMMANDS)}", metavar="NAME,…")
    parser.add_argument("--render", action="store_true", help="run nothing, write the page again")
    options = parser.parse_args(arguments)
    found = load()
    names = [] if options.render else options.only.split(",") if options.only else list(COMMANDS)
    if wrong := set(names) - set(COMMANDS):
        print(
            f"error: {', '.join(sorted(wrong))} is none of {', '.join(COMMANDS)}", file=sys.stderr
        )
        return 2
    failed = 0
    with alone():
        for name in names:
            try:
                found[name] = measure(name)
            except (subprocess.SubprocessError, ValueError) as error:
                print(f"failed: {error}", file=sys.stderr)
                found.setdefault(name, {"failed": True})
                failed = 1
            FILE.write_text(json.dumps(slim(found), indent=1) + "\n")
    PAGE.write_text(put(PAGE.read_text("utf-8"), sections(found)), "utf-8")
    return failed


def load() -> dict[str, Any]:
    """What was measured before."""
    found: dict[str, Any] = json.loads(FILE.read_text("utf-8")) if FILE.exists() else {}
    return found


def measure(name: str) -> dict[str, Any]:
    """Run a command.

    Raises:
        subprocess.SubprocessError: it failed, and what it said went to stderr; or took too long.
        ValueError: it printed no JSON.
    """
    print(f"agentsim bench {COMMANDS[name]}", file=sys.stderr)
    words = shlex.split(COMMANDS[name])
    command = [sys.executable, "-m", "agentsim", "bench", *words, "--json"]
    done = subprocess.run(command, cwd=ROOT, check=True, timeout=_LIMIT_S, stdout=subprocess.PIPE)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def slim(found: Mapping[str, Any]) -> dict[str, Any]:
    """Without the single runs: medians and spread stand beside them."""
    return {
        name: {key: value for key, value in one.items() if key != "runs"}
        for name, one in found.items()
    }


def sections(found: Mapping[str, Any]) -> dict[str, str]:
    """Markdown by the name of its place."""
    commands = [f"- `agentsim bench {COMMANDS[name]}`: {told(one)}" for name, one in found.items()]
    found = {name: one for name, one in found.items() if "failed" not in one}
    made = {
        "own-dummies": dummies({name: found[name] for name in _DUMMIES if name in found}),
        "own-memory": memory({name: found[name] for name in _DUMMIES if name in found}),
        "own-commands": "\n".join(commands),
    }
    for name, text in (("scaling", scaling), ("messages", messages)):
        if name in found:
            made[f"own-{name}"] = text(found[name])
    if "scaling-coroutines" in found:
        made["own-scaling-coroutines"] = scaling(found["scaling-coroutines"])
    if "results" in found:
        made["own-results"] = results(found["results"])
    if "models" in found:
        made["own-models"] = models(found["models"])
    return {name: text for name, text in made.items() if text}


def told(found: Mapping[str, Any]) -> str:
    """What is to be known of how a command was measured."""
    if "failed" in found:
        return "did not end well on this machine"
    return f"load {found['machine']['load']:g} at its end, on {found['machine']['cores']} cores"


def of(found: Mapping[str, Any], name: str) -> Spread:
    """A figure that stands with its least and most."""
    return Spread(found[name], found[f"{name}_min"], found[f"{name}_max"])


def dummies(found: Mapping[str, Any]) -> str:
    """Wall and CPU of the parts of whole programs."""
    rows = []
    for name, one in found.items():
        for unit in ("wall_s", "cpu_s"):
            parts = [spread(of(one[part], unit)) for part in _PARTS]
            a_round = figure(one["round"][unit])
            who = _DUMMIES[name] if unit == "wall_s" else ""
            rows.append([who, "s" if unit == "wall_s" else "CPU s", *parts, a_round])
    return table(["", "", *_PARTS.values(), "one round"], rows)


def memory(found: Mapping[str, Any]) -> str:
    rows = [
        [
            _DUMMIES[name],
            figure(one["memory"]["bytes_an_agent_idle"]),
            figure(one["memory"]["bytes_an_agent_in_flight"]),
            figure(one["memory"]["peak_bytes"] / 1e9),
            figure(one["disk_bytes"] / 1e6),
        ]
        for name, one in found.items()
        if one["memory"]
    ]
    head = ["", "bytes an agent, idle", "at the most", "in all, GB", "run directory, MB"]
    return table(head, rows)


def scaling(found: Mapping[str, Any]) -> str:
    what = {
        "weak": "agents a worker fixed",
        "strong": "agents fixed",
        "sizes": "ever more agents",
    }
    rows = [
        [
            words,
            f"{line['workers']}",
            f"{line['agents']:,}",
            figure(line["wall_s"]),
            spread(of(line, "cpu_s")),
            figure(line["cpu_us_a_turn"]),
            spread(of(line, "slope_us")) if "slope_us" in line else "",
        ]
        for name, words in what.items()
        for line in found[name]
    ]
    head = ["", "workers", "agents", "a round, s", "CPU s", "a turn, CPU µs", "one more, CPU µs"]
    return table(head, rows)


def messages(found: Mapping[str, Any]) -> str:
    rows = [
        [words, spread(of(found[name], "cpu_us")), spread(of(found[name], "wall_us"))]
        for name, words in _CALLS.items()
    ]
    return table(["", "CPU µs", "µs"], rows)


def results(found: Mapping[str, Any]) -> str:
    rows = [
        [
            words,
            *(
                spread(of(found[name], f"{step}_cpu_s"))
                for step in ("journal", "gather", "parquet")
            ),
            figure(found[name]["journal_bytes"]),
            figure(found[name]["parquet_bytes"]),
        ]
        for name, words in _ROWS.items()
    ]
    steps = ["journal", "putting in order", "Parquet"]
    head = ["CPU s a million rows", *steps, "journal, bytes a row", "Parquet, bytes a row"]
    return table(head, rows)


def models(found: Mapping[str, Any]) -> str:
    rows = [
        [
            f"{line['window']:,}",
            spread(of(line, "ours_ms")),
            spread(of(line, "server_ms")),
            spread(of(line, "requests_per_s")),
        ]
        for line in found["windows"]
    ]
    head = [
        "requests under way",
        "agentsim, CPU ms each",
        "server, CPU ms each",
        "requests a second",
    ]
    return table(head, rows)


if __name__ == "__main__":
    sys.exit(main())
