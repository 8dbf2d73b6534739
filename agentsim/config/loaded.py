"""What comes of reading the files that describe a run, or several."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel

from agentsim.config.hostfile import Hostfile
from agentsim.config.made import MadePersonas
from agentsim.config.population import Population
from agentsim.config.scenario import Scenario
from agentsim.config.sweep import Setting, in_words
from agentsim.config.workflow import WorkflowScenario


@dataclass(frozen=True, slots=True)
class Loaded:
    """The files of a run, checked.

    Attributes:
        scenario: the scenario, with what the command line changed; its `game` is plain data.
        game: the checked `game:` part.
        population: None if the scenario has none.
        hostfile: this machine with 2 workers if the scenario names none.
        files: the text of every file that was read, by absolute path.
        made: the file of personas that the scenario names in place of a population file; None if
            it does not.
        overrides: what the command line or a sweep changed, `key=value` each.
    """

    scenario: Scenario
    game: BaseModel
    population: Population | None
    hostfile: Hostfile
    files: dict[str, str]
    made: MadePersonas | None = None
    overrides: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LoadedWorkflow:
    """The files of a run that a user's function drives, checked.

    Attributes:
        scenario: with what the command line changed.
        folder: the scenario's, where modules are found first.
        population, hostfile, made, overrides: as of `Loaded`.
        files: likewise, with the sources of the modules that the scenario names.
    """

    scenario: WorkflowScenario
    folder: Path
    population: Population | None
    hostfile: Hostfile
    files: dict[str, str]
    made: MadePersonas | None = None
    overrides: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LoadedPopulation:
    """A population file, checked.

    Attributes:
        population: with what the command line changed.
        hostfile: this machine if none is named.
    """

    population: Population
    hostfile: Hostfile


@dataclass(frozen=True, slots=True)
class LoadedCell:
    """One run of a sweep, checked.

    Attributes:
        number: from 1.
        settings: what it sets in the scenario.
        loaded: the scenario with that.
    """

    number: int
    settings: tuple[Setting, ...]
    loaded: Loaded | LoadedWorkflow

    @property
    def words(self) -> str:
        """`prompt=direct, model.temperature=0.05`."""
        return in_words(self.settings)


@dataclass(frozen=True, slots=True)
class LoadedSweep:
    """A scenario with a sweep, checked.

    Attributes:
        name: the scenario's.
        cells: at least one, in the order in which they are played.
        files: the text of every file that was read, by absolute path.
    """

    name: str
    cells: tuple[LoadedCell, ...]
    files: dict[str, str]
