"""Two debate a motion; a judge who has read everything gives points to both sides.

agentsim run scenarios/debate.yaml
"""

from __future__ import annotations

from agentsim import Agent, Model, Persona, Workflow

SIDES = ("for", "against")
ATTEMPTS = 3


class Debater(Agent):
    """Speaks for one side of the motion."""

    def __init__(self, persona: Persona, model: Model, motion: str, side: str) -> None:
        self.model = model
        self.system = (
            f"{persona.background} You are in a debate. The motion is: {motion} You are {side} "
            "the motion. Speak to the audience, in one or two sentences."
        )

    async def act(self, said: list[str]) -> str:
        heard = "\n".join(said) or "Nobody has spoken yet."
        reply = await self.model.chat(
            [
                {"role": "system", "content": self.system},
                {"role": "user", "content": f"{heard}\n\nIt is your turn."},
            ]
        )
        return reply.text.strip()


class Judge(Agent):
    """Reads a debate and gives each side from 0 to 10 points."""

    def __init__(self, persona: Persona, model: Model, motion: str) -> None:
        self.model = model
        self.system = f"{persona.background} You judge a debate. The motion is: {motion}"

    async def act(self, said: list[str]) -> dict[str, int | None]:
        return {side: await self.points(said, side) for side in SIDES}

    async def points(self, said: list[str], side: str) -> int | None:
        """Points of one side; None when no reply could be read as a whole number."""
        question = (
            "\n".join(said) + f"\n\nHow well did the speaker who is {side} the motion argue, from "
            "0 (not at all) to 10 (perfectly)? Answer with the number alone."
        )
        for _ in range(ATTEMPTS):
            reply = await self.model.chat(
                [
                    {"role": "system", "content": self.system},
                    {"role": "user", "content": question},
                ]
            )
            value = reply.number(0, 10).value
            if value is not None and value.is_integer():
                return int(value)
        return None


def main(run: Workflow) -> None:
    motion, turns = run.parameters["motion"], run.parameters["turns"]
    *speakers, third = run.personas
    debaters = [
        Debater.on(run.cluster, person, run.model.of(person), motion, side)
        for person, side in zip(speakers, SIDES, strict=True)
    ]
    judge = Judge.on(run.cluster, third, run.model.of(third), motion)
    # Nobody waits here: what is not said yet is passed on, and arrives before it is needed.
    said = [f"The motion: {motion}"]
    for _ in range(turns):
        for debater in debaters:
            said = [*said, debater(said)]
    verdict = judge(said)
    for number, text in enumerate(said[1:]):
        side = SIDES[number % 2]
        run.record("statements", number=number + 1, side=side, text=text)
        run.note(f"{side}: {text.result()}")
    points = verdict.result()
    run.record("verdicts", **{f"points_{side}": points[side] for side in SIDES})
    run.note(f"points: {points['for']} for, {points['against']} against (None: no number)")
