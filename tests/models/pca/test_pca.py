"""Principal components: the mathematics in slow NumPy first, then scikit-learn."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.decomposition import PCA as PeerPCA
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler

import certifit as cf

SHAPES = {"columns": (200, 7), "rows": (40, 300)}
FORMS = [
    {},
    {"standardize": True},
    {"center": False},
    {"center": False, "standardize": True},
]


def spread_rows(rng, n, d):
    """Columns that depend on each other, of unequal size, away from zero."""
    return rng.normal(size=(n, d)) @ rng.normal(size=(d, d)) / math.sqrt(d) * np.linspace(1, 3, d) + rng.normal(size=d)


def reference(X, weight, center=True, standardize=False):
    """(z of every row, eigenvalues of A descending, eigenvectors in columns), by the definition."""
    mean = weight @ X / weight.sum()
    sd = np.sqrt(weight @ (X - mean) ** 2 / weight.sum())
    z = (X - mean * center) / np.where(standardize & (sd > 0), sd, 1.0)
    A = sum(w * np.outer(row, row) for w, row in zip(weight, z, strict=True)) / weight.sum()
    values, vectors = np.linalg.eigh(A)
    return z, values[::-1], vectors[:, ::-1]


@pytest.mark.parametrize("form", FORMS, ids=str)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("weighted", [False, True])
def test_components_are_the_eigenvectors_of_the_definition(rng, shape, form, weighted):
    n, d = SHAPES[shape]
    X = spread_rows(rng, n, d)
    weight = rng.integers(0, 4, size=n).astype(float) if weighted else np.ones(n)
    z, values, vectors = reference(X, weight, **form)
    model = cf.PCA(3, ddof=0, **form).fit(X, sample_weight=weight if weighted else None)
    assert model.route_ == shape
    assert model.certificate_.holds
    assert np.allclose(model.explained_variance_, values[:3], rtol=1e-12)
    assert np.abs(np.abs(np.sum(model.components_ * vectors[:, :3].T, axis=1)) - 1).max() < 1e-12
    assert np.allclose(model.transform(X), z @ model.components_.T, rtol=1e-10, atol=1e-12)
    assert math.isclose(model.total_variance_, values.sum(), rel_tol=1e-12)


@pytest.mark.parametrize("epsilon", [0.5, 0.1, 1e-3, 1e-7])
def test_the_worked_example_comes_out(epsilon):
    X = np.array([[1, 1], [-1, -1], [epsilon, -epsilon], [-epsilon, epsilon]])
    model = cf.PCA(ddof=0).fit(X)
    # a singular value is known to the rounding of the largest: 1 here, and epsilon the smaller
    assert np.allclose(model.explained_variance_, [1, epsilon**2], rtol=1e-14 / epsilon, atol=0)
    assert np.allclose(model.components_[0], np.array([1, 1]) / math.sqrt(2), rtol=1e-14, atol=0)
    assert np.allclose(model.transform(X)[:, 0], [math.sqrt(2), -math.sqrt(2), 0, 0], rtol=1e-14, atol=1e-14)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("k", [1, 4])
def test_the_mean_squared_projection_error_is_the_sum_of_the_dropped_eigenvalues(rng, shape, k):
    X = spread_rows(rng, *SHAPES[shape])
    weight = rng.integers(1, 4, size=len(X)).astype(float)
    model = cf.PCA(k, ddof=0).fit(X, sample_weight=weight)
    _, values, _ = reference(X, weight)
    rows = X - model.inverse_transform(model.transform(X))
    assert np.allclose(model.projection_error(X), (rows**2).sum(axis=1), rtol=1e-9)
    assert math.isclose(np.average(model.projection_error(X), weights=weight), values[k:].sum(), rel_tol=1e-11)
    assert math.isclose(model.projection_error_, values[k:].sum(), rel_tol=1e-11)
    left = X.shape[1] - k
    assert math.isclose(model.noise_variance_, values[k:].sum() / left, rel_tol=1e-11)


@pytest.mark.parametrize("shape", SHAPES)
def test_directions_are_orthonormal_and_their_largest_entry_is_positive(rng, shape):
    U = cf.PCA().fit(spread_rows(rng, *SHAPES[shape])).components_
    assert np.abs(U @ U.T - np.eye(len(U))).max() < 1e-14
    assert (U[np.arange(len(U)), np.abs(U).argmax(axis=1)] > 0).all()


@pytest.mark.parametrize("offset", [5.0, 1e3, 1e6])
@pytest.mark.parametrize("shape", SHAPES)
def test_rows_far_from_zero_keep_their_components(rng, shape, offset):
    X = spread_rows(rng, *SHAPES[shape])
    X = np.ldexp(np.rint(np.ldexp(X, 20)), -20)  # adding a whole number is exact
    near, far = cf.PCA(3).fit(X), cf.PCA(3).fit(X + offset)
    assert np.allclose(near.explained_variance_, far.explained_variance_, rtol=1e-10)
    assert np.allclose(near.components_, far.components_, atol=1e-9)
    assert np.allclose(near.transform(X), far.transform(X + offset), atol=1e-8)


def test_of_equal_entries_the_first_decides_the_sign(rng):
    X = np.array([[3.0, 3], [-3, -3], [1, -1], [-1, 1]])  # directions (1, 1) and (1, -1)
    for noise in (0.0, 1e-14, 1e-10):
        assert (cf.PCA().fit(X + noise * rng.normal(size=X.shape)).components_[:, 0] > 0).all()


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("form", [{}, {"standardize": True, "whiten": True}], ids=str)
def test_weight_two_is_the_row_twice(rng, shape, form):
    X = spread_rows(rng, *SHAPES[shape])
    weight = rng.integers(0, 3, size=len(X))
    a = cf.PCA(**form).fit(X, sample_weight=weight)
    b = cf.PCA(**form).fit(np.repeat(X, weight, axis=0))
    assert a.n_components_ == b.n_components_
    assert np.allclose(a.explained_variance_, b.explained_variance_, rtol=1e-10)
    assert np.allclose(a.transform(X), b.transform(X), rtol=1e-7, atol=1e-8)


def test_a_row_of_weight_zero_is_no_row(rng):
    X = spread_rows(rng, 60, 5)
    bad = np.vstack([X, np.full(5, np.nan)])
    model = cf.PCA(2).fit(bad, sample_weight=np.append(np.ones(60), 0.0))
    assert np.array_equal(model.components_, cf.PCA(2).fit(X).components_)


# ---- how many ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("share", [0.3, 0.75, 0.9, 0.99, 1.0])
@pytest.mark.parametrize("shape", SHAPES)
def test_a_share_keeps_the_fewest_directions_that_explain_it(rng, shape, share):
    model = cf.PCA(share).fit(spread_rows(rng, *SHAPES[shape]))
    shares = np.cumsum(model.explained_variance_ratio_)
    assert shares[-1] >= share - 1e-12
    assert model.n_components_ == 1 or shares[-2] < share


def test_a_share_that_is_met_exactly_needs_no_further_direction():
    X = np.array([[3.0, 0], [-3, 0], [0, math.sqrt(3)], [0, -math.sqrt(3)]])  # variances 3 : 1
    assert cf.PCA(0.75).fit(X).n_components_ == 1


def evidence(values, k, n):
    """Minka's log evidence, term by term."""
    d = len(values)
    v = sum(values[k:]) / (d - k)
    out = -k * math.log(2)
    for i in range(1, k + 1):
        out += math.lgamma((d - i + 1) / 2) - (d - i + 1) / 2 * math.log(math.pi)
    out -= n / 2 * sum(math.log(value) for value in values[:k]) + n * (d - k) / 2 * math.log(v)
    m = d * k - k * (k + 1) / 2
    out += (m + k) / 2 * math.log(2 * math.pi) - k / 2 * math.log(n)
    smooth = [*values[:k], *[v] * (d - k)]
    for i in range(k):
        for j in range(i + 1, d):
            out -= (math.log(1 / smooth[j] - 1 / smooth[i]) + math.log(values[i] - values[j]) + math.log(n)) / 2
    return out


@pytest.mark.parametrize(("n", "d", "true"), [(200, 10, 3), (60, 50, 4), (1000, 20, 12), (40, 2, 1)])
def test_mle_is_the_number_of_largest_evidence(rng, n, d, true):
    X = rng.normal(size=(n, true)) @ rng.normal(size=(true, d)) * 2 + 0.5 * rng.normal(size=(n, d))
    values = np.linalg.eigvalsh(np.cov(X.T))[::-1]
    best = max(range(1, d), key=lambda k: evidence(values.tolist(), k, n))
    assert cf.PCA("mle").fit(X).n_components_ == best == PeerPCA("mle", svd_solver="full").fit(X).n_components_


def test_none_keeps_the_directions_in_which_rows_vary(rng):
    X = spread_rows(rng, 100, 4)
    redundant = np.column_stack([X, X @ rng.normal(size=(4, 3)), np.full(100, 5.0)])
    assert cf.PCA().fit(redundant).n_components_ == 4
    assert cf.PCA().fit(rng.normal(size=(12, 400))).n_components_ == 11
    assert cf.PCA(center=False).fit(rng.normal(size=(12, 400))).n_components_ == 12
    assert cf.PCA().fit(rng.normal(size=(12, 40))).n_components_ == 11


@pytest.mark.parametrize("d", [8, 300])
def test_more_than_the_rank_are_filled_up_with_directions_of_variance_zero(rng, d):
    X = rng.normal(size=(5, d))
    model = cf.PCA(7, whiten=True).fit(X)
    assert (model.explained_variance_[4:] == 0).all() and (model.explained_variance_[:4] > 0).all()
    assert np.abs(model.components_ @ model.components_.T - np.eye(7)).max() < 1e-14
    scores = model.transform(X)
    assert (scores[:, 4:] == 0).all()
    assert np.allclose(scores[:, :4].var(axis=0, ddof=1), 1, rtol=1e-12)
    assert model.certificate_.holds and "vary in 4 directions only" in str(model.certificate_)
    assert np.allclose(model.inverse_transform(scores), X, atol=1e-12)


@pytest.mark.parametrize(
    "model",
    [
        {},
        {"standardize": True},
        {"n_components": 2, "whiten": True},
        {"n_components": 0.9},
        {"n_components": 1, "solver": "randomized"},
    ],
    ids=str,
)
@pytest.mark.parametrize("shape", [(10, 3), (10, 300), (5000, 3)])
@pytest.mark.parametrize("store", [np.asarray, sp.csr_array])
def test_rows_that_do_not_vary_have_no_components_but_one_of_variance_zero(model, shape, store):
    for value in (0.1, 1e8 / 3, 0.0):
        X = store(np.full(shape, value))
        fitted = cf.PCA(**model).fit(X)
        assert fitted.n_components_ == (2 if "whiten" in model else 1)
        assert (fitted.explained_variance_ == 0).all() and fitted.certificate_.holds
        assert np.abs(fitted.transform(X)).max() <= 1e-7 * value


# ---- other ways to the same components ----------------------------------------------------------------------------


@pytest.mark.parametrize("shape", ["columns", "rows"])
@pytest.mark.parametrize("form", FORMS, ids=str)
def test_sparse_rows_have_the_components_of_dense_ones(rng, shape, form):
    n, d = SHAPES[shape]
    X = np.where(rng.random((n, d)) < 0.1, rng.normal(size=(n, d)) + 1, 0.0)
    X[:, 0] *= 5
    for solver in ("exact", "randomized"):
        a = cf.PCA(2, solver=solver, **form).fit(X)
        for kind in (sp.csr_array, sp.csr_matrix, sp.csc_array):
            b = cf.PCA(2, solver=solver, **form).fit(kind(X))
            assert np.allclose(a.explained_variance_, b.explained_variance_, rtol=1e-10)
            assert np.allclose(a.transform(X), b.transform(kind(X)), rtol=1e-6, atol=1e-6)
            assert np.allclose(a.projection_error(X), b.projection_error(kind(X)), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("form", FORMS, ids=str)
@pytest.mark.parametrize("shape", ["columns", "rows"])
def test_the_randomized_solver_ends_at_the_exact_components(rng, shape, form):
    X = spread_rows(rng, *SHAPES[shape])
    weight = rng.random(len(X))
    exact = cf.PCA(3, **form).fit(X, sample_weight=weight + 1)
    found = cf.PCA(3, solver="randomized", random_state=7, **form).fit(X, sample_weight=weight + 1)
    assert found.route_ == "products" and found.certificate_.holds
    assert np.allclose(found.explained_variance_, exact.explained_variance_, rtol=1e-10)
    assert np.allclose(found.components_, exact.components_, atol=1e-6)
    assert math.isclose(found.total_variance_, exact.total_variance_, rel_tol=1e-11)


def test_the_randomized_solver_sees_that_a_direction_has_no_variance(rng):
    X = rng.normal(size=(60, 2)) @ rng.normal(size=(2, 30))
    model = cf.PCA(3, solver="randomized", whiten=True).fit(X)
    assert model.explained_variance_[2] == 0 and (model.transform(X)[:, 2] == 0).all()
    assert "vary in 2 directions only" in str(model.certificate_)


def test_a_randomized_run_cut_short_says_that_it_is_not_certified(rng):
    X = spread_rows(rng, 400, 60)
    with pytest.warns(ConvergenceWarning, match="NOT certified"):
        model = cf.PCA(5, solver="randomized", max_iter=2).fit(X)
    assert not model.certificate_.holds


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("ratio", [1e-4, 1e-8, 1e-11])
def test_small_variances_are_those_of_a_singular_value_decomposition(rng, shape, ratio):
    n, d = SHAPES[shape]
    k = 5
    left, right = (np.linalg.qr(rng.normal(size=(size, k)))[0] for size in (n, d))
    left -= left.mean(axis=0)
    left = np.linalg.qr(left)[0]
    X = left * np.geomspace(1, ratio, k) @ right.T
    singular = np.linalg.svd(X - X.mean(axis=0), compute_uv=False)[:k]
    model = cf.PCA(k).fit(X)
    assert np.allclose(model.singular_values_, singular, rtol=1e-14 / ratio, atol=0)
    assert model.n_components_ == k == cf.PCA().fit(X).n_components_


@pytest.mark.parametrize("basis", [cf.Polynomial(2), cf.Polynomial(3, form="powers"), cf.Functions([np.sin, np.abs])])
def test_components_of_a_basis_are_those_of_its_columns(rng, basis):
    X = rng.normal(size=(80, 3))
    columns = basis.fit_transform(X)
    inner, outer = cf.PCA(2, basis=basis).fit(X), cf.PCA(2).fit(columns)
    assert inner.components_.shape == (2, columns.shape[1])
    assert np.array_equal(inner.components_, outer.components_)
    assert np.array_equal(inner.transform(X), outer.transform(columns))
    assert inner.column_names_ == [str(name) for name in basis.get_feature_names_out()]


def test_powers_of_two_change_no_bit(rng):
    X = spread_rows(rng, 100, 5)
    one, other = cf.PCA(2).fit(X), cf.PCA(2).fit(X * 2.0**200)
    assert np.array_equal(one.components_, other.components_)
    assert np.array_equal(one.explained_variance_ * 2.0**400, other.explained_variance_)


def test_variances_beyond_float64_are_refused_and_standardized_ones_are_not(rng):
    X = spread_rows(rng, 100, 3)
    for factor in (1e300, 1e-300):
        with pytest.raises(ValueError, match="standardize=True"):
            cf.PCA().fit(X * factor)
        scores = cf.PCA(standardize=True).fit(X * factor).transform(X * factor)
        assert np.allclose(scores, cf.PCA(standardize=True).fit(X).transform(X), rtol=1e-9, atol=1e-9)


# ---- scikit-learn ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("whiten", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("standardize", [False, True])
def test_everything_agrees_with_scikit_learn_to_eleven_digits(rng, shape, whiten, standardize):
    X = spread_rows(rng, *SHAPES[shape])
    Z = StandardScaler().fit_transform(X) if standardize else X
    ours = cf.PCA(4, whiten=whiten, standardize=standardize).fit(X)
    theirs = PeerPCA(4, whiten=whiten, svd_solver="full").fit(Z)
    for name in ("components_", "explained_variance_", "explained_variance_ratio_", "singular_values_"):
        assert np.allclose(getattr(ours, name), getattr(theirs, name), rtol=1e-11, atol=1e-11), name
    assert ours.n_components_ == theirs.n_components_
    assert np.allclose(ours.transform(X), theirs.transform(Z), rtol=1e-11, atol=1e-11)
    if not standardize:
        assert np.allclose(ours.mean_, theirs.mean_, rtol=1e-12)
        scores = ours.transform(X)
        assert np.allclose(ours.inverse_transform(scores), theirs.inverse_transform(scores), rtol=1e-10, atol=1e-10)
    if shape == "columns":  # with fewer rows than columns scikit-learn averages over the rows that are left
        assert math.isclose(ours.noise_variance_, theirs.noise_variance_, rel_tol=1e-10)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("center", [1e4, 1e8])
@pytest.mark.parametrize("standardize", [False, True])
def test_the_randomized_solver_finds_what_varies_far_from_zero(form, center, standardize, rng):
    """Variances of 1 at 1e8 are not rounding, in dense rows and in sparse ones without a zero."""
    X = np.round(rng.normal(size=(80, 6)) * np.arange(1, 7), 3)
    X = np.round((X + center) * 1024) / 1024  # exact at both places
    near, far = (cf.PCA(2, solver="randomized", standardize=standardize).fit(form(rows)) for rows in (X - center, X))
    assert far.certificate_.holds
    np.testing.assert_allclose(far.explained_variance_, near.explained_variance_, rtol=1e-7)


def test_a_stream_whose_first_rows_mislead_about_the_mean_loses_no_variance(rng):
    X = rng.normal(size=(30_000, 3)) * [3, 2, 1]
    X[20_000:] += 1e7
    X[:20_000] *= 1e-3
    exact, found = cf.PCA(3).fit(X[20_000:]), cf.PCA(3, solver="randomized")
    w = np.where(np.arange(30_000) < 20_000, 1e-30, 1.0)
    found.fit(X, sample_weight=w)
    np.testing.assert_allclose(found.explained_variance_, exact.explained_variance_, rtol=1e-6)
    assert found.certificate_.holds


@pytest.mark.parametrize("tail", [1e-6, 1e-8])
def test_a_share_of_one_keeps_every_direction_that_varies(tail, rng):
    X = rng.normal(size=(40, 4)) * [1, tail, tail, tail]
    assert cf.PCA(1.0).fit(X).n_components_ == 4
    shares = cf.PCA().fit(X).explained_variance_ratio_
    enough = shares[2:].sum()  # two directions leave this
    if enough > 1e-13:
        assert cf.PCA(1 - 1.01 * enough).fit(X).n_components_ == 2
        assert cf.PCA(1 - 0.99 * enough).fit(X).n_components_ == 3


def test_the_most_likely_number_of_directions_is_that_of_the_formula_for_all_scales(rng):
    """Minka's evidence does not depend on the unit of one large column, and is infinite where the rest is 0."""
    X = rng.normal(size=(30, 5))
    assert (
        cf.PCA("mle").fit(X * [1e8, 1, 1, 1, 1]).n_components_ == cf.PCA("mle").fit(X * [1e4, 1, 1, 1, 1]).n_components_
    )
    X[:, 4] = X[:, 0]
    assert cf.PCA("mle").fit(X).n_components_ == 4


def test_probes_that_span_all_that_is_left_are_exact(rng):
    X = rng.normal(size=(60, 5)) * [5, 4, 3, 2, 1]
    found, exact = cf.PCA(2, solver="randomized").fit(X).certificate_, cf.PCA().fit(X)
    np.testing.assert_allclose(found.outside, exact.explained_variance_ratio_[2], rtol=1e-10)


@pytest.mark.parametrize("shape", [(40, 8), (8, 40)])
@pytest.mark.parametrize("n_components", [3, None])
def test_columns_and_rows_by_choice_give_the_same_directions(shape, n_components):
    X = np.random.default_rng(0).normal(size=shape) * np.geomspace(1, 3, shape[1])
    by_columns, by_rows = (cf.PCA(n_components, solver=solver).fit(X) for solver in ("columns", "rows"))
    assert by_columns.certificate_.holds and by_rows.certificate_.holds
    assert by_columns.n_components_ == by_rows.n_components_
    np.testing.assert_allclose(by_columns.explained_variance_, by_rows.explained_variance_, rtol=1e-9)
    np.testing.assert_allclose(by_columns.components_, by_rows.components_, atol=1e-7)
    np.testing.assert_allclose(by_columns.spectrum_.sum(), by_rows.spectrum_.sum(), rtol=1e-9)
    with pytest.raises(ValueError, match="needs the matrix of columns"):
        cf.PCA("mle", solver="rows").fit(X)
