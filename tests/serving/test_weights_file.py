"""What tells a file of weights apart."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from agentsim.config.models import LlamaCpp
from agentsim.serving import weights, weights_file


def model(path: Path) -> LlamaCpp:
    return LlamaCpp(backend="llama_cpp", name=str(path))


def test_a_file_is_told_by_its_hash_and_not_by_its_place(tmp_path: Path) -> None:
    content = b"GGUF" + bytes(range(256)) * 9000
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "m.gguf").write_bytes(content)
    first, second = (weights(model(tmp_path / folder / "m.gguf")) for folder in ("a", "b"))
    assert first == second
    assert first is not None
    assert (first.name, first.bytes, first.whole) == ("m.gguf", len(content), True)
    assert first.sha256 == hashlib.sha256(content).hexdigest()


def test_a_large_file_is_told_by_its_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weights_file, "WHOLE_BYTES", 10)
    monkeypatch.setattr(weights_file, "_END_BYTES", 5)
    (tmp_path / "m.gguf").write_bytes(b"GGUF0xxxx56789")
    found = weights(model(tmp_path / "m.gguf"))
    assert found is not None
    assert (found.whole, found.sha256) == (False, hashlib.sha256(b"GGUF056789").hexdigest())


def test_a_file_that_changes_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    path.write_bytes(b"GGUF1")
    before = weights(model(path))
    path.write_bytes(b"GGUF22")
    assert weights(model(path)) != before


def test_what_cannot_be_read_is_not_told(tmp_path: Path) -> None:
    assert weights(model(tmp_path / "gone.gguf")) is None
