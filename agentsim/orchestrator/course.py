"""The state of a run's rounds: what was told, who has acted, how it was settled.

It is fed with what stands in the journal, by the run that writes it and by one that goes on with
it, and knows nothing of workers.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from agentsim.config.scenario import Scenario
from agentsim.games.guess_average import GuessAverageSpec, Sides, settle, to_settle
from agentsim.ids import Round
from agentsim.orchestrator.enrolment import grouping
from agentsim.orchestrator.limits import Missing, check_tokens
from agentsim.orchestrator.rounds import Board, Command, Rounds
from agentsim.plan import RunPlan
from agentsim.results import Grouping, RecordedAttempts, RoundColumns
from agentsim.rpc.messages import Answers, Attempt, Observation, Settle


@dataclass(frozen=True, slots=True)
class RunSpec:
    """What is played.

    Attributes:
        model: what the tables' column `model` says.
    """

    scenario: Scenario
    game: GuessAverageSpec
    plan: RunPlan
    model: str


@dataclass(slots=True)
class _Told:
    """What a session has been told, and where its attempts lie."""

    grouping: Grouping
    observations: dict[int, list[Observation]]
    recorded: dict[int, RecordedAttempts]
    settled: Counter[int]


class Course:
    """The rounds of all sessions.

    Args:
        spec: what is played.
        personas: file of the population; read where groups are by an attribute.
        journal: where the attempts lie.

    Attributes:
        tokens: of all attempts so far, those of personas included.
        actions: final actions in settled rounds.
    """

    def __init__(self, spec: RunSpec, *, personas: Path, journal: Path) -> None:
        scenario = spec.scenario
        self.tokens = 0
        self.actions = 0
        self._spec = spec
        self._personas = personas
        self._journal = journal
        self._missing = Missing(scenario.agents, scenario.limits)
        self._sessions: dict[int, _Told] = {}
        self._rounds = Rounds(
            sessions=scenario.sessions,
            rounds=scenario.rounds,
            at_once=spec.plan.sessions_at_once,
        )

    @property
    def sessions(self) -> list[int]:
        """Sessions that are being played."""
        return list(self._sessions)

    @property
    def dropped(self) -> int:
        """Final actions that came for no open round, or twice."""
        return self._rounds.dropped

    def start(self) -> list[Command]:
        """Begin the first sessions."""
        return self._rounds.start()

    def enrol(self, session: int) -> list[Command]:
        """Begin a session.

        Raises:
            ResultsError: the population cannot be read.
        """
        scenario = self._spec.scenario
        groups = grouping(
            self._spec.game,
            scenario.agents,
            seed=scenario.seed,
            session=session,
            personas=self._personas,
        )
        self._sessions[session] = _Told(groups, {}, {}, Counter())
        return self._rounds.enrolled(session, groups)

    def grouping(self, session: int) -> Grouping:
        """The groups of a session that is being played."""
        return self._sessions[session].grouping

    def tell(self, observation: Observation) -> int:
        """A market, or a group of it, is told something; the market."""
        told = self._sessions[observation.session]
        told.observations.setdefault(observation.round, []).append(observation)
        if observation.round not in told.recorded:
            key = Round(observation.session, observation.round)
            told.recorded[observation.round] = RecordedAttempts(self._journal, key)
        return observation.group - 1 if told.grouping.separate else 0

    def retire(self, session: int) -> None:
        """A session has ended."""
        del self._sessions[session]

    def answered(self, answers: Answers) -> tuple[int, list[Command]]:
        """Final actions of scripted players: how many count, and what is to be done."""
        return self._rounds.answered(answers)

    def attempted(self, attempts: list[Attempt], offset: int) -> list[Command]:
        """Attempts of players that ask a language model; what is to be done.

        Args:
            attempts: all of one round.
            offset: of their frame in the journal.
        """
        first = attempts[0]
        self.tokens += tokens_of(attempts)
        told = self._sessions.get(first.session)
        if told is not None and first.round in told.recorded:
            told.recorded[first.round].add(offset, len(attempts))
        return self._rounds.attempted(attempts)[1]

    def outcome(self, board: Board, wall_s: float) -> Settle:
        """How a full round of a market ends."""
        gatherer = board.gatherer
        codes = gatherer.groups
        settlement = settle(
            self._spec.game,
            agents=gatherer.agents,
            values=gatherer.values,
            ok=gatherer.ok,
            n=board.n,
            seed=self._spec.scenario.seed,
            session=board.session,
            round=board.round,
            sides=None if codes is None else Sides(gatherer.group_names, codes),
        )
        return to_settle(
            settlement,
            statuses=gatherer.statuses,
            group_statuses=gatherer.group_statuses,
            market=(board.market, self.grouping(board.session).markets),
            wall_s=wall_s,
        )

    def close(self, board: Board, record: Settle) -> tuple[RoundColumns, RecordedAttempts]:
        """A full round of a market was settled: its rows, and where its attempts lie.

        Raises:
            LimitReached: too many agents have no valid action.
        """
        told = self._sessions[board.session]
        self.actions += board.final
        told.settled[board.round] += 1
        return board.gatherer.columns(record, model=self._spec.model), told.recorded[board.round]

    def check(self, record: Settle) -> None:
        """Count a settled round of a market against the limits.

        Raises:
            LimitReached: too many agents have no valid action.
        """
        self._missing.check(record)

    def check_tokens(self) -> None:
        """Raises:
        LimitReached: more tokens were used than may be.
        """
        check_tokens(self.tokens, self._spec.scenario.limits)

    def go_on(self, board: Board, record: Settle) -> list[Command]:
        """What follows a settled round of a market."""
        if not self._spec.game.tells_groups:
            return self._rounds.settled(board, {0: record.announced})
        announced = {group: told.announced for group, told in enumerate(record.groups, 1)}
        return self._rounds.settled(board, announced)

    def open(self, session: int) -> Iterator[tuple[Board, list[Observation]]]:
        """Open rounds that are not full, each with what it was told."""
        told = self._sessions[session]
        by_market: defaultdict[tuple[int, int], list[Observation]] = defaultdict(list)
        for round, observations in told.observations.items():
            for observation in observations:
                market = observation.group - 1 if told.grouping.separate else 0
                by_market[round, market].append(observation)
        for board in self._rounds.open(session):
            if not board.settling:
                yield board, by_market[board.round, board.market]

    def past(self, session: int) -> Iterator[tuple[list[Observation], RecordedAttempts]]:
        """Rounds of markets that go on, in order: what was told, and their attempts.

        The open one is among them: who has acted in it will not be asked, but has to remember.
        """
        told = self._sessions[session]
        at = {board.market: board.round for board in self._rounds.open(session)}
        for round in sorted(told.observations):
            observations = [
                observation
                for observation in told.observations[round]
                if round <= at.get(observation.group - 1 if told.grouping.separate else 0, 0)
            ]
            if observations:
                yield observations, told.recorded[round]

    def recorded(self, board: Board) -> RecordedAttempts:
        """The attempts of an open round."""
        return self._sessions[board.session].recorded[board.round]


def tokens_of(attempts: Iterable[Attempt]) -> int:
    """Tokens of prompts and replies."""
    return sum(attempt.prompt_tokens + attempt.completion_tokens for attempt in attempts)
