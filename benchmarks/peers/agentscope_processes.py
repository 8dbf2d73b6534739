"""AgentScope 0.1.3: one server process an agent, its way around Python's lock. Tens of agents."""

from __future__ import annotations

from benchmarks.peers.agentscope_servers import begin, call, participant
from benchmarks.peers.measure import Cost, arguments, thinking


def main() -> None:
    options = arguments(__doc__, agents=8).parse_args()
    cost = Cost()
    begin()
    Participant = participant()  # noqa: N806
    cost.stage("startup")
    agents = [
        Participant(name=str(index), think_s=think_s, to_dist=True)
        for index, think_s in enumerate(thinking(options))
    ]
    cost.stage("create")
    answers = call(agents, options.rounds)
    cost.stage("rounds")
    cost.report("agentscope processes", answers, options, "agentscope", "grpcio")
    for agent in agents:
        agent.server_launcher.stop_event.set()  # all at once; `stop` waits for each
    for agent in agents:
        agent.stop()


if __name__ == "__main__":
    main()
