"""Canonical JSON: one value, one text.

Sorted keys, no spaces, ASCII only. A float is written as {"hex": "0x1.8p+1"}, so its bits survive; there are
no float, NaN or Infinity literals. Whatever `decode` accepts, `encode` gives back byte by byte.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any, NoReturn

MAX_DEPTH = 16
MAX_STRING = 64 * 1024
INTEGER_BOUND = 2**63

# A string is taken as one token, closed or not, so the scan reads each character once.
_TOKEN = re.compile(r'"(?:[^"\\]++|\\.)*+"?|[\[{]|[\]}]', re.DOTALL)


class CanonicalError(ValueError):
    """A text that is not canonical JSON, or a value that has none. The message is half a sentence."""


def encode(value: Any, max_string: int = MAX_STRING) -> str:
    """The canonical text of None, bool, int, float, str, list and dict.

    >>> encode({"b": [1, True], "a": 1.5})
    '{"a":{"hex":"0x1.8000000000000p+0"},"b":[1,true]}'
    """
    plain = _mark(value, MAX_DEPTH, max_string)
    return json.dumps(plain, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def decode(text: str, max_string: int = MAX_STRING) -> Any:
    """The value of a canonical text; anything else is refused.

    >>> decode('{"a":{"hex":"0x1.8000000000000p+0"}}')
    {'a': 1.5}
    """
    _check_depth(text)
    try:
        value = json.loads(
            text,
            object_pairs_hook=_pairs,
            parse_int=_integer,
            parse_float=_no_literal,
            parse_constant=_no_literal,
        )
    except json.JSONDecodeError as error:
        raise CanonicalError(f"is not JSON: {error.msg} at character {error.pos}") from None
    if encode(value, max_string) != text:
        raise CanonicalError("is not in canonical form: keys sorted, no spaces, ASCII")
    return value


def _mark(value: Any, depth: int, max_string: int) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        if not -INTEGER_BOUND <= value < INTEGER_BOUND:
            raise CanonicalError(f"holds an integer of {value.bit_length()} bits, and the limit is 63")
        return value
    if isinstance(value, str):
        if len(value) > max_string:
            raise CanonicalError(f"holds a text of {len(value)} characters, and the limit is {max_string}")
        return value
    if isinstance(value, float):
        if math.isnan(value):
            raise CanonicalError("holds NaN, which is not a number")
        _descend(depth)
        return {"hex": float.hex(value)}
    if isinstance(value, list):
        below = _descend(depth)
        return [_mark(item, below, max_string) for item in value]
    if isinstance(value, dict):
        return _mark_object(value, depth, max_string)
    raise CanonicalError(f"holds a {type(value).__name__}, which JSON does not have")


def _mark_object(value: dict[Any, Any], depth: int, max_string: int) -> dict[str, Any]:
    if not all(isinstance(key, str) for key in value):
        raise CanonicalError("has a key that is not text")
    if value.keys() == {"hex"}:
        raise CanonicalError("has an object whose only key is 'hex', which marks a float")
    below = _descend(depth)
    return {_mark(key, below, max_string): _mark(item, below, max_string) for key, item in value.items()}


def _descend(depth: int) -> int:
    if depth < 1:
        raise CanonicalError(f"is nested deeper than {MAX_DEPTH} levels")
    return depth - 1


def _check_depth(text: str) -> None:
    # json.loads recurses once per level, so the depth is bounded before it runs.
    depth = 0
    for token in _TOKEN.finditer(text):
        first = text[token.start()]
        if first != '"':
            depth += 1 if first in "[{" else -1
        if depth > MAX_DEPTH:
            raise CanonicalError(f"is nested deeper than {MAX_DEPTH} levels")


def _pairs(pairs: list[tuple[str, Any]]) -> Any:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise CanonicalError("has the same key twice in one object")
    return _unmark(value["hex"]) if value.keys() == {"hex"} else value


def _unmark(text: Any) -> float:
    if not isinstance(text, str) or len(text) > 32:
        raise CanonicalError("has a float that is not a hexadecimal text")
    try:
        return float.fromhex(text)
    except (ValueError, OverflowError):
        raise CanonicalError("has a float that is not a hexadecimal text") from None


def _integer(text: str) -> int:
    if len(text) > 20:
        raise CanonicalError(f"holds an integer of {len(text)} characters, and the limit is 63 bits")
    return int(text)


def _no_literal(text: str) -> NoReturn:
    raise CanonicalError(f"has the number {text[:32]!r}; a float is written as {{'hex': ...}}")
