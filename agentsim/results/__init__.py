"""The run directory: journal, tables, manifest, summary, and reading them again."""

from agentsim.results.directory import RunDirectory, default_path
from agentsim.results.framing import Frame, Kind, frames
from agentsim.results.journal import Journal
from agentsim.results.recorded import RecordedAttempts
from agentsim.results.records import RunEnd, RunStart
from agentsim.results.rounds import RoundColumns, RoundGatherer
from agentsim.results.tables import TableWriter, write_round

__all__ = [
    "Frame",
    "Journal",
    "Kind",
    "RecordedAttempts",
    "RoundColumns",
    "RoundGatherer",
    "RunDirectory",
    "RunEnd",
    "RunStart",
    "TableWriter",
    "default_path",
    "frames",
    "write_round",
]
