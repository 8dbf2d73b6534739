"""Ray actors, on a Ray of its own on loopback.

Layouts: `one` actor an agent; `many` agents in each of a few actors, one call an agent; `batch`,
the same with one call an actor for all its agents. Actors that host agents are asyncio actors.
"""

from __future__ import annotations

import asyncio
import os
import random
import secrets
import tempfile
import time
from argparse import Namespace
from collections.abc import Callable, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from benchmarks.peers.measure import Cost, arguments, thinking

ADDRESS = "127.0.0.11"  # Ray takes the network's address where it is given 127.0.0.1


class Agent:
    def __init__(self, think_s: float) -> None:
        self.think_s = think_s

    def ready(self) -> bool:
        return True

    def act(self) -> float:
        time.sleep(self.think_s)
        return random.random() * 100


class Host:
    def __init__(self, think_s: Sequence[float]) -> None:
        self.think_s = think_s

    async def ready(self) -> bool:
        return True

    async def act(self, agent: int) -> float:
        await asyncio.sleep(self.think_s[agent])
        return random.random() * 100

    async def act_all(self) -> list[float]:
        return await asyncio.gather(*(self.act(agent) for agent in range(len(self.think_s))))


def create(ray: Any, options: Namespace) -> Callable[[], list[float]]:
    """Make the actors; a function that plays a round."""
    think_s = thinking(options)
    if options.layout == "one":
        one = ray.remote(num_cpus=0)(Agent)
        agents = [one.remote(seconds) for seconds in think_s]
        ray.get([agent.ready.remote() for agent in agents])
        return lambda: ray.get([agent.act.remote() for agent in agents])
    shares = [think_s[index :: options.actors] for index in range(options.actors)]
    many = ray.remote(num_cpus=0, max_concurrency=options.concurrency)(Host)
    hosts = [many.remote(share) for share in shares]
    ray.get([host.ready.remote() for host in hosts])
    if options.layout == "batch":
        return lambda: list(chain(*ray.get([host.act_all.remote() for host in hosts])))
    seats = [
        (host, agent)
        for host, share in zip(hosts, shares, strict=True)
        for agent in range(len(share))
    ]
    return lambda: ray.get([host.act.remote(agent) for host, agent in seats])


def main() -> None:
    parser = arguments(__doc__, agents=4)
    parser.add_argument("--layout", choices=("one", "many", "batch"), default="one")
    parser.add_argument("--actors", type=int, default=2, help="that host agents (%(default)s)")
    parser.add_argument(
        "--concurrency", type=int, default=100_000, help="calls of an actor at once (%(default)s)"
    )
    options = parser.parse_args()
    cost = Cost()
    with tempfile.TemporaryDirectory(prefix="ray-", ignore_cleanup_errors=True) as folder:
        # Ray listens on all interfaces, so it gets a token.
        token = Path(folder, "token")
        token.write_text(secrets.token_hex(16))
        os.environ |= {
            "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN_PATH": str(token),
            "RAY_USAGE_STATS_ENABLED": "0",
        }
        import ray

        ray.init(
            num_cpus=os.cpu_count(),
            include_dashboard=False,
            object_store_memory=80 * 2**20,
            logging_level="error",
            log_to_driver=False,
            _node_ip_address=ADDRESS,
            _temp_dir=folder,
        )
        cost.stage("startup")
        play = create(ray, options)
        cost.stage("create")
        answers: list[float] = []
        for _ in range(options.rounds):
            answers += play()
        cost.stage("rounds")
        cost.report(f"ray {options.layout}", answers, options, "ray")
        ray.shutdown()


if __name__ == "__main__":
    main()
