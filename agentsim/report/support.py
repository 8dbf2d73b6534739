"""One archive about a run, for a bug report: no keys, and replies only when they are asked for."""

from __future__ import annotations

import importlib.metadata
import io
import json
import os
import platform
import tarfile
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from agentsim.errors import AgentsimError, ResultsError, UserError
from agentsim.report.logs import log_files
from agentsim.report.secrets import Masks
from agentsim.results import Frame, Kind, RunDirectory, frames
from agentsim.results.framing import header, pack
from agentsim.results.storage import discard, failure, temporary_path
from agentsim.version import __version__

# The end of a log says why a run ended.
_MOST_LOG_BYTES = 16 * 1024 * 1024
_LAST_FRAMES = 50
_TOLD = (Kind.RUN, Kind.END, Kind.EVENT)
_PACKED = (Kind.ATTEMPTS, Kind.ROW)
_README = """\
About one run of agentsim, for a bug report.

run        {run}
made with  agentsim {version}

In here:
{contents}

Persona texts, prompts and replies: {replies}
The manifest holds the scenario, the population, the hosts' names and paths of files. Logs hold what
model servers and your own agents have printed.

Keys: values of the variables that the scenario names ({names}), of variables whose
names look like a secret's, and what looks like a key, a password or a token were masked: {masked}.
Look through the files all the same before you pass them on.
"""


@dataclass(frozen=True, slots=True)
class Support:
    """What an archive holds.

    Attributes:
        path: the archive.
        files: names and sizes in bytes.
        masked: how many secrets were masked.
        replies: whether prompts, persona texts and replies are in it.
    """

    path: Path
    files: dict[str, int] = field(default_factory=dict)
    masked: int = 0
    replies: bool = False


def write_support(
    run: str | os.PathLike[str],
    out: Path | None = None,
    *,
    replies: bool = False,
    environment: Mapping[str, str] | None = None,
) -> Support:
    """Pack what helps to understand a run.

    Args:
        run: the run's directory; it may still be going on.
        out: the archive; it must not exist. None: `NAME-support.tar.gz` in the current folder.
        replies: also the journal, with prompts, persona texts and replies.
        environment: variables whose values are masked; None: those of this process.

    Raises:
        UserError: the archive exists.
        ResultsError: there is no run, or the archive cannot be written.
    """
    directory = RunDirectory.open(Path(run))
    name = directory.path.absolute().name
    path = out or Path(f"{name}-support.tar.gz")
    if os.path.lexists(path):
        raise UserError(f"{path}: exists already; name another file with -o")
    masks = Masks(os.environ if environment is None else environment, _text(directory.manifest))
    temporary = temporary_path(path)
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file, tarfile.open(fileobj=file, mode="w:gz") as tar:
            archive = _Archive(tar, f"{name}-support")
            _fill(archive, directory, masks, replies=replies)
            archive.add("README.txt", _readme(directory, archive, masks, replies).encode())
        temporary.replace(path)
    except OSError as error:
        raise failure(path, "cannot write the archive", error) from error
    finally:
        discard(temporary)
    return Support(path, archive.files, masks.count, replies)


@dataclass(slots=True)
class _Archive:
    """Adds files to an archive, without who owns them."""

    tar: tarfile.TarFile
    folder: str
    files: dict[str, int] = field(default_factory=dict)

    def add(self, name: str, content: bytes) -> None:
        self.add_stream(name, io.BytesIO(content), len(content))

    def add_stream(self, name: str, stream: Any, size: int) -> None:
        info = tarfile.TarInfo(f"{self.folder}/{name}")
        info.size, info.mode, info.mtime = size, 0o600, int(time.time())
        self.tar.addfile(info, stream)
        self.files[name] = size


def _fill(archive: _Archive, directory: RunDirectory, masks: Masks, *, replies: bool) -> None:
    for path in (directory.manifest, directory.summary):
        if path.exists():
            archive.add(path.name, masks.text(_text(path)).encode())
    for files in log_files(directory.logs).values():
        for path in files:
            archive.add(f"logs/{path.name}", masks.text(_text(path)).encode())
    for name, told in (
        ("versions.json", _versions),
        ("files.json", lambda: _files(directory)),
        ("journal.json", lambda: _journal(directory.journal)),
    ):
        archive.add(name, masks.text(_as_json(told)).encode())
    if replies and directory.journal.exists():
        _add_journal(archive, directory.journal, masks)


def _as_json(told: Callable[[], Any]) -> str:
    return json.dumps(told(), indent=2, ensure_ascii=False) + "\n"


def _text(path: Path) -> str:
    """The text of a file, or its end when it is very long; why not, when it cannot be read."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - _MOST_LOG_BYTES))
            return file.read().decode(errors="replace")
    except OSError as error:
        return f"cannot be read: {error}\n"


def _versions() -> dict[str, Any]:
    packages = sorted(
        (str(found.name), found.version) for found in importlib.metadata.distributions()
    )
    return {
        "agentsim": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "machine": platform.machine(),
        "cpus": os.cpu_count(),
        "packages": dict(packages),
    }


def _files(directory: RunDirectory) -> dict[str, Any]:
    """Sizes of the run's files, and what is free on its disk."""
    sizes = {
        str(path.relative_to(directory.path)): path.stat().st_size
        for path in sorted(directory.path.rglob("*"))
        if path.is_file()
    }
    disk = os.statvfs(directory.path)
    return {
        "disk": {
            "bytes": disk.f_blocks * disk.f_frsize,
            "free_bytes": disk.f_bavail * disk.f_frsize,
        },
        "files": sizes,
    }


def _journal(path: Path) -> dict[str, Any]:
    """What kinds of records a journal has, how large and which last; nothing that agents said."""
    if not path.exists():
        return {"error": "there is no journal"}
    counts: Counter[str] = Counter()
    sizes: Counter[str] = Counter()
    largest: dict[str, int] = {}
    last: deque[dict[str, Any]] = deque(maxlen=_LAST_FRAMES)
    told: deque[dict[str, Any]] = deque(maxlen=1000)
    error = None
    try:
        for frame in frames(path):
            kind, size = frame.kind.name, len(frame.body)
            counts[kind] += 1
            sizes[kind] += size
            largest[kind] = max(largest.get(kind, 0), size)
            last.append({"kind": kind, "bytes": size, "offset": frame.offset})
            if frame.kind in _TOLD:
                told.append({"kind": kind, "offset": frame.offset, "says": _says(frame)})
    except AgentsimError as problem:
        error = str(problem)
    return {
        "bytes": path.stat().st_size,
        "error": error,
        "records": {
            kind: {
                "count": counts[kind],
                "uncompressed_bytes": sizes[kind],
                "largest": largest[kind],
            }
            for kind in sorted(counts)
        },
        "last": list(last),
        "told": list(told),
    }


def _says(frame: Frame) -> Any:
    try:
        return json.loads(frame.body)
    except ValueError:
        return None


def _add_journal(archive: _Archive, path: Path, masks: Masks) -> None:
    """Add the journal, the texts in its records masked, so that it can be read as before."""

    def records() -> Iterator[bytes]:
        yield header()
        try:
            for frame in frames(path):
                yield b"".join(pack(frame.kind, _masked(frame, masks)))
        except ResultsError:
            return  # journal.json says so

    temporary = temporary_path(path)
    try:
        with temporary.open("w+b") as file:
            for record in records():
                file.write(record)
            size = file.tell()
            file.seek(0)
            archive.add_stream(path.name, file, size)
    finally:
        discard(temporary)


def _masked(frame: Frame, masks: Masks) -> bytes:
    """The body of a record without secrets; numbers have none."""
    if frame.kind in _TOLD:
        return masks.text(frame.body.decode(errors="replace")).encode()
    if frame.kind in _PACKED:
        return msgspec.msgpack.encode(masks.value(msgspec.msgpack.decode(frame.body)))
    return frame.body


def _readme(directory: RunDirectory, archive: _Archive, masks: Masks, replies: bool) -> str:
    about = {
        "manifest.json": "what was run, with what",
        "summary.json": "counts and statistics",
        "versions.json": "of agentsim, python, the system and packages",
        "files.json": "sizes of the run's files, room on its disk",
        "journal.json": "kinds and sizes of the journal's records, and the last ones",
        "journal.log": "the journal: every prompt and reply",
    }
    contents = [
        f"  {name:<24} {about.get(name, 'a log'):<60} {size:>12,} bytes"
        for name, size in archive.files.items()
    ]
    return _README.format(
        run=directory.path.absolute(),
        version=__version__,
        contents="\n".join(contents),
        replies="in journal.log, with everything that they say." if replies else "not in here.",
        names=", ".join(masks.names) or "it names none",
        masked=masks.count,
    )
