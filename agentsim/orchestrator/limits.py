"""The scenario's limits."""

from __future__ import annotations

from agentsim.config.scenario import Limits
from agentsim.errors import LimitReached
from agentsim.replies import Status
from agentsim.rpc.messages import Settle


def check_tokens(tokens: int, limits: Limits) -> None:
    """End the run when it has used more tokens than it may.

    Raises:
        LimitReached: it has.
    """
    if limits.tokens is not None and tokens > limits.tokens:
        raise LimitReached(f"limits.tokens: {tokens} tokens were used, {limits.tokens} are allowed")


def check_missing(settle: Settle, limits: Limits) -> None:
    """End the run when too many agents have no valid action in a round.

    Raises:
        LimitReached: too many.
    """
    missing = settle.n - settle.statuses.get(str(Status.OK), 0)
    if missing <= limits.missing_share * settle.n:
        return
    why = ", ".join(
        f"{count} {status}" for status, count in settle.statuses.items() if status != Status.OK
    )
    raise LimitReached(
        f"limits.missing_share: in round {settle.round} of session {settle.session}, {missing} of "
        f"{settle.n} agents have no valid action ({why}); the scenario allows a share of "
        f"{limits.missing_share:g}"
    )
