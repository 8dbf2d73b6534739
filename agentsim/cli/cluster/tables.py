"""Clusters as text of 80 columns, and as data. Pure: what nodes said comes in."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from agentsim.launch.looking import HostStatus
from agentsim.launch.registry import Staying
from agentsim.report.words import NOTHING, count, duration, printable
from agentsim.rpc.staying import GpuReport, NodeReport, ServerReport

_WIDTH = 80
_GAP = 2
_GIB = 2**30
# A worker that has said nothing for so long is shown as silent; a run's orchestrator says so, too.
_SILENT_S = 5.0


def problems(hosts: Sequence[HostStatus]) -> list[str]:
    """What is not healthy, a line each."""
    found = []
    for host in hosts:
        name = host.node.host
        if host.report is None:
            found.append(f"{name}: {host.problem}")
            continue
        found += [f"{name}: {what}" for what in map(_server_problem, host.report.servers) if what]
        found += [
            f"{name}: GPU {gpu.index} ({gpu.name}): {gpu.errors}"
            for gpu in host.report.gpus
            if gpu.errors
        ]
        found += [
            f"{name}: worker {worker.worker} of {run.name} has been silent for "
            f"{duration(worker.silent_s)}"
            for run in host.report.runs
            for worker in run.workers
            if worker.silent_s > _SILENT_S
        ]
    return [printable(line) for line in found]


def status_text(staying: Staying, hosts: Sequence[HostStatus]) -> str:
    """Everything about a cluster."""
    reports = [(host.node.host, host.report) for host in hosts if host.report is not None]
    lines = [_headline(staying, reports), ""]
    lines += _hosts(hosts)
    lines += _section("runs", _runs(reports))
    lines += _section("model servers", _servers(reports))
    lines += _section("GPUs", _gpus(reports))
    wrong = problems(hosts)
    if wrong:
        lines += ["", "not healthy"]
        for line in wrong:
            lines += textwrap.wrap(
                line, _WIDTH, initial_indent="  ", subsequent_indent="    ", break_on_hyphens=False
            )
    return "\n".join(lines) + "\n"


def agents_text(hosts: Sequence[HostStatus]) -> str:
    """A line a worker."""
    rows = [
        (
            row["run"],
            row["host"],
            count(row["worker"]),
            count(row["agents"]),
            f"{100 * row['cpu']:.0f} %",
            _gib(row["memory_bytes"]),
            _ago(row["silent_s"]),
        )
        for row in agents_data(hosts)
    ]
    if not rows:
        return "no workers: no run is going on\n"
    titles = ("run", "host", "worker", "agents", "CPU", "GiB", "heartbeat")
    return "\n".join(_table(titles, rows, left=2)) + "\n"


def agents_data(hosts: Sequence[HostStatus]) -> list[dict[str, Any]]:
    """An entry a worker."""
    return [
        {"run": run.name, "host": host.node.host, **msgspec.to_builtins(worker)}
        for host in hosts
        for run in (host.report.runs if host.report else [])
        for worker in run.workers
    ]


def as_data(staying: Staying, hosts: Sequence[HostStatus]) -> dict[str, Any]:
    """Everything about a cluster, for programs."""
    return {
        "cluster": staying.name,
        "version": staying.version,
        "started": staying.started,
        "launcher": staying.launcher,
        "idle_s": staying.idle_s,
        "healthy": not problems(hosts),
        "problems": problems(hosts),
        "hosts": [
            {
                "host": host.node.host,
                "answers": host.report is not None,
                "problem": host.problem or None,
                "heard": host.heard or None,
                "log": host.node.log,
                **({} if host.report is None else _report(host.report)),
            }
            for host in hosts
        ],
    }


def _report(report: NodeReport) -> dict[str, Any]:
    data: dict[str, Any] = msgspec.to_builtins(report)
    del data["type"], data["host"]
    return data


def _headline(staying: Staying, reports: Sequence[tuple[str, NodeReport]]) -> str:
    began = datetime.fromisoformat(staying.started)
    up_s = (datetime.now(UTC) - began).total_seconds()
    answer = f"{len(reports)} of {len(staying.nodes)} hosts answer"
    ends = [report.ends_in_s for _, report in reports if report.ends_in_s is not None]
    idle = f"; ends in {duration(min(ends))} without a run" if ends else ""
    return f"cluster {staying.name}: {answer}; up {duration(max(0.0, up_s))}{idle}"


def _hosts(hosts: Sequence[HostStatus]) -> list[str]:
    titles = ("host", "state", "workers", "agents", "CPU", "GiB", "GPUs", "runs", "up", "heard")
    return _table(titles, [_host(host) for host in hosts], left=2)


def _host(host: HostStatus) -> tuple[str, ...]:
    report = host.report
    if report is None:
        return (host.node.host, "no answer", *[NOTHING] * 7, _when(host.heard))
    workers = [worker for run in report.runs for worker in run.workers]
    slots = NOTHING if report.slots is None else count(report.slots)
    return (
        host.node.host,
        "drained" if report.draining else "ready",
        f"{len(workers)}/{slots}",
        count(sum(worker.agents for worker in workers)),
        f"{100 * report.cpu:.0f} %",
        f"{_gib(report.memory_used_bytes)}/{_gib(report.memory_bytes)}",
        count(len(report.gpus)) if report.gpus else NOTHING,
        count(len(report.runs)),
        _short(report.up_s),
        "now",
    )


def _runs(reports: Sequence[tuple[str, NodeReport]]) -> list[str]:
    """A line a run, over all hosts."""
    names = dict.fromkeys(run.name for _, report in reports for run in report.runs)
    rows = []
    for name in names:
        parts = [run for _, report in reports for run in report.runs if run.name == name]
        away_s = max(run.away_s for run in parts)
        left_s = min(run.lease_s - run.away_s for run in parts)
        there = f"gone for {_short(away_s)}, ends in {_short(max(0.0, left_s))}"
        rows.append(
            (
                name,
                count(len(parts)),
                count(sum(len(run.workers) for run in parts)),
                count(sum(worker.agents for run in parts for worker in run.workers)),
                _short(max(run.up_s for run in parts)),
                "connected" if away_s < 1 else there,
            )
        )
    titles = ("run", "hosts", "workers", "agents", "up", "orchestrator")
    return _table(titles, rows, left=1) if rows else []


def _servers(reports: Sequence[tuple[str, NodeReport]]) -> list[str]:
    rows = [
        (
            server.model,
            host,
            _server_state(server),
            count(server.in_flight),
            count(server.waiting),
            f"{server.tokens_per_s:,.0f}",
            _gib(server.memory_bytes) if server.pid else NOTHING,
            _short(server.up_s) if server.pid else NOTHING,
        )
        for host, report in reports
        for server in report.servers
    ]
    titles = ("model", "host", "state", "in flight", "waiting", "tokens/s", "GiB", "up")
    return _table(titles, rows, left=3) if rows else []


def _server_state(server: ServerReport) -> str:
    if server.state == "serving" and not server.tokens_per_s:
        return f"quiet {_short(server.quiet_s)}"
    return server.state


def _server_problem(server: ServerReport) -> str:
    if server.state == "ended":
        return f"the server of {server.model} has ended by itself; its next run starts it anew"
    if server.state == "stuck":
        return (
            f"the server of {server.model} has {server.in_flight + server.waiting} requests and "
            f"has given no reply for {duration(server.quiet_s)}"
        )
    return ""


def _gpus(reports: Sequence[tuple[str, NodeReport]]) -> list[str]:
    rows = [
        (
            gpu.name,
            host,
            count(gpu.index),
            f"{100 * gpu.busy:.0f} %",
            f"{_gib(gpu.memory_used_bytes)}/{_gib(gpu.memory_bytes)}",
            _gpu_state(gpu),
        )
        for host, report in reports
        for gpu in report.gpus
    ]
    titles = ("GPU", "host", "index", "busy", "GiB", "errors")
    return _table(titles, rows, left=2) if rows else []


def _gpu_state(gpu: GpuReport) -> str:
    return "yes, see below" if gpu.errors else "none"


def _section(title: str, table: Sequence[str]) -> list[str]:
    return ["", title, *table] if table else []


def _table(titles: Sequence[str], rows: Sequence[Sequence[str]], *, left: int) -> list[str]:
    """Lines of at most 80 columns.

    Args:
        left: so many columns hold words: they stand to the left, and the widest gives way.
    """
    shown = [[printable(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(titles, *shown, strict=True)]
    over = sum(widths) + _GAP * (len(widths) - 1) - _WIDTH
    for _ in range(over):
        widths[widths.index(max(widths[:left]), 0, left)] -= 1
    return [_line(row, widths, left) for row in (titles, *shown)]


def _line(cells: Sequence[str], widths: Sequence[int], left: int) -> str:
    shown = []
    for i, (cell, width) in enumerate(zip(cells, widths, strict=True)):
        if i < left:
            cell = cell if len(cell) <= width else cell[: width - 1] + "~"
            shown.append(cell.ljust(width))
        else:
            shown.append(cell.rjust(width))
    return (" " * _GAP).join(shown).rstrip()


def _gib(size: int) -> str:
    gib = size / _GIB
    return f"{gib:.1f}" if gib < 10 else f"{gib:,.0f}"


def _short(seconds: float) -> str:
    """A time in a few characters."""
    for unit, length in (("d", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} s"


def _when(heard: str) -> str:
    """How long ago that was."""
    if not heard:
        return NOTHING
    ago = datetime.now(UTC) - datetime.fromisoformat(heard)
    return f"{_short(max(0.0, ago.total_seconds()))} ago"


def _ago(silent_s: float) -> str:
    return "now" if silent_s < 2 else f"{_short(silent_s)} ago"
