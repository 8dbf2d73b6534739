"""A public-goods game with punishment, in groups of four.

Everybody has 20 points and gives some of them to a project. The project's points are multiplied by
1.6 and shared equally, so that a point given brings 0.4 to each of the four. Then everybody sees
what the others gave and may take points from them: one point costs one and takes three (Fehr and
Gächter 2002, "Altruistic punishment in humans", Nature 415, 137-140).

Who names no number that can be read gives nothing and punishes nobody; the decision is recorded as
missing, not as 0.

    agentsim run scenarios/public_goods.yaml
"""

from __future__ import annotations

from typing import Any

from agentsim import Agent, Model, Persona, Proxy, Workflow

SIZE, ENDOWMENT, MULTIPLIER = 4, 20, 1.6
MOST_PUNISHMENT, COST, EFFECT = 10, 1, 3
ATTEMPTS = 3
ANSWER = {
    "type": "object",
    "properties": {"answer": {"type": "integer"}},
    "required": ["answer"],
    "additionalProperties": False,
}
RULES = (
    f"You play a game with {SIZE - 1} others. In each round everybody has {ENDOWMENT} points and "
    "gives some of them to a common project. What is given is multiplied by "
    f"{MULTIPLIER} and shared equally among the {SIZE} players. What you do not give, you keep."
)


class Player(Agent):
    """Decides, and remembers how the rounds went."""

    def __init__(self, persona: Persona, model: Model) -> None:
        self.model = model
        self.system = f"{persona.background} {RULES}"
        self.past: list[str] = []

    async def contribute(self) -> int | None:
        return await self.decide("How many points do you give to the project?", ENDOWMENT)

    async def punish(self, gave: int, other: int) -> int | None:
        return await self.decide(
            f"You gave {gave} points in this round, and another player gave {other}. You can take "
            f"points from this player: each point that you spend costs you {COST} and takes "
            f"{EFFECT} from the player. How many points do you spend?",
            MOST_PUNISHMENT,
        )

    def learn(self, text: str) -> None:
        self.past.append(text)

    async def decide(self, question: str, most: int) -> int | None:
        """A whole number from 0 to `most`; None when no reply could be read as one."""
        asked = [*self.past, f"{question} Answer with a whole number from 0 to {most} alone."]
        prompt = [
            {"role": "system", "content": self.system},
            {"role": "user", "content": "\n".join(asked)},
        ]
        for _ in range(ATTEMPTS):
            value = (await self.model.chat(prompt, schema=ANSWER)).number(0, most).value
            if value is not None and value.is_integer():
                return int(value)
        return None


class Group(Agent):
    """Plays the rounds of four players, one after the other: an agent takes one call at a time."""

    def __init__(self, players: list[Proxy]) -> None:
        self.players = players

    async def act(self, number: int) -> list[dict[str, Any]]:
        chosen = [await answer for answer in [player.contribute() for player in self.players]]
        gave = [choice or 0 for choice in chosen]
        pairs = [(i, j) for i in range(SIZE) for j in range(SIZE) if i != j]
        asked = {(i, j): self.players[i].punish(gave[i], gave[j]) for i, j in pairs}
        spent = {pair: await answer for pair, answer in asked.items()}
        share = MULTIPLIER * sum(gave) / SIZE
        rows = []
        for i, player in enumerate(self.players):
            dealt = sum(spent[pair] or 0 for pair in pairs if pair[0] == i)
            got = sum(spent[pair] or 0 for pair in pairs if pair[1] == i)
            payoff = ENDOWMENT - gave[i] + share - COST * dealt - EFFECT * got
            others = ", ".join(str(gave[j]) for j in range(SIZE) if j != i)
            await player.learn(
                f"Round {number}: you gave {gave[i]}, the others gave {others}. Others took "
                f"{EFFECT * got} points from you. You earned {payoff:g} points."
            )
            missing = sum(spent[pair] is None for pair in pairs if pair[0] == i)
            rows.append(
                {"contribution": chosen[i], "dealt": dealt, "got": got, "payoff": payoff}
                | {"missing_punishments": missing}
            )
        return rows


def main(run: Workflow) -> None:
    if len(run.personas) % SIZE:
        raise ValueError(f"agents must be a multiple of {SIZE}, found {len(run.personas)}")
    players = [Player.on(run.cluster, person, run.model.of(person)) for person in run.personas]
    groups = [
        Group.on(run.cluster, players[first : first + SIZE])
        for first in range(0, len(players), SIZE)
    ]
    # All rounds of all groups are asked for at once: no group waits for another.
    rounds = [[group(number) for group in groups] for number in range(1, (run.rounds or 1) + 1)]
    for number, results in enumerate(rounds, 1):
        given = []
        for group, rows in enumerate(results):
            for seat, row in enumerate(rows.result()):
                agent = group * SIZE + seat
                run.record("decisions", round=number, group=group, agent=agent, **row)
                given += [] if row["contribution"] is None else [row["contribution"]]
        mean = sum(given) / len(given) if given else float("nan")
        run.note(f"round {number}: {len(given)} gave, {mean:.1f} points on average")
