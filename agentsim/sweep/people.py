"""People that several cells share: drawn or written once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace

from agentsim import personas
from agentsim.config import Loaded, LoadedCell, LoadedSweep, LoadedWorkflow
from agentsim.config.files import Unreadable
from agentsim.config.made import read_made
from agentsim.errors import AgentsimError, RunError
from agentsim.launch import MakeLauncher
from agentsim.orchestrator.observer import Watcher
from agentsim.results.sweep import SweepDirectory

_Key = tuple[str, int, int, int]


class SharedPeople:
    """Gives cells with equal population, agents, sessions and seed the same file of personas.

    A cell whose people nobody shares draws them itself.

    Args:
        directory: the sweep's; files are kept in it, so that a resumed sweep finds them.
        loaded: all cells, in order.
    """

    def __init__(self, directory: SweepDirectory, loaded: LoadedSweep) -> None:
        self._directory = directory
        keys = [key for cell in loaded.cells if (key := people_key(cell.loaded)) is not None]
        shared = [key for key, count in Counter(keys).items() if count > 1]
        self._numbers = {key: number for number, key in enumerate(shared, 1)}
        self._failed: dict[_Key, str] = {}

    async def given_to(
        self,
        cell: LoadedCell,
        watched: Callable[[], AbstractContextManager[Watcher]],
        launcher: MakeLauncher | None,
    ) -> Loaded | LoadedWorkflow:
        """A cell's files, with the people that it shares if it does; made if nobody has yet.

        Args:
            watched: shows how they are made, if they are.
            launcher: starts the nodes of a model that writes; None: what the hostfile says.

        Raises:
            AgentsimError: they could not be made, now or for an earlier cell.
        """
        loaded = cell.loaded
        key = people_key(loaded)
        if key is None or key not in self._numbers or loaded.population is None:
            return loaded
        path = self._directory.personas / f"{self._numbers[key]:04d}.parquet"
        if key in self._failed:
            raise RunError(self._failed[key])
        if not path.exists():
            scenario = loaded.scenario
            order = personas.Order(
                population=loaded.population,
                agents=scenario.agents,
                sessions=scenario.sessions,
                seed=scenario.seed,
                hostfile=loaded.hostfile,
                path=path,
            )
            try:
                with watched() as watcher:
                    await personas.make(order, watcher, launcher=launcher)
            except AgentsimError as error:
                # The other cells that need them would pay for the same failure.
                reason = str(error).partition("\n")[0]
                self._failed[key] = f"its people could not be made (cell {cell.number}): {reason}"
                raise
        try:
            return replace(loaded, made=read_made(str(path), str(path)))
        except Unreadable as error:
            raise RunError(error.finding.message) from None


def people_key(loaded: Loaded | LoadedWorkflow) -> _Key | None:
    """What decides which people come out: cells with the same share them. None for no people."""
    if loaded.population is None or loaded.made is not None:
        return None
    scenario = loaded.scenario
    return (
        loaded.population.model_dump_json(),
        scenario.seed,
        scenario.agents,
        scenario.sessions,
    )
