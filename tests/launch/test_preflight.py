"""What is wrong with a host is said in words that name the next step."""

import pytest

from agentsim.config.hostfile import Host, Ssh
from agentsim.launch.connection import explain
from agentsim.launch.far.probe import digest
from agentsim.launch.preflight import Facts, judge
from agentsim.version import __version__

GOOD = {
    "host": "gpu02",
    "python": (3, 11, 7),
    "executable": "/usr/bin/python3",
    "version": __version__,
    "digest": digest(),
    "missing": [],
    "time_s": 1000.5,
    "folders": {"/tmp": (10**12, ""), "/home/sim/.agentsim": (-1, "")},
    "gpus": 8,
    "port": 7000,
    "no_port": "",
}

FOUND = {
    "an old Python": ({"python": (3, 6, 8), "version": ""}, "needs 3.11 or newer; name one by"),
    "no agentsim": ({"version": ""}, "has no agentsim; run `agentsim cluster install`"),
    "another version": ({"version": "0.0.1"}, f"is 0.0.1, here it is {__version__}"),
    "other code of this version": ({"digest": "0"}, "but its code is not the same; run"),
    "a module missing": ({"missing": ["grpc"]}, "lacks what agentsim needs: grpc"),
    "a clock behind": ({"time_s": 1000.5 - 10_800}, "its clock is 3 hours behind"),
    "a clock ahead": ({"time_s": 1000.5 + 86_400 * 30}, "its clock is 30 days ahead"),
    "a full disk": ({"folders": {"/tmp": (2**20, "")}}, "/tmp has only 1 MiB free"),
    "a disk that takes nothing": (
        {"folders": {"/tmp": (0, "No space left on device")}},
        "nothing can be written to /tmp (No space left on device)",
    ),
    "GPUs missing": ({"gpus": 7}, "it shows 7 GPUs, and the hostfile says 8"),
    "no free port": ({"port": 0, "no_port": "no port is free"}, "no port of 7000-7099 can be"),
}


def test_a_host_in_order_has_no_problems() -> None:
    assert list(judge(Host(gpus=8), Facts(**GOOD), 1000, 1001)) == []


@pytest.mark.parametrize("case", FOUND)
def test_each_problem_is_found(case: str) -> None:
    changed, words = FOUND[case]
    (problem,) = judge(Host(gpus=8), Facts(**{**GOOD, **changed}), 1000, 1001)
    assert words in problem.what


def test_all_problems_of_a_host_are_found_at_once() -> None:
    changed = {key: value for case, _ in FOUND.values() for key, value in case.items()}
    assert len(list(judge(Host(gpus=8), Facts(**{**GOOD, **changed}), 1000, 1001))) >= 4


SAID = {
    "ssh: connect to host gpu02 port 22: No route to host": "it cannot be reached",
    "ssh: connect to host gpu02 port 22: Connection timed out": "it cannot be reached",
    "ssh: connect to host gpu02 port 22: Connection refused": "its ssh server does not answer",
    "kex_exchange_identification: Connection closed by remote host": "parallel: 2",
    "ssh: Could not resolve hostname gpu02: Name or service not known": "there is no such host",
    "sim@gpu02: Permission denied (publickey).": "ssh-copy-id",
    "No ED25519 host key is known for gpu02 and you have requested strict checking.\n"
    "Host key verification failed.": "its host key is not known here; log in once with `ssh",
    "@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @\n"
    "Host key verification failed.": "its host key has changed",
    "command-line: line 0: Bad configuration option: nothing": "ssh does not take its settings",
    "something new": "ssh failed: something new; try `ssh -F /c sim@gpu02` by hand",
    "": "ssh failed; try `ssh -F /c sim@gpu02` by hand",
}


@pytest.mark.parametrize("said", SAID)
def test_what_ssh_says_is_explained(said: str) -> None:
    ssh = Ssh(user="sim", config="/c")
    assert SAID[said] in explain(ssh, Host(address="gpu02"), 255, said).what


def test_a_host_that_does_not_answer_in_time_is_said_to() -> None:
    assert "did not answer in time" in explain(Ssh(), Host(address="gpu02"), None, "").what
