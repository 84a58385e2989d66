"""The mutual-information filter on arrays and frames: the definition, then scikit-learn, then what is refused."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from neighbours import of_counts, of_number_and_class, of_two_numbers
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.feature_selection import mutual_info_classif, mutual_info_regression
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline

from certifit.runtime import threads
from certifit.selection.information.filter import MutualInformationFilter


def data(rng: np.random.Generator, n_rows: int = 300) -> tuple[Any, Any, Any]:
    """Numbers and levels side by side, classes, and numbers; none of the numbers tie."""
    X = rng.normal(size=(n_rows, 5))
    X[:, 3] = rng.integers(0, 4, n_rows)
    y = X[:, 0] + X[:, 3] + 0.5 * rng.normal(size=n_rows)
    return X, np.digitize(y, [0.0, 1.5, 2.5]), y


# ---- the definition -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [1, 3, 6])
def test_scores_are_those_of_the_formulas(rng, k):
    X, classes, y = data(rng)
    found = MutualInformationFilter(n_neighbors=k).fit(X, classes)
    expected = [of_number_and_class(x, classes, k) for x in X.T]
    expected[3] = of_counts(X[:, 3].tolist(), classes.tolist())
    assert np.allclose(found.scores_, expected, rtol=0, atol=1e-12)
    assert found.kinds_ == ["continuous"] * 3 + ["discrete", "continuous"]
    assert found.target_kind_ == "discrete"
    found.fit(X, y)
    expected = [of_two_numbers(x, y, k) for x in X.T]
    expected[3] = of_number_and_class(y, X[:, 3], k)
    assert np.allclose(found.scores_, expected, rtol=0, atol=1e-12)
    assert found.target_kind_ == "continuous"


@pytest.mark.parametrize("k", [1, 3, 10])
def test_scores_are_scikit_learns_where_its_noise_changes_no_neighbour(rng, k):
    X, classes, y = data(rng)
    mask = np.arange(5) == 3
    own = MutualInformationFilter(n_neighbors=k, discrete_features=mask)
    options = {"n_neighbors": k, "discrete_features": mask, "random_state": 0}
    assert np.allclose(own.fit(X, classes).scores_, mutual_info_classif(X, classes, **options), rtol=0, atol=1e-10)
    assert np.allclose(own.fit(X, y).scores_, mutual_info_regression(X, y, **options), rtol=0, atol=1e-10)


def test_a_class_with_one_row_is_left_out_as_in_scikit_learn_and_a_note_says_so(rng):
    X, classes, _ = data(rng)
    X, classes = X[:, :3], classes.copy()
    classes[[7, 9]] = 11, 12
    found = MutualInformationFilter(target="discrete").fit(X, classes)
    assert np.allclose(found.scores_, mutual_info_classif(X, classes, random_state=0), rtol=0, atol=1e-10)
    assert found.notes_[0].startswith("2 classes of the target have one row")


def test_more_neighbours_than_a_class_has_are_all_it_has(rng):
    X, classes, _ = data(rng)
    X = X[:, :3]
    found = MutualInformationFilter(n_neighbors=5000).fit(X, classes)
    expected = [of_number_and_class(x, classes, 5000) for x in X.T]
    assert np.allclose(found.scores_, expected, rtol=0, atol=1e-12)


def test_a_column_with_many_ties_scores_like_its_table_of_counts(rng):
    """Noise of scikit-learn's size would make it a random number."""
    n_rows = 4000
    y = rng.integers(0, 3, n_rows)
    X = np.column_stack([np.round(3 * rng.normal(size=n_rows)) + y, rng.integers(0, 30, n_rows)]).astype(float)
    near = MutualInformationFilter(discrete_features=False).fit(X, y)
    exact = MutualInformationFilter(discrete_features=True).fit(X, y)
    assert np.allclose(near.scores_, exact.scores_, rtol=0, atol=0.01)
    order = rng.permutation(n_rows)
    assert np.array_equal(clone(near).fit(X[order], y[order]).scores_, near.scores_)


@pytest.mark.parametrize("kind", ["discrete", "continuous"])
def test_neither_row_order_nor_threads_nor_layout_change_a_bit(rng, kind):
    X, classes, y = data(rng)
    target = classes if kind == "discrete" else np.round(y, 1)
    expected = MutualInformationFilter().fit(X, target).scores_
    order = rng.permutation(len(y))
    with threads(1):
        assert np.array_equal(MutualInformationFilter().fit(X[order], target[order]).scores_, expected)
    assert np.array_equal(MutualInformationFilter().fit(np.asfortranarray(X), target).scores_, expected)


@pytest.mark.parametrize("scale", [1e-300, 1e-9, 1e9, 1e300])
@pytest.mark.parametrize("kind", ["discrete", "continuous"])
def test_a_column_in_other_units_scores_the_same(rng, kind, scale):
    X, classes, y = data(rng)
    X = X[:, :3]
    target = classes if kind == "discrete" else y
    expected = MutualInformationFilter().fit(X, target).scores_
    for other in (X * scale, 3 - X, 100 + 0.1 * X):
        assert np.allclose(MutualInformationFilter().fit(other, target).scores_, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("target", ["discrete", "continuous"])
@pytest.mark.parametrize("discrete", [True, False])
def test_a_constant_column_or_target_scores_zero(rng, target, discrete):
    X, classes, y = data(rng)
    X[:, 1] = 3.7
    found = MutualInformationFilter(target=target, discrete_features=[1] if discrete else False)
    assert found.fit(X, classes if target == "discrete" else y).scores_[1] == 0.0
    assert not found.fit(X, np.ones(len(y))).scores_.any()


# ---- kinds of columns and targets -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "values, kind",
    [
        ([0.0, 1.0] * 30, "discrete"),
        (list(range(20)) * 3, "discrete"),
        (list(range(21)) * 3, "continuous"),  # more than 20 different values
        (list(range(12)), "continuous"),  # each value once
        ([0.5, 1.5] * 30, "continuous"),  # no whole numbers
        ([True, False] * 30, "discrete"),
        (["a", "b", "c"] * 10, "discrete"),
    ],
)
def test_whole_numbers_with_few_values_text_and_flags_are_discrete(rng, values, kind):
    n_rows = len(values)
    numbers = rng.normal(size=(n_rows, 1))
    assert MutualInformationFilter().fit(numbers, values).target_kind_ == kind
    if not isinstance(values[0], str):
        assert MutualInformationFilter().fit(np.array(values)[:, None], numbers[:, 0]).kinds_ == [kind]
    assert MutualInformationFilter().fit(pd.DataFrame({"a": values}), numbers[:, 0]).kinds_ == [kind]


@pytest.mark.parametrize(
    "given, expected",
    [
        (True, "dddd"),
        (False, "cccc"),
        ([True, False, False, True], "dccd"),
        ([1, -1], "cdcd"),
        (["b"], "cdcc"),
        ((), "cccc"),
    ],
)
def test_discrete_features_says_which_columns_hold_levels(rng, given, expected):
    frame = pd.DataFrame(rng.integers(0, 3, (60, 4)), columns=list("abcd"))
    y = rng.normal(size=60)
    found = MutualInformationFilter(discrete_features=given).fit(frame, y)
    assert "".join(kind[0] for kind in found.kinds_) == expected
    if given != ["b"]:
        assert MutualInformationFilter(discrete_features=given).fit(frame.to_numpy(), y).kinds_ == found.kinds_


def test_a_frame_scores_like_its_columns_and_missing_is_a_level(rng):
    X, classes, y = data(rng)
    letters = np.array(["u", "v", "w", None], dtype=object)[X[:, 3].astype(int)]
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "flag": X[:, 2] > 0, "letters": letters})
    frame["category"] = frame["letters"].astype("category")
    frame["gaps"] = np.where(X[:, 3] == 2, np.nan, X[:, 3])
    found = MutualInformationFilter("all").fit(frame, classes)
    numbers = np.column_stack([X[:, :2], X[:, 2] > 0, X[:, 3], X[:, 3], X[:, 3]])
    assert np.allclose(found.scores_, MutualInformationFilter().fit(numbers, classes).scores_, rtol=0, atol=1e-15)
    assert found.kinds_ == ["continuous"] * 2 + ["discrete"] * 4
    found.fit(frame, y)
    assert np.allclose(found.scores_, MutualInformationFilter().fit(numbers, y).scores_, rtol=0, atol=1e-15)
    assert found.transform(frame).shape == frame.shape


def test_a_polars_frame_scores_like_a_pandas_frame(rng):
    X, classes, _ = data(rng)
    frame = pd.DataFrame(X, columns=list("abcde")).assign(text=np.array(list("xyz"))[classes % 3])
    scores = MutualInformationFilter().fit(frame, classes).scores_
    assert np.array_equal(MutualInformationFilter().fit(pl.from_pandas(frame), classes).scores_, scores)


def test_dates_are_numbers_in_order(rng):
    days = rng.integers(0, 10_000, 200)
    frame = pd.DataFrame({"date": pd.Timestamp("2000-01-01") + pd.to_timedelta(days, unit="D"), "days": days * 1.0})
    found = MutualInformationFilter().fit(frame, days + rng.normal(size=200))
    assert found.scores_[0] == pytest.approx(found.scores_[1], abs=1e-12)


@pytest.mark.parametrize("kind", ["discrete", "continuous"])
@pytest.mark.parametrize("form", [sp.csr_array, sp.csc_matrix, sp.coo_array])
def test_sparse_levels_score_like_dense_ones(rng, kind, form):
    X = rng.integers(0, 4, (200, 6)) * (rng.random((200, 6)) < 0.3)
    X[:, 4] += 1  # no zeros
    X[:, 5] = 0
    classes, y = X[:, 0] + rng.integers(0, 2, 200), X[:, 1] + rng.normal(size=200)
    target = classes if kind == "discrete" else y
    for given in ("auto", True):
        found = MutualInformationFilter(discrete_features=given).fit(form(X.astype(float)), target)
        expected = MutualInformationFilter(discrete_features=given).fit(X, target)
        assert np.allclose(found.scores_, expected.scores_, rtol=0, atol=1e-15)
        assert found.kinds_ == ["discrete"] * 6


# ---- a selector of scikit-learn -------------------------------------------------------------------------------------


@pytest.mark.parametrize("wanted, kept", [(1, 1), (2, 2), (99, 5), (0.5, 2), (0.01, 1), (0.99, 4), ("all", 5)])
def test_the_best_are_kept_in_the_order_of_the_columns(rng, wanted, kept):
    X, _, y = data(rng)
    found = MutualInformationFilter(wanted).fit(X, y)
    support = found.get_support()
    assert support.sum() == kept
    assert found.scores_[support].min() >= found.scores_[~support].max(initial=0.0)
    assert np.array_equal(found.transform(X), X[:, support])
    assert list(found.get_feature_names_out()) == [f"x{j}" for j in np.flatnonzero(support)]
    assert sorted(found.ranking_) == [1, 2, 3, 4, 5]
    assert [row["rank"] for row in found.table_] == [1, 2, 3, 4, 5]
    assert [row["score"] for row in found.table_] == sorted(found.scores_, reverse=True)
    assert sum(row["selected"] for row in found.table_) == kept


def test_equal_scores_go_by_the_order_of_the_columns(rng):
    x = rng.normal(size=(100, 1))
    found = MutualInformationFilter(2).fit(np.hstack([x, x, x]), x[:, 0])
    assert found.ranking_.tolist() == [1, 2, 3]
    assert found.get_support().tolist() == [True, True, False]


def test_names_of_a_frame_come_out(rng):
    X, _, y = data(rng)
    frame = pd.DataFrame(X, columns=list("abcde"))
    found = MutualInformationFilter(2).set_output(transform="pandas").fit(frame, y)
    assert found.transform(frame).columns.tolist() == ["a", "d"]
    with pytest.raises(ValueError, match="feature names"):
        found.transform(frame.rename(columns={"a": "z"}))


def test_a_copy_keeps_the_scores_and_a_clone_only_the_parameters(rng):
    X, _, y = data(rng)
    found = MutualInformationFilter(2, n_neighbors=4, discrete_features=[3], target="continuous").fit(X, y)
    assert np.array_equal(pickle.loads(pickle.dumps(found)).scores_, found.scores_)
    other = clone(found)
    assert other.get_params() == found.get_params()
    with pytest.raises(NotFittedError):
        other.get_support()


def test_a_fitted_filter_holds_no_rows(rng):
    small, large = (MutualInformationFilter().fit(*data(rng, n_rows)[::2]) for n_rows in (100, 5000))
    assert len(pickle.dumps(large)) < len(pickle.dumps(small)) + 200


def test_a_filter_works_in_a_pipeline(rng):
    X, _, y = data(rng)
    model = make_pipeline(MutualInformationFilter(2), LinearRegression()).fit(X, y)
    assert model[-1].n_features_in_ == 2
    assert model.score(X, y) > 0.7


def test_an_identifier_is_noted(rng):
    frame = pd.DataFrame({"name": [f"row {i}" for i in range(100)], "x": rng.normal(size=100)})
    [note] = MutualInformationFilter().fit(frame, rng.integers(0, 2, 100)).notes_
    assert note.startswith("Column 'name' has 100 different values in 100 rows")


# ---- what is refused ------------------------------------------------------------------------------------------------

X2, Y2 = np.arange(20.0).reshape(10, 2) ** 2 / 7, np.arange(10.0) / 3


@pytest.mark.parametrize(
    "parameters, words",
    [
        ({"n_features_to_select": 0}, "n_features_to_select must be an integer >= 1, a share in"),
        ({"n_features_to_select": 1.5}, r"Got 1\.5"),
        ({"n_features_to_select": True}, "Got True"),
        ({"n_features_to_select": "most"}, "Got 'most'"),
        ({"n_neighbors": 0}, "n_neighbors must be an integer >= 1. Got 0"),
        ({"n_neighbors": 2.0}, r"n_neighbors must be an integer >= 1. Got 2\.0"),
        ({"n_neighbors": 10}, "need more rows than n_neighbors=10. Got n_samples = 10"),
        ({"target": "classes"}, "target must be one of 'auto', 'discrete', 'continuous'. Got 'classes'"),
        ({"discrete_features": "some"}, "discrete_features must be 'auto', True, False"),
        ({"discrete_features": [True]}, "discrete_features has 1 entries, but X has 2 columns"),
        ({"discrete_features": [2]}, "column 2, which X does not have"),
        ({"discrete_features": ["z"]}, "column 'z', which X does not have"),
    ],
)
def test_parameters_that_mean_nothing_are_refused(parameters, words):
    with pytest.raises(ValueError, match=words):
        MutualInformationFilter(**parameters).fit(X2, Y2)


@pytest.mark.parametrize("value, what", [(np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "infinity")])
@pytest.mark.parametrize("discrete", ["auto", True])
def test_a_value_that_is_no_number_is_named_by_row_and_column(value, what, discrete):
    X = X2.copy()
    X[6, 1] = value
    with pytest.raises(ValueError, match=f"{what}: row 6, column 'x1'"):
        MutualInformationFilter(discrete_features=discrete).fit(X, Y2)


@pytest.mark.parametrize(
    "value, what", [(np.nan, "continuous and empty or NaN at row 6"), (np.inf, "infinite at row 6")]
)
def test_the_same_in_a_frame(value, what):
    frame = pd.DataFrame(X2, columns=["a", "b"])
    frame.loc[6, "b"] = value
    with pytest.raises(ValueError, match=f"Column 'b' is {what}"):
        MutualInformationFilter().fit(frame, Y2)


@pytest.mark.parametrize("y", [[1.0, np.nan] * 5, ["a", None] * 5, [1, "b"] * 5])
@pytest.mark.parametrize("as_frame", [False, True])
def test_a_target_with_gaps_or_of_two_types_is_refused(y, as_frame):
    X = pd.DataFrame(X2, columns=["a", "b"]) if as_frame else X2
    with pytest.raises((ValueError, TypeError), match="y"):
        MutualInformationFilter().fit(X, pd.Series(y, dtype=None if y[1] != "b" else object))


BAD = {
    "a masked array": (np.ma.masked_array(X2, X2 > 3), Y2, "masked"),
    "dates": (X2.astype("datetime64[s]"), Y2, "dates"),
    "complex numbers": (X2 + 1j, Y2, "Complex"),
    "one dimension": (Y2, Y2, "2D"),
    "text in an array": (X2.astype(str).astype(object) + "a", Y2, "could not convert"),
    "no target": (X2, None, "requires y"),
    "a short target": (X2, Y2[:9], "inconsistent"),
    "two targets": (X2, X2, "1d array"),
    "dates as target": (X2, np.arange(10).astype("datetime64[D]"), "dates and durations are no target"),
    "one row": (X2[:1], Y2[:1], "1 sample"),
    "no column": (X2[:, :0], Y2, "0 feature"),
    "a frame of one row": (pd.DataFrame(X2[:1]), Y2[:1], "1 sample"),
    "a frame without columns": (pd.DataFrame(X2[:, :0]), Y2, "0 feature"),
    "a frame with a short target": (pd.DataFrame(X2), Y2[:9], "9 rows but X has 10"),
    "a frame without target": (pd.DataFrame(X2), None, "requires y"),
    "lists in a frame": (pd.DataFrame({"a": [[1], [2]] * 5}), Y2, "Column 'a' is list"),
    "sparse numbers": (sp.csr_array(X2), Y2, "sparse X is continuous, which needs dense X"),
}


@pytest.mark.parametrize("name", BAD)
def test_rows_that_cannot_be_scored_are_refused(name):
    X, y, words = BAD[name]
    with pytest.raises((ValueError, TypeError), match=words):
        MutualInformationFilter().fit(X, y)


def test_text_cannot_be_a_continuous_target():
    with pytest.raises(ValueError, match="target='continuous' needs y to be numbers"):
        MutualInformationFilter(target="continuous").fit(X2, list("aabbccddee"))
