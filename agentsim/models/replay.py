"""Gives the recorded replies of an earlier run; stands where an `EndpointPool` stands."""

from __future__ import annotations

from collections.abc import Sequence

from agentsim.models.endpoint_pool import EndpointStats
from agentsim.rpc.codec import decode, encode
from agentsim.rpc.messages import Completion, Request

UNRECORDED = "the run that is replayed has no reply to this request"
"""The error of a request without a recording."""
IN_FLIGHT = 128
"""Requests that are taken at once. Each is answered at once: with more, workers would read so many
replies in one go that their signs of life come late."""


class ReplayPool:
    """Answers from recordings, which `add` is given before the first request.

    Replies are kept encoded: an object each would take several times the room.
    """

    structured = False

    def __init__(self) -> None:
        self._replies: dict[tuple[int, int, int, int, int], bytes] = {}
        self._done = self._failed = 0

    def add(self, replies: Sequence[Completion]) -> None:
        """Take recordings; of equal identities the first one counts."""
        for reply in replies:
            self._replies.setdefault(_identity(reply), encode(reply))

    async def complete(self, request: Request) -> Completion:
        """The recorded reply, as it was, or an error where there is none."""
        recorded = self._replies.get(_identity(request))
        if recorded is not None:
            self._done += 1
            return decode(recorded, Completion)
        self._failed += 1
        return Completion(
            *_identity(request), text="", finish_reason="error", error=UNRECORDED, tries=0
        )

    def stats(self) -> EndpointStats:
        """Counts up to now; nothing waits, and no token is made."""
        return EndpointStats(0, 0, self._done, self._failed, 0, 0, 0, 0.0, 0.0, IN_FLIGHT, 0)

    async def close(self) -> None:
        """Forget the recordings."""
        self._replies.clear()


def _identity(message: Request | Completion) -> tuple[int, int, int, int, int]:
    return (message.session, message.round, message.agent, message.step, message.attempt)
