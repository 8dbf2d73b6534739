"""Agents that block, in a pool of threads."""

from __future__ import annotations

import random
import time
from concurrent.futures import ThreadPoolExecutor

from benchmarks.peers.measure import Cost, arguments, thinking


class Agent:
    def __init__(self, think_s: float) -> None:
        self.think_s = think_s

    def act(self) -> float:
        time.sleep(self.think_s)
        return random.random() * 100


def main() -> None:
    parser = arguments(__doc__, agents=1_000)
    parser.add_argument("--threads", type=int, help="in the pool (as many as agents)")
    options = parser.parse_args()
    cost = Cost()
    answers: list[float] = []
    with ThreadPoolExecutor(options.threads or options.agents) as pool:
        cost.stage("startup")
        agents = [Agent(think_s) for think_s in thinking(options)]
        cost.stage("create")
        for _ in range(options.rounds):
            answers += pool.map(Agent.act, agents)
        cost.stage("rounds")
        cost.report("threads", answers, options)


if __name__ == "__main__":
    main()
