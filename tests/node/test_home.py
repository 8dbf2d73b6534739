"""Messages of a node on another machine name logs as they are found here."""

import pytest

from agentsim.logs import LogSettings
from agentsim.node.home import where_logs_come
from agentsim.rpc.control import NodeConfig

CONFIG = NodeConfig(
    "[::]:7000",
    "/tmp/agentsim-x",
    "/tmp/agentsim-x/logs",
    logs_come_to="runs/R/logs",
    log=LogSettings("/tmp/agentsim-x/logs/node-1.log"),
)


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("its log: /tmp/agentsim-x/logs/worker-7.log", "its log: runs/R/logs/worker-7.log"),
        ("see /tmp/agentsim-x/logs/node-1.log; or", "see runs/R/logs/node-1.log; or"),
        ("log: /tmp/agentsim-x/logs/llama_cpp.log)", "log: runs/R/logs/node-1-llama_cpp.log)"),
        ("a path of others: /tmp/other/logs/x.log", "a path of others: /tmp/other/logs/x.log"),
    ],
)
def test_a_log_is_named_as_it_is_found_at_the_end(said: str, shown: str) -> None:
    assert where_logs_come(CONFIG, said) == shown


def test_logs_that_stay_are_named_where_they_are() -> None:
    here = NodeConfig("unix:/tmp/x/node.sock", "/tmp/x", "/tmp/x/logs")
    assert where_logs_come(here, "its log: /tmp/x/logs/a.log") == "its log: /tmp/x/logs/a.log"
