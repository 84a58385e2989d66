"""The certificate of components: right numbers, never below the truth, and it refuses what was changed."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

import certifit as cf
from certifit.data.source import Memory
from certifit.models.pca.certificate import certify
from certifit.models.pca.row_variance import ProductVariance, RowVariance
from certifit.models.pca.task import ColumnVariance, Directions

TASKS = {"columns": (ColumnVariance, 120, 8), "rows": (RowVariance, 20, 60), "products": (ProductVariance, 120, 30)}


def case(rng, name):
    """(task, exact state, A) of a small problem, in units where A is the covariance with 1/N."""
    kind, n, d = TASKS[name]
    X = rng.normal(size=(n, d)) * np.linspace(3, 1, d) + 2
    task = kind(Memory(X, None), True, False, 0.0)
    A = np.cov(X.T, ddof=0)
    values, vectors = np.linalg.eigh(A)
    order = np.argsort(-values)[:4]
    return task, Directions(vectors[:, order].T.copy(), values[order], X.mean(axis=0), np.ones(d)), A


def changed(state, **parts):
    return Directions(**({"components": state.components, "variances": state.variances, "mean": state.mean,
                          "scale": state.scale} | parts))  # fmt: skip


@pytest.mark.parametrize("name", TASKS)
def test_exact_components_are_certified(rng, name):
    task, state, A = case(rng, name)
    found = certify(task, state, 1e-8)
    assert found.holds and found.value < 1e-12
    assert np.isclose(found.explained, state.variances.sum() / np.trace(A), rtol=1e-12)
    assert np.isclose(found.projection_error, np.trace(A) - state.variances.sum(), rtol=1e-11)
    assert "Converged" in str(found)


@pytest.mark.parametrize("name", TASKS)
@pytest.mark.parametrize("place", [(0, 0), (1, 3), (3, 5)])
def test_a_nudge_of_a_component_is_refused(rng, name, place):
    task, state, _ = case(rng, name)
    nudged = state.components.copy()
    nudged[place] += 1e-4
    assert not certify(task, changed(state, components=nudged), 1e-8).holds
    nudged /= np.linalg.norm(nudged, axis=1)[:, None]
    assert not certify(task, changed(state, components=nudged), 1e-8).holds


@pytest.mark.parametrize("name", TASKS)
def test_other_changes_are_refused(rng, name):
    task, state, A = case(rng, name)
    values, vectors = np.linalg.eigh(A)
    turn = np.array([[np.cos(1e-3), np.sin(1e-3)], [-np.sin(1e-3), np.cos(1e-3)]])
    turned = state.components.copy()
    turned[:2] = turn @ turned[:2]
    skipped = np.argsort(-values)[[1, 2, 3, 4]]  # eigenvectors all of them, but not the first
    wrong = {
        "variance": changed(state, variances=state.variances * [1, 1, 1 + 1e-4, 1]),
        "centre": changed(state, mean=state.mean + 1e-4),
        "scale": changed(state, scale=state.scale * (1 + 1e-4)),
        "turned in the plane": changed(state, components=turned),
        "the first is missing": changed(state, components=vectors[:, skipped].T, variances=values[skipped]),
    }
    for what, other in wrong.items():
        found = certify(task, other, 1e-8)
        assert not found.holds and "NOT certified" in str(found), what


@pytest.mark.parametrize("name", ["columns", "rows"])
def test_missed_variance_is_never_below_the_truth(rng, name):
    task, state, A = case(rng, name)
    best = np.linalg.eigvalsh(A)[::-1][:4].sum()
    for size in 10.0 ** rng.uniform(-9, 0, size=200):
        V = np.linalg.qr((state.components + size * rng.normal(size=state.components.shape)).T)[0]
        stated = np.einsum("ij,ij->j", V, A @ V)
        found = certify(task, changed(state, components=V.T, variances=stated), 1e-8)
        truth = (best - np.trace(V.T @ A @ V)) / np.trace(A)
        assert found.missed + found.rounding >= truth - 1e-15
        assert found.value >= truth


def test_digits_of_directions_are_never_more_than_are_right(rng):
    for _ in range(20):
        X = rng.normal(size=(200, 6)) * np.sort(rng.random(6) + 0.2)
        model = cf.PCA().fit(X.astype(np.float32))  # entries that need no rounding
        exact = np.asarray(X.astype(np.float32), dtype=np.longdouble)
        exact -= exact.mean(axis=0)
        A = exact.T @ exact / len(X)
        for v, digits in zip(model.components_, model.certificate_.digits, strict=True):
            shift = float(v @ A @ v)
            w = np.linalg.solve(np.float64(A) - shift * np.eye(6) * (1 + 1e-14), v)  # a step of inverse iteration
            u = w / np.linalg.norm(w)
            sine = np.linalg.norm(v - u * (u @ v))
            assert sine <= 10.0 ** -(digits - 1) + 1e-13


def test_equal_variances_have_no_directions_of_their_own(rng):
    X = np.vstack([np.eye(4), -np.eye(4)]) * [3, 1, 1, 0.5]
    model = cf.PCA(2).fit(X)
    text = str(model.certificate_)
    assert model.certificate_.holds
    assert "not determined by the data" in text and "No digit is proven for 'pca1'" in text


@pytest.mark.parametrize("shape", [(150, 6), (20, 300)])
@pytest.mark.parametrize("form", [{}, {"standardize": True}, {"center": False, "whiten": True}], ids=str)
def test_a_model_is_certified_again_on_its_own_rows_and_not_on_others(rng, shape, form):
    X = rng.normal(size=shape) * np.linspace(1, 2, shape[1]) + 3
    weight = rng.random(len(X)) + 1
    model = cf.PCA(2, **form).fit(X, sample_weight=weight)
    again = model.certify(X, sample_weight=weight)
    assert again.holds and again.value == model.certificate_.value
    assert not model.certify(X).holds
    assert not model.certify(X * 1.001, sample_weight=weight).holds


@pytest.mark.parametrize("shape", [(150, 6), (20, 300)])
def test_rows_far_from_zero_are_certified_again(rng, shape):
    X = rng.normal(size=shape) * np.geomspace(1, 1e-3, shape[1])
    for rows in (X + 1e7, sp.csr_array(X + 1e7)):
        model = cf.PCA().fit(rows)
        assert model.certificate_.holds and model.certify(rows).holds


@pytest.mark.filterwarnings("ignore:NOT certified")
def test_a_column_that_varies_in_rows_of_no_weight_to_speak_of_is_not_called_constant(rng):
    X = rng.normal(size=(20, 3))
    weight = np.full(20, 1e-90)
    weight[2] = 1.0  # the deviations are some 1e-45, and those of a constant column 0
    model = cf.PCA(1, center=False, standardize=True, ddof=0).fit(X, sample_weight=weight)
    assert not model.certificate_.holds
    assert cf.PCA(1, center=False, standardize=True).fit(X).certificate_.holds


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("light", [1e-18, 1e-25])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_variances_that_float64_sums_lose_altogether_are_summed_again_in_more_digits(light):
    """The spreads of light rows about a heavy one: float64 sums of squares say that there are none."""
    model = cf.PCA(ddof=0).fit(np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]]), None, np.array([1.0, light, light]))
    golden = (3 + np.array([1.0, -1.0]) * np.sqrt(5.0)) / 2  # of the matrix (2, -1; -1, 1)
    np.testing.assert_allclose(model.explained_variance_, golden * light, rtol=1e-6)
    assert model.explained_variance_ratio_.sum() == pytest.approx(1)


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_a_variance_where_there_is_none_is_infinitely_far_off():
    X = np.ones((5, 2))
    model = cf.PCA(1, ddof=0).fit(X)
    assert model.certificate_.holds
    model.explained_variance_ = model.explained_variance_ + 1e-3
    assert not model.certify(X).holds


@pytest.mark.parametrize("shape", [(6, 9), (30, 4)])
def test_directions_left_out_as_rounding_are_told(rng, shape):
    Z = rng.normal(size=shape)
    dropped = cf.PCA().fit(Z * np.where(np.arange(shape[1]) < 2, 4.0, 0.3) + 2e15)
    assert dropped.n_components_ < min(shape[0] - 1, shape[1])
    assert "is within that rounding and left out" in str(dropped.certificate_)
    for kept in (cf.PCA().fit(Z), cf.PCA(1).fit(Z), cf.PCA(1).fit(Z + 1e6)):
        assert "left out" not in str(kept.certificate_)


def test_of_rows_that_do_not_vary_no_share_is_told():
    text = str(cf.PCA(1).fit(np.ones((5, 2))).certificate_)
    assert "do not vary beyond the rounding" in text and "%" not in text


@pytest.mark.filterwarnings("error")
def test_a_variance_of_nothing_is_0_where_squares_vanish():
    """The row is far below the root of the smallest float64."""
    X = np.array([[1e-287, 0.0]])
    model = cf.PCA(ddof=0).fit(X)
    assert model.certificate_.holds and model.explained_variance_.tolist() == [0.0]
    model.explained_variance_ = np.array([1e-12])
    assert model.certify(X).value == np.inf
    with pytest.raises(ValueError, match="too small for float64"):
        cf.PCA(ddof=0).fit(np.array([[1e-287, 0.0], [3e-287, 0.0]]))


@pytest.mark.parametrize("solver", ["columns", "rows", "randomized"])
@pytest.mark.parametrize("center", [True, False])
def test_columns_of_zeros_set_no_unit(solver, center):
    # Squares of 1e-286 are no float64, whether other columns are 0 in all rows, in the first ones or not there.
    X = np.zeros((40, 60))
    X[20:, ::3] = 1e-286 * np.random.default_rng(0).normal(size=(20, 20))
    for rows in (X, X[20:], X[20:, ::3]):
        with pytest.raises(ValueError, match="The variances of X are too small for float64"):
            cf.PCA(2, solver=solver, center=center).fit(rows)


def test_rows_about_zero_in_units_of_a_spread_that_weights_make_tiny_warn_of_no_overflow():
    X = np.random.default_rng(0).normal(size=(3, 260)) + 1.0
    model = cf.PCA(1, center=False, standardize=True, ddof=0, solver="randomized")
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, sample_weight=np.array([1e-77, 1e84, 1e-170]))
    assert not model.certificate_.holds


def test_the_square_of_a_constant_column_beyond_float64_is_refused_in_a_sentence():
    with pytest.raises(ValueError, match="does not vary, of some 7e"):
        cf.PCA(center=False, standardize=True).fit(np.full((4, 1), 1e160))
