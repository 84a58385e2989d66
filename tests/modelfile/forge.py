"""Writes model files with any content and right digests, as somebody would who edits one by hand."""

from __future__ import annotations

import hashlib
import json
from typing import Any

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
