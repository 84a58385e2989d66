"""Polynomial and Functions against mathematics, then against scikit-learn's contract."""

import csv
import doctest
import json
import math
import pickle
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from scipy.special import eval_chebyt
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.preprocessing import PolynomialFeatures
from sklearn.utils.estimator_checks import parametrize_with_checks

import certifit.maps.polynomial as module
from certifit.maps import Functions, Polynomial

FORMS = ("chebyshev", "powers")
finite = st.floats(allow_nan=False, allow_infinity=False)


def square(X):
    return X**2


def radius(X):
    return np.hypot(X[:, 0], X[:, -1])


@pytest.fixture(scope="session")
def nist():
    """(x, y, certified) of a NIST set; the data folder stands beside a folder above this file."""
    folders = [parent / "shared" / "data" / "nist" for parent in Path(__file__).resolve().parents]
    folder = next((folder for folder in folders if folder.is_dir()), None)
    if folder is None:
        pytest.skip("shared/data/nist is not beside the project: no certified values to compare with")
    certified = json.loads((folder / "certified.json").read_text())

    def read(name):
        with (folder / f"{name}.csv").open() as file:
            rows = list(csv.DictReader(file))
        x, y = (np.array([float(row[key]) for row in rows]) for key in ("x", "y"))
        return x[:, None], y, certified[name]

    return read


def least_squares(columns, y):
    """(b, w) and the inverse of [1 X]'[1 X], by QR of unit columns."""
    design = np.column_stack([np.ones(len(y)), columns])
    norms = np.linalg.norm(design, axis=0)
    q, r = np.linalg.qr(design / norms)
    half = np.linalg.inv(r) / norms[:, None]
    return half @ (q.T @ y), half @ half.T


def digits(estimates, exact):
    pairs = zip(estimates, exact, strict=True)
    errors = [abs((Fraction(float(a)) - Fraction(b)) / Fraction(b)) for a, b in pairs]
    return -math.log10(max(*errors, Fraction(1, 10**17)))


def exact_chebyshev(k, u):
    before, last = Fraction(1), u
    for _ in range(k):
        before, last = last, 2 * u * last - before
    return before


def test_docstring_examples_print_what_they_say():
    results = doctest.testmod(module)
    assert results.attempted > 0
    assert results.failed == 0


# The span and the columns


@pytest.mark.parametrize(("n_features", "degree"), [(1, 1), (1, 9), (2, 5), (3, 3), (6, 2)])
def test_chebyshev_and_powers_span_the_same_functions(n_features, degree):
    X = np.random.default_rng(0).uniform(-1, 2, (300, n_features))
    ones = np.ones((300, 1))
    spans = [np.linalg.qr(np.hstack([ones, Polynomial(degree, form=f).fit_transform(X)]))[0] for f in FORMS]
    np.testing.assert_allclose(spans[0] @ spans[0].T, spans[1] @ spans[1].T, atol=1e-9)


@pytest.mark.parametrize(("n_features", "degree"), [(1, 4), (2, 3), (4, 2), (3, 1)])
def test_terms_and_their_order_are_those_of_scikit_learn(n_features, degree):
    X = np.random.default_rng(1).normal(size=(20, n_features))
    ours = Polynomial(degree, form="powers").fit(X)
    theirs = PolynomialFeatures(degree, include_bias=False).fit(X)
    np.testing.assert_array_equal(ours.exponents_, theirs.powers_)
    np.testing.assert_allclose(ours.transform(X), theirs.transform(X), rtol=1e-14)
    assert list(ours.get_feature_names_out()) == list(theirs.get_feature_names_out())
    assert ours.exponents_.dtype == np.int64


def test_chebyshev_columns_are_products_of_chebyshev_polynomials():
    X = np.random.default_rng(2).uniform(3, 11, (50, 3))
    basis = Polynomial(4).fit(X)
    u = (X - basis.center_) / basis.half_width_
    expected = [np.prod([eval_chebyt(k, u[:, j]) for j, k in enumerate(e)], axis=0) for e in basis.exponents_]
    columns = basis.transform(X)
    np.testing.assert_allclose(columns, np.array(expected).T, atol=1e-13)
    assert columns.dtype == np.float64
    assert columns.flags.c_contiguous


@pytest.mark.parametrize("form", FORMS)
def test_the_columns_of_a_row_do_not_depend_on_its_block(form):
    X = np.random.default_rng(3).normal(size=(97, 3))
    basis = Polynomial(4, form=form).fit(X)
    blocks = [basis.transform(X[i : i + 10]) for i in range(0, 97, 10)]
    np.testing.assert_array_equal(np.vstack(blocks), basis.transform(X))


@pytest.mark.parametrize("basis", [Polynomial(), Functions([square])])
def test_apply_is_transform_of_a_bare_block_without_a_warning(basis, recwarn):
    X = pd.DataFrame({"a": [1.0, 2.0, 4.0], "b": [3.0, 5.0, 4.0]})
    fitted = clone(basis).fit(X)
    np.testing.assert_array_equal(fitted.apply(X.to_numpy()), fitted.transform(X))
    np.testing.assert_array_equal(fitted.apply(X.to_numpy().astype(int)), fitted.transform(X))
    assert not recwarn.list
    with pytest.raises(ValueError, match=r"needs rows of 2 columns. Got shape \(3, 1\)"):
        fitted.apply(X[["a"]].to_numpy())
    with pytest.raises(ValueError, match="Row 0 of column 'b' is NaN"):
        fitted.apply([[1.0, np.nan]])
    with pytest.raises(TypeError, match="needs dense X"):
        fitted.apply(csr_array(np.eye(2)))


def test_fit_range_is_fit():
    X = pd.DataFrame(np.random.default_rng(4).normal(size=(30, 2)), columns=["a", "b"])
    streamed = Polynomial(3).fit_range(X.min(axis=0), X.max(axis=0), names=["a", "b"])
    np.testing.assert_array_equal(streamed.transform(X), Polynomial(3).fit(X).transform(X))
    np.testing.assert_array_equal(streamed.lower_, X.min(axis=0))
    np.testing.assert_array_equal(streamed.upper_, X.max(axis=0))
    assert list(streamed.get_feature_names_out()[:3]) == ["T1(a)", "T1(b)", "T2(a)"]


def test_names_join_the_factors_of_a_term():
    X = pd.DataFrame({"x": [0.0, 1.0, 2.0], "z": [1.0, 5.0, 2.0]})
    assert "T1(x) T3(z)" in Polynomial(4).fit(X).get_feature_names_out()
    names = list(Polynomial(4, form="powers").fit(X).get_feature_names_out())
    assert names[:5] == ["x", "z", "x^2", "x z", "z^2"]
    assert "x z^3" in names


def test_frames_come_out_of_set_output():
    X = pd.DataFrame({"x": [0.0, 1.0, 2.0]})
    assert list(Polynomial(2).set_output(transform="pandas").fit_transform(X)) == ["T1(x)", "T2(x)"]


# The scaling u


@given(st.lists(finite, min_size=1, max_size=8))
@settings(max_examples=300, deadline=None)
def test_u_stays_in_the_unit_interval_and_carries_at_most_two_roundings(values):
    basis = Polynomial(1).fit(np.array(values)[:, None])
    u = basis.transform(np.array(values)[:, None])[:, 0]
    assert np.abs(u).max() <= 1
    if min(values) == max(values):
        assert not u.any()
        return
    center, half_width = Fraction(float(basis.center_[0])), Fraction(float(basis.half_width_[0]))
    for computed, x in zip(u, values, strict=True):
        exact = (Fraction(x) - center) / half_width
        assert abs(Fraction(float(computed)) - exact) <= abs(exact) * Fraction(2, 2**53) + Fraction(1, 2**1000)


@given(st.floats(-1e12, 1e12), st.floats(1e-3, 1e12))
@settings(max_examples=200, deadline=None)
def test_u_reaches_nearly_the_whole_interval(lower, width):
    basis = Polynomial(1).fit_range([lower], [lower + width])
    ends = basis.transform([[lower], [lower + width]])[:, 0]
    # A range of a few units in the last place has no middle in float64.
    slack = 2.0**-17 + 4 * np.spacing(abs(lower) + width) / width
    assert ends[0] <= -1 + slack
    assert ends[1] >= 1 - slack


@pytest.mark.parametrize(
    ("lower", "upper"),
    [
        (-sys.float_info.max, sys.float_info.max),
        (0.0, sys.float_info.max),
        (1e300, 1.1e300),
        (5e-324, 1e-323),
        (-1e-310, 1e-310),
        (1.0, np.nextafter(1.0, 2.0)),
        (1e16, 1e16 + 2),
        (2020.0, 2020.0),
        (-sys.float_info.max, -sys.float_info.max),
    ],
)
def test_no_range_overflows_or_divides_by_zero(lower, upper):
    with np.errstate(all="raise", under="ignore"):
        basis = Polynomial(6).fit([[lower], [upper]])
        columns = basis.transform([[lower], [upper], [lower / 2 + upper / 2]])
    assert np.abs(columns).max() <= 1
    assert lower == upper or columns[0, 0] < columns[1, 0]


def test_a_constant_column_has_u_zero_wherever_it_is_later():
    basis = Polynomial(4).fit([[7.0], [7.0]])
    np.testing.assert_array_equal(basis.transform([[7.0], [8.0], [-1e308]]), [[0, -1, 0, 1]] * 3)
    assert basis.monomials([3.0, 1.0, 5.0, 2.0], 10.0) == {
        "1": 11.0, "x0": 0.0, "x0^2": 0.0, "x0^3": 0.0, "x0^4": 0.0
    }  # fmt: skip


def test_columns_are_right_to_a_few_units_at_degree_20():
    X = np.linspace(-3.7, 9.1, 101)[:, None]
    basis = Polynomial(20).fit(X)
    center, half_width = Fraction(float(basis.center_[0])), Fraction(float(basis.half_width_[0]))
    exact = [[float(exact_chebyshev(k, (Fraction(x) - center) / half_width)) for k in range(1, 21)] for x in X[:, 0]]
    # |T_k'| <= k^2, so one rounding of u alone moves T_20 by up to 400 units.
    np.testing.assert_allclose(basis.transform(X), exact, atol=400 * 2.0**-53, rtol=0)


def test_a_row_beyond_an_enormous_range_does_not_overflow():
    largest = sys.float_info.max
    basis = Polynomial(3).fit_range([largest / 2], [largest])
    np.testing.assert_allclose(basis.transform([[-largest]]), eval_chebyt([[1, 2, 3]], -7.0), rtol=1e-4)


def test_the_recurrence_extrapolates():
    X = np.array([[-4.0], [3.0], [10.0]])
    basis = Polynomial(7).fit([[-1.0], [1.0]])
    np.testing.assert_allclose(basis.transform(X)[:, 6], eval_chebyt(7, X[:, 0]), rtol=1e-13)


# Powers of x


@pytest.mark.parametrize("form", FORMS)
@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_monomials_give_the_predictions_of_the_model(form, data):
    n_features, degree = data.draw(st.sampled_from([(1, 7), (2, 4), (3, 2)]))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    center, width = rng.normal(size=n_features) * 3, rng.uniform(0.1, 10, n_features)
    X = center + width * rng.uniform(-1, 1, (12, n_features))
    basis = Polynomial(degree, form=form).fit(X)
    columns = basis.transform(X)
    weights, intercept = rng.normal(size=columns.shape[1]), rng.normal()
    found = basis.monomials(weights, intercept)
    powers = np.hstack([np.ones((12, 1)), Polynomial(degree, form="powers").fit_transform(X)])
    coefficients = np.array(list(found.values()))
    allowed = 1e-14 * (np.abs(powers) @ np.abs(coefficients)) + 1e-12
    assert (np.abs(powers @ coefficients - columns @ weights - intercept) <= allowed).all()
    assert list(found) == ["1", *Polynomial(degree, form="powers").fit(X).get_feature_names_out()]


def test_monomials_are_exact_in_rational_arithmetic():
    basis = Polynomial(3).fit_range([-1.0], [1.0], names=["x"])
    # 0.5 + 1 x + 2 (2x^2 - 1) + 3 (4x^3 - 3x)
    assert basis.monomials([1.0, 2.0, 3.0], 0.5) == {"1": -1.5, "x": -8.0, "x^2": 4.0, "x^3": 12.0}


def test_monomials_survive_cancellation_that_floats_do_not():
    basis = Polynomial(8).fit_range([1000.1], [1000.83])
    weights = np.zeros(8)
    weights[7] = 1.0
    slope, center = 1 / Fraction(float(basis.half_width_[0])), Fraction(float(basis.center_[0]))
    constant = exact_chebyshev(8, -center * slope)
    assert basis.monomials(weights)["1"] == float(constant)


@pytest.mark.parametrize("form", FORMS)
def test_a_fitted_cubic_comes_back(form):
    x = np.linspace(-2, 5, 40)
    y = 4 - 3 * x + 0.5 * x**2 + 2 * x**3
    basis = Polynomial(3, form=form).fit(x[:, None])
    solution, _ = least_squares(basis.transform(x[:, None]), y)
    np.testing.assert_allclose(list(basis.monomials(solution[1:], solution[0]).values()), [4, -3, 0.5, 2], rtol=1e-12)


def test_monomial_matrix_maps_weights_to_monomials():
    X = np.random.default_rng(5).normal(size=(20, 2))
    basis = Polynomial(3).fit(X)
    weights = np.random.default_rng(6).normal(size=9)
    found = list(basis.monomials(weights, 2.5).values())
    np.testing.assert_allclose(basis.monomial_matrix() @ [2.5, *weights], found, rtol=1e-12, atol=1e-13)
    np.testing.assert_array_equal(Polynomial(3, form="powers").fit(X).monomial_matrix(), np.eye(10))


def test_monomial_matrix_of_a_constant_column_has_no_powers():
    matrix = Polynomial(2).fit([[7.0], [7.0]]).monomial_matrix()
    np.testing.assert_array_equal(matrix, [[1, 0, -1], [0, 0, 0], [0, 0, 0]])


def test_monomials_of_powers_are_the_weights():
    basis = Polynomial(2, form="powers").fit(np.random.default_rng(7).normal(size=(9, 2)))
    assert list(basis.monomials([1.1, 2.2, 3.3, 4.4, 5.5], 6.6).values()) == [6.6, 1.1, 2.2, 3.3, 4.4, 5.5]


def test_filip_has_13_digits_by_plain_qr(nist):
    X, y, certified = nist("Filip")
    basis = Polynomial(10).fit(X)
    solution, inverse = least_squares(basis.transform(X), y)
    found = basis.monomials(solution[1:], solution[0], names=["x"])
    assert list(found) == ["1", "x", *(f"x^{k}" for k in range(2, 11))]
    assert digits(found.values(), certified["exact_estimate"]) >= 13

    residual = y - solution[0] - basis.transform(X) @ solution[1:]
    matrix = basis.monomial_matrix()
    covariance = matrix @ inverse @ matrix.T * (residual @ residual) / certified["df_res"]
    assert digits(np.sqrt(np.diag(covariance)), certified["exact_std_err"]) >= 12


def test_filip_in_plain_powers_loses_half_the_digits(nist):
    X, y, certified = nist("Filip")
    solution, _ = least_squares(Polynomial(10, form="powers").fit_transform(X), y)
    assert digits(solution, certified["exact_estimate"]) < 9


@pytest.mark.parametrize("name", ["Wampler1", "Wampler2", "Wampler3", "Wampler4", "Wampler5"])
def test_wampler_polynomials_come_back(nist, name):
    X, y, certified = nist(name)
    basis = Polynomial(certified["degree_or_p"]).fit(X)
    solution, _ = least_squares(basis.transform(X), y)
    found = basis.monomials(solution[1:], solution[0]).values()
    assert digits(found, certified["exact_estimate"]) >= 7.5


# Refusals


@pytest.mark.parametrize("degree", [0, -1])
def test_degree_below_one_is_refused(degree):
    with pytest.raises(ValueError, match=f"degree must be >= 1. Got {degree}"):
        Polynomial(degree).fit([[1.0], [2.0]])


@pytest.mark.parametrize("degree", [2.0, "2", None, True])
def test_a_degree_that_is_no_integer_is_refused(degree):
    with pytest.raises(TypeError, match=r"degree must be an integer. Got"):
        Polynomial(degree).fit([[1.0], [2.0]])


def test_an_unknown_form_is_refused():
    with pytest.raises(ValueError, match=r"form must be 'chebyshev' or 'powers'. Got 'legendre'"):
        Polynomial(form="legendre").fit([[1.0], [2.0]])


@pytest.mark.parametrize(
    ("degree", "n_features", "count"), [(3, 60, "39,710 terms"), (10_000, 10_000, "about 10\\^6018 terms")]
)
def test_too_many_terms_are_counted_and_refused(degree, n_features, count):
    with pytest.raises(ValueError, match=f"has {count} \\(limit 10,000\\)"):
        Polynomial(degree).fit(np.ones((2, n_features)))


def test_ten_thousand_terms_are_allowed():
    assert Polynomial(10_000).fit([[0.0], [1.0]]).exponents_.shape == (10_000, 1)


@pytest.mark.parametrize("basis", [Polynomial(), Functions([square])])
def test_sparse_rows_are_refused(basis):
    with pytest.raises(TypeError, match=r"needs dense X. Got sparse X of shape \(3, 3\). Use X.toarray\(\)"):
        basis.fit(csr_array(np.eye(3)))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("basis", [Polynomial(), Functions([square])])
def test_a_missing_value_is_named_by_row_and_column(basis, value):
    X = pd.DataFrame({"age": [1.0, 2.0, 3.0], "claims": [1.0, value, 3.0]})
    said = "NaN" if np.isnan(value) else str(value)
    with pytest.raises(ValueError, match=f"Row 1 of column 'claims' is {said}"):
        clone(basis).fit(X)
    with pytest.raises(ValueError, match=f"Row 1 of column 'claims' is {said}"):
        clone(basis).fit(X.fillna(0).replace([np.inf, -np.inf], 0)).transform(X)


@pytest.mark.parametrize(
    ("lower", "upper", "said"),
    [
        ([1.0], [0.0], "Column 0 needs"),
        ([0.0], [np.inf], "Column 0"),
        ([0.0], [1.0, 2.0], "1-D"),
        ([], [], "1-D"),
    ],
)
def test_an_impossible_range_is_refused(lower, upper, said):
    with pytest.raises(ValueError, match=said):
        Polynomial().fit_range(lower, upper)


@pytest.mark.parametrize(("form", "term"), [("chebyshev", "T2\\(x0\\)"), ("powers", "x0\\^2")])
def test_a_row_whose_columns_overflow_is_named(form, term):
    basis = Polynomial(2, form=form).fit([[0.0], [1.0]])
    with pytest.raises(ValueError, match=f"Term '{term}' overflows at row 1"):
        basis.transform([[0.5], [1e200]])


@pytest.mark.parametrize(("width", "size"), [(1e-200, "large"), (1e200, "small")])
def test_a_coefficient_beyond_float64_is_refused(width, size):
    basis = Polynomial(2).fit_range([0.0], [width], names=["x"])
    with pytest.raises(ValueError, match=f"coefficient of 'x\\^2' is too {size} for float64"):
        basis.monomials([1.0, 1.0])


def test_terms_that_would_share_a_name_are_refused():
    basis = Polynomial(2).fit_range([0.0, 0.0], [1.0, 1.0], names=["x", "x^2"])
    with pytest.raises(ValueError, match="Two terms would be called 'x\\^2'"):
        basis.monomials(np.ones(5))
    assert len(basis.monomials(np.ones(5), names=["x", "z"])) == 6


@pytest.mark.parametrize("weights", [[1.0], [[1.0, 2.0]], [1.0, np.nan]])
def test_monomials_need_a_finite_weight_a_term(weights):
    with pytest.raises(ValueError, match="needs 2 finite weights"):
        Polynomial(2).fit([[0.0], [1.0]]).monomials(weights)


def test_an_endless_expansion_is_refused():
    basis = Polynomial(2000).fit_range([0.0], [1.0])
    with pytest.raises(ValueError, match="2,003,000 exact products"):
        basis.monomials(np.zeros(2000))


def test_nothing_works_before_fit():
    basis = Polynomial()
    for call in (
        basis.monomial_matrix,
        basis.to_state,
        basis.get_feature_names_out,
        lambda: basis.monomials([]),
    ):
        with pytest.raises(NotFittedError):
            call()
    assert not hasattr(basis, "exponents_")


def test_parameters_set_after_the_fit_change_nothing_fitted():
    X = np.random.default_rng(8).normal(size=(9, 2))
    basis = Polynomial(3).fit(X)
    before = basis.transform(X)
    basis.set_params(degree=1, form="powers")
    np.testing.assert_array_equal(basis.transform(X), before)
    assert basis.to_state()[0] == {"degree": 3, "form": "chebyshev", "names": None}


# State


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("columns", [None, ["a", "b"]])
def test_state_gives_the_same_bits_back(form, columns):
    X = pd.DataFrame(np.random.default_rng(9).normal(size=(9, 2)), columns=columns)
    X = X if columns else X.to_numpy()
    basis = Polynomial(np.int64(3), form=form).fit(X)
    parameters, arrays = basis.to_state()
    restored = Polynomial.from_state(json.loads(json.dumps(parameters)), arrays)
    np.testing.assert_array_equal(restored.transform(X), basis.transform(X))
    assert list(restored.get_feature_names_out()) == list(basis.get_feature_names_out())
    assert set(arrays) == {"lower", "upper"}


def test_functions_are_never_stored():
    with pytest.raises(ValueError, match="holds Python functions, which a model file never stores"):
        Functions([square]).fit([[1.0]]).to_state()


# Functions


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


def test_the_unit_circle_has_its_monomials():
    angle = np.linspace(0, 2 * np.pi, 50)
    X = 3 * np.column_stack([np.cos(angle), np.sin(2 * angle)]) + 0.7
    basis = Polynomial(2).fit(X)
    solution, _ = least_squares(basis.transform(X), circle(X) - 1)
    found = basis.monomials(solution[1:], solution[0], names=["x1", "x2"])
    assert list(found) == ["1", "x1", "x2", "x1^2", "x1 x2", "x2^2"]
    np.testing.assert_allclose(list(found.values()), [-1, 0, 0, 1, 0, 1], atol=1e-12)


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


# scikit-learn's contract


@parametrize_with_checks(
    [Polynomial(), Polynomial(3, form="powers"), Functions([np.square, np.sin])], xfail_strict=True
)
def test_scikit_learn_contract(estimator, check):
    check(estimator)


@pytest.mark.parametrize("basis", [Polynomial(), Functions([square])])
def test_names_that_do_not_fit_the_input_are_refused(basis):
    X = pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 5.0]})
    with pytest.raises(ValueError, match="input_features is not equal to feature_names_in_"):
        clone(basis).fit(X).get_feature_names_out(["a", "c"])
    with pytest.raises(ValueError, match="input_features should have length equal to number of features"):
        clone(basis).fit(X.to_numpy()).get_feature_names_out(["a"])
