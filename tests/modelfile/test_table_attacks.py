"""Claims about forged encoders: what no fit leaves is refused, under right digests too."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
from forge import dumps, metadata, refuse, seal, split, with_text
from samples import samples

from certifit.modelfile import container
from certifit.modelfile.encoders import COLUMN, KINDS
from certifit.modelfile.files import to_bytes


def fitted(name: str = "table") -> Any:
    return copy.deepcopy(samples()[name].model)


def with_arrays(data: bytes, **changes: Any) -> bytes:
    """The file with other arrays ("_" for "." in names of the encoder), and right digests."""
    said, arrays = container.from_bytes(data)
    for name, array in changes.items():
        arrays[name.replace("encoder_", "encoder.")] = np.asarray(array)
    return container.to_bytes(said, arrays)


def with_cell(data: bytes, column: str, field: str, value: int) -> bytes:
    """The file with one field of one column of the table changed."""
    said, arrays = container.from_bytes(data)
    columns = arrays["encoder.columns"].copy()
    columns[said["features"]["names"].index(column), COLUMN.index(field)] = value
    return with_arrays(data, encoder_columns=columns)


def with_parameter(data: bytes, name: str, value: Any) -> bytes:
    tree = metadata(data)
    tree["encoder"]["parameters"][name] = value
    return with_text(data, dumps(tree))


def test_a_table_model_that_is_cut_is_refused():
    data = to_bytes(fitted("table scanned"))
    for size in range(0, len(data), 7):
        refuse(data[:size])


def test_a_flip_of_a_bit_of_a_table_model_is_refused():
    data = to_bytes(fitted("table scanned"))
    entries, payload = split(data)
    start = len(data) - len(payload) + entries["text_ends"]["data_offsets"][0]
    for position in [*range(0, start, 7), *range(start, len(data))]:
        damaged = bytearray(data)
        damaged[position] ^= 1 << position % 8
        refuse(bytes(damaged))


CELLS: dict[str, tuple[str, str, int, str]] = {
    "kind beyond the table": ("x", "kind", len(KINDS), r"kind of column 0 .* is 8. Legal is 0 to 7"),
    "negative kind": ("x", "kind", -1, "kind of column 0"),
    "huge kind": ("x", "kind", 2**63 - 1, "kind of column 0"),
    "a number that is levels": ("x", "kind", 2, "parts of column 0 .* Legal is 0 to 0"),
    "levels that are a number": ("nasty", "kind", 0, "n_levels of column 2 .* Legal is 0 to 0"),
    "levels set aside": ("nasty", "kind", 6, "n_levels of column 2"),
    "a number set aside": ("x", "kind", 6, "has_indicator of column 0"),
    "an indicator of 2": ("x", "has_indicator", 2, "has_indicator of column 0"),
    "an indicator dropped": ("x", "has_indicator", 0, "must be float64 of shape"),
    "a part that no number has": ("x", "parts", 2, "parts of column 0"),
    "a fifth part of a date": ("day", "parts", 16, "parts of column 5 .* Legal is 0 to 15"),
    "a part dropped": ("day", "parts", 1, "fills"),
    "negative parts": ("day", "parts", -1, "parts of column 5"),
    "fewer levels": ("nasty", "n_levels", 6, "must be float64 of shape"),
    "more levels": ("nasty", "n_levels", 8, "must be float64 of shape|contradict"),
    "more levels than texts": ("nasty", "n_levels", 1000, "n_levels of column 2"),
    "2**62 levels": ("nasty", "n_levels", 2**62, "n_levels of column 2"),
    "2**63 - 1 levels": ("nasty", "n_levels", 2**63 - 1, "n_levels of column 2"),
    "negative levels": ("nasty", "n_levels", -1, "n_levels of column 2"),
    "no level at all": ("nasty", "n_levels", 0, "reference of column 2 .* Legal is 0 to -1"),
    "levels of a number": ("x", "n_levels", 1, "n_levels of column 0"),
    "two others": ("nasty", "has_other", 2, "has_other of column 2"),
    "an other of a flag": ("is_late", "has_other", 1, "has_other of column 1"),
    "a reference that is no level": ("nasty", "reference", 7, "reference of column 2 .* is 7. Legal is 0 to 6"),
    "a negative reference": ("nasty", "reference", -1, "reference of column 2"),
    "a reference of a date": ("day", "reference", 1, "reference of column 5"),
}


@pytest.mark.parametrize("case", CELLS)
def test_an_illegal_column_under_right_digests_is_refused(case):
    column, field, value, reason = CELLS[case]
    refuse(with_cell(to_bytes(fitted()), column, field, value), reason)


def test_a_reference_against_the_stated_rule_is_refused():
    data = to_bytes(fitted("table scanned"))
    refuse(with_cell(data, "rare", "reference", 1), "'rare' has another reference, against the parameters")
    data = to_bytes(fitted("table filled"))
    refuse(with_cell(data, "store", "reference", 0), "'store' has another reference")


PARAMETERS: dict[str, tuple[str, Any, str]] = {
    "unseen": ("unseen", "os.system", "one of 'error', 'reference'"),
    "unseen is a list": ("unseen", ["error"], "one of 'error'"),
    "missing": ("missing", "error", "'x' marks its gaps, against the parameters"),
    "filled": ("missing", "fill", "'x' marks its gaps, against the parameters"),
    "dates": ("dates", "drop", "'day' is a date, against the parameters"),
    "max_levels": ("max_levels", 3, "n_levels of column 2 .* Legal is 0 to 3"),
    "max_levels of 1": ("max_levels", 1, "an integer >= 2"),
    "max_levels of 2**63": ("max_levels", 2**63, "64 bits"),
    "max_levels is true": ("max_levels", True, "an integer >= 2"),
    "min_count": ("min_count", 0, "a float >= 1"),
    "categories": ("categories", ["no such column"], "'no such column', which is no column of levels"),
    "a category that is a number": ("categories", ["x"], "'x', which is no column of levels"),
    "categories is a text": ("categories", "store", "a list of texts"),
    "sparse_output": ("sparse_output", 1, "true or false"),
    "reference": ("reference", "last", "'first', 'most frequent' or sorted pairs"),
    "reference by name": ("reference", {"nasty": "nan"}, "sorted pairs"),
    "reference of nothing": ("reference", [["nope", "a"]], "'nope', which is no column of levels"),
    "reference twice": ("reference", [["nasty", "a"], ["nasty", "b"]], "sorted pairs"),
    "reference not sorted": ("reference", [["rare", "a"], ["nasty", "b"]], "sorted pairs"),
    "reference of three": ("reference", [["nasty", "a", "b"]], "sorted pairs"),
    "reference is no level": ("reference", [["nasty", "\x1b[31m"]], "'nasty' has another reference"),
}


@pytest.mark.parametrize("case", PARAMETERS)
def test_illegal_parameters_under_right_digests_are_refused(case):
    refuse(with_parameter(to_bytes(fitted()), *PARAMETERS[case][:2]), PARAMETERS[case][2])


@pytest.mark.parametrize(
    ("name", "key", "value", "reason"),
    [
        ("table", "is_fitted", False, "is no array of this model|must be float64 of shape"),
        ("table", "is_fitted", 1, "true or false"),
        ("table", "extra", 1, "unknown key 'extra'"),
        ("table scanned", "is_fitted", False, "neither given nor fitted"),
    ],
)
def test_an_illegal_record_is_refused(name, key, value, reason):
    tree = metadata(to_bytes(fitted(name)))
    tree["encoder"][key] = value
    refuse(with_text(to_bytes(fitted(name)), dumps(tree)), reason)


def test_an_encoder_may_be_neither_null_nor_dropped_nor_added():
    data = to_bytes(fitted())
    tree = metadata(data)
    record = tree.pop("encoder")
    refuse(with_text(data, dumps(tree)), "is no array of this model|must be float64 of shape")
    refuse(with_text(data, dumps({**tree, "encoder": None})), "metadata.encoder must be an object")
    numeric = to_bytes(fitted("least squares"))
    refuse(with_text(numeric, dumps({**metadata(numeric), "encoder": record})), "need names|is missing")
    for key in record["parameters"]:
        rest = {name: value for name, value in record["parameters"].items() if name != key}
        refuse(with_text(data, dumps({**tree, "encoder": {**record, "parameters": rest}})), f"has no '{key}'")


@pytest.mark.parametrize("names", [None, ["x"] * 8])
def test_a_table_needs_names_each_its_own(names):
    tree = metadata(to_bytes(fitted()))
    tree["features"]["names"] = names
    refuse(with_text(to_bytes(fitted()), dumps(tree)), "need names, each its own")


def text_attacks() -> dict[str, tuple[dict[str, Any], str]]:
    """Other text arrays for the table sample."""
    _, arrays = container.from_bytes(to_bytes(samples()["table"].model))
    ends, texts = arrays["text_ends"], arrays["texts"]

    def at(place: int, value: int) -> Any:
        changed = ends.copy()
        changed[place] = value
        return changed

    def spelled(raw: bytes) -> Any:
        return np.concatenate([np.frombuffer(raw, np.uint8), texts[len(raw) :]])

    same_levels = np.zeros_like(ends)
    same_levels[-1] = texts.size
    return {
        "overlap": ({"text_ends": at(3, int(ends[5]))}, "must follow each other"),
        "an end before 0": ({"text_ends": at(0, -1)}, "must follow each other"),
        "an end of -2**63": ({"text_ends": at(1, -(2**63))}, "must follow each other"),
        "an end beyond the bytes": ({"text_ends": at(-1, texts.size + 1)}, "must follow each other"),
        "an end of 2**63 - 1": ({"text_ends": at(-1, 2**63 - 1)}, "must follow each other"),
        "bytes left over": ({"texts": np.append(texts, np.uint8(65))}, "must follow each other"),
        "bytes missing": ({"texts": texts[:-1]}, "must follow each other"),
        "no bytes": ({"texts": texts[:0]}, "must follow each other"),
        "no ends": ({"text_ends": ends[:0], "texts": texts[:0]}, "n_levels of column 2"),
        "too few texts": ({"text_ends": ends[:14], "texts": texts[: ends[13]]}, "texts. Got 14"),
        "levels all the same": ({"text_ends": same_levels}, "contradict each other"),
        "invalid UTF-8": ({"texts": spelled(b"\xff" * 8)}, "not valid UTF-8"),
        "an overlong form": ({"texts": spelled(b"\x00" + b"\xc0\x80" * 4)}, "not valid UTF-8"),
        "half a character": ({"texts": spelled(b"\x00\xed\xa0\x80")}, "not valid UTF-8"),
        "ends are floats": ({"text_ends": ends.astype(float)}, "must be int64 of shape"),
        "ends in a square": ({"text_ends": ends[:4].reshape(2, 2)}, "must be int64 of shape"),
        "texts are numbers": ({"texts": texts.astype(np.int64)}, "must be uint8 of shape"),
        "columns are floats": ({"encoder_columns": np.zeros((8, 6))}, "must be int64 of shape"),
        "a field more": ({"encoder_columns": np.zeros((8, 7), np.int64)}, "must be int64 of shape"),
        "a column more": ({"encoder_columns": np.zeros((9, 6), np.int64)}, "must be int64 of shape"),
        "all numbers": ({"encoder_columns": np.zeros((8, 6), np.int64)}, "need 0 fills"),
        "a fill that is NaN": ({"encoder_fill": np.full(arrays["encoder.fill"].size, np.nan)}, "NaN or infinity"),
        "an infinite fill": ({"encoder_fill": np.full(arrays["encoder.fill"].size, np.inf)}, "NaN or infinity"),
        "a fill more": ({"encoder_fill": np.append(arrays["encoder.fill"], 1.0)}, "fills. Got"),
        "a huge text": (
            {"texts": np.append(texts, [np.uint8(65)] * 70_000), "text_ends": at(-1, texts.size + 70_000)},
            "65536",
        ),
    }


ATTACKS = text_attacks()


@pytest.mark.parametrize("case", ATTACKS)
def test_malformed_arrays_of_the_encoder_are_refused(case):
    changes, reason = ATTACKS[case]
    refuse(with_arrays(to_bytes(fitted()), **changes), reason)


def test_no_array_of_the_encoder_may_be_missing():
    said, arrays = container.from_bytes(to_bytes(fitted()))
    for name in ("encoder.columns", "encoder.fill", "text_ends", "texts"):
        rest = {key: array for key, array in arrays.items() if key != name}
        refuse(container.to_bytes(said, rest), f"the array '{name}' is missing")


def test_an_encoder_that_makes_no_column_is_refused():
    columns = np.zeros((3, len(COLUMN)), np.int64)
    refuse(
        with_arrays(to_bytes(fitted("table scanned")), encoder_columns=columns, encoder_fill=np.zeros(0)),
        "its encoder makes no column",
    )


def test_texts_in_a_model_without_a_table_are_refused():
    entries, payload = split(to_bytes(fitted("least squares")))
    entry = {"dtype": "U8", "shape": [1], "data_offsets": [len(payload), len(payload) + 1]}
    refuse(seal({**entries, "texts": entry}, payload + b"x"), "'texts' is no array of this model")
