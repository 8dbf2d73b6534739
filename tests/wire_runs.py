"""Whole runs in the test's own process, whose nodes stand behind proxies that fail."""

from __future__ import annotations

import asyncio
import os
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from cut_proxy import CutProxy
from whole_runs import Program, table

from agentsim import run
from agentsim.config import load
from agentsim.games import GAMES
from agentsim.launch import LocalLauncher
from agentsim.launch.local import LocalNode
from agentsim.orchestrator.observer import Silent, Writing
from agentsim.rpc.messages import Settle

PHASES = ["start", "personas", "first round", "between rounds", "end"]


@dataclass(frozen=True)
class ProxiedNode:
    """A local node, reached through a proxy."""

    node: LocalNode
    proxy: CutProxy
    identity: None = None
    run_id: str = ""

    @property
    def host(self) -> str:
        return self.node.host

    @property
    def target(self) -> str:
        return self.proxy.target

    @property
    def log(self) -> str:
        return self.node.log

    async def wait(self) -> int:
        return await self.node.wait()

    async def stop(self, grace_s: float = 5.0) -> None:
        await self.node.stop(grace_s)
        await self.proxy.__aexit__()


class Watching(Silent):
    """Does something when the run comes to a phase, once."""

    def __init__(self, phase: str, act: Callable[[], None]) -> None:
        self.notices: list[str] = []
        self.arrived = False
        self._phase = phase
        self._act = act

    def at(self, phase: str) -> None:
        if phase == self._phase and not self.arrived:
            self.arrived = True
            self._act()

    def stage(self, name: str) -> None:
        if name == "summing up":
            self.at("end")

    def wrote(self, progress: Writing) -> None:
        if progress.done >= 2:
            self.at("personas")

    def acted(self, round: int, statuses: dict[str, int], tokens: int) -> None:
        self.at("first round")

    def asked(self, session: int, round: int, n: int) -> None:
        self.at("asked")

    def settled(self, settle: Settle) -> None:
        self.at("between rounds")

    def notice(self, text: str) -> None:
        self.notices.append(text)


@dataclass
class WireRun:
    """One run.

    Attributes:
        folder: where its directory is made.
        proxies: of its nodes, once they were started.
        nodes: likewise.
        watching: its observer.
    """

    folder: Path
    proxies: list[CutProxy] = field(default_factory=list)
    nodes: list[LocalNode] = field(default_factory=list)

    def __post_init__(self) -> None:
        # So that processes of this run are found again.
        self.program = Program(self.folder)
        name = "AGENTSIM_TEST_MARK"
        os.environ[name] = self.program.env[name]

    async def play(
        self,
        scenario: Path,
        phase: str = "",
        fault: Callable[[WireRun], None] | None = None,
        *,
        timeout_s: float = 110,
        proxied: bool = True,
    ) -> list[tuple[object, ...]]:
        """Play it, with a fault at a phase; gives the table."""
        loaded = load(scenario, games=GAMES)
        act = (lambda: None) if fault is None else (lambda: fault(self))
        self.watching = Watching(phase, act)
        path = self.folder / f"R-{secrets.token_hex(4)}"
        async with asyncio.timeout(timeout_s):
            launcher = self._launcher if proxied else None
            await run.run(loaded, path, self.watching, launcher=launcher)
        assert fault is None or self.watching.arrived, f"the run had no phase {phase}"
        return list(table(path))

    def later(self, s: float, act: Callable[[], None]) -> None:
        asyncio.get_running_loop().call_later(s, act)

    def _launcher(self, log_dir: Path, api_keys: Mapping[str, str]) -> _Proxied:
        return _Proxied(self, LocalLauncher(log_dir, api_keys, grpc=True))


@dataclass(frozen=True)
class _Proxied:
    run: WireRun
    launcher: LocalLauncher

    async def start(self, host: str, index: int) -> ProxiedNode:
        node = await self.launcher.start(host, index)
        proxy = await CutProxy(node.target).__aenter__()
        self.run.proxies.append(proxy)
        self.run.nodes.append(node)
        self.run.watching.at("start")
        return ProxiedNode(node, proxy)
