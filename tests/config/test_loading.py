"""Loading: all files at once, overrides, paths, games."""

from __future__ import annotations

import builtins
import os
from pathlib import Path
from typing import Any

import pytest
from config_samples import GAMES, POPULATION, SCENARIO, codes, findings, loaded, write

from agentsim.config import CODES, Hostfile, load, split_set
from agentsim.config.files import MAX_BYTES
from agentsim.config.models import Random
from agentsim.errors import ConfigError

BOTH = "population: population.yaml\nhosts: hosts.yaml\n"


def test_what_loads(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        scenario=SCENARIO + BOTH,
        population=POPULATION,
        hosts="hosts: [{workers: 3}, {workers: 3}]\n",
    )
    result = loaded(path)
    assert result.scenario.agents == 4
    assert isinstance(result.scenario.model, Random)
    assert type(result.game) is GAMES["coin"]
    assert result.population is not None
    assert [host.workers for host in result.hostfile.hosts] == [3, 3]
    assert result.files == {
        os.path.realpath(tmp_path / f"{name}.yaml"): (tmp_path / f"{name}.yaml").read_text()
        for name in ("scenario", "population", "hosts")
    }


def test_what_is_left_out(tmp_path: Path) -> None:
    result = loaded(write(tmp_path))
    assert result.population is None
    assert result.hostfile == Hostfile()
    assert len(result.files) == 1


def test_unset_words_ask_for_nothing(tmp_path: Path) -> None:
    text = SCENARIO + "sweep: {}\nlimits: {cost_usd: null, tokens: null}\npopulation: null\n"
    hosts = "{minimum_hosts: null, ssh: {}, hosts: [{gpus: null}]}"
    path = write(tmp_path, scenario=text + "hosts: hosts.yaml\n", hosts=hosts)
    assert findings(path) == ()


def test_findings_of_all_files_by_file_and_place(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        scenario="rounds: x\npolulation: population.yaml\nhost: hosts.yaml\n"
        "game: {type: coin, bias: 2}\nagents: 4\nmodel: {backend: random}\nrounds: 1\n",
        population="attributes:\n  a: {categories: {x: 0.5}}\n  b: {integer: 3}\n",
        hosts="hosts: [{workers: 0}]\n",
    )
    found = findings(path)
    assert [(Path(item.file).name, item.code, item.line) for item in found] == [
        ("scenario.yaml", "missing-key", 1),
        ("scenario.yaml", "wrong-type", 1),
        ("scenario.yaml", "unknown-key", 2),
        ("scenario.yaml", "unknown-key", 3),
        ("scenario.yaml", "out-of-range", 4),
        ("scenario.yaml", "duplicate-key", 7),
        ("population.yaml", "shares-sum", 2),
        ("population.yaml", "wrong-type", 3),
        ("hosts.yaml", "out-of-range", 1),
    ]
    assert set(codes(found)) <= set(CODES)


def test_a_near_miss_is_one_finding_and_is_followed(tmp_path: Path) -> None:
    text = SCENARIO.replace("rounds", "rouns").replace("agents", "agent")
    path = write(tmp_path, scenario=text + "populaton: nowhere.yaml\n")
    found = findings(path)
    assert codes(found) == ["unknown-key"] * 3 + ["unreadable-file"]
    assert [item.hint for item in found[:3]] == [
        "did you mean `agents`? it is required and missing",
        "did you mean `rounds`? it is required and missing",
        "did you mean `population`?",
    ]


def test_a_near_miss_of_a_key_that_is_there_is_only_unknown(tmp_path: Path) -> None:
    (finding,) = findings(write(tmp_path, scenario=SCENARIO + "agent: 5\n"))
    assert (finding.code, finding.hint) == ("unknown-key", "did you mean `agents`?")


@pytest.mark.parametrize("key", ["x", "is", "colour", "api_key"])
def test_far_words_are_not_suggested(tmp_path: Path, key: str) -> None:
    (finding,) = findings(write(tmp_path, scenario=SCENARIO + f"{key}: 5\n"))
    assert finding.code == "unknown-key"
    assert "did you mean" not in finding.hint


def test_the_game_speaks_when_the_rest_is_right(tmp_path: Path) -> None:
    text = SCENARIO.replace("agents: 4", "agents: 5").replace("coin}", "coin, bias: 1}")
    found = findings(write(tmp_path, scenario=text))
    assert [(item.code, item.line, item.column, item.hint) for item in found] == [
        ("contradiction", 2, 9, ""),
        ("bad-value", 4, 26, "less than 1"),
    ]
    text += "prompt: none\n"
    assert codes(findings(write(tmp_path, scenario=text))) == ["unknown-value"]


def test_unions_of_a_game_are_one_finding(tmp_path: Path) -> None:
    def of(value: str) -> tuple[Any, ...]:
        text = SCENARIO.replace("coin}", f"coin, reward: {value}}}")
        (finding,) = findings(write(tmp_path, scenario=text))
        return finding.code, finding.message, finding.expected, finding.hint

    assert of("fixd") == (
        "unknown-value",
        "game.reward cannot be `fixd`",
        "one of: none, fixed, a map",
        "did you mean `fixed`?",
    )
    assert of("[1]")[:2] == ("wrong-type", "game.reward cannot be a list")
    assert of("{a: x}")[:2] == ("wrong-type", "game.reward.a must be a number, found `x`")


@pytest.mark.parametrize("sides", ["[a]", "[a, b, c]", "[]", "a"])
def test_tuples_of_a_game(tmp_path: Path, sides: str) -> None:
    text = SCENARIO.replace("coin}", f"coin, sides: {sides}}}")
    found = findings(write(tmp_path, scenario=text))
    assert set(codes(found)) <= {"out-of-range", "wrong-type"}
    assert len({item.column for item in found}) == 1


@pytest.mark.parametrize(
    ("override", "check"),
    [
        (("agents", "6", "--agents"), lambda it: it.scenario.agents == 6),
        (("game.bias", "1e-4", "--set"), lambda it: it.game.bias == 1e-4),
        (("game.sides.1", "no", "--set"), lambda it: it.game.sides == ("heads", "no")),
        (("model", "{backend: dummy, think_s: 2}", "--set"), lambda it: it.scenario.model.think_s),
        (("memory.last", "2", "--set"), lambda it: it.scenario.memory.last == 2),
        (("limits.tokens", "7", "--set"), lambda it: it.scenario.limits.tokens == 7),
        (("description", "", "--set"), lambda it: False),
        (("description", "''", "--set"), lambda it: it.scenario.description == ""),
        (("population", "null", "--set"), lambda it: it.population is None),
    ],
)
def test_overrides(tmp_path: Path, override: tuple[str, str, str], check: Any) -> None:
    text = SCENARIO.replace("coin}", "coin, sides: [heads, tails]}") + BOTH.split("\n")[0]
    path = write(tmp_path, scenario=text + "\nmemory: numbers\n", population=POPULATION)
    if override[:2] == ("description", ""):
        assert codes(findings(path, [override])) == ["wrong-type"]
    else:
        assert check(loaded(path, override))


def test_the_last_override_counts_and_mends_the_file(tmp_path: Path) -> None:
    path = write(tmp_path, scenario=SCENARIO.replace("agents: 4", "agents: many"))
    assert codes(findings(path)) == ["wrong-type"]
    result = loaded(path, ("agents", "2", "--agents"), ("agents", "8", "--set"))
    assert result.scenario.agents == 8


def test_a_finding_about_an_override_names_the_flag(tmp_path: Path) -> None:
    overrides = [("rounds", "many", "--rounds"), ("model.temperature", "abc", "--set")]
    first, second = findings(write(tmp_path), overrides)
    assert (first.file, first.line, first.column, first.length) == ("--rounds", 0, 10, 4)
    assert first.source == "--rounds many"
    assert (second.file, second.line, second.column) == ("--set", 0, 13)
    assert second.source == "--set model.temperature=abc"
    assert second.code == "unknown-key"


@pytest.mark.parametrize("text", ["\udcff", "\x00", "a\nb: [", "a: 1\nb: many", "- x"])
def test_odd_texts_of_overrides_are_findings(tmp_path: Path, text: str) -> None:
    assert findings(write(tmp_path), [("rounds", text, "--set"), (text, "1", "--set")])


def test_split_set() -> None:
    assert split_set("game.target=2/3 * mean = x") == ("game.target", "2/3 * mean = x", "--set")
    for text in ("agents", "=3", ""):
        with pytest.raises(ConfigError) as error:
            split_set(text)
        assert codes(error.value.findings) == ["bad-override"]


def test_paths_are_relative_to_the_file_that_names_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("scenarios", "populations", "elsewhere"):
        (tmp_path / name).mkdir()
    (tmp_path / "populations" / "p.yaml").write_text(POPULATION.replace("0.5", "0.4"))
    (tmp_path / "elsewhere" / "h.yaml").write_text("hosts: []")
    write(tmp_path / "scenarios", scenario=SCENARIO + "population: ../populations/p.yaml\n")
    monkeypatch.chdir(tmp_path)
    assert [item.file for item in findings(Path("scenarios/scenario.yaml"))] == [
        "populations/p.yaml"
    ]
    monkeypatch.chdir(tmp_path / "elsewhere")
    path = Path("../scenarios/scenario.yaml")
    assert [item.file for item in findings(path, hosts=Path("h.yaml"))] == [
        "../populations/p.yaml",
        "h.yaml",
    ]
    assert [
        item.file for item in findings(path, [("population", "../populations/p.yaml", "--set")])
    ] == ["../populations/p.yaml"]


def test_a_link_on_the_way_up_is_followed(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "a" / "b")
    (tmp_path / "a" / "p.yaml").write_text(POPULATION)
    write(tmp_path / "a" / "b", scenario=SCENARIO + "population: ../p.yaml\n")
    assert loaded(tmp_path / "link" / "scenario.yaml").population is not None


def test_hosts_of_the_command_line_replace_the_scenarios(tmp_path: Path) -> None:
    path = write(tmp_path, scenario=SCENARIO + "hosts: nowhere.yaml\n", h="hosts: [{workers: 7}]")
    assert codes(findings(path)) == ["unreadable-file"]
    result = load(path, games=GAMES, hosts=tmp_path / "h.yaml")
    assert result.hostfile.hosts[0].workers == 7
    assert result.scenario.hosts == str(tmp_path / "h.yaml")


@pytest.mark.parametrize(
    ("text", "workers"),
    [("", [5]), ("launcher: local", [5]), ("hosts: [{workers: 1}, {address: b}]", [5, 5])],
)
def test_workers_of_the_command_line_count_for_each_host(
    tmp_path: Path, text: str, workers: list[int]
) -> None:
    scenario = SCENARIO + ("hosts: hosts.yaml\n" if text else "")
    path = write(tmp_path, scenario=scenario, hosts=text)
    result = load(path, games=GAMES, workers=5)
    assert [host.workers for host in result.hostfile.hosts] == workers


def test_workers_do_not_hide_a_bad_hostfile(tmp_path: Path) -> None:
    path = write(tmp_path, scenario=SCENARIO + "hosts: h.yaml\n", h="hosts: [gpu01, {a: 1}]")
    assert codes(findings(path, workers=5)) == ["wrong-type", "unknown-key"]
    found = findings(write(tmp_path), workers=0)
    assert [(item.code, item.file) for item in found] == [("out-of-range", "--workers")]


@pytest.mark.parametrize("name", ["missing.yaml", "", "a\0b", "x" * 5000, "folder"])
def test_a_path_that_cannot_be_read_is_a_finding(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder").mkdir()
    text = SCENARIO + f'population: "{name}"\n'.replace("\0", "\\0")
    (finding,) = findings(write(tmp_path, scenario=text))
    assert (finding.code, finding.line) == ("unreadable-file", 6)


def test_an_unreadable_file_is_a_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: str, *args: Any, **more: Any) -> Any:
        raise PermissionError(13, "Permission denied", path)

    path = write(tmp_path)
    monkeypatch.setattr(builtins, "open", refuse)
    (finding,) = findings(path)
    monkeypatch.undo()
    assert finding.code == "unreadable-file"
    assert finding.message.endswith("cannot be read: permission denied")


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"", "missing-key"),
        (b"# nothing\n", "missing-key"),
        (b"---\n", "wrong-type"),
        (b"- a\n", "wrong-type"),
        (b"42", "wrong-type"),
        (b"\xff\xfea\x00", "unreadable-file"),
        (b"name: caf\xe9\n", "unreadable-file"),
        (b"\xef\xbb\xbf" + SCENARIO.replace("rounds: 2", "rounds: x").encode(), "wrong-type"),
        (SCENARIO.replace("rounds: 2", "rounds: x").replace("\n", "\r\n").encode(), "wrong-type"),
        (b"a: " + b"[" * 10_000_000, "too-large"),
        (b"a: " + b"[" * (MAX_BYTES - 10), "too-large"),
        (b"#" * (MAX_BYTES + 1), "too-large"),
    ],
    ids=range(12),
)
def test_odd_contents_are_one_finding(tmp_path: Path, content: bytes, code: str) -> None:
    assert codes(findings(write(tmp_path, scenario=content))) == [code]


def test_columns_do_not_count_a_byte_order_mark(tmp_path: Path) -> None:
    text = "\ufeff" + SCENARIO.replace("name: coins", "name: 5")
    (finding,) = findings(write(tmp_path, scenario=text))
    assert (finding.line, finding.column) == (1, 7)


@pytest.mark.parametrize("text", ["game:", "game: []", "game: 7", "game: coin"])
def test_a_game_that_is_no_map(tmp_path: Path, text: str) -> None:
    (finding,) = findings(write(tmp_path, scenario=SCENARIO.replace("game: {type: coin}", text)))
    assert (finding.code, finding.line) == ("wrong-type", 4)


@pytest.mark.parametrize("part", ["{}", "{type: null}", "{bias: 1}"])
def test_a_game_without_type(tmp_path: Path, part: str) -> None:
    (finding,) = findings(write(tmp_path, scenario=SCENARIO.replace("{type: coin}", part)))
    assert (finding.code, finding.expected) == ("missing-key", "for example type: coin")


def test_what_is_not_served_brings_no_other_findings(tmp_path: Path) -> None:
    text = SCENARIO.replace("{backend: random}", "{backend: vllm, name: 3, tensor: 4}")
    text += "prompt: {system: a, user: b}\nlimits: {cost_usd: 1}\npopulation: p.yaml\n"
    population = "attributes: {a: {given: b, categories: {}}}\nwhere: a\n"
    population += "persona: {writer: model, model: {backend: vllm}}\n"
    found = findings(write(tmp_path, scenario=text, p=population))
    assert codes(found) == ["not-served"] * 6


def test_character_needs_a_population(tmp_path: Path) -> None:
    text = SCENARIO + "prompt: character\n"
    (finding,) = findings(write(tmp_path, scenario=text))
    assert (finding.code, finding.line, finding.column) == ("contradiction", 6, 9)
    assert not findings(write(tmp_path, scenario=text + "population: p.yaml\n", p=POPULATION))


def test_what_the_command_line_changed_is_kept(tmp_path: Path) -> None:
    values = [("agents", "6", "--agents"), ("game", "{type: coin, bias: 0.2}", "--set")]
    result = loaded(write(tmp_path), *values)
    assert result.overrides == ("agents=6", "game={type: coin, bias: 0.2}")
