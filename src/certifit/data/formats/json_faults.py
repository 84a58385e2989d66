"""Which line of a file of JSON lines is at fault: Arrow counts rows from the beginning of a block of the file."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pyarrow as pa

BLOCK = 1 << 20  # bytes that Arrow reads at a time: no line may be longer
_KINDS = {bool: "true or false", int: "a number", float: "a number", str: "text", list: "an array", dict: "an object"}
_ARRAY = "begins a JSON array"
_SPLIT = "Give one object per line: jq -c '.[]' FILE > rows.jsonl makes such a file."


def first_fault(path: str) -> str | None:
    """The first line that is no object, repeats a key or has a value of another type than lines before; None for none.

    A sentence with the number of the line and without its values, which are cells.
    """
    kinds: dict[str, tuple[str, int]] = {}  # of every key, and the first line that tells it
    long_line = None
    with pa.input_stream(path, compression="detect") as file:
        for number, line in enumerate(_lines(file), 1):
            if len(line) > BLOCK and not line.lstrip().startswith(b"["):
                long_line = long_line or f"line {number:,} is longer than {BLOCK:,} bytes."
            elif line.strip() and (fault := _fault(line, number, kinds)):
                return f"line {number:,} {fault}. {_SPLIT if fault == _ARRAY else 'Mend that line.'}"
    return long_line


def _lines(file: pa.NativeFile) -> Iterator[bytes]:
    """Lines; of those that are too long the beginning."""
    rest = b""
    while block := file.read(BLOCK):
        *lines, end = block.split(b"\n")
        if lines:
            yield rest + lines[0]
            yield from lines[1:]
            rest = end
        elif len(rest) <= BLOCK:
            rest += end
    yield rest


def _fault(line: bytes, number: int, kinds: dict[str, tuple[str, int]]) -> str | None:
    if line.lstrip().startswith(b"["):
        return _ARRAY
    try:
        pairs = json.loads(line, object_pairs_hook=_Pairs)
    except (ValueError, RecursionError) as error:
        where = f" (character {error.pos + 1:,})" if isinstance(error, json.JSONDecodeError) else ""
        return f"is no JSON{where}"
    if not isinstance(pairs, _Pairs):
        return 'is no JSON object, such as {"a": 1}'
    names = set()
    for name, value in pairs:
        if name in names:
            return f"has {name!r} twice"
        names.add(name)
        kind = None if value is None else _KINDS.get(type(value), "an object")
        if kind is not None and kinds.setdefault(name, (kind, number))[0] != kind:
            before, first = kinds[name]
            return f"has {kind} as {name!r}, which is {before} in line {first:,}"
    return None


class _Pairs(list[tuple[str, object]]):
    """The keys and values of an object, in order."""
