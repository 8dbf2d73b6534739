"""What the run of a user's program tells to whoever watches it."""

from __future__ import annotations

from typing import Protocol

from agentsim.orchestrator.observer import Watcher, Writing


class Observer(Watcher, Protocol):
    """Watches a run. Calls may come from any thread and must return at once."""

    def note(self, text: str) -> None:
        """The program said something."""

    def called(self, statuses: dict[str, int], tokens: int) -> None:
        """Calls of the model have ended.

        Args:
            statuses: how many by status.
            tokens: of their prompts and replies.
        """


class Silent:
    """An observer that does nothing."""

    def stage(self, name: str) -> None: ...

    def wrote(self, progress: Writing) -> None: ...

    def notice(self, text: str) -> None: ...

    def note(self, text: str) -> None: ...

    def called(self, statuses: dict[str, int], tokens: int) -> None: ...
