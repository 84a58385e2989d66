"""Legal numbers of any size raise no arithmetic warning of NumPy: every test turns warnings into errors."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

import certifit as cf

pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning")


def test_a_first_solve_without_a_digit_is_refined():
    """The constant column hides the others from the first solve."""
    t, weights = np.linspace(0, 1, 11), np.array([2.0, 2, 3, 2, 4, 3, 2, 3, 3, 1, 1])
    X = t[:, None] ** np.arange(1, 7)
    X[:, 1] = 1.0000000101e18
    y = np.array([
        1.6728244318089847, 2.6791353512590548, 0.6091579433931087, -1.2366138516974001, -0.4792907255821911,
        1.176356294754184, -1.0004811338923938, -2.3308676336951812, -2.287543078190423, -2.2723525757966847,
        -1.7339270870482588,
    ])  # fmt: skip
    model = cf.Ridge(0.1).fit(sp.csr_array(X), y, weights)
    plain = cf.Ridge(0.1).fit(X[:, [0, 2, 3, 4, 5]], y, weights)
    assert model.certificate_.holds
    np.testing.assert_allclose(model.coef_[[0, 2, 3, 4, 5]], plain.coef_, rtol=1e-10)


def test_a_deviance_beyond_float64_is_infinite(rng):
    X, y = rng.normal(size=(20, 1)), 1e150 * rng.normal(size=20)
    model = cf.GLM("gaussian").fit(X, y, np.full(20, 1e50))
    assert model.certificate_.holds and model.inference_ is None  # nothing is claimed of it


def test_an_exact_proof_starts_from_the_mean_whatever_the_weights(rng):
    pytest.importorskip("flint")
    X = 1e150 * rng.normal(size=(20, 1))
    data = X, 3 * X[:, 0], np.full(20, 1e200)
    model = cf.Lasso(1e-6).fit(*data)
    assert cf.verify(model, *data, exact=True)


def test_weights_beyond_float64_are_refused_without_a_warning():
    X = np.array([[0.0, 0.0, 0.0, 1e-155], [0.0, 1e-155, 0.0, 0.0], [0.0, 0.0, 1e-297, 0.0]])
    with pytest.raises(ValueError, match="exceeds the largest float64"):
        cf.LinearRegression(fit_intercept=False).fit(X, np.array([0.3, 1.3, 1.1]))


def test_spreads_of_light_rows_alone_are_not_proven_and_warn_of_nothing(rng):
    X, weight = rng.normal(size=(8, 2)), np.where(np.arange(8) < 4, 1e100, 1e-215)
    X[:4] = 0.0
    with pytest.warns(ConvergenceWarning, match="NOT certified"):
        assert not cf.PCA(standardize=True).fit(X, None, weight).certificate_.holds


def test_a_column_that_nothing_pulls_or_tells_apart_makes_long_ways_and_no_warning():
    """The column is constant, and its pull in units of 1e150 next to none: the squares of such ways overflow."""
    for seed in range(4, 8):
        rng = np.random.default_rng(seed)
        weight, y = 10.0 ** rng.uniform(-27, 14, 4), rng.normal(size=4)
        model = cf.HuberRegressor(alpha=0.01, standardize=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(np.full((4, 1), 1e150), y, weight)
        assert model.rank_ == 0
