"""The fenced blocks of a Markdown page, and how each is checked.

Behind the language of a block of sh, yaml or python stands how it is checked:

- sh: `run`; `slow` (run, but not by `make test-fast`); `fails` (must exit with 2); `validate` (each
  `agentsim run` is validated and not run)
- python: `run`, `slow`
- python, yaml: `file: NAME`: written to a file of that name, for the blocks behind it
- yaml: `scenario`, `population`, `hostfile`, `workflow`: a whole file; `model`: that part of a
  scenario
- any: `skip: reason`

A block `text output` is what the block before it prints. `…` stands for any text in its line, or
for any lines when it stands alone; durations may differ. In `docs/errors`, which is generated,
`wrong` and `right` are the examples that `tests/cli/test_explain.py` checks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
CHECKS = {
    "sh": ("run", "slow", "fails", "validate", "skip"),
    "python": ("run", "slow", "file", "skip"),
    "yaml": ("scenario", "population", "hostfile", "workflow", "model", "file", "skip"),
}
GENERATED = ROOT / "docs" / "errors"
_FENCE = re.compile(r"^```(?P<info>[^`\n]*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
_DURATION = re.compile(r"\b\d+(\.\d+)? (s|min)\b")


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block.

    Attributes:
        page: the file.
        line: of its fence, from 1.
        language: the first word of its fence; empty for plain text.
        check: how it is checked; empty if nothing says so.
        reason: behind `skip:`; the name behind `file:`.
        text: what stands in it.
    """

    page: Path
    line: int
    language: str
    check: str
    reason: str
    text: str

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def blocks(page: Path, text: str | None = None) -> Iterator[Block]:
    """The blocks of a page, in order."""
    text = page.read_text("utf-8") if text is None else text
    for fence in _FENCE.finditer(text):
        language, _, rest = fence["info"].strip().partition(" ")
        check, _, reason = rest.partition(":")
        line = text.count("\n", 0, fence.start()) + 1
        yield Block(page, line, language, check.strip(), reason.strip(), fence["text"])


def complaint(block: Block) -> str:
    """What is wrong with how a block says that it is checked; empty if nothing is."""
    if block.language not in CHECKS:
        return "bash, yml and py are written sh, yaml and python" * (
            block.language in ("bash", "shell", "console", "yml", "py", "python3")
        )
    if block.page.parent == GENERATED and block.check in ("wrong", "right"):
        return ""
    if block.check not in CHECKS[block.language]:
        return f"`{block.check}` is none of {', '.join(CHECKS[block.language])}"
    if block.check == "file" and not block.reason:
        return "a file without a name"
    return "skipped without a reason" * (block.check == "skip" and not block.reason)


def matches(expected: str, printed: str) -> bool:
    """Whether a documented output is what was printed."""
    pattern = ""
    for line in _DURATION.sub("N s", expected).splitlines():
        if line.strip() == "…":
            pattern += r"(?:.*\n)*?"
        else:
            pattern += ".*".join(map(re.escape, line.rstrip().split("…"))) + r"[ ]*\n"
    text = "".join(f"{line}\n" for line in _DURATION.sub("N s", printed).splitlines())
    return re.fullmatch(pattern, text) is not None
