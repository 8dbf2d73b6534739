"""`agentsim support`: what helps is in the archive, and nothing secret."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from agentsim.cli.app import app
from agentsim.errors import UserError
from agentsim.report.secrets import Masks
from agentsim.report.support import write_support
from agentsim.results import Journal, Kind, RunDirectory, frames
from agentsim.rpc.codec import decode, encode
from agentsim.rpc.messages import Attempt, Message

NAMED = 'qP7"ö-value-of-a-variable'
OTHER = "value-of-HF_TOKEN-xyz"
ENVIRONMENT = {"MY_LLM": NAMED, "HF_TOKEN": OTHER, "HOME": "/home/somebody", "KEY": "none"}
PLANTED = {
    "of the named variable": NAMED,
    "of a variable with a secret's name": OTHER,
    "of a provider": "sk-proj-0123456789abcdefXYZ",
    "another provider's": "hf_abcdefghijklmnopqrstuvwx",
    "of a cloud": "AKIAIOSFODNN7EXAMPLE",
    "a web token": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w",
    "in a header": "Authorization: Bearer 0123456789abcdef",
    "assigned": "api_key=0a1b2c3d4e5f",
    "in JSON": '{"password": "correct horse"}'.replace(" horse", "-horse"),
    "in an address": "https://me:hunter22@llm.example/v1",
    "a private key": "-----BEGIN PRIVATE KEY-----\nMIIEpAIBAAKCAQEA\n-----END PRIVATE KEY-----",
}
SECRETS = [
    NAMED,
    OTHER,
    *("sk-proj-0123456789abcdefXYZ", "hf_abcdefghijklmnopqrstuvwx", "AKIAIOSFODNN7EXAMPLE"),
    *("eyJzdWIiOiIxMjM0NTY3ODkwIn0", "0123456789abcdef", "0a1b2c3d4e5f", "correct-horse"),
    *("hunter22", "MIIEpAIBAAKCAQEA"),
]


def attempt(text: str) -> Attempt:
    return Attempt(
        *(1, 1, 0, 0, 1, [Message("user", f"You are Ann. {text}")], "text", 7),
        *(
            f"My reply is {text}",
            "stop",
            "no_answer",
            None,
            "",
            True,
            "",
            1,
            1,
            0.1,
            1,
            "",
            "",
            0,
            0,
        ),
    )


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    """A run into whose every file somebody has put secrets."""
    run = RunDirectory.create(tmp_path / "R")
    everything = "\n".join(PLANTED.values())
    manifest = {
        "run_id": "r1",
        "scenario": {"model": {"api_key_env": "MY_LLM"}, "description": everything},
    }
    run.manifest.write_text(json.dumps(manifest, indent=2))
    run.summary.write_text(json.dumps({"run": {"reason": everything}}))
    (run.logs / "node-0.log").write_text(json.dumps({"message": everything}) + "\n")
    (run.logs / "worker-0.log.1").write_text("Max tokens: 123456789\n" + everything)
    with Journal.create(run.journal) as journal:
        journal.append(Kind.RUN, json.dumps({"run_id": "r1", "note": everything}).encode())
        journal.append(Kind.ATTEMPTS, encode([attempt(text) for text in PLANTED.values()]))
        journal.append(Kind.ANSWERS, bytes(range(256)))
    return run


def contents(path: Path) -> dict[str, bytes]:
    with tarfile.open(path) as archive:
        found = {}
        for member in archive.getmembers():
            file = archive.extractfile(member)
            assert file is not None
            assert (member.uid, member.uname) == (0, "")
            found[member.name.partition("/")[2]] = file.read()
        return found


def assert_no_secret(content: bytes) -> None:
    text = content.decode(errors="replace")
    for secret in SECRETS:
        assert secret not in text
        assert json.dumps(secret)[1:-1] not in text


@pytest.mark.parametrize("replies", [False, True])
def test_no_planted_secret_is_in_it(run: RunDirectory, tmp_path: Path, replies: bool) -> None:
    out = tmp_path / "x.tar.gz"
    made = write_support(run.path, out, replies=replies, environment=ENVIRONMENT)
    found = contents(out)
    assert made.masked > 30
    assert out.stat().st_mode & 0o777 == 0o600
    for content in found.values():
        assert_no_secret(content)
    assert ("journal.log" in found) is replies
    assert b"MY_LLM" in found["README.txt"]
    assert b"Max tokens: 123456789" in found["logs/worker-0.log.1"]
    words = b"in journal.log" if replies else b"Persona texts, prompts and replies: not in here"
    assert words in found["README.txt"]


def test_without_replies_nothing_that_agents_said_is_in_it(
    run: RunDirectory, tmp_path: Path
) -> None:
    write_support(run.path, tmp_path / "x.tar.gz", environment=ENVIRONMENT)
    for content in contents(tmp_path / "x.tar.gz").values():
        assert b"My reply is" not in content
        assert b"You are Ann" not in content


def test_a_masked_journal_is_read_as_before(run: RunDirectory, tmp_path: Path) -> None:
    write_support(run.path, tmp_path / "x.tar.gz", replies=True, environment=ENVIRONMENT)
    journal = tmp_path / "journal.log"
    journal.write_bytes(contents(tmp_path / "x.tar.gz")["journal.log"])
    before, after = list(frames(run.journal)), list(frames(journal))
    assert [frame.kind for frame in after] == [frame.kind for frame in before]
    assert after[2].body == before[2].body
    for frame in after:
        assert_no_secret(frame.body)
    attempts = decode(after[1].body, list[Attempt])
    assert len(attempts) == len(PLANTED)
    assert attempts[2].text == "My reply is ***"


def test_the_journal_is_told_by_kinds_and_sizes(run: RunDirectory, tmp_path: Path) -> None:
    write_support(run.path, tmp_path / "x.tar.gz", environment=ENVIRONMENT)
    told = json.loads(contents(tmp_path / "x.tar.gz")["journal.json"])
    assert {kind: told["records"][kind]["count"] for kind in told["records"]} == {
        "RUN": 1,
        "ATTEMPTS": 1,
        "ANSWERS": 1,
    }
    assert [last["kind"] for last in told["last"]] == ["RUN", "ATTEMPTS", "ANSWERS"]
    assert told["error"] is None


@pytest.mark.parametrize("damage", ["no manifest", "no journal", "damaged journal"])
def test_a_broken_run_has_an_archive_too(run: RunDirectory, tmp_path: Path, damage: str) -> None:
    if damage == "no manifest":
        run.manifest.unlink()
    elif damage == "no journal":
        run.journal.unlink()
    else:
        content = bytearray(run.journal.read_bytes())
        content[40] ^= 1
        run.journal.write_bytes(content)
    write_support(run.path, tmp_path / "x.tar.gz", replies=True, environment=ENVIRONMENT)
    told = json.loads(contents(tmp_path / "x.tar.gz")["journal.json"])
    assert bool(told["error"]) is (damage != "no manifest")


def test_an_archive_is_never_overwritten(run: RunDirectory, tmp_path: Path) -> None:
    (tmp_path / "x.tar.gz").write_text("mine")
    with pytest.raises(UserError, match="exists already"):
        write_support(run.path, tmp_path / "x.tar.gz")
    assert (tmp_path / "x.tar.gz").read_text() == "mine"


def test_the_command_says_what_is_in_it(
    run: RunDirectory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["support", "R"], env={"MY_LLM": NAMED})
    assert done.exit_code == 0, done.output
    assert done.output.startswith("R-support.tar.gz\n")
    assert "no persona texts, prompts or replies are in it" in done.output
    done = CliRunner().invoke(app, ["support", "R", "--replies", "-o", "y.tar.gz"])
    assert "it holds every prompt" in done.output


@pytest.mark.parametrize(
    "text",
    [
        "limits.tokens: 2000000 tokens were used",
        '"completion_tokens": 123456789,',
        '"api_key_env": "OPENAI_API_KEY"',
        "a token of nobody's",
        "https://llm.example/v1/chat?model=sk",
        "the key to the city",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    masks = Masks({"KEY": "none"}, "{}")
    assert masks.text(text) == text
    assert masks.count == 0


def test_io_is_not_needed_to_read_it(run: RunDirectory, tmp_path: Path) -> None:
    write_support(run.path, tmp_path / "x.tar.gz", environment={})
    whole: Any = io.BytesIO((tmp_path / "x.tar.gz").read_bytes())
    with tarfile.open(fileobj=whole) as archive:
        assert all(name.startswith("R-support/") for name in archive.getnames())
