"""What is generated is current, complete, and true of the files that are shipped."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

from agentsim.config import CODES, Hostfile, Population, Scenario, WorkflowScenario, reference
from agentsim.games import GAMES

ROOT = Path(__file__).parents[2]
KINDS = {"scenario": "scenarios", "population": "populations", "hostfile": "hostfiles"}
SHIPPED = [
    ("workflow" if "\nworkflow:" in path.read_text() else kind, path)
    for kind, name in KINDS.items()
    for path in (ROOT / name).glob("*.yaml")
]
ROOTS = (Scenario, WorkflowScenario, Population, Hostfile, *GAMES.values(), *reference.MODELS)
UNITS = (
    *(
        "asked",
        "attribute",
        "byte",
        "everything",
        "game",
        "gpus",
        "group",
        "guesses",
        "hosts",
        "level",
        "number",
        "player",
        "points",
        "port",
    ),
    *("process", "repetition", "repl", "request", "round", "second", "share", "temperature"),
    *("thread", "token"),
)


@pytest.fixture(scope="module")
def build() -> ModuleType:
    spec = importlib.util.spec_from_file_location("docs_build", ROOT / "docs" / "build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def pages(build: ModuleType) -> dict[str, str]:
    """Every generated page, to be read only."""
    pages: dict[str, str] = build.generated()
    return pages


def test_nothing_is_stale(
    build: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["build.py", "--check"])
    code = build.main()
    assert (code, capsys.readouterr().err) == (0, "")


def test_a_stale_page_is_named(
    build: ModuleType,
    pages: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    others = pages | {"docs/reference/models.md": "older"}
    del others["docs/errors/unknown-key.md"]
    monkeypatch.setattr(build, "generated", lambda: others)
    monkeypatch.setattr("sys.argv", ["build.py", "--check"])
    assert build.main() == 1
    said = capsys.readouterr().err.splitlines()
    for name in ("docs/reference/models.md", "docs/errors/unknown-key.md"):
        assert f"{name} is stale; run: make docs" in said


def test_every_kind_of_file_has_a_page_with_every_key(pages: dict[str, str]) -> None:
    text = "".join(page for name, page in pages.items() if name.startswith("docs/reference/"))
    for model in ROOTS:
        for part in reference.parts(model):
            for name, field in part.model.model_fields.items():
                assert f"\n| `{name}` | " in text
                assert (
                    " ".join((field.description or "nothing").split()).replace("|", "\\|") in text
                )


def test_every_row_is_complete(pages: dict[str, str]) -> None:
    rows = [
        row
        for name, page in pages.items()
        if name.startswith("docs/reference/")
        for row in re.findall(r"^\| `.*\|$", page, re.MULTILINE)
    ]
    assert len(rows) > 50
    for row in rows:
        key, takes, default, _, meaning = re.split(r"(?<!\\)\|", row)[1:-1]
        assert all(cell.strip() for cell in (key, takes, default, meaning)), row
        assert "something else" not in row


def numbers(model: Any) -> list[tuple[str, str]]:
    fields = [item for part in reference.parts(model) for item in part.model.model_fields.items()]
    return [
        (name, (field.description or "").lower())
        for name, field in fields
        if field.annotation in (int, float, int | None, float | None)
    ]


@pytest.mark.parametrize("model", ROOTS, ids=lambda model: model.__name__)
def test_every_number_says_what_it_counts(model: Any) -> None:
    silent = [name for name, text in numbers(model) if not any(unit in text for unit in UNITS)]
    assert silent == []


def test_seconds_are_called_so() -> None:
    fields = [item for model in ROOTS for item in numbers(model) if item[0].endswith("_s")]
    assert len(fields) >= 4
    assert [name for name, text in fields if "second" not in text] == []


def test_every_code_has_a_page(pages: dict[str, str]) -> None:
    index = pages["docs/errors/README.md"]
    for code in CODES:
        assert f"[{code}]({code}.md)" in index
        page = pages[f"docs/errors/{code}.md"]
        assert f"error[{code}]: " in page, "what is said about the wrong example"


@pytest.mark.parametrize(("kind", "path"), SHIPPED, ids=str)
def test_shipped_files_name_their_schema(kind: str, path: Path) -> None:
    start, name = path.read_text().splitlines()[0].split("$schema=")
    assert start == "# yaml-language-server: "
    assert (path.parent / name).resolve() == ROOT / "schemas" / f"{kind}.json"


@pytest.mark.parametrize(("kind", "path"), SHIPPED, ids=str)
def test_shipped_files_satisfy_their_schema(kind: str, path: Path) -> None:
    schema = json.loads((ROOT / "schemas" / f"{kind}.json").read_text())
    data = as_json(yaml.safe_load(path.read_text()))
    assert problems(data, schema, schema) == []


@pytest.mark.parametrize(
    "change",
    [
        {"agents": 0},
        {"agents": "many"},
        {"agents": 1.5},
        {"sesions": 2},
        {"prompt": "step-by-step"},
        {"memory": {"last": 0}},
        {"model": {"backend": "openai"}},
        {"model": {"backend": "oracle"}},
        {"game": {"type": "guess_average", "range": [0]}},
        {"name": "Two thirds"},
    ],
    ids=str,
)
def test_the_schema_refuses_what_loading_refuses(change: dict[str, Any]) -> None:
    schema = json.loads((ROOT / "schemas" / "scenario.json").read_text())
    right = {"name": "x", "agents": 1, "rounds": 1, "game": {"type": "guess_average"}}
    right |= {"model": {"backend": "random"}}
    assert problems(right, schema, schema) == []
    assert problems(right | change, schema, schema) != []


def as_json(value: Any) -> Any:
    """A YAML value with keys that are text."""
    if isinstance(value, dict):
        return {str(key): as_json(item) for key, item in value.items()}
    return [as_json(item) for item in value] if isinstance(value, list) else value


TYPES: dict[str, Any] = {
    "object": dict,
    "array": list,
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "null": type(None),
}


def problems(value: Any, schema: dict[str, Any], root: dict[str, Any]) -> list[str]:
    """What a value has against a JSON schema, by the part of the standard that is used here."""
    if "$ref" in schema:
        return problems(value, root["$defs"][schema["$ref"].rpartition("/")[2]], root)
    found = [
        f"{value!r} is none of {key}"
        for key in ("anyOf", "oneOf")
        if key in schema and all(problems(value, item, root) for item in schema[key])
    ]
    if "type" in schema and not isinstance(value, TYPES[schema["type"]]):
        return [f"{value!r} is no {schema['type']}"]
    if value not in schema.get("enum", [value]) or value != schema.get("const", value):
        found.append(f"{value!r} is another word")
    if isinstance(value, int | float) and not isinstance(value, bool):
        low, above = schema.get("minimum", value), schema.get("exclusiveMinimum", value - 1)
        high, below = schema.get("maximum", value), schema.get("exclusiveMaximum", value + 1)
        found += [f"{value!r} is out of range"] * (
            not (low <= value <= high and above < value < below)
        )
    if isinstance(value, str) and not re.search(schema.get("pattern", ""), value):
        found.append(f"{value!r} does not fit {schema['pattern']}")
    if isinstance(value, list):
        found += [f"{value!r} is too short"] * (len(value) < schema.get("minItems", 0))
        items = schema.get("prefixItems", [schema.get("items", {})] * len(value))
        found += [
            text for pair in zip(value, items, strict=False) for text in problems(*pair, root)
        ]
    if isinstance(value, dict):
        found += of_object(value, schema, root)
    return found


def of_object(value: dict[str, Any], schema: dict[str, Any], root: dict[str, Any]) -> list[str]:
    """What the keys of a map have against a schema."""
    known, more = schema.get("properties", {}), schema.get("additionalProperties", True)
    found = [f"{key} is missing" for key in schema.get("required", []) if key not in value]
    found += [f"{key} is unknown" for key in value if key not in known and more is False]
    for key, item in value.items():
        rule = known.get(key, more)
        found += problems(item, rule, root) if isinstance(rule, dict) else []
    return found
