"""All commands. A command's own module imports what is heavy when it runs, not before."""

from __future__ import annotations

import typer

from agentsim.cli.bench import bench
from agentsim.cli.cluster import cluster
from agentsim.cli.diff import diff
from agentsim.cli.explain import explain
from agentsim.cli.logs import logs
from agentsim.cli.personas import personas
from agentsim.cli.plan import plan
from agentsim.cli.replies import replies
from agentsim.cli.report import report
from agentsim.cli.reread import reread
from agentsim.cli.resume import resume
from agentsim.cli.rm import rm
from agentsim.cli.run import run
from agentsim.cli.runs import runs
from agentsim.cli.schema import schema
from agentsim.cli.show import show
from agentsim.cli.support import support
from agentsim.cli.validate import validate
from agentsim.cli.version import version

app = typer.Typer(
    help="Run very large simulations in which LLM agents play games, from one file.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
for command in (
    run,
    resume,
    personas,
    runs,
    rm,
    show,
    logs,
    support,
    report,
    diff,
    reread,
    plan,
    validate,
    replies,
    schema,
    explain,
    version,
):
    app.command()(command)
app.add_typer(bench, name="bench")
app.add_typer(cluster, name="cluster")
