"""What a page about a code holds."""

from __future__ import annotations

from dataclasses import dataclass

SCENARIO = """\
name: two-thirds
agents: 100
rounds: 3
game: {type: guess_average}
model: {backend: random}
"""
"""A scenario that is right, and as short as it can be."""


@dataclass(frozen=True, slots=True)
class Example:
    """Something to read that is wrong, or right.

    Attributes:
        text: a whole file; empty for an example of a command line alone.
        file: what it is called. What is not `scenario.yaml` is named by a scenario under
            `population:` or `hosts:`.
        args: what stands behind `agentsim validate scenario.yaml`.
    """

    text: str
    file: str = "scenario.yaml"
    args: tuple[str, ...] = ()

    def files(self) -> dict[str, str]:
        """The files of the example by name, the scenario among them."""
        if self.file == "scenario.yaml":
            return {self.file: self.text or SCENARIO}
        key = "hosts" if self.file == "hostfile.yaml" else "population"
        return {"scenario.yaml": f"{SCENARIO}{key}: {self.file}\n", self.file: self.text}

    def shown(self) -> str:
        """The example as a person sees it."""
        if self.args:
            return f"agentsim validate scenario.yaml {' '.join(self.args)}\n"
        return self.text


@dataclass(frozen=True, slots=True)
class Page:
    """What there is to say about one code.

    Attributes:
        means: when it is found, and why it is no small thing.
        wrong: an example that brings this finding and no other.
        right: the same, mended.
        mend: what to do, in a sentence or two.
    """

    means: str
    wrong: Example
    right: Example
    mend: str
