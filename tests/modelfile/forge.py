"""Writes model files with any content and right digests, as somebody would who edits one by hand."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from certifit.modelfile import ModelFileError, container, nesting
from certifit.modelfile.files import from_bytes

MAX_HEADER = 1024**2


def split(data: bytes) -> tuple[dict[str, Any], bytes]:
    """The header as a dict, and the payload."""
    start = 8 + int.from_bytes(data[:8], "little")
    return json.loads(data[8:start]), data[start:]


def dumps(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def frame(header: bytes, payload: bytes) -> bytes:
    """Size, header, payload; the header padded to a multiple of 8."""
    header += b" " * (-len(header) % 8)
    return len(header).to_bytes(8, "little") + header + payload


def seal(table: dict[str, Any], payload: bytes) -> bytes:
    """A file whose two digests are right, whatever the table and the payload say."""
    entries = {**table["__metadata__"], "sha256_payload": hashlib.sha256(payload).hexdigest()}
    entries.pop("sha256_header", None)
    unsigned = dumps({**table, "__metadata__": entries})
    entries["sha256_header"] = hashlib.sha256(unsigned.encode()).hexdigest()
    return frame(dumps({**table, "__metadata__": entries}).encode(), payload)


def with_text(data: bytes, text: str) -> bytes:
    """The same file with another metadata text."""
    table, payload = split(data)
    table["__metadata__"]["certifit"] = text
    return seal(table, payload)


def metadata(data: bytes) -> dict[str, Any]:
    """The metadata as plain JSON; floats stay {"hex": ...}."""
    table, _ = split(data)
    value: dict[str, Any] = json.loads(table["__metadata__"]["certifit"])
    return value


def hexed(number: float) -> dict[str, str]:
    return {"hex": number.hex()}


def edited(data: bytes, path: str, value: Any) -> bytes:
    """The file with one entry of its metadata changed."""
    tree = metadata(data)
    *folders, last = path.split(".")
    node = tree
    for folder in folders:
        node = node[folder]
    node[last] = value
    return with_text(data, dumps(tree))


def with_array(data: bytes, name: str, array: Any) -> bytes:
    """The file with another array."""
    said, arrays = container.from_bytes(data)
    return container.to_bytes(said, {**arrays, name: np.asarray(array)})


def with_number(data: bytes, name: str, place: Any, number: float) -> bytes:
    """The file with another number in one of its arrays."""
    array = container.from_bytes(data)[1][name].copy()
    array[place] = number
    return with_array(data, name, array)


def with_child(data: bytes, place: int, change: Callable[[bytes], bytes]) -> bytes:
    """The file with another container of one of the models in it."""
    said, arrays = container.from_bytes(data)
    containers = nesting.containers(said["children"]["count"], arrays)
    place %= len(containers)
    containers[place] = change(containers[place])
    ends, joined = np.cumsum([len(child) for child in containers]), b"".join(containers)
    return container.to_bytes(said, arrays | {"child_ends": ends, "children": np.frombuffer(joined, dtype=np.uint8)})


def refuse(data: bytes, reason: str = ".") -> None:
    """Claim that the file is refused, in words that a terminal can show."""
    with pytest.raises(ModelFileError, match=reason) as caught:
        from_bytes(data)
    assert str(caught.value).isprintable()
