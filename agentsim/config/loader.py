"""Loads the files that describe a run, or says everything that is wrong with them."""

from __future__ import annotations

import os
from collections.abc import Iterable
from collections.abc import Mapping as Games
from dataclasses import replace
from pathlib import Path

from pydantic import BaseModel

from agentsim.config import checks, parts, programs, served, sweep
from agentsim.config import overrides as flags
from agentsim.config.base import FileModel
from agentsim.config.check import Checked, check
from agentsim.config.hostfile import Hostfile
from agentsim.config.hosts import hostfile as read_hostfile
from agentsim.config.loaded import Loaded, LoadedCell, LoadedPopulation, LoadedSweep, LoadedWorkflow
from agentsim.config.population import Population
from agentsim.config.reading import Reading, overridden
from agentsim.config.recorded import of_recorded, with_run
from agentsim.config.scenario import Scenario
from agentsim.config.tree import Node, given, without
from agentsim.config.workflow import WorkflowScenario
from agentsim.errors import ConfigError, Finding


def load(
    path: str | os.PathLike[str],
    *,
    games: Games[str, type[FileModel]],
    overrides: Iterable[flags.Override] = (),
    hosts: Path | None = None,
    workers: int | None = None,
) -> Loaded:
    """Read and check a scenario and the files that it names.

    Args:
        path: the scenario.
        games: the models of the `game:` part by `type`. A model may have a method
            `findings(scenario, population)` (`checks.ChecksScenario`).
        overrides: values from the command line: dotted key, YAML text, flag.
        hosts: hostfile to take instead of the scenario's, relative to the current directory.
        workers: workers for each host instead of the hostfile's.

    Raises:
        ConfigError: with every finding of every file that could be reached.
    """
    loaded = load_any(path, games=games, overrides=overrides, hosts=hosts, workers=workers)
    if isinstance(loaded, Loaded):
        return loaded
    raise _another(path, "runs a workflow", "a scenario with the key `game`")


def load_any(
    path: str | os.PathLike[str],
    *,
    games: Games[str, type[FileModel]],
    overrides: Iterable[flags.Override] = (),
    hosts: Path | None = None,
    workers: int | None = None,
) -> Loaded | LoadedWorkflow:
    """Read and check a scenario of either kind: with a game, or with a workflow of the user's.

    Users' modules are read, not run.

    Args:
        path, games, overrides, hosts, workers: as for `load`.

    Raises:
        ConfigError: with every finding of every file that could be reached; also if the scenario
            has a sweep.
    """
    loaded = load_runs(path, games=games, overrides=overrides, hosts=hosts, workers=workers)
    if not isinstance(loaded, LoadedSweep):
        return loaded
    raise _another(path, "has a sweep", "a scenario of one run: `--set 'sweep={}'`")


def load_runs(
    path: str | os.PathLike[str],
    *,
    games: Games[str, type[FileModel]],
    overrides: Iterable[flags.Override] = (),
    hosts: Path | None = None,
    workers: int | None = None,
    stored: Games[str, str] | None = None,
) -> Loaded | LoadedWorkflow | LoadedSweep:
    """Read and check a scenario of any kind: of one run, or with a sweep.

    Args:
        path, games, overrides, hosts, workers: as for `load`.
        stored: texts of files as they were before, by absolute path; they are taken in place of
            what the files hold now.

    Raises:
        ConfigError: with every finding of every file and of every cell.
    """
    overrides = tuple(overrides)
    reading = Reading(stored=stored or {})
    root: Node | None = reading.tree(os.fspath(path), "scenario")
    if root is not None:
        root = overridden(reading, root, overrides)
        if hosts is not None:
            root = flags.put_scalar(root, "hosts", os.fspath(hosts), "--hosts")
            overrides = (*overrides, ("hosts", os.fspath(hosts), "--hosts"))
        if sweep.has_sweep(root):
            return _load_sweep(reading, root, overrides, games, workers)
    loaded = _load_one(reading, root, games, hosts, workers)
    if reading.findings or loaded is None:
        raise ConfigError(reading.sorted())
    return replace(loaded, overrides=_written(overrides))


def _written(overrides: Iterable[flags.Override]) -> tuple[str, ...]:
    """What the command line changed, as `--set` takes it."""
    return tuple(f"{key}={text}" for key, text, _ in overrides)


def _another(path: str | os.PathLike[str], found: str, expected: str) -> ConfigError:
    """The error for a scenario of another kind than is needed."""
    message = f"this scenario {found}, and another kind of scenario is needed here"
    return ConfigError((Finding("contradiction", message, os.fspath(path), expected=expected),))


def _load_sweep(
    reading: Reading,
    root: Node,
    overrides: tuple[flags.Override, ...],
    games: Games[str, type[FileModel]],
    workers: int | None,
) -> LoadedSweep:
    """Check every cell; what is wrong with all of them is said once."""
    cells, findings = sweep.expand(root, overrides)
    reading.add(findings)
    loaded: list[LoadedCell] = []
    wrong: dict[Finding, list[sweep.Cell]] = {}
    for cell in cells:
        own = replace(reading, files=dict(reading.files), findings={})
        one = _load_one(own, cell.node, games, None, workers)
        for finding in own.findings:
            wrong.setdefault(finding, []).append(cell)
        if one is not None and not own.findings:
            changed = (*_written(overrides), *(f"{s.key}={s.written}" for s in cell.settings))
            one = replace(one, overrides=changed)
            loaded.append(LoadedCell(cell.number, cell.settings, one))
    reading.add(_of_cells(wrong, len(cells), sweep.lines(root)))
    if reading.findings or not loaded:
        raise ConfigError(reading.sorted())
    files = {name: text for cell in loaded for name, text in cell.loaded.files.items()}
    return LoadedSweep(loaded[0].loaded.scenario.name, tuple(loaded), files)


def _of_cells(
    wrong: dict[Finding, list[sweep.Cell]], count: int, lines: set[tuple[str, int]]
) -> Iterable[Finding]:
    """Findings of cells; one that not all have says whose it is, unless it stands in the sweep."""
    for finding, cells in wrong.items():
        places = {(finding.file, finding.line), *((r.file, r.line) for r in finding.related)}
        if len(cells) == count or places & lines:
            yield finding
        else:
            first, more = cells[0], len(cells) - 1
            note = f"in cell {first.number} of the sweep" + (f", and {more} more" if more else "")
            related = first.where.related(f"{note}: {first.words}")
            yield replace(finding, related=(*finding.related, related))


def _load_one(
    reading: Reading,
    root: Node | None,
    games: Games[str, type[FileModel]],
    hosts: Path | None,
    workers: int | None,
) -> Loaded | LoadedWorkflow | None:
    """Check the scenario of one run and what it names; None only with findings."""
    if root is not None and given(root, "workflow"):
        return _load_workflow(reading, root, hosts, workers)
    scenario: Checked[Scenario] | None = None
    game: BaseModel | None = None
    if root is not None:
        scenario, game = parts.scenario(reading, root, games)
        root = scenario.node
    people, made = parts.people(reading, root)
    recorded = parts.recorded(reading, root)
    hostfile = parts.hostfile(reading, root, hosts, workers)
    if scenario and scenario.value and recorded:
        reading.add(of_recorded(recorded, scenario.value, scenario.node))
        scenario = replace(scenario, value=with_run(scenario.value, recorded))
    if scenario and scenario.value and game:
        reading.add(checks.of_game(game, scenario.value, people, scenario.node))
    if scenario and scenario.value and made:
        reading.add(checks.of_made(made, scenario.value, scenario.node))
    if scenario is None or scenario.value is None or game is None:
        return None
    return Loaded(scenario.value, game, people, hostfile or Hostfile(), reading.files, made)


def _load_workflow(
    reading: Reading, root: Node, hosts: Path | None, workers: int | None
) -> LoadedWorkflow | None:
    folder = Path(reading.names[0]).parent
    kept = served.scenario(root)
    reading.add(programs.excluded(root))
    left = kept.node
    for key in programs.GAME_KEYS:
        left = without(left, (key,))
    checked = check(WorkflowScenario, replace(kept, node=left))
    reading.add(checked.findings)
    findings, sources = programs.of_workflow(checked.node, folder)
    reading.add(findings)
    people, made = parts.people(reading, checked.node)
    hostfile = parts.hostfile(reading, checked.node, hosts, workers)
    if checked.value and made:
        reading.add(checks.of_made(made, checked.value, checked.node))
    if checked.value is None:
        return None
    return LoadedWorkflow(
        scenario=checked.value,
        folder=folder.resolve(),
        population=people,
        hostfile=hostfile or Hostfile(),
        files={**reading.files, **sources},
        made=made,
    )


def load_hostfile(path: str | os.PathLike[str]) -> Hostfile:
    """Read and check a hostfile on its own.

    Raises:
        ConfigError: with every finding of the file.
    """
    reading = Reading()
    root = reading.tree(os.fspath(path), "hostfile")
    hostfile = None if root is None else read_hostfile(root)
    if hostfile is not None:
        reading.add(hostfile.findings)
    if reading.findings or hostfile is None or hostfile.value is None:
        raise ConfigError(reading.sorted())
    return hostfile.value


def load_population(
    path: str | os.PathLike[str],
    *,
    overrides: Iterable[flags.Override] = (),
    hosts: Path | None = None,
) -> LoadedPopulation:
    """Read and check a population file on its own, and a hostfile.

    Args:
        path: the population file.
        overrides: values from the command line: dotted key, YAML text, flag.
        hosts: a hostfile, relative to the current directory.

    Raises:
        ConfigError: with every finding.
    """
    reading = Reading()
    population: Population | None = None
    root: Node | None = reading.tree(os.fspath(path), "population")
    if root is not None:
        root = overridden(reading, root, overrides)
        checked = check(Population, served.population(root))
        reading.add(checked.findings)
        population = checked.value
    hostfile = parts.hostfile(reading, None, hosts, None)
    if reading.findings or population is None:
        raise ConfigError(reading.sorted())
    return LoadedPopulation(population, hostfile or Hostfile())
