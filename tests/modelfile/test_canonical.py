"""Claims about canonical JSON: it keeps bits, it is unique, and it is read within limits."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from certifit.modelfile import canonical
from certifit.modelfile.canonical import CanonicalError

SCALARS = (
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | st.text(st.characters())
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text().filter(lambda key: key != "hex"), inner),
    max_leaves=12,
)


@given(VALUES)
@pytest.mark.slow
def test_every_value_comes_back(value):
    text = canonical.encode(value)
    assert text.isascii()
    assert canonical.encode(canonical.decode(text)) == text
    assert canonical.decode(text) == value


@pytest.mark.parametrize("number", [0.0, -0.0, 0.1, 5e-324, 1.7976931348623157e308, math.inf, -math.inf, 1 / 3])
def test_a_float_keeps_its_bits(number):
    back = canonical.decode(canonical.encode(number))
    assert back.hex() == number.hex()


@pytest.mark.parametrize("text", ["\ud800", "\x00", "\x1b[31m", "é漢😀", '"\\', "\u2028", "</script>"])
def test_any_text_is_stored_faithfully_and_as_printable_ascii(text):
    encoded = canonical.encode([text])
    assert encoded.isascii() and encoded.isprintable()
    assert canonical.decode(encoded) == [text]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("1.5", "a float is written as"),
        ("1e3", "a float is written as"),
        ("NaN", "a float is written as"),
        ("[Infinity]", "a float is written as"),
        ("-Infinity", "a float is written as"),
        ('{"hex":"nan"}', "NaN"),
        ('{"hex":"1.5"}', "canonical"),
        ('{"hex":"0x1p+9999"}', "hexadecimal"),
        ('{"hex":"zebra"}', "hexadecimal"),
        ('{"hex":1}', "hexadecimal"),
        ('{"hex":{"hex":"0x0.0p+0"}}', "hexadecimal"),
        ('{"a":1,"a":1}', "same key twice"),
        ('{"a":1,"\\u0061":1}', "same key twice"),
        ('{"b":1,"a":1}', "canonical"),
        ('{"a": 1}', "canonical"),
        (' {"a":1}', "canonical"),
        ('"\\u0041"', "canonical"),
        ("[1,]", "not JSON"),
        ('{"a":1', "not JSON"),
        ("", "not JSON"),
        ("\ufeff[]", "BOM"),
        ('["\x00"]', "not JSON"),
        (str(2**63), "64 bits"),
        ("9" * 5000, "5000 characters"),
        ("[" * 17 + "]" * 17, "deeper"),
        ("[" * 500_000, "deeper"),
        ('{"a":' * 300_000, "deeper"),
        (json.dumps("x" * (canonical.MAX_STRING + 1)), "limit is 65536"),
        (json.dumps({"x" * (canonical.MAX_STRING + 1): 1}), "limit is 65536"),
    ],
)
def test_everything_else_is_refused(text, reason):
    with pytest.raises(CanonicalError, match=reason):
        canonical.decode(text)


def test_sixteen_levels_are_read_and_written_and_no_more():
    nested = canonical.decode("[" * 16 + "]" * 16)
    assert canonical.encode(nested) == "[" * 16 + "]" * 16
    for deeper in ([nested], {"a": nested}):
        with pytest.raises(CanonicalError, match="deeper"):
            canonical.encode(deeper)


@pytest.mark.parametrize("value", [{"hex": 1}, {1: 2}, (1,), b"x", 1j, math.nan, [math.nan], {"a": object()}, 2**63])
def test_a_value_that_would_not_come_back_is_not_written(value):
    with pytest.raises(CanonicalError):
        canonical.encode(value)


@pytest.mark.parametrize("text", ['"' + '\\"' * 500_000, "\\" * 10**6, '"' * 10**6, "[]," * 300_000, "{" * 10**6])
def test_a_megabyte_of_rubbish_is_refused(text):
    with pytest.raises(CanonicalError):
        canonical.decode(text)
