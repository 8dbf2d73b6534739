"""What a person sees while a program of their own runs, on stderr: notes, and a line of counts."""

from __future__ import annotations

import threading
import time
from collections import Counter
from types import TracebackType

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.text import Text

from agentsim.orchestrator.observer import Writing

_LINE_EVERY_S = 10.0


class LiveWorkflow:
    """A `workflow.Observer` for people; calls may come from several threads.

    Args:
        console: where to show it; lines instead of a spinner when it is no terminal.
    """

    def __init__(self, console: Console) -> None:
        self._console = console
        self._statuses: Counter[str] = Counter()
        self._tokens = 0
        self._lock = threading.Lock()
        self._began_s = self._last_line_s = time.monotonic()
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            TimeElapsedColumn(),
            console=console,
            refresh_per_second=4,
        )
        self._task = self._progress.add_task("running", total=None)

    def __enter__(self) -> LiveWorkflow:
        if self._console.is_terminal:
            self._progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._console.is_terminal:
            self._progress.stop()

    def stage(self, name: str) -> None:
        """Tell of a stage."""
        self._console.print(Text(name, style="dim"), soft_wrap=True)

    def notice(self, text: str) -> None:
        """Tell of something that the user should know now."""
        self._console.print(Text(f"note: {text}", style="yellow"), soft_wrap=True)

    def wrote(self, progress: Writing) -> None:
        """Personas were written."""
        words = f"{progress.done:,} of {progress.total:,} personas written"
        if self._console.is_terminal:
            self._progress.update(self._task, description=words)
        elif progress.done == progress.total:
            self._console.print(words, soft_wrap=True, highlight=False)

    def note(self, text: str) -> None:
        """Tell what the program says."""
        self._console.print(Text(text), soft_wrap=True)

    def called(self, statuses: dict[str, int], tokens: int) -> None:
        """Calls of the model have ended."""
        with self._lock:
            self._statuses.update(statuses)
            self._tokens += tokens
            words = self._words()
        if self._console.is_terminal:
            self._progress.update(self._task, description=words)
        elif time.monotonic() - self._last_line_s > _LINE_EVERY_S:
            self._last_line_s = time.monotonic()
            self._console.print(words, soft_wrap=True, highlight=False)

    def _words(self) -> str:
        bad = [f"{count:,} {status}" for status, count in self._statuses.items() if status != "ok"]
        rate = self._tokens / max(1e-3, time.monotonic() - self._began_s)
        total = self._statuses.total()
        calls = f"{total:,} {'call' if total == 1 else 'calls'} of the model"
        return " · ".join([calls, *bad, f"{rate:,.0f} tok/s"])
