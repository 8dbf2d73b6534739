"""One node as the orchestrator sees it: its connection, its signs of life, what is told of it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from agentsim.launch import NodeHandle
from agentsim.plan import HostPlan
from agentsim.rpc.awake import AwakeClock
from agentsim.rpc.connection import Connection
from agentsim.rpc.control import ModelReady, NodeReady, Pulse
from agentsim.rpc.envelope import NODE
from agentsim.rpc.silence import News, Silence, State, Watched
from agentsim.rpc.streams import client

# What a node said of its workers holds while its own pulse is not later than this.
_KNOWN_S = 2.0


@dataclass(frozen=True, slots=True)
class PeerState:
    """How a node or a worker is, for whoever shows it.

    Attributes:
        host: its name in the hostfile.
        worker: index over all hosts; None for the node itself.
        state: healthy, busy (its signs of life come late), frozen (silent, and waited for) or lost.
        silent_s: since its last sign of life.
        trouble: why the node is not connected; empty when it is.
    """

    host: str
    worker: int | None
    state: State
    silent_s: float
    trouble: str = ""


@dataclass(frozen=True, slots=True)
class Item:
    """News of one peer: a worker, or the node itself (NODE)."""

    peer: int
    news: News
    text: str


class Peer:
    """One node and its workers.

    Args:
        plan: of the host.
        handle: of the node, which was started.
        run_id, epoch: see `control.Join`.
        clock: the one that silences are measured with.

    Attributes:
        further: workers that were started later, by `spawn`.
        lost: whether the node was given up.
        given_up: workers that were given up, or ended.
        models: that it serves, by the name that requests use.
        ready: set when its workers and models are up; fails when they do not come up.
        serving: likewise, for models that are being changed.
    """

    def __init__(
        self, plan: HostPlan, handle: NodeHandle, *, run_id: str, epoch: int, clock: AwakeClock
    ) -> None:
        loop = asyncio.get_running_loop()
        self.plan = plan
        self.handle = handle
        self.client = client(handle.target, handle.identity)
        self.connection = Connection(
            self.client, run_id=handle.run_id or run_id, epoch=epoch, on_pulse=self._take_pulse
        )
        self.further: list[int] = []
        self.lost = False
        self.given_up: set[int] = set()
        self.models: dict[str, ModelReady] = {}
        self.ready: asyncio.Future[NodeReady] = loop.create_future()
        # Another node may have failed first, and nobody asks.
        self.ready.add_done_callback(lambda ready: ready.cancelled() or ready.exception())
        self.serving: asyncio.Future[dict[str, ModelReady]] | None = None
        self.pulse = Pulse()
        self._clock = clock
        self._last_pulse_s = clock.now()
        self._watched: dict[int, Watched] = {}

    @property
    def workers(self) -> tuple[int, ...]:
        """All that it has or had."""
        first = self.plan.first_worker
        return (*range(first, first + self.plan.workers), *self.further)

    def look(self, allowed: Silence) -> list[Item]:
        """Judge the silence of the node and of its workers; what is news."""
        if self.lost:
            return []
        own_s = self._clock.now() - self._last_pulse_s
        # While the node is silent, nothing is known of its workers.
        known = self.pulse.silent_s if own_s < _KNOWN_S else {}
        found = []
        for peer, silent_s in {NODE: own_s, **known}.items():
            if peer in self.given_up:
                continue
            watched = self._watched.setdefault(peer, Watched())
            news = watched.judge(silent_s, allowed)
            if news is not None:
                found.append(Item(peer, news, self._text(peer, watched, news, allowed)))
        return found

    def states(self) -> list[PeerState]:
        """How the node is, and each of its workers."""
        own = self._watched.get(NODE, Watched())
        state = State.LOST if self.lost else own.state
        host, trouble = self.plan.address, self.connection.trouble
        found = [PeerState(host, None, state, own.silent_s, trouble)]
        for worker in self.workers:
            gone = self.lost or worker in self.given_up
            watched = self._watched.get(worker, Watched())
            found.append(
                PeerState(host, worker, State.LOST if gone else watched.state, watched.silent_s)
            )
        return found

    def farewell(self, how: str) -> str:
        """What is said of the node when it is lost at once, for a reason that is known."""
        silent_s = self._clock.now() - self._last_pulse_s
        return (
            f"the node of {self.plan.address} {how}; last sign of life {silent_s:.1f} s before; "
            f"its log: {self.handle.log}"
        )

    def _text(self, peer: int, watched: Watched, news: News, allowed: Silence) -> str:
        where = self.plan.address
        who = f"the node of {where}" if peer == NODE else f"worker {peer} on {where}"
        if news is News.BACK:
            return f"{who} is back after {watched.longest_s:.0f} s"
        what = f"{who} has been silent for {watched.longest_s:.0f} s"
        if peer == NODE:
            trouble = self.connection.trouble
            what += f" ({trouble})" if trouble else " (its connection still looks open)"
        log = self.handle.log if peer == NODE else _beside(self.handle.log, peer)
        if news is News.LOST:
            return f"{what} and was given up; see its log: {log}"
        return f"{what}; waiting {allowed.grace_s:.0f} s more for it; see its log: {log}"

    def _take_pulse(self, pulse: Pulse) -> None:
        self.pulse = pulse
        self._last_pulse_s = self._clock.now()


def _beside(log: str, worker: int) -> str:
    """The log of a worker: nodes write it beside their own."""
    folder, slash, _ = log.rpartition("/")
    return f"{folder}{slash}worker-{worker}.log"
