"""What a run tells to whoever watches it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

from agentsim.rpc.messages import Settle


@dataclass(frozen=True, slots=True)
class Writing:
    """How far the writing of personas is.

    Attributes:
        total: personas that are wanted.
        by_model: written by the model.
        asked_again: those of them for which it was asked more than once.
        from_template: written from the template after the last attempt.
        tokens: of prompts and replies so far.
    """

    total: int
    by_model: int = 0
    asked_again: int = 0
    from_template: int = 0
    tokens: int = 0

    @property
    def done(self) -> int:
        """Personas that are written, by whom ever."""
        return self.by_model + self.from_template

    def with_one(self, *, by_model: bool, asked_again: bool, tokens: int) -> Writing:
        """The progress with one persona more."""
        return replace(
            self,
            by_model=self.by_model + by_model,
            asked_again=self.asked_again + (by_model and asked_again),
            from_template=self.from_template + (not by_model),
            tokens=tokens,
        )


class Watcher(Protocol):
    """Watches what every run begins with. Calls must return at once."""

    def stage(self, name: str) -> None:
        """The run entered a stage, e.g. `starting 2 workers on localhost`."""

    def wrote(self, progress: Writing) -> None:
        """Personas were written."""

    def notice(self, text: str) -> None:
        """Something that the user should know now; one line."""


class Observer(Watcher, Protocol):
    """Watches the run of a game. Calls come from the orchestrator's loop."""

    def asked(self, session: int, round: int, n: int) -> None:
        """All agents of a session were asked to act."""

    def acted(self, round: int, statuses: dict[str, int], tokens: int) -> None:
        """Final actions and attempts have arrived.

        Args:
            statuses: final actions by status.
            tokens: of all attempts among them.
        """

    def settled(self, settle: Settle) -> None:
        """A round of a session was settled."""


class Silent:
    """An observer that does nothing."""

    def stage(self, name: str) -> None: ...

    def wrote(self, progress: Writing) -> None: ...

    def asked(self, session: int, round: int, n: int) -> None: ...

    def acted(self, round: int, statuses: dict[str, int], tokens: int) -> None: ...

    def settled(self, settle: Settle) -> None: ...

    def notice(self, text: str) -> None: ...
