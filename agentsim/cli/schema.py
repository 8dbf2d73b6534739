"""`agentsim schema`: the JSON schema of the files."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer


class Kind(StrEnum):
    """The kinds of files."""

    SCENARIO = "scenario"
    POPULATION = "population"
    HOSTFILE = "hostfile"
    WORKFLOW = "workflow"


def schema(
    kind: Annotated[Kind, typer.Argument(help="Which file.")] = Kind.SCENARIO,
) -> None:
    """Print the JSON schema of a kind of file, for editors (draft 2020-12)."""
    import json

    from agentsim.config import json_schema
    from agentsim.games import GAMES

    print(json.dumps(json_schema(kind.value, GAMES), indent=2, ensure_ascii=False))
