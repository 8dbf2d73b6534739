"""agentsim and its peers do the same work, one after the other: what does one more agent cost?

The quick sizes take some minutes, those of --full about an hour. What a run costs is CPU time,
user and system, of all processes; slopes over sizes leave imports and start-up out. Tables go to
stdout, the runs to --out; with --page to docs/performance.md and benchmarks/figures.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks import tables, venvs
from benchmarks.cases import CASES, OURS, WORKS, Case
from benchmarks.figures import Figures, Run, failures, read
from benchmarks.machine import machine
from benchmarks.runner import Failed, run

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "performance.md"
KEPT = ROOT / "benchmarks" / "figures"
NAMES = [case.name for case in CASES]
Sizes = dict[str, tuple[int, ...]]


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="python -m benchmarks.compare",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument("--full", action="store_true", help="more and larger sizes, and no thinking")
    made.add_argument("--only", help=f"of {', '.join(NAMES)}", metavar="NAME,…")
    made.add_argument(
        "--sizes",
        action="append",
        default=[],
        metavar="NAME=N,N,…",
        help="other numbers of agents for one of them",
    )
    made.add_argument("--repeats", type=int, help="of every run (2; with --full 3)")
    made.add_argument("--timeout", type=float, default=600.0, help="of a run, s (%(default)s)")
    made.add_argument("--add", action="store_true", help="to the runs that are there")
    made.add_argument("--page", action="store_true", help=f"also write {PAGE.relative_to(ROOT)}")
    made.add_argument("--render", action="store_true", help="run nothing, write the page again")
    made.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "out", help="a directory")
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    options = parser().parse_args(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # what runs is ended on the way out
    if options.render:
        write_page(load(KEPT))
        return 0
    try:
        cases, sizes = chosen(options.only), given(options.sizes)
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    folder = KEPT if options.page else options.out
    kept = load(folder) if options.add else None
    with alone():
        found = play(plan(cases, sizes, options, kept), options.timeout, folder, kept)
    if options.page:
        write_page(found)
    text = "\n\n".join(f"## {name}\n\n{text}" for name, text in rendered(found).items())
    print(text)
    return 1 if failures(runs_of(found)) else 0


def chosen(only: str | None) -> list[Case]:
    """The cases of these names.

    Raises:
        ValueError: a name is wrong.
    """
    names = only.split(",") if only else NAMES
    if wrong := set(names) - set(NAMES):
        raise ValueError(f"{', '.join(sorted(wrong))} is none of {', '.join(NAMES)}")
    return [case for case in CASES if case.name in names]


def given(sizes: Sequence[str]) -> Sizes:
    """Numbers of agents by case, of `NAME=N,N`.

    Raises:
        ValueError: one cannot be read, or has less than two numbers.
    """
    found: Sizes = {}
    for text in sizes:
        name, _, numbers = text.partition("=")
        if name not in NAMES:
            raise ValueError(f"--sizes {text}: {name} is none of {', '.join(NAMES)}")
        try:
            agents = tuple(sorted({int(number) for number in numbers.split(",")}))
        except ValueError:
            raise ValueError(f"--sizes {text}: write it like {name}=1000,5000") from None
        if len(agents) < 2 or agents[0] < 1:
            raise ValueError(f"--sizes {text}: a slope needs two sizes, of one agent at least")
        found[name] = agents
    return found


def plan(
    cases: Sequence[Case],
    sizes: Sizes,
    options: argparse.Namespace,
    kept: Mapping[str, Any] | None,
) -> list[tuple[Case, str, int, int]]:
    """Case, work, agents and repeat of each run, in order: every repeat has all."""
    repeats = options.repeats or (3 if options.full else 2)
    first = 1 + max((run.repeat for run in runs_of(kept)), default=0) if kept else 1
    return [
        (case, work, agents, repeat)
        for repeat in range(first, first + repeats)
        for work in WORKS
        for case in cases
        for agents in sizes_of(case, work, sizes, full=options.full)
    ]


def sizes_of(case: Case, work: str, sizes: Sizes, *, full: bool) -> tuple[int, ...]:
    """At which numbers of agents a case is measured; none if not with that work."""
    usual = (case.full if full else case.quick).get(work, ())
    return sizes.get(case.name, usual) if usual else ()


def command(case: Case, work: str, agents: int) -> list[str]:
    """What runs."""
    python = sys.executable if case.venv == OURS else str(venvs.python(case.venv))
    think_s, jitter_s = WORKS[work]
    size = ["--agents", str(agents), "--rounds", "1"]
    return [python, "-m", *case.command, *size, "--think", f"{think_s}", "--jitter", f"{jitter_s}"]


def play(
    planned: Sequence[tuple[Case, str, int, int]],
    timeout_s: float,
    folder: Path,
    kept: Mapping[str, Any] | None,
) -> dict[str, Any]:
    """Run all in turn, and keep what was found after each."""
    folder.mkdir(parents=True, exist_ok=True)
    runs = list(kept["runs"] if kept else [])
    found = {"machine": machine(), "runs": runs}
    for i, (case, work, agents, repeat) in enumerate(planned):
        told = f"{i + 1} of {len(planned)}: {case.name}, {agents:,} agents, {work}"
        print(told, end="", file=sys.stderr, flush=True)
        program = command(case, work, agents)
        try:
            one = read(case, work, agents, repeat, run(program, cwd=ROOT, timeout_s=timeout_s))
            print(f": {one.cpu_s:.1f} CPU s", file=sys.stderr, flush=True)
        except Failed as error:
            one = Run(case.name, work, agents, repeat, error=str(error))
            print(f": failed: {error}", file=sys.stderr, flush=True)
        runs.append({name: value for name, value in asdict(one).items() if value != ""})
        (folder / "compare.json").write_text(text_of(found))
    return found


def text_of(found: Mapping[str, Any]) -> str:
    """As JSON, a line a run."""
    runs = ",\n".join(json.dumps(run) for run in found["runs"])
    return f'{{"machine": {json.dumps(found["machine"])},\n"runs": [\n{runs}\n]}}\n'


def load(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "compare.json").read_text("utf-8"))
    return found


def runs_of(found: Mapping[str, Any]) -> list[Run]:
    return [Run(**run) for run in found["runs"]]


def rendered(found: Mapping[str, Any]) -> dict[str, str]:
    return tables.sections(Figures(runs_of(found)), found["machine"])


def write_page(found: Mapping[str, Any]) -> None:
    PAGE.write_text(tables.put(PAGE.read_text("utf-8"), rendered(found)), "utf-8")


@contextmanager
def alone() -> Iterator[None]:
    """Wait until no other comparison runs on this machine."""
    venvs.VENVS.mkdir(parents=True, exist_ok=True)
    with (venvs.VENVS / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


if __name__ == "__main__":
    sys.exit(main())
