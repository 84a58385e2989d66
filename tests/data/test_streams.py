"""Every table that is there already gives the bits of the same rows in memory, as often as it is read."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from tables import bits, in_memory, table_of_numbers

from certifit.data.arrow import from_arrow

ROLES = {"target": "y", "weight": "w"}
TABLE = table_of_numbers()
BITS = bits(in_memory(TABLE))


class Stream:
    """Nothing but the Arrow protocol, in batches of 1000 rows."""

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return pa.RecordBatchReader.from_batches(TABLE.schema, TABLE.to_batches(1000)).__arrow_c_stream__()


def _duckdb() -> Any:
    return pytest.importorskip("duckdb").from_arrow(TABLE).filter("w > 0")


KINDS = {
    "pyarrow": lambda: TABLE,
    "pyarrow in pieces": lambda: pa.concat_tables([TABLE.slice(0, 17), TABLE.slice(17, 40_000), TABLE.slice(40_017)]),
    "record batch": lambda: TABLE.to_batches()[0],
    "polars": lambda: pl.from_arrow(TABLE),
    "polars lazy": lambda: pl.from_arrow(TABLE).lazy(),
    "pandas": TABLE.to_pandas,
    "pandas with an index": lambda: TABLE.to_pandas().set_index(np.arange(len(TABLE)) * 3),
    "duckdb": _duckdb,
    "any stream": Stream,
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_table_gives_the_bits_of_the_rows_in_memory(kind):
    source = from_arrow(KINDS[kind](), **ROLES)
    assert source.names == ["a", "b", "c"]
    assert bits(source) == BITS
    assert bits(source) == BITS


def test_text_and_categories_of_polars_come_as_plain_arrow():
    frame = pl.DataFrame({"s": ["u", None], "c": pl.Series(["k", "l"], dtype=pl.Categorical), "y": [1.0, 2.0]})
    block = from_arrow(frame, "y").first_block()
    assert block.X.schema.types == [pa.large_string(), pa.dictionary(pa.uint32(), pa.large_string())]
    assert block.X.to_pydict() == {"s": ["u", None], "c": ["k", "l"]}


def test_columns_are_chosen_and_ordered():
    assert from_arrow(TABLE, "y", columns=["c", "a"]).first_block().X.column_names == ["c", "a"]


def test_a_table_source_survives_pickling():
    assert bits(pickle.loads(pickle.dumps(from_arrow(TABLE, **ROLES)))) == BITS


class Once:
    """A stream that is empty the second time, as cursors are."""

    def __init__(self) -> None:
        self.opened = 0

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        self.opened += 1
        rows = TABLE if self.opened < 3 else TABLE.slice(0, 0)
        return rows.__arrow_c_stream__()


def test_a_stream_that_ends_early_the_second_time_is_refused():
    source = from_arrow(Once(), **ROLES)
    assert sum(run.n_rows for run in source.stretches()) == len(TABLE)
    with pytest.raises(ValueError, match="100,003 rows the first time and 0 now"):
        list(source.stretches())


REFUSED = {
    "a reader": (TABLE.to_reader, {}, TypeError, "read only once"),
    "an array": (lambda: np.ones((3, 2)), {}, TypeError, "__arrow_c_stream__.*ndarray"),
    "unknown target": (lambda: TABLE, {"target": "Y"}, ValueError, "no column 'Y'. Did you mean 'y'"),
    "unknown column": (lambda: TABLE, {"columns": ["aa"]}, ValueError, "no column 'aa'. Did you mean 'a'"),
    "target twice": (lambda: TABLE, {"target": "y", "columns": ["y"]}, ValueError, "feature and the target"),
    "target as weight": (lambda: TABLE, {"target": "y", "weight": "y"}, ValueError, "target and the weight"),
    "column twice": (lambda: TABLE, {"columns": ["a", "a"]}, ValueError, "twice"),
    "no features": (lambda: TABLE.select(["y"]), {"target": "y"}, ValueError, "no column beside"),
    "equal names": (lambda: pa.table([[1], [2]], ["a", "a"]), {}, ValueError, "more than one column named 'a'"),
    "mixed objects": (lambda: pd.DataFrame({"a": [1, "x", object()]}), {}, ValueError, "no table column.*'?a'?"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_read_is_refused_in_words(case):
    make, options, error, words = REFUSED[case]
    with pytest.raises(error, match=words):
        from_arrow(make(), **options)


FAULTS = {
    "gap": ([1.0, None, 3.0], "'y' is empty at row 1"),
    "nan": ([1.0, 2.0, float("nan")], "'y' is (empty|NaN or infinite) at row 2"),
    "infinity": ([float("inf"), 2.0, 3.0], "'y' is NaN or infinite at row 0"),
}


@pytest.mark.parametrize("case", FAULTS)
def test_a_target_that_is_no_number_names_its_row(case):
    values, words = FAULTS[case]
    with pytest.raises(ValueError, match=words):
        list(from_arrow(pa.table({"a": [1.0, 2.0, 3.0], "y": values}), "y").stretches())
