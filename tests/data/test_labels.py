"""Labels of any type become codes of sorted classes, in memory and in scans."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import certifit as cf
from certifit.data.cells import ByLabel, ByRow
from certifit.data.labels import coded, with_codes
from certifit.data.source import Block

KINDS = {
    "text": np.array(["b", "a", "c", "a"]),
    "whole numbers": np.array([7, -2, 9, -2]),
    "far apart": np.array([10**15, -(10**15), 3, 3]),
    "flags": np.array([True, False, True, True]),
    "floats": np.array([1.0, -1.0, 1.0, 1.0]),
    "bytes": np.array([200, 1, 200, 1], dtype=np.uint8),
    "objects": np.array(["x", "y", "x", "é"], dtype=object),
    "numbers as objects": np.array([2, 1, 2, 1], dtype=object),
}


@pytest.mark.parametrize("kind", KINDS)
def test_classes_and_codes_are_those_of_numpy(kind):
    values = KINDS[kind]
    plain = np.array(values.tolist()) if values.dtype == object else values
    expected, places = np.unique(plain, return_inverse=True)
    classes, codes = coded(values)
    assert classes.tolist() == expected.tolist()
    assert codes.dtype == np.float64 and np.array_equal(codes, places)


@pytest.mark.parametrize("kind", KINDS)
def test_a_scan_finds_the_same_classes_and_codes(kind):
    values = KINDS[kind]
    source = cf.from_arrow(pa.table({"x": np.arange(4.0), "y": pa.array(values.tolist())}), target="y")
    labelled, classes = with_codes(source)
    expected, codes = coded(values)
    assert classes.tolist() == expected.tolist()
    assert np.array_equal(labelled.first_block().y, codes)


def test_a_class_without_weight_is_none():
    classes, codes = coded(np.array(["a", "b", "c", "b"]), np.array([1.0, 1.0, 0.0, 0.0]))
    assert classes.tolist() == ["a", "b"] and codes.tolist() == [0, 1, -1, 1]
    table = pa.table({"x": [1.0] * 4, "y": ["a", "b", "c", "b"], "w": [1.0, 1.0, 0.0, 0.0]})
    labelled, found = with_codes(cf.from_arrow(table, target="y", weight="w"))
    assert found.tolist() == ["a", "b"] and labelled.first_block().y.tolist() == [0, 1, -1, 1]


REFUSED = {
    "None": (["a", None, "b"], "missing label: row 1"),
    "NaN": (np.array([0.0, 1.0, np.nan]), "missing label: row 2"),
    "pandas NA": (pd.Series(["a", "b", pd.NA]), "missing label: row 2"),
    "one class": ([3, 3, 3], r"1 class \(only 3\)"),
    "numbers on a scale": ([0.5, 1.0, 2.0], "continuous.*regressor"),
    "mixed types": (np.array([1, "a", "a"], dtype=object), "mixes labels of types int and str"),
    "dates": (np.array(["2020-01-01", "2020-01-02", "2020-01-02"], dtype="datetime64[D]"), "whole numbers or flags"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_no_label_is_refused_in_words(case):
    y, words = REFUSED[case]
    with pytest.raises((ValueError, TypeError), match=words):
        cf.GaussianNB().fit(np.arange(3.0)[:, None], y)


def test_a_missing_label_of_a_file_is_named_with_its_line(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("x,y\n1,a\n2,b\n3,\n")
    with pytest.raises(ValueError, match="line 4 of"):
        cf.GaussianNB().fit(cf.scan_csv(path, target="y"))


def test_a_regressor_refuses_a_text_target_by_name(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("x,y\n1,a\n2,b\n3,a\n")
    with pytest.raises(TypeError, match=r"'y' is string.*must be numbers"):
        cf.Ridge().fit(cf.scan_csv(path, target="y"))


def test_cells_by_label_divide_other_cells():
    block = Block(np.zeros((6, 1)), np.array([0.0, 1.0, 2.0, -1.0, 1.0, 0.0]), None)
    outer = ByRow(2, 0)
    cells = ByLabel(3, outer)
    expected = np.where(block.y < 0, -1, outer.of(block) * 3 + block.y)
    assert cells.n_cells == 6 and np.array_equal(cells.of(block), expected)
    assert np.array_equal(ByLabel(3).of(block), block.y)


BIG = [2**62, 2**62 + 1, 5, 2**62]
EXACT = {
    "nullable pandas": pd.Series(BIG, dtype="Int64"),
    "Arrow in pandas": pd.Series(BIG, dtype=pd.ArrowDtype(pa.int64())),
    "Arrow": pa.array(BIG),
    "objects": np.array(BIG, dtype=object),
    "unsigned": np.array([2**63, 2**63 + 1, 5, 2**63], dtype=np.uint64),
}


@pytest.mark.parametrize("kind", EXACT)
def test_large_whole_numbers_stay_three_classes(kind):
    """As float64 the first two are one number."""
    model = cf.GaussianNB(var_smoothing=1.0).fit(np.arange(4.0)[:, None], EXACT[kind])
    assert model.classes_.tolist() == sorted(set(np.asarray(EXACT[kind]).tolist()))
    assert model.class_count_.sum() == 4


KEPT = {
    "nullable flags": (pd.Series([True, False, True, True], dtype="boolean"), [False, True]),
    "flags as objects": (np.array([np.True_, False, True, True], dtype=object), [False, True]),
}
if np.lib.NumpyVersion(np.__version__) >= "2.0.0":
    KEPT["texts of NumPy 2"] = np.array(["b", "a", "b", "b"], dtype=np.dtypes.StringDType()), ["a", "b"]


@pytest.mark.parametrize("kind", KEPT)
def test_labels_keep_their_type_and_are_scored(kind):
    y, classes = KEPT[kind]
    X = np.array([[0.0], [5.0], [1.0], [0.5]])
    model = cf.GaussianNB(var_smoothing=0.1).fit(X, y)
    assert model.classes_.tolist() == classes and type(model.classes_.tolist()[0]) is type(classes[0])
    assert model.score(X, y) == 1.0


COLUMNS = {
    "zeros of both signs": (pa.array([0.0, -0.0, 1.0, 1.0]), [0.0, 1.0], [2, 2]),
    "unsigned beyond int64": (pa.array([2**63, 2**63 + 1, 2**63, 7], pa.uint64()), [7, 2**63, 2**63 + 1], [1, 2, 1]),
    "decimals": (pa.array(BIG).cast(pa.decimal128(38, 0)), [5, 2**62, 2**62 + 1], [1, 2, 1]),
    "texts that end in NUL": (pa.array(["a", "a\0", "b", "a"]), ["a", "a\0", "b"], [2, 1, 1]),
    "views of texts": (pa.array(["a", "b", "a", "a"]).cast(pa.string_view()), ["a", "b"], [3, 1]),
}


@pytest.mark.parametrize("kind", COLUMNS)
def test_every_row_of_a_column_has_its_class(kind):
    column, classes, counts = COLUMNS[kind]
    model = cf.GaussianNB(var_smoothing=1.0)
    model.fit(cf.from_arrow(pa.table({"x": np.arange(4.0), "y": column}), target="y"))
    assert model.classes_.tolist() == classes
    assert model.class_count_.tolist() == counts


NO_LABELS = {
    "rounded": (pa.array([2.0**60, 3.0, 4.0, 3.0]), "1.15292e.18, too large a label"),
    "infinite": (pa.array([np.inf, 3.0, 4.0, 3.0]), "inf, too large a label"),
}


@pytest.mark.parametrize("kind", NO_LABELS)
def test_numbers_that_float64_cannot_tell_apart_are_no_labels(kind):
    column, words = NO_LABELS[kind]
    with pytest.raises(ValueError, match=words):
        cf.GaussianNB().fit(cf.from_arrow(pa.table({"x": np.arange(4.0), "y": column}), target="y"))


def test_labels_of_another_type_are_scored_or_refused_in_words():
    """Whole numbers of any width are compared as numbers; text and numbers are not compared."""

    def scan(labels):
        return cf.from_arrow(pa.table({"x": [0.0, 1.0, 9.0, 10.0], "y": labels}), target="y")

    model = cf.GaussianNB().fit(scan(pa.array([1, 1, 300, 300])))
    assert model.score(scan(pa.array([1, 1, 2, 2], pa.int8()))) == 0.5
    assert model.score(scan(pa.array([1.0, 1.0, 300.0, 7.5]))) == 0.75
    with pytest.raises(ValueError, match="text and numbers"):
        model.score(scan(pa.array(["1", "1", "300", "300"])))


@pytest.mark.parametrize(
    ("y", "words"),
    [
        (np.array(["a\udc80", "b", "b"], dtype=object), "surrogate"),
        (np.ma.array([1, 2, 1], mask=[0, 0, 1]), "masked array"),
        (np.array([2**62, 2.0, 2**62 + 1], dtype=object), "too large a label"),
    ],
)
def test_labels_that_would_lose_something_are_refused(y, words):
    with pytest.raises((ValueError, TypeError), match=words):
        cf.GaussianNB().fit(np.arange(3.0)[:, None], y)


@pytest.mark.parametrize(
    ("classes", "words"), [([1, 2, None], "missing"), ([1, 2, 2.5], "continuous"), ([1], "1 class")]
)
def test_classes_of_partial_fit_are_labels(classes, words):
    with pytest.raises(ValueError, match=words):
        cf.GaussianNB().partial_fit(np.arange(2.0)[:, None], [1, 1], classes=classes)


def test_the_likelihood_of_rows_of_one_class_is_theirs():
    X, y = np.array([[0.0], [1.0], [5.0], [7.0]]), np.array(["a", "a", "b", "b"])
    model = cf.GaussianNB().fit(X, y)
    parts = sum(model.joint_log_likelihood(X[y == label], y[y == label]) for label in "ab")
    np.testing.assert_allclose(parts, model.joint_log_likelihood(X, y), rtol=1e-14)


def test_unsigned_predictions_are_written(tmp_path):
    y = np.array([2**63, 5, 2**63, 5], dtype=np.uint64)
    X = np.array([[0.0], [9.0], [1.0], [8.0]])
    cf.GaussianNB().fit(X, y).predict(X, out=tmp_path / "p.parquet")
    assert pq.read_table(tmp_path / "p.parquet").column(0).to_pylist() == y.tolist()


@pytest.mark.parametrize("kind", [str, object])
def test_labels_have_short_names(kind):
    """One of five million characters took 20 MB in every row of predictions."""
    with pytest.raises(ValueError, match="a label of 65,537 characters, more than 65,536"):
        cf.GaussianNB().fit([[0.0], [1.0], [2.0]], np.array(["a", "b" * 65_537, "a"], dtype=kind))
