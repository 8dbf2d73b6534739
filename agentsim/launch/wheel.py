"""A wheel of the agentsim that runs here, made of its own files."""

from __future__ import annotations

import base64
import hashlib
import io
import zipfile
from importlib import metadata
from pathlib import Path

from agentsim import version
from agentsim.errors import UserError
from agentsim.version import __version__


def wheel() -> tuple[str, bytes]:
    """Its file name, and what is in the file.

    Raises:
        UserError: what runs here was never installed, so that nobody knows what it needs.
    """
    try:
        about = metadata.metadata("agentsim")
    except metadata.PackageNotFoundError:
        raise UserError(
            "agentsim runs here without being installed, so what it needs is not known; run: "
            "pip install -e ."
        ) from None
    files = {f"agentsim/{path}": data for path, data in package_files().items()}
    info = f"agentsim-{__version__}.dist-info"
    needs = [f"Requires-Dist: {line}" for line in about.get_all("Requires-Dist") or ()]
    extras = [f"Provides-Extra: {name}" for name in about.get_all("Provides-Extra") or ()]
    head = ["Metadata-Version: 2.1", "Name: agentsim", f"Version: {__version__}"]
    head += [f"Requires-Python: {found}" for found in about.get_all("Requires-Python") or ()]
    files[f"{info}/METADATA"] = _lines(*head, *extras, *needs)
    files[f"{info}/WHEEL"] = _lines(
        "Wheel-Version: 1.0", "Generator: agentsim", "Root-Is-Purelib: true", "Tag: py3-none-any"
    )
    files[f"{info}/entry_points.txt"] = _lines("[console_scripts]", "agentsim = agentsim.cli:main")
    record = [f"{path},sha256={_hash(data)},{len(data)}" for path, data in files.items()]
    files[f"{info}/RECORD"] = _lines(*record, f"{info}/RECORD,,")
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, data in files.items():
            archive.writestr(path, data)
    return f"agentsim-{__version__}-py3-none-any.whl", packed.getvalue()


def package_files() -> dict[str, bytes]:
    """All files of the package that runs here, by their path in it."""
    folder = Path(version.__file__).parent
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts
    }


def _lines(*lines: str) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()


def _hash(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
