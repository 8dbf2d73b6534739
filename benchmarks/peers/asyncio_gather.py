"""`asyncio.gather` over the coroutines of N agents, each of which awaits `asyncio.sleep`."""

from __future__ import annotations

import asyncio
import random

from benchmarks.peers.measure import Cost, arguments, thinking


class Agent:
    def __init__(self, think_s: float) -> None:
        self.think_s = think_s

    async def act(self) -> float:
        await asyncio.sleep(self.think_s)
        return random.random() * 100


async def play(agents: list[Agent], rounds: int) -> list[float]:
    answers: list[float] = []
    for _ in range(rounds):
        answers += await asyncio.gather(*(agent.act() for agent in agents))
    return answers


def main() -> None:
    parser = arguments(__doc__, agents=10_000)
    parser.add_argument("--loop", choices=("asyncio", "uvloop"), default="asyncio")
    options = parser.parse_args()
    cost = Cost()
    factory = None
    packages = []
    if options.loop == "uvloop":
        import uvloop

        factory = uvloop.new_event_loop
        packages = ["uvloop"]
    with asyncio.Runner(loop_factory=factory) as runner:
        runner.get_loop()
        cost.stage("startup")
        agents = [Agent(think_s) for think_s in thinking(options)]
        cost.stage("create")
        answers = runner.run(play(agents, options.rounds))
        cost.stage("rounds")
    cost.report(options.loop, answers, options, *packages)


if __name__ == "__main__":
    main()
