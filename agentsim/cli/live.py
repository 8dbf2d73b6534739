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
from rich.table import Column
from rich.text import Text

from agentsim.orchestrator.observer import Writing
from agentsim.rpc.messages import Settle

_LINE_EVERY_S = 10.0


class _Tally:
    """One round over all sessions, or the writing of personas: what came in, and how fast."""

    def __init__(self, total: int, done: int = 0, tokens: int = 0) -> None:
        self.total = total
        self.statuses: Counter[str] = Counter()
        self.tokens = tokens
        # What was there before this program began is no speed of its own.
        self._before = done, tokens
        self.began_s = time.monotonic()
        self.ended_s: float | None = None

    @property
    def done(self) -> int:
        return sum(self.statuses.values())

    @property
    def done_per_s(self) -> float:
        """Rate since this began."""
        return (self.done - self._before[0]) / self._seconds

    @property
    def tokens_per_s(self) -> float:
        """Rate since this began."""
        return (self.tokens - self._before[1]) / self._seconds

    @property
    def _seconds(self) -> float:
        return max(1e-3, (self.ended_s or time.monotonic()) - self.began_s)

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
        text = f"{_short(tally.done_per_s)}/s"
        if tally.tokens:
            text += f" · {_short(tally.tokens_per_s)} tok/s"
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
            # The part that gives way in a narrow terminal.
            TextColumn(
                "{task.fields[words]}",
                style="dim",
                table_column=Column(ratio=1, no_wrap=True, overflow="ellipsis"),
            ),
            TimeRemainingColumn(compact=True, elapsed_when_finished=True),
            console=console,
            refresh_per_second=4,
            expand=True,
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

    def wrote(self, progress: Writing) -> None:
        """Personas were written: shown as a round 0."""
        tally = self._tallies.get(0)
        if tally is None:
            tally = _Tally(progress.total, progress.done, progress.tokens)
            self._begin(0, tally)
        tally.statuses = Counter({"ok": progress.by_model, "template": progress.from_template})
        tally.tokens = progress.tokens
        self._moved(0)
        if progress.done == progress.total and tally.ended_s is None:
            tally.ended_s = time.monotonic()
            if not self._bars:
                self._line(0)

    def asked(self, session: int, round: int, n: int) -> None:
        """A round of a session began."""
        if round in self._tallies:
            return
        self._begin(round, _Tally(self._total))

    def acted(self, round: int, statuses: dict[str, int], tokens: int) -> None:
        """Actions arrived."""
        tally = self._tallies[round]
        tally.statuses.update(statuses)
        tally.tokens += tokens
        self._moved(round)

    def settled(self, settle: Settle) -> None:
        """A round of a session, or of one of its markets, was settled."""
        self._settled[settle.round] += settle.n
        if self._settled[settle.round] < self._total:
            return
        tally = self._tallies[settle.round]
        tally.ended_s = time.monotonic()
        if not self._bars:
            self._line(settle.round)

    def _begin(self, round: int, tally: _Tally) -> None:
        self._tallies[round] = tally
        if self._bars:
            self._tasks[round] = self._progress.add_task(
                self._label(round), total=tally.total, tally=tally, words=""
            )

    def _moved(self, round: int) -> None:
        """Show what has changed; as a line no more often than every few seconds."""
        tally = self._tallies[round]
        if self._bars:
            self._progress.update(self._tasks[round], completed=tally.done, words=tally.words())
        elif tally.done < tally.total and time.monotonic() - self._last_line_s > _LINE_EVERY_S:
            self._line(round)

    def _label(self, round: int) -> str:
        return f"round {round} of {self._rounds}" if round else "personas"

    def _line(self, round: int) -> None:
        tally = self._tallies[round]
        self._last_line_s = time.monotonic()
        text = f"{self._label(round)}: {tally.done:,} of {tally.total:,}"
        text += f" · {tally.words()} · {_short(tally.done_per_s)}/s"
        if tally.tokens:
            text += f" · {_short(tally.tokens_per_s)} tok/s"
        if tally.done < tally.total and tally.done_per_s > 0:
            left_s = (tally.total - tally.done) / tally.done_per_s
            text += f" · {left_s:.0f} s left"
        self._console.print(text, soft_wrap=True, highlight=False)
