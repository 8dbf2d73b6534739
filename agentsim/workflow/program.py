"""What a user's function is called with."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from agentsim.actors import Placeholder
from agentsim.chat import Model, Persona
from agentsim.errors import UserError

if TYPE_CHECKING:
    from agentsim.cluster import Cluster
    from agentsim.results.workflow import Value


class WorkflowStopped(BaseException):
    """The run ends while its function goes on: by Ctrl-C, a limit, or a lost cluster.

    It is no `Exception`, so that `except Exception` lets it pass; `finally` blocks run.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class Workflow:
    """One session of a run, for the function that drives it.

    Attributes:
        cluster: workers; agents are made there by `Agent.on(run.cluster, …)` or `to_dist`.
        personas: of this session, in order of agents.
        seed: the scenario's.
        session: from 1.
        sessions: how many the run has.
        rounds: the scenario's; None if it gives none.
        parameters: the scenario's free map.
    """

    cluster: Cluster
    personas: Sequence[Persona]
    seed: int
    session: int
    sessions: int = 1
    rounds: int | None = None
    parameters: Mapping[str, Any]
    _model: Model | None
    _record: Callable[[str, dict[str, Value]], None]
    _note: Callable[[str], None]

    @property
    def model(self) -> Model:
        """The scenario's language model; give it to agents' constructors.

        Raises:
            UserError: the scenario has none.
        """
        if self._model is None:
            raise UserError("the scenario has no `model`, and the workflow asks for it")
        return self._model

    def record(self, table: str, /, **columns: Any) -> None:
        """Write a row that ends up in `tables/TABLE.parquet`, with the session as first column.

        It is in the run's journal when this returns. Values are texts, numbers, truth values or
        None; a placeholder is waited for.

        Args:
            table: a name of lower-case letters, digits and underscores.
            columns: the row; a column keeps its type over all rows.

        Raises:
            UserError: the name cannot be a table's.
            TypeError: a value is no such value, or of another type than the column's.
        """
        values = {name: _value(name, value) for name, value in columns.items()}
        self._record(table, {"session": self.session, **values})

    def note(self, text: str) -> None:
        """Tell whoever watches the run."""
        self._note(str(text))


def _value(name: str, value: Any) -> Value:
    if isinstance(value, Placeholder):
        value = value.result()
    if isinstance(value, np.generic):
        value = value.item()
    for kind in (bool, int, float, str):
        if isinstance(value, kind):
            return kind(value)
    if value is not None:
        raise TypeError(
            f"column {name!r} cannot hold a {type(value).__name__}; texts, numbers, truth values "
            "and None can be recorded"
        )
    return None
