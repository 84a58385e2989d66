"""A polynomial told in powers of x: exact, to the digits of NIST's certified values."""

import csv
import json
import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import exact_chebyshev

from certifit.maps import Polynomial

FORMS = ("chebyshev", "powers")
finite = st.floats(allow_nan=False, allow_infinity=False)


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


def test_the_unit_circle_has_its_monomials():
    angle = np.linspace(0, 2 * np.pi, 50)
    X = 3 * np.column_stack([np.cos(angle), np.sin(2 * angle)]) + 0.7
    basis = Polynomial(2).fit(X)
    solution, _ = least_squares(basis.transform(X), X[:, 0] ** 2 + X[:, 1] ** 2 - 1)
    found = basis.monomials(solution[1:], solution[0], names=["x1", "x2"])
    assert list(found) == ["1", "x1", "x2", "x1^2", "x1 x2", "x2^2"]
    np.testing.assert_allclose(list(found.values()), [-1, 0, 0, 1, 0, 1], atol=1e-12)
