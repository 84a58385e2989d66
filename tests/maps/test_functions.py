"""Functions of the user as a basis: what they give, and what is refused."""

import pickle

import numpy as np
import pytest
from hypothesis import strategies as st
from sklearn.base import clone

from certifit.maps import Functions, Polynomial

FORMS = ("chebyshev", "powers")
finite = st.floats(allow_nan=False, allow_infinity=False)


def square(X):
    return X**2


def radius(X):
    return np.hypot(X[:, 0], X[:, -1])


def circle(X):
    return X[:, 0] ** 2 + X[:, 1] ** 2


@pytest.mark.parametrize(
    "basis",
    [
        Polynomial(2, form="powers"),
        Functions([lambda X: X[:, 0], lambda X: X[:, 1], lambda X: X[:, 0] ** 2, lambda X: X[:, 1] ** 2]),
    ],
)
def test_the_unit_circle_is_the_boundary_of_its_weights(basis):
    angle = np.linspace(0, 2 * np.pi, 50)
    unit = np.column_stack([np.cos(angle), np.sin(angle)])
    weights = {2: [0, 0, 1, 0, 1], 4: [0, 0, 1, 1]}[4 if isinstance(basis, Functions) else 2]

    def score(X):
        return -1 + basis.transform(X) @ np.array(weights, dtype=float)

    basis.fit(unit)
    np.testing.assert_allclose(score(unit), 0, atol=1e-15)
    assert (score(1.01 * unit) > 0).all()
    assert (score(0.99 * unit) < 0).all()
    assert (score(np.array([[1.0, 0.0], [0.0, -1.0]])) >= 0).all()


def test_functions_stand_side_by_side():
    X = np.array([[3.0, 4.0], [0.0, 1.0]])
    columns = Functions([radius, square, np.cos]).fit(X).transform(X)
    np.testing.assert_array_equal(columns, np.column_stack([radius(X), X**2, np.cos(X)]))
    assert columns.dtype == np.float64


@pytest.mark.parametrize(
    ("functions", "names", "expected"),
    [
        ([radius, square], None, ["radius", "square[0]", "square[1]"]),
        ([radius, square], ["r", "s"], ["r", "s[0]", "s[1]"]),
        ([radius, square], ["r", "x2", "z2"], ["r", "x2", "z2"]),
        ([lambda X: X[:, 0], lambda X: X[:, 1]], None, ["f0", "f1"]),
        ([radius, radius], None, ["radius0", "radius1"]),
        ([lambda X: X > 0], ["flag"], ["flag[0]", "flag[1]"]),
        ([lambda X: X > 0], ["x", "z"], ["x", "z"]),
    ],
)
def test_functions_are_named_by_themselves_or_by_the_user(functions, names, expected):
    basis = Functions(functions, names=names).fit([[3.0, 4.0], [0.0, 1.0]])
    assert list(basis.get_feature_names_out()) == expected


@pytest.mark.parametrize("names", [["a"], ["a", "b", "c", "d"]])
def test_a_wrong_number_of_names_is_refused(names):
    with pytest.raises(ValueError, match=r"names must have 2 entries .* or 3 .* Got"):
        Functions([radius, square], names=names).fit([[3.0, 4.0]])


def test_repeated_names_are_refused():
    with pytest.raises(ValueError, match="names must differ"):
        Functions([radius, radius], names=["a", "a"]).fit([[3.0, 4.0]])


@pytest.mark.parametrize("functions", [[], square, "sin", None])
def test_functions_must_be_a_list(functions):
    with pytest.raises(TypeError, match="functions must be a list of one or more functions"):
        Functions(functions).fit([[1.0]])


def test_what_cannot_be_called_is_refused():
    with pytest.raises(TypeError, match=r"functions\[1\] must be callable. Got 3"):
        Functions([square, 3]).fit([[1.0]])


@pytest.mark.parametrize(
    ("function", "shape"),
    [
        (lambda X: 1.0, r"\(\)"),
        (lambda X: X[:1], r"\(1, 2\)"),
        (lambda X: X.T, r"\(2, 3\)"),
        (lambda X: X[:, :0], r"\(3, 0\)"),
        (lambda X: X[:, :, None], r"\(3, 2, 1\)"),
    ],
)
def test_a_result_of_the_wrong_shape_names_its_function(function, shape):
    with pytest.raises(ValueError, match=rf"Function 'f1' must give shape \(3,\) or \(3, m\). Got {shape}"):
        Functions([square, function]).fit(np.ones((3, 2)))


def test_complex_results_are_refused():
    with pytest.raises(TypeError, match=r"Function 'f0' must give real numbers. Got dtype complex128"):
        Functions([lambda X: X * 1j]).fit([[1.0]])


def test_a_non_finite_result_names_function_and_row():
    def logarithm(X):
        with np.errstate(all="ignore"):
            return np.log(X)

    with pytest.raises(ValueError, match="Function 'logarithm' gives NaN at row 2, where X is finite"):
        Functions([square, logarithm]).fit([[1.0], [2.0], [-1.0]])
    with pytest.raises(ValueError, match="Function 'logarithm' gives -inf at row 0"):
        Functions([logarithm]).fit([[1.0]]).transform([[0.0]])


def test_a_function_that_mixes_rows_is_refused():
    with pytest.raises(ValueError, match="Function 'f0' gives row 0 other values when it stands alone"):
        Functions([lambda X: X - X.mean(axis=0)]).fit([[1.0], [2.0], [4.0]])


def test_a_function_whose_width_changes_is_refused():
    def one_hot(X):
        return (np.arange(int(X.max()) + 1) == X).astype(float)

    basis = Functions([one_hot]).fit([[2.0], [2.0]])
    with pytest.raises(ValueError, match="Function 'one_hot' gave 3 columns in fit and 2 here"):
        basis.transform([[1.0]])


def test_a_function_cannot_write_into_the_rows_of_the_user():
    def careless(X):
        X[:, 0] = 0
        return X

    X = np.ones((3, 2))
    with pytest.raises(ValueError, match="read-only"):
        Functions([careless]).fit(X)
    X[0, 0] = 5.0


def test_functions_clone_and_pickle():
    basis = Functions([square, radius], names=["s", "r"])
    copy = clone(basis)
    assert copy.get_params() == basis.get_params()
    X = np.random.default_rng(10).normal(size=(5, 2))
    fitted = clone(Functions([square, radius])).fit(X)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(fitted)).transform(X), fitted.transform(X))
