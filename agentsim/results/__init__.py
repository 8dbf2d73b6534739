"""The run directory: journal, tables, manifest, summary, and reading them again."""

from agentsim.results.directory import RunDirectory, default_path
from agentsim.results.framing import Frame, Kind, frames
from agentsim.results.grouping import Grouping
from agentsim.results.journal import Journal
from agentsim.results.load import Run, load_run
from agentsim.results.manifest import (
    RunFacts,
    make_manifest,
    read_manifest,
    update_manifest,
    write_manifest,
)
from agentsim.results.parts import compact
from agentsim.results.rebuild import rebuild
from agentsim.results.recorded import RecordedAttempts
from agentsim.results.recording import recorded_replies
from agentsim.results.records import Event, RunEnd, RunStart, from_json, to_json
from agentsim.results.rounds import RoundColumns, RoundGatherer
from agentsim.results.summary import read_summary, summarise, write_summary
from agentsim.results.tables import TableWriter, write_round
from agentsim.results.workflow import write_workflow_tables

__all__ = [
    "Event",
    "Frame",
    "Grouping",
    "Journal",
    "Kind",
    "RecordedAttempts",
    "RoundColumns",
    "RoundGatherer",
    "Run",
    "RunDirectory",
    "RunEnd",
    "RunFacts",
    "RunStart",
    "TableWriter",
    "compact",
    "default_path",
    "frames",
    "from_json",
    "load_run",
    "make_manifest",
    "read_manifest",
    "read_summary",
    "rebuild",
    "recorded_replies",
    "summarise",
    "to_json",
    "update_manifest",
    "write_manifest",
    "write_round",
    "write_summary",
    "write_workflow_tables",
]
