"""AgentScope 0.1.3: many agents in a few server processes, called from one program.

`RpcAgentServerLauncher` passes its `capacity` on only when it serves in its own process, so each
server has a process that is made here. A server keeps `max_pool_size` results and drops older ones
in silence; it is set so that none is dropped.
"""

from __future__ import annotations

import multiprocessing
import os
import random
import tempfile
import time
from argparse import Namespace
from collections.abc import Sequence
from typing import Any

from benchmarks.peers.measure import Cost, arguments, thinking

START_S = 60.0


def begin() -> None:
    """Import AgentScope, and let it write as little as it can."""
    os.environ["AS_HOME_PATH"] = tempfile.gettempdir()
    import agentscope

    agentscope.init(disable_saving=True, use_monitor=False, logger_level="CRITICAL")


def participant() -> type:
    """The class of the agents."""
    from agentscope.agents import AgentBase
    from agentscope.message import Msg

    class Participant(AgentBase):  # type: ignore[misc]
        def __init__(self, name: str, think_s: float) -> None:
            super().__init__(name)
            self.think_s = think_s

        def reply(self, x: object = None) -> Msg:
            time.sleep(self.think_s)
            return Msg(self.name, str(random.random() * 100), "assistant")

    return Participant


def call(agents: Sequence[Any], rounds: int) -> list[float]:
    """Ask all agents in each round; their answers."""
    from agentscope.message import Msg

    question = Msg("host", "a number from 0 to 100", "user")
    answers: list[float] = []
    for _ in range(rounds):
        placeholders = [agent(question) for agent in agents]
        answers += [float(placeholder.result().content) for placeholder in placeholders]
    return answers


def serve(port: int, options: Namespace) -> None:
    from agentscope.server import RpcAgentServerLauncher

    RpcAgentServerLauncher(
        host="localhost",
        port=port,
        capacity=options.capacity,
        max_pool_size=2 * options.agents * options.rounds + 8192,
        local_mode=True,
        custom_agent_classes=[participant()],
    ).launch(in_subprocess=False)


def wait_for(port: int) -> None:
    from agentscope.rpc import RpcClient

    client = RpcClient("localhost", port)
    until = time.monotonic() + START_S
    while not client.is_alive():
        if time.monotonic() > until:
            raise SystemExit(f"no server at port {port} after {START_S:.0f} s")
        time.sleep(0.1)


def main() -> None:
    parser = arguments(__doc__, agents=100)
    parser.add_argument("--servers", type=int, default=2, help="processes (%(default)s)")
    parser.add_argument(
        "--capacity", type=int, default=32, help="threads of a server (AgentScope's: %(default)s)"
    )
    parser.add_argument("--port", type=int, default=21_400, help="of the first (%(default)s)")
    options = parser.parse_args()
    cost = Cost()
    begin()
    Participant = participant()  # noqa: N806
    ports = range(options.port, options.port + options.servers)
    fork = multiprocessing.get_context("fork")  # what AgentScope does
    servers = [fork.Process(target=serve, args=(port, options), daemon=True) for port in ports]
    for server in servers:
        server.start()
    for port in ports:
        wait_for(port)
    cost.stage("startup")
    agents = [
        Participant(
            name=str(index),
            think_s=think_s,
            to_dist={"host": "localhost", "port": ports[index % options.servers]},
        )
        for index, think_s in enumerate(thinking(options))
    ]
    for agent in agents:
        agent._check_created()  # creation goes on in threads, until here
    cost.stage("create")
    answers = call(agents, options.rounds)
    cost.stage("rounds")
    cost.report("agentscope", answers, options, "agentscope", "grpcio")
    for server in servers:
        server.terminate()
    for server in servers:
        server.join(15)


if __name__ == "__main__":
    main()
