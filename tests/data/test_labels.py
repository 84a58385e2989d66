"""Labels of any type become codes of sorted classes, in memory and in scans."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
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
