"""The scenario's limits."""

from __future__ import annotations

from collections import Counter

from agentsim.config.scenario import Limits
from agentsim.config.workflow import WorkflowLimits
from agentsim.errors import LimitReached
from agentsim.replies import Status
from agentsim.rpc.messages import Settle


def check_tokens(tokens: int, limits: Limits | WorkflowLimits) -> None:
    """End the run when it has used more tokens than it may.

    Raises:
        LimitReached: it has.
    """
    if limits.tokens is not None and tokens > limits.tokens:
        raise LimitReached(f"limits.tokens: {tokens} tokens were used, {limits.tokens} are allowed")


class Missing:
    """Counts the agents without a valid action, by round of a session, over all its markets.

    Args:
        agents: of a session.
        limits: the scenario's.
    """

    def __init__(self, agents: int, limits: Limits) -> None:
        self._agents = agents
        self._limits = limits
        self._open: dict[tuple[int, int], Counter[str]] = {}
        self._settled: Counter[tuple[int, int]] = Counter()

    def check(self, settle: Settle) -> None:
        """Count a settled market, and end the run when too many agents have no valid action.

        Raises:
            LimitReached: too many.
        """
        key = (settle.session, settle.round)
        statuses = self._open.setdefault(key, Counter())
        statuses.update(settle.statuses)
        self._settled[key] += 1
        if self._settled[key] == settle.markets:
            del self._open[key], self._settled[key]
        missing = statuses.total() - statuses[str(Status.OK)]
        if missing <= self._limits.missing_share * self._agents:
            return
        why = ", ".join(f"{count} {name}" for name, count in statuses.items() if name != Status.OK)
        raise LimitReached(
            f"limits.missing_share: in round {settle.round} of session {settle.session}, {missing} "
            f"of {self._agents} agents have no valid action ({why}); the scenario allows a share "
            f"of {self._limits.missing_share:g}"
        )
