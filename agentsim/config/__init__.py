"""The files that describe a run: read, checked, and answered for when they are wrong."""

from __future__ import annotations

from agentsim.config.base import FileModel
from agentsim.config.begun import differences, load_recorded
from agentsim.config.checks import ChecksScenario, GameFinding
from agentsim.config.codes import CODES
from agentsim.config.hostfile import Host, Hostfile
from agentsim.config.loaded import (
    Loaded,
    LoadedCell,
    LoadedPopulation,
    LoadedSweep,
    LoadedWorkflow,
)
from agentsim.config.loader import load, load_any, load_hostfile, load_population, load_runs
from agentsim.config.made import MadePersonas
from agentsim.config.overrides import Override, split_set
from agentsim.config.population import Population
from agentsim.config.recorded import RecordedRun, recorded_run
from agentsim.config.scenario import Scenario
from agentsim.config.schema import KINDS, json_schema
from agentsim.config.shape import flow
from agentsim.config.sweep import Setting
from agentsim.config.workflow import WorkflowScenario

__all__ = [
    "CODES",
    "KINDS",
    "ChecksScenario",
    "FileModel",
    "GameFinding",
    "Host",
    "Hostfile",
    "Loaded",
    "LoadedCell",
    "LoadedPopulation",
    "LoadedSweep",
    "LoadedWorkflow",
    "MadePersonas",
    "Override",
    "Population",
    "RecordedRun",
    "Scenario",
    "Setting",
    "WorkflowScenario",
    "differences",
    "flow",
    "json_schema",
    "load",
    "load_any",
    "load_hostfile",
    "load_population",
    "load_recorded",
    "load_runs",
    "recorded_run",
    "split_set",
]
