"""Clusters as text: what is not healthy is told, and lines fit 80 columns."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from agentsim.cli.cluster.common import seconds
from agentsim.cli.cluster.tables import agents_text, as_data, problems, status_text
from agentsim.errors import UserError
from agentsim.launch.looking import HostStatus
from agentsim.launch.registry import Staying, StayingNode
from agentsim.rpc.staying import GpuReport, NodeReport, RunReport, ServerReport, WorkerReport

GIB = 2**30
NODE = StayingNode("gpu01", "unix:/x", 1, "/x/log", "/x", True, 8)
STAYING = Staying("lab", "0.1.0", "2026-11-30T02:00:00+00:00", "ssh", 60.0, [NODE])
WORKER = WorkerReport(3, 77, 250_000, 0.97, 3 * GIB, 0.4)
RUN = RunReport("0f", "guess-two-thirds-20261130-020000-0f", 90.0, 0.0, 60.0, [WORKER])
SERVER = ServerReport("a-model", "http://x/v1", 5, ["r"], "serving", 100.0, 8, 3, 1234.5, 0.2, GIB)
REPORT = NodeReport(
    host="gpu01",
    hostname="gpu01.example.org",
    version="0.1.0",
    pid=1,
    up_s=100_000.0,
    idle_s=0.0,
    ends_in_s=None,
    slots=8,
    draining=False,
    cpus=64,
    cpu=0.5,
    load=31.0,
    memory_used_bytes=100 * GIB,
    memory_bytes=512 * GIB,
    runs=[RUN],
    servers=[SERVER],
    gpus=[GpuReport(0, "NVIDIA H200", 80 * GIB, 141 * GIB, 1.0)],
)


def hosts(**changes: object) -> list[HostStatus]:
    return [HostStatus(NODE, msgspec.structs.replace(REPORT, **changes))]


def server(**changes: object) -> list[HostStatus]:
    return hosts(servers=[msgspec.structs.replace(SERVER, **changes)])


def test_all_is_well() -> None:
    text = status_text(STAYING, hosts())
    assert "1 of 1 hosts answer" in text
    assert "not healthy" not in text
    for word in ("gpu01", "250,000", "1,234", "NVIDIA H200", "80/141", "connected"):
        assert word in text
    assert problems(hosts()) == []


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (server(state="stuck", tokens_per_s=0.0, quiet_s=75.0), "no reply for 75 s"),
        (server(state="ended"), "has ended by itself"),
        (hosts(gpus=[GpuReport(1, "H200", 0, 0, 0.0, "2 uncorrected")]), "GPU 1 (H200): 2 uncor"),
        ([HostStatus(NODE, problem="does not answer")], "gpu01: does not answer"),
        (
            hosts(
                runs=[
                    msgspec.structs.replace(
                        RUN, workers=[msgspec.structs.replace(WORKER, silent_s=7.0)]
                    )
                ]
            ),
            "worker 3 of guess-two-thirds-20261130-020000-0f has been silent for 7.0 s",
        ),
    ],
)
def test_what_is_not_healthy_is_told(found: list[HostStatus], words: str) -> None:
    (line,) = problems(found)
    assert words in line
    assert "not healthy" in status_text(STAYING, found)
    assert as_data(STAYING, found)["healthy"] is False


def test_a_server_that_gives_no_tokens_is_not_shown_as_serving() -> None:
    text = status_text(STAYING, server(tokens_per_s=0.0, quiet_s=12.0))
    assert "quiet 12 s" in text
    assert "serving" not in text


def test_an_orchestrator_that_left_is_told_with_what_is_left_of_its_lease() -> None:
    away = msgspec.structs.replace(RUN, away_s=20.0)
    assert "gone for 20 s, ends in 40 s" in status_text(STAYING, hosts(runs=[away]))


def test_a_host_that_does_not_answer_says_when_it_did() -> None:
    heard = (datetime.now(UTC) - timedelta(minutes=7)).isoformat(timespec="seconds")
    text = status_text(STAYING, [HostStatus(NODE, problem="does not answer", heard=heard)])
    assert "no answer" in text
    assert "7 min ago" in text


def test_lines_fit_and_steer_no_terminal() -> None:
    node = msgspec.structs.replace(NODE, host="h" * 70)
    run = msgspec.structs.replace(RUN, name="r" * 90, away_s=20.0)
    odd = msgspec.structs.replace(SERVER, model="m\x1b[31m" * 20)
    report = msgspec.structs.replace(REPORT, runs=[run], servers=[odd])
    bad = HostStatus(NODE, problem="does not answer " * 20)
    text = status_text(STAYING, [HostStatus(node, report), bad]) + agents_text(
        [HostStatus(node, report)]
    )
    assert "\x1b" not in text
    long = [line for line in text.splitlines() if len(line) > 80]
    assert long == []


def test_data_is_json() -> None:
    data = as_data(STAYING, [*hosts(), HostStatus(NODE, problem="does not answer")])
    again = json.loads(json.dumps(data))
    assert [host["answers"] for host in again["hosts"]] == [True, False]
    assert again["hosts"][0]["runs"][0]["workers"][0]["agents"] == 250_000


@pytest.mark.parametrize(("text", "value"), [("90s", 90.0), ("30m", 1800.0), ("8h", 28_800.0)])
def test_times_are_read(text: str, value: float) -> None:
    assert seconds(text, "--idle") == value


@pytest.mark.parametrize("text", ["", "8", "h", "0s", "-1h", "1e3s", "nanh", "900d", "8 h"])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(UserError, match="--idle takes a time such as"):
        seconds(text, "--idle")
