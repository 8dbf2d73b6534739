"""What a person sees while a run goes on, on stderr: bars on a terminal, lines elsewhere."""

from __future__ import annotations

import time
from collections import Counter
from types import TracebackType

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from agentsim.rpc.messages import Settle

_LINE_EVERY_S = 10.0


class _Tally:
    """One round over all sessions: what came in, and how fast."""

    def __init__(self, total: int) -> None:
        self.total = total
        self.statuses: Counter[str] = Counter()
        self.tokens = 0
        self.began_s = time.monotonic()
        self.ended_s: float | None = None

    @property
    def done(self) -> int:
        return sum(self.statuses.values())

    def per_s(self, count: int) -> float:
        """A rate since the round began."""
        return count / max(1e-3, (self.ended_s or time.monotonic()) - self.began_s)

    def words(self) -> str:
        """Statuses other than ok, most frequent first."""
        bad = [(s, c) for s, c in self.statuses.most_common() if s != "ok" and c]
        parts = [f"{self.statuses['ok']:,} ok", *(f"{count:,} {status}" for status, count in bad)]
        return " · ".join(parts)


class _Rates(ProgressColumn):
    """Actions and tokens a second."""

    def render(self, task: Task) -> Text:
        tally: _Tally | None = task.fields.get("tally")
        if tally is None or not tally.done:
            return Text("")
        text = f"{_short(tally.per_s(tally.done))}/s"
        if tally.tokens:
            text += f" · {_short(tally.per_s(tally.tokens))} tok/s"
        return Text(text, style="cyan")


def _short(rate: float) -> str:
    if rate >= 1e6:
        return f"{rate / 1e6:.1f}M"
    if rate >= 1e4:
        return f"{rate / 1e3:.0f}k"
    return f"{rate:.0f}" if rate >= 10 else f"{rate:.1f}"


class Live:
    """An `orchestrator.observer.Observer` for people.

    Args:
        sessions, rounds, agents: of the scenario.
        console: where to show it; lines instead of bars when it is no terminal.
    """

    def __init__(self, *, sessions: int, rounds: int, agents: int, console: Console) -> None:
        self._rounds = rounds
        self._total = sessions * agents
        self._console = console
        self._bars = console.is_terminal
        self._tallies: dict[int, _Tally] = {}
        self._settled: Counter[int] = Counter()
        self._tasks: dict[int, TaskID] = {}
        self._last_line_s = time.monotonic()
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=16),
            MofNCompleteColumn(),
            _Rates(),
            TextColumn("{task.fields[words]}", style="dim"),
            TimeRemainingColumn(compact=True, elapsed_when_finished=True),
            console=console,
            refresh_per_second=4,
        )

    def __enter__(self) -> Live:
        if self._bars:
            self._progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._bars:
            self._progress.stop()

    def stage(self, name: str) -> None:
        """Tell of a stage, e.g. that workers are starting."""
        self._console.print(Text(name, style="dim"), soft_wrap=True)

    def notice(self, text: str) -> None:
        """Tell of something that the user should know now."""
        self._console.print(Text(f"note: {text}", style="yellow"), soft_wrap=True)

    def asked(self, session: int, round: int, n: int) -> None:
        """A round of a session began."""
        if round in self._tallies:
            return
        self._tallies[round] = tally = _Tally(self._total)
        if self._bars:
            self._tasks[round] = self._progress.add_task(
                f"round {round} of {self._rounds}", total=self._total, tally=tally, words=""
            )

    def acted(self, round: int, statuses: dict[str, int], tokens: int) -> None:
        """Actions arrived."""
        tally = self._tallies[round]
        tally.statuses.update(statuses)
        tally.tokens += tokens
        if self._bars:
            self._progress.update(self._tasks[round], completed=tally.done, words=tally.words())
        elif tally.done < tally.total and time.monotonic() - self._last_line_s > _LINE_EVERY_S:
            self._line(round)

    def settled(self, settle: Settle) -> None:
        """A round of a session, or of one of its markets, was settled."""
        self._settled[settle.round] += settle.n
        if self._settled[settle.round] < self._total:
            return
        tally = self._tallies[settle.round]
        tally.ended_s = time.monotonic()
        if not self._bars:
            self._line(settle.round)

    def _line(self, round: int) -> None:
        tally = self._tallies[round]
        self._last_line_s = time.monotonic()
        text = f"round {round} of {self._rounds}: {tally.done:,} of {tally.total:,}"
        text += f" · {tally.words()} · {_short(tally.per_s(tally.done))}/s"
        if tally.tokens:
            text += f" · {_short(tally.per_s(tally.tokens))} tok/s"
        if 0 < tally.done < tally.total:
            left_s = (tally.total - tally.done) / tally.per_s(tally.done)
            text += f" · {left_s:.0f} s left"
        self._console.print(text, soft_wrap=True, highlight=False)
