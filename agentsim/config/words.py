"""How findings speak: paths, what was found, did-you-means, hints."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from collections.abc import Mapping as Fields
from typing import Any

from pydantic.fields import FieldInfo

from agentsim.config.files import shown
from agentsim.config.masking import MASK, is_secret, mask_addresses
from agentsim.config.tree import Mapping, Node, Path, Scalar, find

_LISTED = 6


def name_of(path: Path) -> str:
    """A path as `--set` takes it; `the file` for the root."""
    text = ".".join(str(step) for step in path)
    return text if len(text) <= 100 else f"{text[:99]}…" if text else "the file"


def found(node: Node, path: Path) -> str:
    """What stands at a path, in YAML words, never a secret."""
    here = find(node, *path)
    if not isinstance(here, Scalar):
        return "a map" if isinstance(here, Mapping) else "a list"
    if any(is_secret(str(step)) for step in path):
        return f"`{MASK}`"
    if not here.written and not here.quoted:
        return "nothing"
    text = mask_addresses(" ".join(here.written.split()))
    return shown(f'"{text}"' if here.quoted else text, 60)


def close(text: str, words: Iterable[str]) -> str:
    """The word that was probably meant; empty if there is none."""
    words = tuple(words)
    if is_secret(text):  # `api_key` is not a slip for `api_key_env`
        words = tuple(word for word in words if _similar(text, word) > 0.85)
    near = difflib.get_close_matches(text[:60].lower(), words, n=1, cutoff=0.7)
    return near[0] if near else ""


def suggestion(text: str, words: Iterable[str]) -> str:
    """A did-you-mean; may be empty."""
    meant = close(text, words)
    return f"did you mean `{meant}`?" if meant else ""


def one_of_keys(fields: Fields[str, FieldInfo | None], meant: str = "") -> str:
    """The keys that exist; of many, those that matter most."""
    order = sorted(fields, key=lambda name: not _required(fields[name]))
    if meant in order:
        order.insert(0, order.pop(order.index(meant)))
    listed = ", ".join(sorted(order[:_LISTED]))
    more = len(order) - _LISTED
    return f"one of: {listed}" + (f", … and {more} more" if more > 0 else "")


def type_hint(here: Scalar, noun: str) -> str:
    """How to write a scalar that has the wrong type; may be empty."""
    value: Any = here.value
    if noun == "text" and value is not None and not here.quoted:
        return f'quotes make it text: "{here.written[:40]}"'
    if noun not in ("a number", "a whole number"):
        return ""
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return f"write {value:.0f}"
    text = here.written.strip()
    bare = text.replace("_", "").replace(",", "")
    if here.quoted and re.fullmatch(r"[-+]?\d{1,40}(\.\d+)?", text):
        return f"write it without quotes: {text[:60]}"
    if re.fullmatch(r"0+\d{1,40}", text):
        return f"write it without the leading zero: {text.lstrip('0') or '0'}"
    if bare != text and re.fullmatch(r"[-+]?\d{1,40}(\.\d{1,20})?", bare):
        return f"write it without separators: {bare}"
    return ""


def _required(field: FieldInfo | None) -> bool:
    return field is None or field.is_required()


def _similar(left: str, right: str) -> float:
    return difflib.SequenceMatcher(None, left[:60], right).ratio()
