"""Polynomial and Functions against mathematics, then against scikit-learn's contract."""

import doctest
import json
import sys
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import exact_chebyshev
from scipy.sparse import csr_array
from scipy.special import eval_chebyt
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.preprocessing import PolynomialFeatures

import certifit.maps.basis as module
from certifit.maps import Functions, Polynomial

FORMS = ("chebyshev", "powers")
finite = st.floats(allow_nan=False, allow_infinity=False)


def square(X):
    return X**2


def radius(X):
    return np.hypot(X[:, 0], X[:, -1])


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
@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.parametrize("basis", [Polynomial(), Functions([square])])
def test_names_that_do_not_fit_the_input_are_refused(basis):
    X = pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 5.0]})
    with pytest.raises(ValueError, match="input_features is not equal to feature_names_in_"):
        clone(basis).fit(X).get_feature_names_out(["a", "c"])
    with pytest.raises(ValueError, match="input_features should have length equal to number of features"):
        clone(basis).fit(X.to_numpy()).get_feature_names_out(["a"])
