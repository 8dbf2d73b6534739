"""Loads the files that describe a run, or says everything that is wrong with them."""

from __future__ import annotations

import os
from collections.abc import Iterable
from collections.abc import Mapping as Games
from dataclasses import dataclass, field, replace
from pathlib import Path

from pydantic import BaseModel, create_model

from agentsim.config import checks, programs, served, sweep
from agentsim.config import overrides as flags
from agentsim.config.base import FileModel
from agentsim.config.check import Checked, check
from agentsim.config.files import Unreadable, display, read_text
from agentsim.config.hostfile import Hostfile
from agentsim.config.hosts import hostfile as read_hostfile
from agentsim.config.keys import missing_key, near_miss
from agentsim.config.kinds import misplaced
from agentsim.config.loaded import (
    Loaded,
    LoadedCell,
    LoadedPopulation,
    LoadedSweep,
    LoadedWorkflow,
)
from agentsim.config.made import SUFFIX, MadePersonas, read_made
from agentsim.config.parse import parse
from agentsim.config.population import Population
from agentsim.config.recorded import RecordedRun, of_recorded, read_recorded, with_run
from agentsim.config.scenario import Scenario
from agentsim.config.served import Kept
from agentsim.config.shape import flow
from agentsim.config.translate import unknown_word
from agentsim.config.tree import (
    Mapping,
    Node,
    Place,
    document,
    find,
    given,
    place,
    renamed,
    text_at,
    without,
)
from agentsim.config.tree import Path as TreePath
from agentsim.config.words import found
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
    reading = _Reading(stored=stored or {})
    root: Node | None = reading.tree(os.fspath(path), "scenario")
    if root is not None:
        root = _overridden(reading, root, overrides)
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
    reading: _Reading,
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
            own_values = (f"{item.key}={item.written}" for item in cell.settings)
            one = replace(one, overrides=(*_written(overrides), *own_values))
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
    reading: _Reading,
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
        scenario, game = _scenario(reading, root, games)
        root = scenario.node
    people, made = _people(reading, root)
    recorded = _recorded(reading, root)
    hostfile = _hostfile(reading, root, hosts, workers)
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
    reading: _Reading, root: Node, hosts: Path | None, workers: int | None
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
    people, made = _people(reading, checked.node)
    hostfile = _hostfile(reading, checked.node, hosts, workers)
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
    reading = _Reading()
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
    reading = _Reading()
    population: Population | None = None
    root: Node | None = reading.tree(os.fspath(path), "population")
    if root is not None:
        root = _overridden(reading, root, overrides)
        checked = check(Population, served.population(root))
        reading.add(checked.findings)
        population = checked.value
    hostfile = _hostfile(reading, None, hosts, None)
    if reading.findings or population is None:
        raise ConfigError(reading.sorted())
    return LoadedPopulation(population, hostfile or Hostfile())


@dataclass(slots=True)
class _Reading:
    """What was read and found so far."""

    files: dict[str, str] = field(default_factory=dict)
    findings: dict[Finding, None] = field(default_factory=dict)
    names: list[str] = field(default_factory=list)
    flags: list[str] = field(default_factory=list)
    stored: Games[str, str] = field(default_factory=dict)

    def add(self, findings: Iterable[Finding]) -> None:
        """Note findings; the same one is said once."""
        self.findings.update(dict.fromkeys(findings))

    def made(self, path: str, named: Place) -> MadePersonas | None:
        """What a file of personas says of itself; None with findings if it is none."""
        try:
            return read_made(path, path)
        except Unreadable as error:
            item = error.finding
            self.add([named.finding(item.code, item.message, item.expected, item.hint)])
            return None

    def recorded(self, path: str, named: Place) -> RecordedRun | None:
        """What a run's directory says of itself; None with findings if it cannot be replayed."""
        try:
            return read_recorded(path, path)
        except Unreadable as error:
            item = error.finding
            self.add([named.finding(item.code, item.message, item.expected, item.hint)])
            return None

    def tree(self, path: str, kind: str, named: Place | None = None) -> Mapping | None:
        """The tree of a file; None with findings if there is none.

        Args:
            path: as the current directory sees it; findings call it so.
            kind: of the file that belongs here, one of `kinds.MODELS`.
            named: where another file or a flag names it.
        """
        self.names.append(path)
        try:
            before = self.stored.get(os.path.realpath(path)) if self.stored else None
            text = before or read_text(path, path)
        except Unreadable as error:
            finding = error.finding
            if named and not error.inside:
                finding = named.finding(
                    finding.code, finding.message, finding.expected, finding.hint
                )
            self.add(_named_here([finding], named) if error.inside else [finding])
            return None
        self.files[os.path.realpath(path)] = text
        where = document(path, text)
        root, findings = parse(text, where)
        if isinstance(root, Mapping):
            other = misplaced(root, kind, named)
            self.add([other] if other else _named_here(findings, named))
            return None if other else root
        expected = "lines like `key: value`"
        if root is None and not findings:
            findings = [Finding("missing-key", f"`{path}` is empty", path, 1, 1, expected=expected)]
        elif root is not None:
            message = f"the file must be a map, found {found(root, ())}"
            findings = [*findings, root.place.finding("wrong-type", message, expected)]
        self.add(_named_here(findings, named))
        return None

    def sorted(self) -> tuple[Finding, ...]:
        """Findings by file in the order of reading, flags last; then by place."""
        order = {name: index for index, name in enumerate(dict.fromkeys(self.names))}

        def place_of(item: Finding) -> tuple[int, int, int, int]:
            typed = [item.source.startswith(flag) for flag in self.flags]
            flag = typed.index(True) if item.line == 0 and True in typed else len(typed)
            return order.get(item.file, len(order)), item.line, flag, item.column

        return tuple(sorted(self.findings, key=place_of))


def _overridden(reading: _Reading, root: Node, overrides: Iterable[flags.Override]) -> Node:
    """A tree with what the command line changed."""
    for override in overrides:
        reading.flags.append(flags.before(override))
        root, findings = flags.apply(root, override)
        reading.add(findings)
    return root


def _named_here(findings: Iterable[Finding], named: Place | None) -> Iterable[Finding]:
    """Findings of a file with the place that names it."""
    if named is None:
        return findings
    here = named.related("the file is named here")
    return [replace(item, related=(*item.related, here)) for item in findings]


def _scenario(
    reading: _Reading, root: Node, games: Games[str, type[FileModel]]
) -> tuple[Checked[Scenario], BaseModel | None]:
    kept = served.scenario(root)
    checked = check(Scenario, kept)
    reading.add(checked.findings)
    reading.add(checks.across(checked.node))
    return checked, _game(reading, checked.node, kept, games)


def _game(
    reading: _Reading, root: Node, kept: Kept, games: Games[str, type[FileModel]]
) -> BaseModel | None:
    """Check the `game:` part against the model of its own type."""
    node = find(root, "game")
    if node is None:
        return None
    if not isinstance(node, Mapping):
        message = f"game must be a map, found {found(root, ('game',))}"
        example = Scenario.model_fields["game"].examples or [{}]
        where = place(root, ("game",))
        reading.add([where.finding("wrong-type", message, f"for example game: {flow(example[0])}")])
        return None
    if given(node, "type") is None:
        close = (near_miss(("game", key), {"type": None}, root) for key in node.entries)
        miss = next((miss for miss in close if miss), None)
        if miss is None:
            kind = next(iter(games), "…")
            reading.add([missing_key(("game", "type"), f"type: {kind}", root)])
            return None
        reading.add([miss.finding])
        root = renamed(root, miss.path, "type")
    kind = text_at(root, "game", "type") or ""
    if kind not in games:
        reading.add([unknown_word(("game", "type"), games, root)])
        return None
    return _part(reading, games[kind], root, kept)


def _part(reading: _Reading, model: type[FileModel], root: Node, kept: Kept) -> BaseModel | None:
    """Check the game inside a scenario of nothing else, so that paths are the scenario's."""
    shell = create_model("_Shell", __base__=FileModel, game=(model, ...))
    entry = root.entries["game"] if isinstance(root, Mapping) else None
    if entry is None:
        return None
    alone = Mapping({"game": entry}, root.place, flow=True)
    checked = check(shell, Kept(alone, (), kept.dropped))
    reading.add(checked.findings)
    game: BaseModel | None = getattr(checked.value, "game", None)
    return game


def _people(reading: _Reading, root: Node | None) -> tuple[Population | None, MadePersonas | None]:
    """The population, and the file of personas if the scenario names one."""
    name = text_at(root, "population")
    if root is None or name is None:
        return None, None
    file, named = _named(root, ("population",), name)
    if file.endswith(SUFFIX):
        made = reading.made(file, named)
        return (made.population if made else None), made
    tree = reading.tree(file, "population", named)
    if tree is None:
        return None, None
    checked = check(Population, served.population(tree))
    reading.add(_named_here(checked.findings, named))
    return checked.value, None


def _recorded(reading: _Reading, root: Node | None) -> RecordedRun | None:
    """The run whose replies are given again, where the scenario names one."""
    name = text_at(root, "model", "run") if root is not None else None
    if root is None or name is None or text_at(root, "model", "backend") != "replay":
        return None
    return reading.recorded(*_named(root, ("model", "run"), name))


def _hostfile(
    reading: _Reading, root: Node | None, hosts: Path | None, workers: int | None
) -> Hostfile | None:
    """Check the hostfile; without a scenario, the one that the command line names."""
    tree: Node | None = None
    named: Place | None = None
    name = text_at(root, "hosts") if root else os.fspath(hosts) if hosts else None
    if name is not None:
        file, named = (
            _named(root, ("hosts",), name) if root else (name, flags.flag_place("--hosts", name))
        )
        tree = reading.tree(file, "hostfile", named)
        if tree is None:
            return None
    if workers is not None:
        tree = flags.set_workers(tree, workers)
    if tree is None:
        return None
    checked = read_hostfile(tree)
    reading.add(_named_here(checked.findings, named))
    return checked.value


def _named(root: Node, path: TreePath, name: str) -> tuple[str, Place]:
    """The path of a file that a scenario or a flag names, and where that name stands."""
    where = place(root, path)
    if where.document.is_flag:
        return name, where
    return display(os.path.dirname(where.document.name), name), where  # noqa: PTH120
