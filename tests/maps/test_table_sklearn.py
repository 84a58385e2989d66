"""The encoder as a scikit-learn transformer, and equality with scikit-learn and pandas on real tables."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.utils.estimator_checks import parametrize_with_checks

from certifit.maps.table import TableEncoder
from certifit.maps.table.kinds import Flag, Level, Number

TABLES = {
    "ames_housing": ("ames_housing/ames_housing", "Sale_Price"),
    "adult": ("adult/adult", "income"),
    "nycflights13": ("nycflights13/flights", "arr_delay"),
    "weather": ("nycflights13/weather", "temp"),
    "kddcup99": ("kddcup99/train10pct", "label"),
    "fremtpl2": ("fremtpl2/freq", "ClaimNb"),
}


@parametrize_with_checks(
    [TableEncoder(), TableEncoder(sparse_output=False), TableEncoder(unseen="reference", missing="fill")]
)
def test_scikit_learn_checks(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.fixture(scope="module", params=TABLES.values(), ids=TABLES.keys())
def table(request: pytest.FixtureRequest, shared_data: Path) -> pa.Table:
    path, target = request.param
    if not (shared_data / f"{path}.parquet").is_file():
        pytest.skip(f"{path}.parquet is not in shared/data")
    return pq.read_table(shared_data / f"{path}.parquet").drop_columns([target])[:60_000]


def test_equal_to_the_column_transformer_of_scikit_learn(table: pa.Table) -> None:
    encoder = TableEncoder().fit(table)
    numbers = [kind.name for kind in encoder.columns_ if isinstance(kind, Number | Flag)]
    levels = [kind.name for kind in encoder.columns_ if isinstance(kind, Level)]
    frame = table.to_pandas()
    texts = frame[levels].astype(object).where(frame[levels].notna(), None)
    ready = pd.concat([frame[numbers].astype(float), texts], axis=1)
    one_hot = OneHotEncoder(drop="first", sparse_output=False)
    parts = [("numbers", SimpleImputer(add_indicator=True), numbers), ("levels", one_hot, levels)]
    other = ColumnTransformer(parts, sparse_threshold=0).fit(ready)
    expected = dict(zip(other.get_feature_names_out(), other.transform(ready).T, strict=True))
    made = dict(zip(encoder.get_feature_names_out(), encoder.transform(table).toarray().T, strict=True))
    n_shared = sum(len(kind.shares) for kind in encoder.columns_)  # a mark each in scikit-learn, one for all here
    assert len(made) + n_shared == len(expected)
    by_name = {kind.name: kind for kind in encoder.columns_}
    for kind in encoder.columns_:
        if kind.marked_by is not None:
            mark = by_name[kind.marked_by].mark(kind.marked_by)
            np.testing.assert_array_equal(made[mark], expected[_their_name(kind, f"{kind.name} missing")])
        for name in kind.names_out(kind.name):
            np.testing.assert_allclose(made[name], expected[_their_name(kind, name)], rtol=1e-12, atol=1e-12)


def _their_name(kind: Any, name: str) -> str:
    if isinstance(kind, Level):
        return f"levels__{kind.name}_" + ("None" if name.endswith(" missing") else name.removeprefix(f"{kind.name}="))
    gap = name.endswith(" missing")
    return f"numbers__missingindicator_{kind.name}" if gap else f"numbers__{name}"


def test_equal_to_the_dummies_of_pandas(table: pa.Table) -> None:
    encoder = TableEncoder(sparse_output=False).fit(table)
    array, names = encoder.transform(table), list(encoder.get_feature_names_out())
    for kind in encoder.columns_:
        if isinstance(kind, Level):
            texts = table[kind.name].to_pandas().astype(object)
            dummies = pd.get_dummies(texts, prefix=kind.name, prefix_sep="=")
            for level in kind.levels[1:]:
                name = f"{kind.name}={level}"
                np.testing.assert_array_equal(array[:, names.index(name)], dummies[name])


def test_every_storage_of_a_real_table_gives_the_same_bits(table: pa.Table) -> None:
    table = table[:3000]
    encoder = TableEncoder(unseen="reference").fit(table)
    expected = encoder.transform(table).toarray()
    plain = pa.table(
        {
            name: column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
            for name, column in zip(table.column_names, table.columns, strict=True)
        }
    )
    for frame in (plain, pl.from_arrow(table), table.to_pandas(), pa.concat_tables([plain[:7], plain[7:]])):
        assert encoder.transform(frame).toarray().tobytes() == expected.tobytes()
        # pandas holds counts with gaps as floats, so columns may differ in storage but never in what they become
        assert TableEncoder(unseen="reference").fit(frame).transform(frame).toarray().tobytes() == expected.tobytes()


FRAME = pd.DataFrame({"x": [1.0, 2.0, np.nan, 5.0], "t": ["a", "b", "a", None]})


def test_output_frames_names_clone_and_pickle() -> None:
    encoder = TableEncoder(sparse_output=False).set_output(transform="pandas")
    out = encoder.fit_transform(FRAME)
    assert list(out.columns) == ["x", "x missing", "t=b", "t missing"]
    assert isinstance(TableEncoder().fit_transform(FRAME), sp.csr_array)
    again = pickle.loads(pickle.dumps(encoder))
    assert again.transform(FRAME).equals(out)
    assert not hasattr(clone(encoder), "columns_")


def test_it_works_in_a_pipeline() -> None:
    y = [1.0, 2.0, 3.0, 4.0]
    prediction = make_pipeline(TableEncoder(), Ridge()).fit(FRAME, y).predict(FRAME)
    assert np.isfinite(prediction).all()


def test_arrays_of_numbers_texts_and_objects() -> None:
    mixed = np.array([[1, "a", {"k": 1}, None], [2, "b", 3.5, True], [2, "a", "text", False]], dtype=object)
    encoder = TableEncoder().fit(mixed)
    assert list(encoder.get_feature_names_out()) == ["x0", "x1=b", "x3", "x3 missing"]
    assert list(encoder.get_feature_names_out(["n", "t", "o", "f"])) == ["n", "t=b", "f", "f missing"]
    assert "'x2' was set aside: its type struct<mixed Python objects: null>" in encoder.notes_[0]
    lists = TableEncoder().fit([[1, "a"], [2, "b"], [4, "a"]])
    assert list(lists.get_feature_names_out()) == ["x0", "x1=b"]
    days = TableEncoder().fit(np.array([["2020-01-01"], ["2020-03-05"]], dtype="datetime64[D]"))
    assert list(days.get_feature_names_out()) == ["x0 days", "x0 month", "x0 weekday"]


def test_columns_of_pandas_without_text_names_are_numbered() -> None:
    encoder = TableEncoder().fit(pd.DataFrame({0: [1.0, 2.0], 1: ["a", "b"]}))
    assert list(encoder.get_feature_names_out()) == ["x0", "x1=b"]
    assert not hasattr(encoder, "feature_names_in_")


def test_pandas_objects_that_arrow_cannot_hold_are_set_aside() -> None:
    frame = pd.DataFrame({"x": [1.0, 2.0], "o": [1, "a"], "p": pd.period_range("2020", periods=2, freq="M")})
    encoder = TableEncoder().fit(frame)
    assert list(encoder.get_feature_names_out()) == ["x"]
    assert len(encoder.notes_) == 2


def test_masked_arrays_and_columns_alone_are_refused() -> None:
    with pytest.raises(TypeError, match="masked"):
        TableEncoder().fit(np.ma.masked_array([[1.0], [2.0]], mask=[[0], [1]]))
    with pytest.raises((TypeError, ValueError)):
        TableEncoder().fit(pa.chunked_array([[1, 2]]))
    with pytest.raises(ValueError, match="more than one column named 'a'"):
        TableEncoder().fit(pd.DataFrame([[1, 2]], columns=["a", "a"]))
    with pytest.raises(ValueError, match="0 sample"):
        TableEncoder().fit(pa.table({"a": pa.array([], pa.float64())}))
