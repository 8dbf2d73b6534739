"""A room where what is said wakes everybody, who may answer or stay silent.

agentsim run scenarios/chat_room.yaml
"""

from __future__ import annotations

from dataclasses import dataclass

from agentsim import Agent, Environment, Model, Persona, Proxy, Workflow, on

SILENCE = "SILENT"


@dataclass
class Line:
    """Something that was said; by nobody's number, -1, it is the host's."""

    turn: int
    agent: int
    name: str
    text: str


class Room(Environment):
    """Keeps what was said, and tells it to its members."""

    def __init__(self, memory: int) -> None:
        self.memory = memory
        self.members: list[Proxy] = []
        self.lines: list[Line] = []

    def join(self, member: Proxy) -> None:
        self.members.append(member)

    @on("open")
    def begin(self, topic: str) -> None:
        self.lines.append(Line(0, -1, "Host", topic))

    @on("turn")
    async def wake(self, turn: int) -> list[Line]:
        """All members hear the last lines at once; who answers is heard in the next turn."""
        heard = await self.emit("heard", self.lines[-self.memory :], to=self.members)
        said = [line for answers in heard for line in answers if line is not None]
        said = [Line(turn, line.agent, line.name, line.text) for line in said]
        self.lines += said
        return said


class Member(Agent):
    """Somebody in the room."""

    def __init__(self, persona: Persona, model: Model) -> None:
        self.agent, self.model = persona.agent, model
        self.name = f"{persona.attributes.get('occupation', 'member')} {persona.agent}"
        self.system = (
            f"{persona.background} You are in a chat room, as {self.name}. Answer in one short "
            f"sentence. If you do not want to say anything, answer with the one word {SILENCE}."
        )

    @on("heard")
    async def answer(self, lines: list[Line]) -> Line | None:
        heard = "\n".join(f"{line.name}: {line.text}" for line in lines)
        reply = await self.model.chat(
            [
                {"role": "system", "content": self.system},
                {"role": "user", "content": f"{heard}\n{self.name}:"},
            ]
        )
        text = reply.text.strip()
        if not text or text.strip(".!\"'").upper() == SILENCE:
            return None
        return Line(0, self.agent, self.name, text)


def main(run: Workflow) -> None:
    room = Room.on(run.cluster, run.parameters["memory"])
    for person in run.personas:
        room.join(Member.on(run.cluster, person, run.model.of(person))).result()
    topic = run.parameters["topic"]
    room.handle("open", topic).result()
    run.record("lines", turn=0, agent=None, name="Host", text=topic)
    for turn in range(1, run.parameters["turns"] + 1):
        (said,) = room.handle("turn", turn).result()
        for line in said:
            run.record("lines", turn=turn, agent=line.agent, name=line.name, text=line.text)
            run.note(f"{line.name}: {line.text}")
        silent = len(run.personas) - len(said)
        run.record("turns", turn=turn, spoke=len(said), silent=silent)
        if not said:
            break
