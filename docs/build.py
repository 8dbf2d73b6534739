"""Writes what is generated: docs/reference, docs/errors and schemas (`make docs`).

`python docs/build.py --check` writes nothing and fails when a page is not what it would be.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from contextlib import chdir
from pathlib import Path

from pydantic import BaseModel

from agentsim.cli.failures import as_data
from agentsim.cli.findings import render
from agentsim.config import (
    CODES,
    KINDS,
    Hostfile,
    Population,
    Scenario,
    WorkflowScenario,
    json_schema,
    load,
    reference,
    split_set,
)
from agentsim.config.explanations import PAGES, Example, markdown
from agentsim.errors import ConfigError, UserError
from agentsim.games import GAMES

ROOT = Path(__file__).parent.parent
NOTE = "<!-- made by `make docs`; changes here are lost -->\n"
GAME_PAGES = {name: f"game-{name.replace('_', '-')}.md" for name in GAMES}
EDITORS = """\
The first line of a file tells editors with a YAML language server where the schema is, so that
they check keys while you type, and show what each means:

```yaml skip: a comment
# yaml-language-server: $schema=../schemas/{kind}.json
```

The path is relative to the file. `agentsim schema {kind}` prints the same schema.
"""
SHIPPED = {
    "scenario": "scenarios/guess_two_thirds.yaml",
    "population": "populations/adults.yaml",
    "hostfile": "hostfiles/laptop.yaml",
    "workflow": "scenarios/debate.yaml",
}
MODELS: dict[str, type[BaseModel]] = {
    "scenario": Scenario,
    "population": Population,
    "hostfile": Hostfile,
    "workflow": WorkflowScenario,
}
ABOUT = {
    "scenario": "A scenario is one experiment. `agentsim run FILE` plays it, `agentsim validate "
    "FILE` says what would run. Every key can be set from the command line: `--set "
    "model.temperature=0.5`.",
    "population": "A population says who takes part, as distributions of attributes. A scenario "
    "names it by `population:`; its people are drawn anew in each session. Only "
    "`prompt: character` shows them to language models.",
    "workflow": "A scenario with the key `workflow` runs a function of your own instead of a "
    "game: [docs/actors.md](../actors.md) teaches it. `agentsim run FILE` runs it, `agentsim "
    "validate FILE` checks it and reads its modules without running them.",
    "hostfile": "A hostfile says on which machines a run takes place. A scenario names it by "
    "`hosts:`, or the command line by `--hosts`. Without one, a run has this machine and 2 "
    "workers.",
}
TITLES = {
    "scenario": "Reference: the scenario file",
    "population": "Reference: the population file",
    "hostfile": "Reference: the hostfile",
    "workflow": "Reference: a scenario with a workflow",
}
WORDS = """\
Words keep what you wrote: `no`, `on`, `010` and `12:30:00` are text, `1e-4` is a number, only
`true` and `false` are truth values. Unknown keys are errors. Paths are relative to the file that
names them. Secrets are named (`api_key_env`) and never written.
"""
FOR_PROGRAMS = """\
## For programs

`--error-format json` of `agentsim run` and `agentsim validate` writes errors to stderr as JSON.
Findings are a list, in the order in which they are shown:

```json
{findings}
```

`line` counts from 1 and is 0 for what has no place in a file, such as a flag; `column` counts
characters from 1, `length` is how many of them are meant. `related` has the other places of what
cannot be said of one place alone. `expected` and `hint` may be empty. Any other error is a map;
`error` is `user-error`, `missing-package`, `launch-error`, `peer-lost`, `model-error`,
`limit-reached`, `workflow-failed` or `results-error`:

```json
{error}
```

| exit code | meaning |
|---|---|
| 0 | it went well |
| 1 | the run failed; what was completed is in its directory |
| 2 | something that you gave is wrong; nothing was started |
| 70 | a bug of agentsim; the traceback is on stderr and in a file, always as text |
| 130, 143 | interrupted by Ctrl-C or SIGTERM |

A flag that does not exist is told as text, with exit code 2. The value of a secret is in neither
format: what stands behind a key such as `api_key`, `token` or `password` is shown as `***`.
"""
_EXISTS = "runs/first: exists already; a run's directory is never overwritten"
BASE = "name: two-thirds\nagents: 100\nrounds: 3\n"
GIVEN = {
    "openai": {"name": "gpt-4o-mini", "api_key_env": "OPENAI_API_KEY"},
    "replay": {"run": "../runs/guess-two-thirds"},
}
UNCHECKED = {"replay": "the run is not there"}
"""Why the example of a model cannot be validated."""


def generated() -> dict[str, str]:
    """Every generated file: its path from the root, and its text."""
    pages = {f"docs/reference/{kind}.md": _file(kind) for kind in KINDS}
    pages["docs/reference/models.md"] = _models()
    pages |= {f"docs/reference/{GAME_PAGES[name]}": _game(name) for name in GAMES}
    pages |= {f"docs/errors/{code}.md": _error(code) for code in PAGES}
    pages["docs/errors/README.md"] = _errors()
    for kind in KINDS:
        schema = json.dumps(json_schema(kind, GAMES), indent=2, ensure_ascii=False)
        pages[f"schemas/{kind}.json"] = schema + "\n"
    return pages


def _page(title: str, *parts: str) -> str:
    return "\n".join((NOTE, f"# {title}\n", *parts)).rstrip("\n") + "\n"


def _file(kind: str) -> str:
    example = (ROOT / SHIPPED[kind]).read_text("utf-8")
    return _page(
        TITLES[kind],
        f"{ABOUT[kind]}\n",
        WORDS,
        f"`{SHIPPED[kind]}`, which is shipped:\n",
        f"```yaml {kind}\n{example}```\n",
        EDITORS.format(kind=kind),
        reference.sections(MODELS[kind], "The file", "", GAME_PAGES),
    )


def _models() -> str:
    parts = []
    for model in reference.MODELS:
        (backend,) = model.model_fields["backend"].annotation.__args__  # type: ignore[union-attr]
        fields = reference.defaults(model, {"backend": backend, **GIVEN.get(backend, {})})
        example = f"{BASE}game: {{type: guess_average}}\nmodel:\n{_indented(fields)}"
        check = f"skip: {UNCHECKED[backend]}" if backend in UNCHECKED else "scenario"
        parts += [
            reference.sections(model, f"`backend: {backend}`", "model", GAME_PAGES),
            f"With every key that has a value:\n\n```yaml {check}\n{example}```\n",
        ]
    return _page(
        "Reference: models",
        "The `model:` part of a [scenario](scenario.md) says who answers. `llama_cpp` and `openai` "
        "ask language models; `replay` gives the replies of an earlier run again; the others are "
        "computed in the workers. All but the first two cost nothing and are the same in every "
        "rerun.\n",
        *parts,
    )


def _game(name: str) -> str:
    fields = reference.defaults(GAMES[name], {"type": name})
    example = f"{BASE}game:\n{_indented(fields)}model: {{backend: cognitive_hierarchy}}\n"
    return _page(
        f"Reference: the game `{name}`",
        "The `game:` part of a [scenario](scenario.md).\n",
        f"With every key that has a value:\n\n```yaml scenario\n{example}```\n",
        reference.sections(GAMES[name], "`game`", "game", GAME_PAGES),
    )


def _indented(text: str) -> str:
    return "".join(f"  {line}\n" for line in text.splitlines())


def _error(code: str) -> str:
    text = markdown(code).replace("\nRight:\n", f"\n{_said(PAGES[code].wrong)}\nRight:\n")
    return f"{NOTE}\n{text}"


def _findings_of(code: str) -> object:
    """The findings of a wrong example, for programs."""
    return as_data(_error_of(PAGES[code].wrong))


def _said(example: Example) -> str:
    """What is said about a wrong example."""
    return f"```text\n{render(_error_of(example).findings)}```\n"


def _error_of(example: Example) -> ConfigError:
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        for name, text in example.files().items():
            Path(name).write_text(text, "utf-8")
        try:
            overrides = [split_set(arg) for arg in example.args if arg != "--set"]
            load("scenario.yaml", games=GAMES, overrides=overrides)
        except ConfigError as error:
            return error
    raise AssertionError("a wrong example is right")


def _errors() -> str:
    rows = [f"| [{code}]({code}.md) | {CODES[code]} |" for code in sorted(CODES)]
    return _page(
        "What can be wrong in a file",
        "Every finding has a code, in brackets behind `error`. Codes are stable: scripts may look "
        "at them. `agentsim explain CODE` prints the page in a terminal.\n",
        "| code | meaning |\n|---|---|\n" + "\n".join(rows) + "\n",
        FOR_PROGRAMS.format(
            findings=json.dumps(_findings_of("duplicate-key"), indent=2),
            error=json.dumps(as_data(UserError(_EXISTS)), indent=2),
        ),
    )


def main() -> int:
    """Write or check; the exit code."""
    pages = generated()
    check = "--check" in sys.argv[1:]
    stale = [
        name
        for name, text in pages.items()
        if not (ROOT / name).exists() or (ROOT / name).read_text("utf-8") != text
    ]
    folders = ("docs/reference", "docs/errors", "schemas")
    there = [path for folder in folders for path in (ROOT / folder).glob("*")]
    gone = [path for path in there if os.fspath(path.relative_to(ROOT)) not in pages]
    if check:
        for name in [*stale, *(os.fspath(path.relative_to(ROOT)) for path in gone)]:
            print(f"{name} is stale; run: make docs", file=sys.stderr)
        return 1 if stale or gone else 0
    for name in stale:
        (ROOT / name).parent.mkdir(parents=True, exist_ok=True)
        (ROOT / name).write_text(pages[name], "utf-8")
    for path in gone:
        path.unlink()
    print(f"{len(stale)} of {len(pages)} files written")
    return 0


if __name__ == "__main__":
    sys.exit(main())
