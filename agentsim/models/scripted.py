"""Players that need no language model, computed for many agents at once.

All are pure functions of the seed, the observation and the agents' numbers: an agent's guess does
not depend on who is asked with it, where, or in which order.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from agentsim import draws
from agentsim.config.models import CognitiveHierarchy, Dummy, LevelK, Random, ScriptedModel
from agentsim.draws import Stream
from agentsim.models import theory
from agentsim.models.rule import Rule
from agentsim.rpc.messages import Observation

Agents = NDArray[np.uint32]
Column = NDArray[np.float64]

_CACHED_AGENTS = 8_000_000
_CACHED_COLUMNS = 256


class Scripted(Protocol):
    """A scripted model."""

    def values(self, agents: Agents, observation: Observation) -> Column:
        """Guesses of one round.

        Args:
            agents: `(n,)` uint32, agent numbers in any order.
            observation: what they are told.

        Returns:
            `(n,)` float64, in the game's range.
        """
        ...

    def thinking_s(self, agents: Agents, observation: Observation) -> Column | None:
        """How long each agent thinks, `(n,)` float64 seconds; None: they answer at once."""
        ...

    @property
    def text_bytes(self) -> int:
        """Length of the text that each agent sends with its guess; 0: none."""
        ...


def build(spec: ScriptedModel, rule: Rule, *, seed: int) -> Scripted:
    """The model that a scenario names.

    Args:
        spec: the scenario's `model:` part.
        rule: the game.
        seed: the scenario's seed.

    Raises:
        UserError: the levels of `level_k` are wrong.
    """
    match spec:
        case CognitiveHierarchy():
            return TheoryPlayers(theory.poisson_levels(spec.tau, spec.spread), rule, seed)
        case LevelK():
            return TheoryPlayers(theory.given_levels(spec.levels, spec.spread), rule, seed)
        case Random():
            return UniformPlayers(rule, seed)
        case Dummy():
            return UniformPlayers(rule, seed, spec.think_s, spec.jitter_s, spec.text_bytes)


@dataclass(frozen=True, slots=True)
class UniformPlayers:
    """Players that guess uniformly over the range, after thinking for a time.

    Attributes:
        think_s: mean thinking time, seconds; None: they answer at once.
        jitter_s: half-width of the uniform distribution around it, at most `think_s`.
        text_bytes: see `Scripted.text_bytes`.
    """

    rule: Rule
    seed: int
    think_s: float | None = None
    jitter_s: float = 0.0
    text_bytes: int = 0

    def values(self, agents: Agents, observation: Observation) -> Column:
        """See `Scripted.values`."""
        half = (self.rule.high - self.rule.low) / 2
        return _uniform(self.rule, Stream.GUESS, agents, observation, self.seed, half)

    def thinking_s(self, agents: Agents, observation: Observation) -> Column | None:
        """See `Scripted.thinking_s`."""
        if self.think_s is None:
            return None
        if self.jitter_s == 0:
            return np.full(agents.size, self.think_s)
        draw = draws.uniforms(
            Stream.THINKING,
            agents,
            seed=self.seed,
            session=observation.session,
            round=observation.round,
        )
        return self.think_s + self.jitter_s * (2 * draw - 1)


@dataclass(frozen=True, slots=True)
class TheoryPlayers:
    """Players of a level each, which is drawn once per agent and session. See `models.theory`."""

    levels: theory.Levels
    rule: Rule
    seed: int
    _drawn: dict[tuple[int, int, int], tuple[Agents, NDArray[np.uint8]]] = field(
        default_factory=dict, repr=False, compare=False
    )

    def values(self, agents: Agents, observation: Observation) -> Column:
        """See `Scripted.values`.

        Raises:
            NoBestReplyError: the theory has no best reply in this game.
        """
        around = theory.centre(self.rule, observation.announced)
        centre = self.rule.middle if around is None else around
        half = theory.half_width(self.levels, self.rule, around)
        means = theory.level_means(self.levels, self.rule, observation.n, centre)
        level = self.level(agents, observation.session)
        values = means[level]
        zero = level == 0
        values[zero] = _uniform(
            self.rule, Stream.LEVEL_ZERO, agents[zero], observation, self.seed, half, centre
        )
        return values

    def thinking_s(self, agents: Agents, observation: Observation) -> Column | None:
        """They answer at once."""
        return None

    @property
    def text_bytes(self) -> int:
        """They say nothing."""
        return 0

    def level(self, agents: Agents, session: int) -> NDArray[np.uint8]:
        """Level of each agent, `(n,)` integers. Those of the last 8 million agents are kept."""
        if agents.size == 0:
            return np.empty(0, dtype=np.uint8)
        key = (session, int(agents[0]), agents.size)
        kept = self._drawn.get(key)
        if kept is not None and np.array_equal(kept[0], agents):
            return kept[1]
        draw = draws.uniforms(Stream.LEVEL, agents, seed=self.seed, session=session)
        bounds = np.cumsum(self.levels.shares)[:-1]
        level = np.searchsorted(bounds, draw, side="right").astype(np.uint8)
        self._drawn.pop(key, None)
        self._drawn[key] = (agents.copy(), level)
        while len(self._drawn) > 1 and self._is_cache_full():
            del self._drawn[next(iter(self._drawn))]
        return level

    def _is_cache_full(self) -> bool:
        agents = sum(size for _, _, size in self._drawn)
        return agents > _CACHED_AGENTS or len(self._drawn) > _CACHED_COLUMNS


def _uniform(
    rule: Rule,
    stream: Stream,
    agents: Agents,
    observation: Observation,
    seed: int,
    half_width: float,
    centre: float | None = None,
) -> Column:
    """Uniform guesses around a centre, by default the middle of the range."""
    middle = rule.middle if centre is None else centre
    draw = draws.uniforms(
        stream, agents, seed=seed, session=observation.session, round=observation.round
    )
    values = middle + half_width * (2 * draw - 1)
    return np.clip(values, rule.low, rule.high, out=values)
