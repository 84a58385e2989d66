"""CSV files as sources: the rows of the file, in constant memory, or an error that says where."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import certifit as cf
from certifit.data.source import Source

GOOD = "a,b,y\n1,2,3\n2,1,4\n3,5,1\n5,1,2\n"


@pytest.fixture
def scan(tmp_path):
    """scan(text, ...) of a file with that text."""

    def scanned(text: str, **options: Any) -> Source:
        path = tmp_path / "rows.csv"
        path.write_text(text)
        return cf.scan_csv(path, **options)

    return scanned


def rows(source: Source) -> Any:
    return np.concatenate([run.X for run in source.runs()])


def test_a_scan_hands_out_the_numbers_of_the_file(scan):
    source = scan("a,w,b,y\n1,2,0.1,3\n-2e-3,0,1e300,4\n", target="y", weight="w")
    (run,) = source.runs()
    assert (source.names, source.target, source.named) == (["a", "b"], "y", True)
    assert np.array_equal(run.X, [[1, 0.1], [-2e-3, 1e300]])
    assert np.array_equal(run.y, [3, 4])
    assert np.array_equal(run.weight, [2, 0])


def test_every_float_comes_back_as_it_was_written(scan, rng):
    values = rng.normal(size=200) * 10.0 ** rng.integers(-300, 300, size=200)
    source = scan("a,y\n" + "".join(f"{value!r},1\n" for value in values.tolist()), target="y")
    assert np.array_equal(rows(source)[:, 0], values)


def test_columns_are_chosen_and_ordered(scan):
    assert np.array_equal(rows(scan(GOOD, columns=["y", "a"]))[:, 0], [3, 4, 1, 2])
    source = scan(GOOD, target="y", columns=["b"])
    assert source.names == ["b"]
    assert next(scan(GOOD).runs()).y is None


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_line_ends_quotes_and_a_byte_order_mark_do_not_matter(scan, ending):
    text = "\ufeff" + GOOD.replace("2,1,4", '"2",1,"4"').replace("\n", ending)
    assert np.array_equal(rows(scan(text, target="y")), rows(scan(GOOD, target="y")))


# What is wrong -> (text, options, the words of the error)
REFUSED: dict[str, tuple[str, dict[str, Any], str]] = {
    "unknown target": (GOOD, {"target": "z"}, "no column 'z'.*'a', 'b', 'y'"),
    "unknown weight": (GOOD, {"target": "y", "weight": "w"}, "no column 'w'"),
    "unknown feature": (GOOD, {"target": "y", "columns": ["a", "bb"]}, "no column 'bb'. Did you mean 'b'"),
    "target among the features": (GOOD, {"target": "y", "columns": ["a", "y"]}, "'y'.* cannot be a feature"),
    "no feature left": ("y\n1\n", {"target": "y"}, "no feature columns beside .'y'"),
    "two columns of one name": ("a,a,y\n1,2,3\n", {"target": "y"}, "more than one column named .'a'"),
    "an empty file": ("", {"target": "y"}, "[Ee]mpty"),
    "text in a cell": (GOOD + "5,red,1\n", {"target": "y"}, "#6.*'red'"),
    "text in the target": (GOOD + "5,1,high\n", {"target": "y"}, "#6.*'high'"),
    "an empty cell": (GOOD + "5,,1\n", {"target": "y"}, "'b' is empty in row 4 .line 6"),
    "no target in a row": (GOOD + "5,1,\n", {"target": "y"}, "'y' is empty in row 4 .line 6"),
    "nan in a cell": (GOOD + "5,nan,1\n", {"target": "y"}, "'b'.*row 4"),
    "an infinite target": (GOOD + "5,1,inf\n", {"target": "y"}, "'y'.*row 4"),
    "an infinite feature": (GOOD + "5,inf,1\n", {"target": "y"}, "infinity: row 4, column 'b'"),
    "a negative weight": ("a,y,w\n1,1,1\n2,1,-3\n", {"target": "y", "weight": "w"}, "'w' is negative in row 1: -3"),
    "an empty weight": ("a,y,w\n1,1,1\n2,1,\n", {"target": "y", "weight": "w"}, "'w' is empty in row 1 .line 3"),
    "weights all zero": ("a,y,w\n1,1,0\n2,1,0\n", {"target": "y", "weight": "w"}, "weight.*zero|zero.*weight"),
    "a header without rows": ("a,b,y\n", {"target": "y"}, "0 rows"),
    "a short line": (GOOD + "5,1\n", {"target": "y"}, "Expected 3 columns, got 2"),
    "a long line": (GOOD + "5,1,2,3\n", {"target": "y"}, "Expected 3 columns, got 4"),
    "no target at all": (GOOD, {}, "no target. Use scan_csv"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_an_error_names_the_column_and_the_line(scan, name):
    text, options, words = REFUSED[name]
    with pytest.raises(ValueError, match=words):
        cf.LinearRegression().fit(scan(text, **options))


@pytest.mark.parametrize("cell, words", [("q", "#300002.*'q'"), ("", "row 300000 .line 300002"), ("inf", "row 300000")])
def test_the_line_is_right_far_down_a_file_of_many_batches(scan, cell, words):
    lines = "".join(f"{i % 97},{i % 89}.123456,{i % 31}\n" for i in range(300_000))
    with pytest.raises(ValueError, match=words):
        cf.LinearRegression().fit(scan(f"a,b,y\n{lines}1,{cell},2\n", target="y"))


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"none\.csv"):
        cf.scan_csv(tmp_path / "none.csv", target="y")


def test_a_cell_of_a_column_that_is_not_used_may_be_text(scan):
    model = cf.LinearRegression().fit(scan(GOOD + "6,red,5\n", target="y", columns=["a"]))
    assert model.coef_.shape == (1,)


def test_predictions_of_a_scan_need_the_columns_of_the_fit(scan):
    model = cf.LinearRegression().fit(scan(GOOD, target="y"))
    expected = model.predict(rows(scan(GOOD, columns=["a", "b"])))
    assert np.array_equal(model.predict(scan(GOOD, columns=["a", "b"])), expected)
    with pytest.raises(ValueError, match=r"Columns missing: \['b'\]"):
        model.predict(scan("a,c\n1,2\n"))
    with pytest.raises(ValueError, match=r"Columns are \['b', 'a'\].*\['a', 'b'\]"):
        model.predict(scan("b,a\n1,2\n"))
    with pytest.raises(ValueError, match="infinity: row 1, column 'a'"):
        model.predict(scan("a,b\n1,2\ninf,3\n"))
    assert model.predict(scan("a,b\n")).shape == (0,)
