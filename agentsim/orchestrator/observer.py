"""What a run tells to whoever watches it."""

from __future__ import annotations

from typing import Protocol

from agentsim.rpc.messages import Settle


class Observer(Protocol):
    """Watches a run. Calls come from the orchestrator's loop and must return at once."""

    def stage(self, name: str) -> None:
        """The run entered a stage, e.g. `starting 2 workers on localhost`."""

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

    def notice(self, text: str) -> None:
        """Something that the user should know now; one line."""


class Silent:
    """An observer that does nothing."""

    def stage(self, name: str) -> None: ...

    def asked(self, session: int, round: int, n: int) -> None: ...

    def acted(self, round: int, statuses: dict[str, int], tokens: int) -> None: ...

    def settled(self, settle: Settle) -> None: ...

    def notice(self, text: str) -> None: ...
