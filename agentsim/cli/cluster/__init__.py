"""`agentsim cluster …`: one file a command."""

from __future__ import annotations

import typer

from agentsim.cli.cluster.add import add
from agentsim.cli.cluster.agents import agents
from agentsim.cli.cluster.down import down
from agentsim.cli.cluster.drain import drain
from agentsim.cli.cluster.install import install
from agentsim.cli.cluster.logs import logs
from agentsim.cli.cluster.status import status
from agentsim.cli.cluster.stop import stop
from agentsim.cli.cluster.up import up

cluster = typer.Typer(
    help="Put agentsim on the machines of a hostfile, and keep it there.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
for command in (install, up, status, agents, logs, drain, add, stop, down):
    cluster.command()(command)
