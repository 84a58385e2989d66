"""Claims about the container: what is written comes back, and nothing else is read."""

from __future__ import annotations

import json
import pickle
import re
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest
from forge import dumps, frame, seal, split, with_text
from safetensors import SafetensorError, safe_open
from safetensors.numpy import load_file, save

from certifit.modelfile import container
from certifit.modelfile.container import ModelFileError

METADATA = {"kind": "test", "number": 0.1, "names": ["a", "\x1b[31m", "<script>", "=cmd|' /C calc'!A0"]}
ARRAYS = {
    "a": np.array([1.0, -0.0, np.inf]),
    "b.c": np.arange(6).reshape(2, 3),
    "empty": np.zeros((3, 0)),
    "texts": np.frombuffer("a\x1b[31mé".encode(), np.uint8),
    "z": np.array([2.5]),
}
DATA = container.to_bytes(METADATA, ARRAYS)


def refuse(data: bytes, reason: str = ".") -> None:
    with pytest.raises(ModelFileError, match=reason):
        container.from_bytes(data)


def edited(name: str, **changes: object) -> bytes:
    """DATA with some entries of one array changed, and right digests."""
    table, payload = split(DATA)
    table[name].update(changes)
    return seal(table, payload)


def test_what_is_written_comes_back():
    metadata, arrays = container.from_bytes(DATA)
    assert metadata == METADATA
    assert arrays.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        assert arrays[name].dtype == array.dtype
        assert arrays[name].shape == array.shape
        assert arrays[name].tobytes() == array.tobytes()
        assert arrays[name].flags.writeable


def test_the_file_is_a_safetensors_file(tmp_path):
    path = tmp_path / "m.certifit"
    path.write_bytes(DATA)
    assert load_file(path)["b.c"].tolist() == [[0, 1, 2], [3, 4, 5]]
    with safe_open(path, "numpy") as file:
        assert set(file.metadata()) == {"certifit", "sha256_payload", "sha256_header"}


def test_the_same_content_gives_the_same_bytes():
    shuffled = {name: np.asfortranarray(ARRAYS[name]) for name in reversed(ARRAYS)}
    big_endian = {name: array.astype(array.dtype.newbyteorder(">")) for name, array in shuffled.items()}
    assert container.to_bytes(dict(reversed(METADATA.items())), shuffled) == DATA
    with pytest.raises(ModelFileError, match="holds float64, int64 and uint8"):
        container.to_bytes(METADATA, big_endian)


def test_a_file_cut_at_any_byte_is_refused():
    for size in range(len(DATA)):
        refuse(DATA[:size])


@pytest.mark.slow
def test_a_flip_of_any_bit_is_refused():
    for position in range(len(DATA)):
        for bit in range(8):
            damaged = bytearray(DATA)
            damaged[position] ^= 1 << bit
            refuse(bytes(damaged))


@pytest.mark.parametrize("extra", [b"\x00", b" ", b"\x00" * 8, DATA])
def test_bytes_after_the_end_are_refused(extra):
    refuse(DATA + extra, "follow the header")


def archive(path: Path) -> bytes:
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("bomb", b"0" * 10**6)
    return path.read_bytes()


def test_other_formats_are_named_and_refused(tmp_path):
    refuse(pickle.dumps(print), "a pickle")
    refuse(archive(tmp_path / "a.zip"), "a zip archive")
    np.save(tmp_path / "a.npy", np.zeros(3))
    refuse((tmp_path / "a.npy").read_bytes(), "a NumPy array")
    refuse(save({"coef": np.zeros(3)}), "another safetensors file|ASCII|canonical")


@pytest.mark.parametrize("size", [0, 1, 7, 2**63, 2**64 - 1, len(DATA), 99 * 10**6, container.MAX_HEADER + 8])
def test_an_impossible_header_size_is_refused(size):
    refuse(size.to_bytes(8, "little") + DATA[8:], "announces a header")


def test_a_header_over_the_limit_is_refused_before_it_is_parsed():
    size = container.MAX_HEADER + 8
    refuse(size.to_bytes(8, "little") + b"[" * size, "announces a header")


HEADERS = {
    "a list": (b"[]", "not a JSON object"),
    "no metadata": (b"{}", "lacks certifit's metadata"),
    "nested": (b"[" * 10_000, "deeper"),
    "duplicate keys": (b'{"__metadata__":{},"__metadata__":{}}', "same key twice"),
    "NaN": (b'{"a":NaN}', "a float is written as"),
    "a float": (b'{"a":1.0}', "a float is written as"),
    "a huge integer": (b'{"a":' + b"9" * 400 + b"}", "integer of 400"),
    "invalid UTF-8": (b'{"a":"\xff\xfe"}', "ASCII"),
    "UTF-8": ('{"a":"é"}'.encode(), "ASCII"),
    "a byte order mark": (b"\xef\xbb\xbf{}", "ASCII"),
    "NUL": (b'{"a":"\x00"}', "not JSON"),
    "spaces": (b'{"a": 1}', "canonical"),
    "more padding than needed": (b"{}" + b" " * 8, "padded"),
    "NUL padding": (b"{}\x00\x00\x00\x00\x00\x00", "not JSON"),
    "metadata is a text": (b'{"__metadata__":"x"}', "lacks certifit's metadata"),
    "metadata has another key": (
        b'{"__metadata__":{"certifit":"{}","pickle":"x"}}',
        "lacks certifit's metadata",
    ),
    "digests are numbers": (
        b'{"__metadata__":{"certifit":"{}","sha256_header":1,"sha256_payload":2}}',
        "be texts",
    ),
}


@pytest.mark.parametrize("case", HEADERS)
def test_a_malformed_header_is_refused(case):
    header, reason = HEADERS[case]
    refuse(frame(header, b""), reason)


TEXTS = {
    "a list": ("[]", "not a JSON object"),
    "a float": ('{"a":1.5}', "a float is written as"),
    "NaN": ('{"a":NaN}', "a float is written as"),
    "NaN in hexadecimal": ('{"a":{"hex":"nan"}}', "NaN"),
    "nested": ("[" * 100_000, "deeper"),
    "duplicate keys": ('{"a":1,"a":2}', "same key twice"),
    "a huge integer": ('{"a":9223372036854775808}', "64 bits"),
    "a huge text": (dumps({"a": "x" * 70_000}), "limit is 65536"),
    "unsorted keys": ('{"b":1,"a":1}', "canonical"),
}


@pytest.mark.parametrize("case", TEXTS)
def test_malformed_metadata_under_right_digests_is_refused(case):
    text, reason = TEXTS[case]
    refuse(with_text(DATA, text), reason)


ENTRIES = {
    "negative size": ({"shape": [-1]}, "each >= 0"),
    "overflowing shape": ({"shape": [2**62, 2**62]}, "must take bytes"),
    "product wraps to the right size": ({"shape": [2**61 + 3]}, "must take bytes"),
    "huge size beside a zero": ({"shape": [2**62, 0], "data_offsets": [0, 0]}, "must take bytes"),
    "no dimension": ({"shape": []}, "1 to 3 sizes"),
    "four dimensions": ({"shape": [3, 1, 1, 1]}, "1 to 3 sizes"),
    "a size that is true": ({"shape": [True, 3]}, "each >= 0"),
    "a size that is text": ({"shape": ["3"]}, "each >= 0"),
    "shape is a number": ({"shape": 3}, "1 to 3 sizes"),
    "wrong shape": ({"shape": [4]}, "must take bytes"),
    "offsets overlap": ({"data_offsets": [8, 32]}, "must take bytes"),
    "offsets reversed": ({"data_offsets": [24, 0]}, "must take bytes"),
    "a gap": ({"data_offsets": [0, 32]}, "must take bytes"),
    "negative offset": ({"data_offsets": [-8, 16]}, "two data_offsets"),
    "three offsets": ({"data_offsets": [0, 24, 24]}, "two data_offsets"),
    "float32": ({"dtype": "F32"}, "F64, I64 and U8"),
    "bfloat16": ({"dtype": "BF16"}, "F64, I64 and U8"),
    "bytes": ({"dtype": "U8"}, "must take bytes 0 to 3"),
    "signed bytes": ({"dtype": "I8"}, "F64, I64 and U8"),
    "big-endian": ({"dtype": ">f8"}, "F64, I64 and U8"),
    "object": ({"dtype": "O"}, "F64, I64 and U8"),
    "dtype is a list": ({"dtype": ["F64"]}, "F64, I64 and U8"),
    "another key": ({"path": "../../etc/passwd"}, "nothing else"),
}


@pytest.mark.parametrize("case", ENTRIES)
def test_a_malformed_array_under_right_digests_is_refused(case):
    changes, reason = ENTRIES[case]
    refuse(edited("a", **changes), reason)


@pytest.mark.parametrize(
    "name", ["../../etc/x", "/etc/x", "A", "", "x" * 65, "a b", "é", "a\n", "a\x00", "__Metadata__"]
)
def test_an_illegal_array_name_is_refused_by_reader_and_writer(name):
    table, payload = split(DATA)
    table[name] = table.pop("a")
    refuse(seal(table, payload), "an array name|must take bytes")
    with pytest.raises(ModelFileError, match="an array name"):
        container.to_bytes({}, {name: np.zeros(1)})


def test_arrays_that_share_bytes_are_refused():
    table, payload = split(DATA)
    table["a2"] = dict(table["a"])
    refuse(seal(table, payload), "must take bytes")


@pytest.mark.slow
def test_many_arrays_of_no_size_are_refused():
    table, payload = split(DATA)
    end = len(payload)
    for i in range(5_000):
        table[f"zz{i}"] = {"dtype": "F64", "shape": [0], "data_offsets": [end, end]}
    refuse(seal(table, payload), "limit is 4096")


def test_swapped_names_and_swapped_payloads_are_refused():
    table, payload = split(DATA)
    table["z2"] = table.pop("z")
    refuse(frame(dumps(table).encode(), payload), "header does not match")
    other = container.to_bytes(METADATA, {**ARRAYS, "z": np.array([3.0])})
    refuse(frame(dumps(split(DATA)[0]).encode(), split(other)[1]), "numbers do not match")


@pytest.mark.parametrize(
    "array",
    [
        np.float64(1),
        np.zeros((1, 1, 1, 1)),
        np.zeros(2, np.float32),
        np.array(["x"]),
        np.array([print]),
        np.zeros(2, "M8[s]"),
    ],
)
def test_the_writer_refuses_what_the_reader_would(array):
    with pytest.raises(ModelFileError, match="holds float64, int64 and uint8"):
        container.to_bytes({}, {"a": np.asarray(array)})


def test_a_header_too_large_is_not_written():
    with pytest.raises(ModelFileError, match="shorter column names"):
        container.to_bytes({"names": ["x" * 1000] * 2000}, {})
    with pytest.raises(ModelFileError, match="a text of 70000 characters, and the limit is 65536"):
        container.to_bytes({"names": ["x" * 70_000]}, {})


def test_reading_takes_no_more_than_twice_the_file():
    data = container.to_bytes({}, {"a": np.ones(10**6)})
    tracemalloc.start()
    container.from_bytes(data)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(data) + peak <= 2.1 * len(data)


def test_a_refusal_of_the_safetensors_reader_is_passed_on(monkeypatch):
    def refuse_all(data: bytes) -> None:
        raise SafetensorError("some rule of its own")

    monkeypatch.setattr("safetensors.numpy.load", refuse_all)
    refuse(DATA, "the safetensors reader refused it: some rule of its own")


def test_messages_show_no_control_characters():
    table, payload = split(DATA)
    table["\x1b[31m<b>"] = table.pop("a")
    with pytest.raises(ModelFileError) as caught:
        container.from_bytes(seal(table, payload))
    assert re.search(r"\\x1b\[31m", str(caught.value))
    assert str(caught.value).isprintable()


def test_json_and_forge_agree_on_the_canonical_form():
    table, payload = split(DATA)
    assert seal(table, payload) == DATA
    assert dumps(json.loads(DATA[8 : 8 + int.from_bytes(DATA[:8], "little")])).encode() in DATA
