"""What the players of one market share: the rules of the run, and what all have been told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from weakref import WeakValueDictionary

from agentsim.config.scenario import Memory, Prompt
from agentsim.games.guess_average import prompts
from agentsim.games.guess_average.groups import Membership
from agentsim.games.guess_average.spec import GuessAverageSpec
from agentsim.rpc.messages import Message, Observation


@dataclass(frozen=True, slots=True)
class MarketContext:
    """What all players of a worker share.

    Attributes:
        spec: the game.
        prompt: the treatment.
        memory: what a player knows of earlier rounds beyond the last announcement.
        format: `json` where the server enforces a schema, else `text`.
        attempts: how often a player is asked in a round, the first time included.
        seed: the scenario's seed.
        worker: index of the worker over all hosts.
    """

    spec: GuessAverageSpec
    prompt: Prompt
    memory: Memory
    format: prompts.Format
    attempts: int
    seed: int
    worker: int
    _markets: WeakValueDictionary[tuple[int, int], Market] = field(
        default_factory=WeakValueDictionary, init=False, repr=False, compare=False
    )

    def market(self, session: int, group: Membership | None) -> Market:
        """The market of a session, as one group sees it; it lives as long as its players."""
        key = (session, 0 if group is None else group.number)
        market = self._markets.get(key)
        if market is None:
            market = self._markets[key] = Market(self, group)
        return market


class Market:
    """What all players of one session, or of one group of it, have been told, kept once for all of
    them."""

    __slots__ = (
        "__weakref__",
        "_format",
        "_spec",
        "announced",
        "group",
        "questions",
        "schema",
        "system",
    )

    def __init__(self, context: MarketContext, group: Membership | None) -> None:
        self.group = group
        self._spec = context.spec
        self._format = prompts.reply_format(context.prompt, context.format)
        self.schema = prompts.schema(context.prompt) if context.format == "json" else None
        self.system: Message | None = None
        self.announced: list[Mapping[str, float]] = []
        self.questions: list[Message] = []

    def observe(self, observation: Observation) -> None:
        """Take in what a round tells; every player brings the same."""
        known = len(self.announced)
        if observation.round <= known:
            return
        if observation.round > known + 1:
            raise ValueError(f"round {observation.round} comes before round {known + 1}")
        self.announced.append(observation.announced)
        text = prompts.question(self._spec, observation.round, observation.announced)
        self.questions.append(self.ask(text))

    def ask(self, *paragraphs: str) -> Message:
        """A question with the reply format as its last paragraph."""
        return Message("user", "\n\n".join([*paragraphs, self._format]))
