"""The gate: what cannot be meant as numbers is refused, and the error names the argument, the row, the column."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from learners import ROWS
from sklearn.base import clone

import certifit as cf
from certifit.data.user_input import fit_source, predict_rows

NAMES = ["age", "pay", "size"]


def good() -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 3))
    return X, X @ [1.0, -2.0, 3.0] + rng.normal(size=20)


def fit(X: Any = None, y: Any = None, sample_weight: Any = None) -> Any:
    rows, target = good()
    X, y = rows if X is None else X, target if y is None else y
    return cf.LinearRegression().fit(X, y, sample_weight)


def with_value(value: float, row: int = 7, column: int = 1) -> Any:
    X = good()[0]
    X[row, column] = value
    return X


def weight(value: Any) -> Any:
    w = np.ones(20)
    w[4] = value
    return w


def sparse_with(value: float) -> Any:
    X = sp.csr_array(np.where(np.abs(good()[0]) < 0.3, 0.0, good()[0]))
    X[7, 1] = value
    return sp.csr_array(X)


def frame(**columns: Any) -> pd.DataFrame:
    return pd.DataFrame(good()[0], columns=NAMES).assign(**columns)


def target(value: float) -> Any:
    y = good()[1]
    y[3] = value
    return y


# What is wrong -> (arguments of fit, the words of the error). Rows are counted from 0.
REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "NaN in an array": ({"X": with_value(np.nan)}, "X contains NaN: row 7, column 'x1'"),
    "infinity in an array": ({"X": with_value(-np.inf)}, "X contains infinity: row 7, column 'x1'"),
    "NaN in a float32 array": ({"X": with_value(np.nan).astype(np.float32)}, "NaN: row 7, column 'x1'"),
    "NaN in a frame": ({"X": pd.DataFrame(with_value(np.nan), columns=NAMES)}, "NaN: row 7, column 'pay'"),
    "null in a polars frame": ({"X": pl.DataFrame(good()[0], schema=NAMES).with_columns(
        pay=pl.when(pl.int_range(20) == 7).then(None).otherwise(pl.col("pay")))}, "NaN: row 7, column 'pay'"),
    "null in an Arrow table": ({"X": pa.table({"age": good()[0][:, 0], "pay": pa.array([1.0] * 7 + [None] * 13)})},
                               "NaN: row 7, column 'pay'"),
    "infinity in sparse rows": ({"X": sparse_with(np.inf)}, "infinity: row 7, column 'x1'"),
    "NaN in sparse rows": ({"X": sparse_with(np.nan)}, "NaN: row 7, column 'x1'"),
    "a missing target": ({"y": "none"}, "requires y"),
    "NaN in the target": ({"y": target(np.nan)}, "Input y contains NaN: row 3. Remove such rows."),
    "an infinite target": ({"y": target(np.inf)}, "y contains infinity.*: row 3. Remove such rows."),
    "labels for a target": ({"y": np.array(["yes"] * 20)}, "y must be numbers: .*: 'yes'. For labels use a classifier"),
    "a target too short": ({"y": good()[1][:-1]}, r"inconsistent numbers of samples: \[20, 19\]|y has 19"),
    "two targets": ({"y": np.column_stack(good()[1:] * 2)}, "y should be a 1d array"),
    "a negative weight": ({"sample_weight": weight(-2)}, "sample_weight must be >= 0. Row 4 is negative: -2"),
    "a NaN weight": ({"sample_weight": weight(np.nan)}, "sample_weight contains NaN"),
    "an infinite weight": ({"sample_weight": weight(np.inf)}, "sample_weight contains infinity"),
    "too few weights": ({"sample_weight": np.ones(19)}, "sample_weight has 19 entries but X has 20 rows"),
    "weights of two dimensions": ({"sample_weight": np.ones((20, 1))}, "sample_weight must be 1-D"),
    "weights all zero": ({"sample_weight": np.zeros(20)}, "sample_weight is zero for every row"),
    "a masked array": ({"X": np.ma.masked_array(good()[0], np.zeros((20, 3)))}, "masked array"),
    "dates": ({"X": np.zeros((20, 3), dtype="datetime64[s]")}, "datetime64.* dates"),
    "a column of dates": ({"X": frame(pay=pd.Timestamp("2020-01-01"))}, "Column 'pay' of X has dtype datetime"),
    "a column of categories": ({"X": frame(pay=pd.Categorical(["a", "b"] * 10))}, "'pay' of X has dtype categ.*Encode"),
    "a column of durations": ({"X": frame(pay=pd.Timedelta(days=1))}, "'pay' of X has dtype timedelta"),
    "categories of polars": ({"X": pl.DataFrame({"pay": ["a", "b"] * 10}, schema={"pay": pl.Categorical})},
                             "'pay' of X has dtype categ"),
    "categories of Arrow": ({"X": pa.table({"pay": pa.array(["a", "b"] * 10).dictionary_encode()})},
                            "'pay' of X has dtype dictionary"),
    "complex numbers": ({"X": good()[0] + 1j}, "[Cc]omplex"),
    "text": ({"X": np.full((20, 3), "red")}, "dtype|string|numeric"),
    "one dimension": ({"X": good()[0][:, 0]}, "2D array"),
    "sparse of one dimension": ({"X": sp.coo_array(np.ones(20))}, "2 dimensions|1-D|2D|dimension|numbers of samples"),
    "no columns": ({"X": np.zeros((20, 0))}, "0 feature"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_an_error_names_what_is_wrong_and_where(name):
    arguments, words = REFUSED[name]
    with pytest.raises((ValueError, TypeError), match=words):
        if isinstance(arguments.get("y"), str):
            cf.LinearRegression().fit(good()[0])
        else:
            fit(**arguments)


@pytest.mark.parametrize(
    "arguments, words",
    [
        ({"tol": -1}, "tol must be a finite number >= 0. Got -1"),
        ({"tol": "small"}, "tol must be a finite number >= 0. Got 'small'"),
        ({"fit_intercept": "yes"}, "fit_intercept must be True or False. Got 'yes'"),
        ({"basis": 3}, "basis must be None, Polynomial.*Got 3"),
        ({"basis": cf.Polynomial(2), "fit_intercept": False}, "fit_intercept=False needs .*form='powers'"),
    ],
)
def test_a_parameter_out_of_range_is_refused_with_its_name_and_value(arguments, words):
    with pytest.raises((ValueError, TypeError), match=words):
        cf.LinearRegression(**arguments).fit(*good())


@pytest.mark.parametrize(
    "alpha, words", [(-1.0, "Got -1"), (np.inf, "inf"), (np.nan, "nan"), ("x", "'x'"), (True, "T")]
)
def test_alpha_out_of_range_is_refused_with_its_value(alpha, words):
    with pytest.raises((ValueError, TypeError), match=f"alpha must be .*{words}"):
        cf.Ridge(alpha).fit(*good())


CORRUPT = {
    "index out of range": ("indices", 5, 10**6),
    "negative index": ("indices", 5, -7),
    "offset beyond the data": ("indptr", -1, 10**7),
    "offsets that fall": ("indptr", 5, 0),
}


@pytest.mark.parametrize("name", CORRUPT)
def test_corrupt_sparse_arrays_are_refused(name):
    X = sp.csr_array(good()[0])
    part, place, value = CORRUPT[name]
    getattr(X, part)[place] = value
    with pytest.raises(ValueError, match="X is a corrupt sparse csr array"):
        fit(X=X)


@pytest.mark.parametrize("key", ROWS)
def test_every_estimator_refuses_corrupt_sparse_arrays(key):
    X, y = ROWS[key].rows()
    for part, place, value in CORRUPT.values():
        broken = sp.csr_array(X)
        getattr(broken, part)[place] = value
        with pytest.raises((ValueError, TypeError)):  # those without sparse rows say so first
            clone(ROWS[key].model).fit(broken, y)


def test_entries_stored_twice_are_added_and_the_input_is_left_alone():
    dense = np.round(good()[0], 1)
    twice = sp.csr_array(dense)
    indices, data = np.repeat(twice.indices, 2), np.repeat(twice.data, 2) / 2
    twice = sp.csr_array((data, indices, twice.indptr * 2), shape=dense.shape)
    before = twice.data.copy()
    assert fit(X=twice).coef_ == pytest.approx(fit(X=dense).coef_, rel=1e-12)
    assert np.array_equal(twice.data, before)


def test_a_flag_that_lies_about_order_is_not_believed():
    X = sp.csr_array(good()[0])
    assert X.has_canonical_format
    for row in range(20):
        part = slice(X.indptr[row], X.indptr[row + 1])
        X.indices[part], X.data[part] = X.indices[part][::-1].copy(), X.data[part][::-1].copy()
    assert fit(X=X).coef_ == pytest.approx(fit().coef_, rel=1e-12)


def test_a_prediction_needs_the_columns_of_the_fit():
    model = fit(X=frame())
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame()[NAMES[::-1]])
    with pytest.raises(ValueError, match="2 features"):
        model.predict(frame()[NAMES[:2]].to_numpy())
    with pytest.raises(ValueError, match="NaN: row 7, column 'pay'"):
        model.predict(pd.DataFrame(with_value(np.nan), columns=NAMES))
    assert model.predict(frame()[:0]).shape == (0,)


def test_inputs_are_not_changed():
    X, y = good()
    w = np.arange(20.0)
    before = [a.tobytes() for a in (X, y, w)]
    fit(X, y, w).predict(X)
    assert [a.tobytes() for a in (X, y, w)] == before


def test_a_number_as_weight_is_the_weight_of_every_row():
    assert fit(sample_weight=2.0).data_["sum_weight"] == 40


def test_names_come_with_frames_and_go_with_arrays():
    model = fit(X=frame())
    assert list(model.feature_names_in_) == NAMES
    model.fit(*good())
    assert not hasattr(model, "feature_names_in_")


def test_a_coefficient_beyond_float64_is_refused_by_name():
    X, y = good()
    X[:, 1] *= 1e-310
    with pytest.raises(ValueError, match="coefficient of feature 'x1' exceeds the largest float64"):
        fit(X=X, y=y)


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
def test_a_frame_with_text_is_refused_with_the_encoder_that_reads_it(kind):
    frame = pd.DataFrame({"age": [1.0, 2.0, 3.0], "town": pd.array(["Bern", "Ulm", "Ulm"], dtype="str")})
    if kind == "polars":
        frame = pl.DataFrame({name: frame[name].tolist() for name in frame})
    elif kind == "pyarrow":
        frame = pa.Table.from_pandas(frame)
    for model in (cf.Ridge(), cf.GaussianNB(), cf.PCA()):
        with pytest.raises(TypeError, match=r"Column 'town' of X has dtype \w*string. Give the model encoder='auto'"):
            model.fit(frame, [0, 1, 1])


def test_numbers_at_odd_addresses_are_copied(rng):
    """A float64 that does not begin at a multiple of 8 bytes is not what the core may read."""
    rows = np.zeros(8 * 24 + 1, dtype=np.uint8)[1:].view(np.float64)
    rows[:] = rng.normal(size=24)
    assert not rows.flags.aligned
    source = fit_source(cf.LinearRegression(), rows.reshape(8, 3), rows[:8], np.abs(rows[8:16]))
    block = source.first_block()
    assert block.X.flags.aligned and block.y.flags.aligned and block.weight.flags.aligned
    np.testing.assert_array_equal(block.X, rows.reshape(8, 3))
    assert predict_rows(cf.LinearRegression().fit(rows.reshape(8, 3), rows[:8]), rows.reshape(8, 3)).X.flags.aligned
    sparse = sp.csr_array(rows.reshape(8, 3))
    sparse.data = rows
    assert not sparse.data.flags.aligned
    assert fit_source(cf.LinearRegression(), sparse, rows[:8]).first_block().X.data.flags.aligned


@pytest.mark.parametrize("kind", [np.float64, np.float32, np.int64, np.uint8, np.float16])
def test_plain_arrays_pass_as_what_scikit_learn_checks(rng, kind):
    """Arrays of numbers are not handed to its checks, a list of lists is: both are the same rows."""
    X, y = rng.integers(0, 9, (7, 3)).astype(kind), rng.integers(0, 9, 7).astype(kind)
    plain, checked = cf.LinearRegression(), cf.LinearRegression()
    block = fit_source(plain, X, y).first_block()
    other = fit_source(checked, X.tolist(), y.tolist()).first_block()
    np.testing.assert_array_equal(block.X, other.X)
    np.testing.assert_array_equal(block.y, other.y)
    assert plain.n_features_in_ == checked.n_features_in_ == 3 and block.y.dtype == np.float64


@pytest.mark.parametrize("shape, n", [((4, 2), 3), ((4, 0), 4), ((0, 2), 0), ((4,), 4), ((4, 2, 1), 4)])
@pytest.mark.parametrize("model", [cf.LinearRegression(), cf.LogisticRegression()])
def test_plain_arrays_of_other_shapes_are_refused(model, shape, n):
    with pytest.raises(ValueError, match=r"inconsistent numbers|Found|Expected 2D|dim 3"):
        model.fit(np.ones(shape), np.arange(n) % 2)
