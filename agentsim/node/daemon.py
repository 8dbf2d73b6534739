"""A node that stays: several runs at once, and model servers that outlive them."""

from __future__ import annotations

import asyncio
import contextlib
import logging

import msgspec

from agentsim.errors import AgentsimError, LaunchError, UserError
from agentsim.node import staying_logs
from agentsim.node.door import Door
from agentsim.node.reports import Reporter
from agentsim.node.runs import Runs, counted
from agentsim.rpc.codec import encode
from agentsim.rpc.control import NodeConfig
from agentsim.rpc.envelope import NODE, ORCHESTRATOR, Envelope, Kind, WireError
from agentsim.rpc.identity import Identity
from agentsim.rpc.links import Link
from agentsim.rpc.staying import (
    Answer,
    Carried,
    Command,
    Drain,
    EndNode,
    EndRun,
    Here,
    NodeReport,
    OpenRun,
    ReadLog,
    Refused,
    Renew,
    Status,
    TakeLogs,
    read_command,
)

_log = logging.getLogger(__name__)


class Daemon:
    """Hosts runs, and ends when it is told to, or when none has come for long enough.

    Args:
        config: `stay` is set.

    Attributes:
        ended: set when the node is to end.
    """

    def __init__(self, config: NodeConfig) -> None:
        assert config.stay is not None
        self.ended = asyncio.Event()
        self._config = config
        self._stay = config.stay
        self._identity = config.identity
        self._reporter = Reporter(config.stay)
        self._runs = Runs(config, config.stay, self._end_idle)
        self._door = Door(self._runs.find)

    def identity(self) -> Identity:
        """What the node shows to whoever connects now."""
        assert self._identity is not None
        return self._identity

    # --- streams

    async def data(self, link: Link) -> None:
        """Serve the data stream of a run's orchestrator."""
        await self._door.data(link)

    async def pulse(self, link: Link) -> None:
        """Serve the pulse of a run."""
        await self._door.pulse(link)

    async def control(self, link: Link) -> None:
        """Carry out commands, one after another."""
        with contextlib.suppress(WireError):
            while (envelope := await link.receive()) is not None:
                if envelope.kind is not Kind.COMMAND:
                    return
                try:
                    command = read_command(envelope.body)
                except msgspec.DecodeError as error:
                    answer = Refused("RunError", f"the command cannot be read: {error}")
                    await _answer(link, answer)
                    continue
                try:
                    await _answer(link, await self._carry_out(command))
                finally:
                    if isinstance(command, EndNode):
                        self.ended.set()

    async def stop(self) -> None:
        """End all runs and all model servers."""
        await self._runs.stop()

    # --- commands

    async def _carry_out(self, command: Command) -> Answer:
        try:
            match command:
                case OpenRun():
                    return await self._runs.open(command)
                case EndRun():
                    return await self._runs.end(command)
                case Here():
                    return Carried()
                case Status():
                    return await self._report()
                case Drain():
                    self._runs.draining = command.on
                    return Carried("takes no new runs" if command.on else "takes new runs")
                case ReadLog():
                    return staying_logs.read(self._config.log.path, command.offset)
                case TakeLogs():
                    return await asyncio.to_thread(self._runs.take_logs, command.run_id)
                case Renew():
                    return self._renew(command)
                case EndNode():
                    return await self._end_node()
        except AgentsimError as error:
            return Refused(type(error).__name__, f"{self._stay.host}: {error}")
        except Exception as error:  # noqa: BLE001 - whoever asked must hear of it
            _log.exception("a command failed: %s", type(command).__name__)
            return Refused("RunError", f"{self._stay.host}: a bug: {error!r}; see the node's log")

    async def _end_node(self) -> Carried:
        ended = [
            counted(len(self._runs.all), "run"),
            counted(self._runs.workers, "worker"),
            counted(len(self._runs.servers.held()), "model server"),
        ]
        await self.stop()
        return Carried(f"ended, with {', '.join(filter(None, ended)) or 'nothing going on'}")

    async def _report(self) -> NodeReport:
        runs = self._runs
        report = await self._reporter.report(
            runs.all, runs.servers, idle_s=runs.idle_s, draining=runs.draining
        )
        if self._identity is None:
            return report
        until = self._identity.until.isoformat(timespec="seconds")
        return msgspec.structs.replace(report, certificate_until=until)

    def _renew(self, command: Renew) -> Carried:
        if self._identity is None:
            raise UserError("a node on a Unix socket has no certificate")
        if why := command.identity.unlike(self._identity):
            raise LaunchError(f"the certificate is not taken: it is {why}")
        self._identity = command.identity
        _log.info("a new certificate, until %s", command.identity.until)
        return Carried(f"has a certificate until {command.identity.until:%Y-%m-%d}")

    def _end_idle(self) -> None:
        _log.info("no run for %.0f s: this node ends", self._stay.idle_s)
        self.ended.set()


async def _answer(link: Link, answer: Answer) -> None:
    await link.send(Envelope(Kind.ANSWER, ORCHESTRATOR, NODE, encode(answer)))
