"""Certificates of classes and components against exact rational arithmetic, on rows that are hard for float64."""

from __future__ import annotations

import math
import warnings
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp

import certifit as cf

KINDS = ["shared", "class"]


def exact_moments(X, y, w):
    """Share, mean and covariance of every class, as fractions."""
    total, out = sum(map(Fraction, w)), []
    for k in np.unique(y):
        rows = [(Fraction(w[i]), [Fraction(v) for v in X[i]]) for i in np.flatnonzero(y == k)]
        weight, d = sum(one for one, _ in rows), X.shape[1]
        mean = [sum(one * x[j] for one, x in rows) / weight for j in range(d)]
        covariance = [
            [sum(one * (x[i] - mean[i]) * (x[j] - mean[j]) for one, x in rows) / weight for j in range(d)]
            for i in range(d)
        ]
        out.append((weight / total, mean, covariance))
    return out


def determinant(matrix):
    matrix, out = [list(row) for row in matrix], Fraction(1)
    for i in range(len(matrix)):
        out *= matrix[i][i]
        for k in range(i + 1, len(matrix)):
            times = matrix[k][i] / matrix[i][i]
            matrix[k] = [a - times * b for a, b in zip(matrix[k], matrix[i], strict=True)]
    return out


def transformed(T, S):
    """T S T'."""
    half = [[sum(t * S[k][j] for k, t in enumerate(row)) for j in range(len(S))] for row in T]
    return [[sum(a * b for a, b in zip(row, other, strict=True)) for other in T] for row in half]


def log(value):
    """Of a fraction near 1 to full relative precision, of others as float64 has it."""
    return math.log1p(float(value - 1)) if abs(value - 1) < Fraction(1, 2) else math.log(value)


def exact_state(model, X, y, w):
    """(shortfall in nats per row, largest relative error of a covariance entry) of a model with no column left out."""
    classes = exact_moments(X, y, w)
    is_one, d = model.covariance == "shared", X.shape[1]
    nats, error = 0.0, 0.0
    matrices = [one[2] for one in classes]
    if is_one:
        pooled = [[sum(p * S[i][j] for p, _, S in classes) for j in range(d)] for i in range(d)]
        matrices = [pooled]
    for k, (share, mean, _) in enumerate(classes):
        T = [[Fraction(float(v)) for v in row] for row in model.roots_[0 if is_one else k]]
        step = [a - Fraction(float(b)) for a, b in zip(mean, model.means_[k], strict=True)]
        away = sum(sum(t * s for t, s in zip(row, step, strict=True)) ** 2 for row in T)
        nats += float(share) * (log(share / Fraction(float(model.priors_[k]))) + float(away) / 2)
    for k, S in enumerate(matrices):
        T = [[Fraction(float(v)) for v in row] for row in model.roots_[k]]
        M = transformed(T, S)
        own = (float(sum(M[i][i] - 1 for i in range(d))) - log(determinant(M))) / 2
        nats += own * (1.0 if is_one else float(classes[k][0]))
        stored = model.covariance_ if is_one else model.covariance_[k]
        for i in range(d):
            for j in range(d):
                size = math.sqrt(S[i][i] * S[j][j])
                error = max(error, abs(float(S[i][j] - Fraction(float(stored[i, j])))) / size)
    return nats, error


def nasty(rng, nearness, offset, weights):
    y = np.arange(24) % 2
    u, v, t = rng.normal(size=(3, 24))
    X = np.column_stack([u + y, u + y + nearness * v, t * 1e3]) + offset * np.array([0.0, 0.0, 1.0])
    w = {"ones": np.ones(24), "any": rng.uniform(0.1, 3, 24), "tiny": rng.uniform(0.5, 2, 24) * 1e-200}[weights]
    return X, y, w


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("weights", ["ones", "any", "tiny"])
@pytest.mark.parametrize(("nearness", "offset"), [(1e-5, 0.0), (1e-8, 1e9), (1e-10, 0.0), (1.0, 1e10)])
@pytest.mark.slow
def test_gaussian_classes_are_within_their_certificate(kind, weights, nearness, offset, rng):
    X, y, w = nasty(rng, nearness, offset, weights)
    model = cf.GaussianDiscriminant(kind).fit(X, y, w)
    nats, error = exact_state(model, X, y, w)
    assert model.certificate_.holds
    assert model.certificate_.value >= max(nats, error)
    for name in ("means_", "covariance_", "roots_", "priors_"):
        kept = getattr(model, name)
        for size in (1e-9, 1e-6, 1e-4):
            moved = kept.copy()
            moved[(-1,) * kept.ndim] *= 1 + size
            setattr(model, name, moved)
            again = model.certify(X, y, w)
            nats, error = exact_state(model, X, y, w)
            assert again.value >= max(nats, error) or not again.holds
            assert size < 1e-4 or not cf.verify(model, X, y, w)
        setattr(model, name, kept)


@pytest.mark.parametrize(("kind", "shrinkage"), [("shared", 0.0), ("diagonal", 0.1)])
def test_the_error_of_a_mean_counts_by_the_spread_of_the_best_covariance(kind, shrinkage, rng):
    """The second column lies far from 0, so that the rows are read about the state."""
    half = np.append(rng.normal(size=29), 1e3)
    X, y = np.c_[np.append(half, -half), 1e12 + rng.normal(size=60)], np.tile(np.arange(30) // 29, 2)
    model = cf.GaussianDiscriminant(kind, shrinkage=shrinkage).fit(X, y)
    classes = exact_moments(X, y, np.ones(60))
    pooled = [float(sum(share * S[j][j] for share, _, S in classes)) for j in range(2)]
    of_last = [float(classes[1][2][j][j]) for j in range(2)]
    variances = pooled if kind == "shared" else of_last
    variance = (1 - shrinkage) * variances[0] + shrinkage * sum(variances) / 2
    model.means_ = model.means_ + np.array([[0.0, 0.0], [1e-3, 0.0]])
    assert model.certify(X, y).value >= 1e-3 / math.sqrt(variance) * (1 - 1e-9)


def test_a_covariance_that_float64_cannot_invert_is_said_to_be_one(rng):
    X, y, _ = nasty(rng, 1e-8, 0.0, "ones")
    model = cf.GaussianDiscriminant().fit(X, y)
    assert model.certificate_.holds and "Take it from roots_" in str(model.certificate_)
    easy = cf.GaussianDiscriminant().fit(X[:, [0, 2]], y)
    assert "roots_" not in str(easy.certificate_)


def test_a_near_copy_is_not_certified_as_one(rng):
    """Whole numbers: the second column is 2^44 times the first and the class, which only its last digit tells."""
    a, y = rng.integers(0, 9, 40), np.arange(40) % 2
    X = np.column_stack([a, a * 2.0**44 + y, rng.normal(size=40)])
    with pytest.warns(match="NOT certified: Column 'x1' is left out"):
        model = cf.GaussianDiscriminant().fit(X, y)
    assert not model.certificate_.holds
    exact = cf.GaussianDiscriminant().fit(np.column_stack([a, a * 2.0**44, X[:, 2]]), y)
    assert exact.certificate_.holds and "say nothing more" in str(exact.certificate_)
    third = np.column_stack([a, a / 3, X[:, 2]])
    rounded = cf.GaussianDiscriminant().fit(third, y)
    assert rounded.certificate_.holds and "treating 'x1' as constant or a combination" in str(rounded.certificate_)


def test_a_column_of_large_numbers_that_tells_the_class_is_not_constant():
    y = np.arange(20) % 2
    X = np.column_stack([1e15 + y, np.random.default_rng(0).normal(size=20)])
    with pytest.warns(match="NOT certified: Column 'x0' is left out"):
        model = cf.GaussianDiscriminant("diagonal").fit(X, y)
    assert not model.certificate_.holds


@pytest.mark.parametrize("kind", ["shared", "class", "diagonal"])
def test_a_singular_covariance_has_a_millionth_of_each_variance_added(kind, rng):
    X, y = rng.normal(size=(30, 3)) * [1e-60, 1.0, 1e60], np.arange(30) % 2
    X[:, 1] = y
    with pytest.warns(match="has no maximum. A millionth of every column's variance"):
        model = cf.GaussianDiscriminant(kind).fit(X, y)
    added = 1e-6 * X.var(axis=0)
    variances = model.covariance_ if kind == "diagonal" else np.diagonal(model.covariance_, axis1=-2, axis2=-1)
    within = np.array([X[y == k].var(axis=0) for k in (0, 1)])
    within = within.mean(axis=0) if kind == "shared" else within
    np.testing.assert_allclose(variances, within + added, rtol=1e-12)
    assert model.certificate_.holds and model.score(X, y) == 1 and cf.verify(model, X, y)


def exact_counts(model, X, y, w):
    """Shortfall of the smoothed likelihood in nats per row, in fractions but for logarithms of numbers near 1."""
    total, alpha, out = sum(map(Fraction, w)), Fraction(model.alpha), Fraction(0)
    for k in range(len(model.classes_)):
        own = np.flatnonzero(y == k)
        weight = sum(Fraction(w[i]) for i in own)
        counts = [sum(Fraction(w[i]) * Fraction(X[i, j]) for i in own) for j in range(X.shape[1])]
        whole = sum(counts) + alpha * len(counts)
        for n, stored in zip(counts, model.feature_log_prob_[k], strict=True):
            p = (n + alpha) / whole
            out += weight / total * sum(counts) / weight * p * (exact_log(p) - Fraction(float(stored)))
        out += weight / total * (exact_log(weight / total) - Fraction(float(model.class_log_prior_[k])))
    return float(out)


def exact_log(p):
    """log p to 80 digits."""
    with localcontext() as context:
        context.prec = 80
        return Fraction((Decimal(p.numerator) / Decimal(p.denominator)).ln())


@pytest.mark.parametrize("size", [1.0, 1e6, 1e9])
@pytest.mark.parametrize("alpha", [1.0, 1e-10])
def test_words_in_great_numbers_are_certified_where_they_are_right(size, alpha, rng):
    """Roundings of logarithms count once per word: chances that add up to 1 beyond float64 keep them from adding up."""
    X, y = np.round(rng.poisson(3.0, (12, 8)) * size), np.arange(12) % 2
    w = rng.uniform(0.5, 2.0, 12)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = cf.MultinomialNB(alpha).fit(X, y, w)
    truth = exact_counts(model, X, y, w)
    assert model.certificate_.value >= truth
    assert model.certificate_.holds or truth > 1e-9
    assert model.certificate_.holds or size > 1e9


@pytest.mark.parametrize("kind", [cf.MultinomialNB, cf.BernoulliNB])
def test_a_class_of_next_to_no_weight_is_checked_as_the_others(kind, rng):
    X, y = rng.poisson(1.0, (30, 5)).astype(float), np.arange(30) % 2
    w = np.where(y == 0, 1.0, 1e-200) * rng.uniform(0.5, 2.0, 30)
    model = kind().fit(X, y, w)
    assert model.certificate_.holds and cf.verify(model, X, y, w)
    for k in (0, 1):
        for j in range(5):
            model.feature_log_prob_[k, j] *= 1 + 1e-4
            assert not cf.verify(model, X, y, w)
            model.feature_log_prob_[k, j] /= 1 + 1e-4


def test_the_weight_of_the_rows_without_a_column_is_exact(rng):
    """A column that all rows but a light one have: the difference of two large sums."""
    w = np.concatenate([10.0 ** rng.uniform(0, 8, 40), [1e-9 / 3]])
    X, y = np.ones((82, 1)), np.repeat([0, 1], 41)
    X[40] = X[41] = 0.0
    model = cf.BernoulliNB(1e-12).fit(X, y, np.tile(w, 2))
    absent, weight, alpha = Fraction(w[40]), sum(map(Fraction, w)), Fraction(1e-12)
    expected = float((absent + alpha) / (weight + 2 * alpha))
    np.testing.assert_allclose(-np.expm1(model.feature_log_prob_[0, 0]), expected, rtol=1e-12)
    assert model.certificate_.holds


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("value", [1e18, 1e30])
def test_a_constant_column_hides_no_variance(kind, value, rng):
    """The directions of the other columns, exactly: they have the variances that they have without it."""
    Z = rng.normal(size=(6, 2))
    model = cf.PCA().fit(kind(np.c_[np.full(6, value), Z]))
    alone = cf.PCA().fit(Z)
    assert model.certificate_.holds and alone.certificate_.holds
    np.testing.assert_allclose(model.explained_variance_, alone.explained_variance_, rtol=1e-12)
    np.testing.assert_allclose(model.components_[:, 1:], alone.components_, atol=1e-12)
    np.testing.assert_allclose(model.components_[:, 0], 0.0, atol=1e-15)


@pytest.mark.parametrize("solver", ["exact", "randomized"])
@pytest.mark.filterwarnings("ignore:NOT certified")
def test_rows_that_vary_are_not_said_to_be_constant(solver):
    """The standard deviation is six times the distance of neighbouring numbers."""
    X = sp.csr_array(1e18 + 128.0 * np.array([[-9.0, 0], [9, 0], [-4, 0], [4, 0], [0, 0]]))
    model = cf.PCA(1, solver=solver).fit(X)
    assert not model.certificate_.holds or model.explained_variance_[0] > 0


@pytest.mark.parametrize("solver", ["exact", "randomized"])
@pytest.mark.parametrize("shape", [(40, 3), (6, 300)])
@pytest.mark.parametrize("offset", [1e8, 1e12, 1e14])
def test_components_of_rows_far_from_zero_have_their_variance(solver, shape, offset, rng):
    X = rng.normal(size=shape) + offset
    model = cf.PCA(2, solver=solver).fit(X)
    centred = [[Fraction(v) - sum(map(Fraction, column)) / len(column) for v in column] for column in X.T]
    total = sum(float(sum(v * v for v in column)) for column in centred) / (shape[0] - 1)
    Z = np.array([[float(v) for v in column] for column in centred]).T
    expected = np.linalg.svd(Z, compute_uv=False)[:2] ** 2 / (shape[0] - 1)
    np.testing.assert_allclose(model.explained_variance_, expected, rtol=1e-10)
    np.testing.assert_allclose(model.total_variance_, total, rtol=1e-12)
    assert model.certificate_.holds
    assert model.certificate_.explained == pytest.approx(expected.sum() / total, rel=1e-9)


@pytest.mark.parametrize("solver", ["exact", "randomized"])
def test_standard_deviations_of_rows_that_are_not_centred_are_about_the_mean(solver, rng):
    X = rng.integers(-5, 6, (40, 3)) + np.array([0.0, 1e10, 0.0])
    model = cf.PCA(1, center=False, standardize=True, solver=solver).fit(X)
    exact = [Fraction(v) for v in X[:, 1]]
    mean = sum(exact) / 40
    np.testing.assert_allclose(model.scale_[1], math.sqrt(sum((v - mean) ** 2 for v in exact) / 40), rtol=1e-9)
    constant = cf.PCA(1, center=False, standardize=True, solver=solver, ddof=0).fit(np.full((5, 1), 3.0))
    np.testing.assert_allclose(constant.explained_variance_, [9.0], rtol=1e-12)


def exact_variances(X, y, w, smoothing):
    """Variances of every class with what is added to them, as fractions."""
    own = [[S[j][j] for j in range(X.shape[1])] for _, _, S in exact_moments(X, y, w)]
    whole = exact_moments(X, np.zeros(len(y)), w)[0][2]
    added = Fraction(smoothing) * max(whole[j][j] for j in range(X.shape[1]))
    return [[v + added for v in row] for row in own]


@pytest.mark.filterwarnings("ignore:NOT certified")  # means of neighbouring numbers lie between them
@pytest.mark.parametrize("smoothing", [0.0, 1e-9, 1e-3])
@pytest.mark.parametrize("weights", ["ones", "any"])
def test_variances_at_an_offset_are_those_of_the_rows(smoothing, weights, rng):
    y = np.arange(12) % 2
    ulps = rng.integers(-4, 5, size=12)
    X = np.column_stack([1e14 + rng.normal(size=12) + y, 2.0**52 + ulps, 1e8 * (1 + rng.normal(size=12))])
    w = np.ones(12) if weights == "ones" else rng.uniform(0.1, 3, 12)
    model = cf.GaussianNB(var_smoothing=smoothing).fit(X, y, w)
    right = exact_variances(X, y, w, smoothing)
    for given, size in ((model.var_, 0.0), (model.var_ * (1 + 1e-5), 1e-5)):
        model.var_ = given
        error = max(
            abs(float((Fraction(float(a)) - b) / b))
            for x, r in zip(given, right, strict=True)
            for a, b in zip(x, r, strict=True)
        )
        assert model.certify(X, y, w).value >= error
        assert size > 0 or error < 1e-12


def test_a_word_never_seen_is_refused_in_words():
    X = np.array([[6.0, 0.0], [12.0, 0.0], [9.0, 0.0], [11.0, 0.0], [16.0, 0.0], [7.0, 0.0], [9.0, 0.0]])
    w = [1.917003012595948, 1.917003012595948, 1.917003012595948, 1.0965072340412607, 0.5118378429833207,
         1.2087430027204376, 0.2356968598939261]  # fmt: skip
    with warnings.catch_warnings(), pytest.raises(ValueError, match="a chance of 0 or 1"):
        warnings.simplefilter("error")
        cf.BernoulliNB(alpha=0.0).fit(X, [0, 1, 0, 1, 0, 0, 1], w)


def test_a_constant_column_has_no_variance_whatever_the_weights(rng):
    y, w = np.arange(12) % 3, rng.uniform(0.1, 3, 12)
    X = np.column_stack([np.full(12, 0.1), rng.normal(size=12)])
    model = cf.GaussianNB(var_smoothing=0.0).fit(X, y, w)
    assert model.redundant_ == (0,) and model.certificate_.holds
    assert (model.var_[:, 0] == 0).all()
    X[5, 0] = np.nextafter(0.1, 1)  # not constant: classes without a variance are refused, not smoothed by rounding
    with pytest.raises(ValueError, match="constant within class"):
        cf.GaussianNB(var_smoothing=0.0).fit(X, y, w)


@pytest.mark.filterwarnings("ignore")
def test_a_variance_far_below_the_rounding_of_its_mean_counts_by_its_own_size():
    X = np.array([[1438462380374823.0, 0.25], [1438462380374823.5, 0.75], [1438462380374824.5, -0.5]])
    model = cf.GaussianDiscriminant(covariance="shared").fit(X, [0, 1, 2])  # a millionth of the variance, and no more
    assert model.certificate_.holds
    model.covariance_ = model.covariance_ * np.array([[1.01, 1.0], [1.0, 1.0]])
    assert model.certify(X, [0, 1, 2]).value >= 0.0099


@pytest.mark.parametrize("kind", ["class", "diagonal"])
@pytest.mark.filterwarnings("ignore:The covariance is singular", "ignore:Column 'x0' is constant")
def test_a_column_that_one_class_has_no_variance_of_is_left_out_of_all(kind):
    """The single row of class 1 has no variances to shrink towards, and nothing is added to those of a constant."""
    X, y = np.array([[-0.25, 0.1], [-1.5, 0.1], [0.75, 0.1]]), [0, 1, 0]
    model = cf.GaussianDiscriminant(kind, shrinkage=1e-6).fit(X, y)
    assert model.redundant_ == (1,) and model.certificate_.holds
    sizes = model.roots_[:, 0] if kind == "diagonal" else np.diagonal(model.roots_, axis1=1, axis2=2)
    added = Fraction(1e-6) * sum((Fraction(x) - Fraction(-1, 3)) ** 2 for x in X[:, 0]) / 3
    shrunk = (1 - Fraction(1e-6) / 2) * Fraction(1, 4)  # half of 1e-6 goes to the other column
    np.testing.assert_allclose(sizes[:, 0] ** -2.0, [float(shrunk + added), float(added)], rtol=1e-12)
    assert not sizes[:, 1].any()
    model.roots_ = model.roots_.copy()
    model.roots_[0, -1, 1] = 3e3  # one class alone uses the column: its density is over more columns than the other's
    assert not model.certify(X, y).holds


@pytest.mark.parametrize("shrinkage", [0.0, 0.1])
def test_a_sparse_constant_column_has_no_variance(shrinkage, rng):
    """Sums of a sparse column are about 0: what they leave of a constant is rounding, of either sign."""
    w = rng.uniform(0.1, 3, (20, 12))
    for weights in w:
        X, y = np.column_stack([np.full(12, 1e-20), rng.integers(0, 9, 12)]), np.arange(12) % 2
        model = cf.GaussianDiscriminant(shrinkage=shrinkage).fit(sp.csr_array(X), y, weights)
        classes = exact_moments(X, y, weights)
        variance = sum(share * S[1][1] for share, _, S in classes)
        assert model.covariance_[0, 0] == pytest.approx(shrinkage * float(variance) / 2, rel=1e-12, abs=0.0)
        assert model.certificate_.holds
        model.covariance_ = model.covariance_ + np.diag([-1e-72 if shrinkage == 0 else 1e-6, 0.0])
        assert not model.certify(sp.csr_array(X), y, weights).holds


def test_a_variance_near_the_end_of_float64_has_the_digits_that_are_stored():
    """A variance of 1e-313 is stored in steps of 5e-324: the certificate counts them."""
    X = np.array([[0.0], [2.5e-151], [5e-151], [7.5e-151], [1e-150]])
    model = cf.GaussianNB(var_smoothing=1e-12).fit(X, [0, 1, 2, 1, 2])
    values = [Fraction(x) for x in X[:, 0]]
    mean = sum(values) / 5
    alone = Fraction(1e-12) * sum((x - mean) ** 2 for x in values) / 5  # of a class of one row: the smoothing
    error = abs(Fraction(float(model.var_[0, 0])) / alone - 1)
    assert error <= Fraction(float(model.certificate_.value)) < Fraction(1, 10**9)


@pytest.mark.parametrize("route", ["columns", "rows", "products"])
@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
@pytest.mark.parametrize(("size", "level"), [(1e-150, 1e10), (1e-10, 1e10), (1e-150, 1e150)])
def test_a_constant_column_does_not_set_the_unit_of_small_ones(route, storage, size, level):
    """Squares of 1e-150 beside a constant 1e10 would be below float64: the variances are those without it."""
    powers = np.arange(1, 301) if route == "rows" else np.arange(1, 4)
    Z = size * np.cos(np.outer(np.arange(6 if route == "rows" else 17), powers))
    variances = np.linalg.svd((Z - Z.mean(axis=0)) / size, compute_uv=False)[:2] ** 2 / (len(Z) - 1)
    solver = "randomized" if route == "products" else "exact"
    for standardize in (False, True):
        model = cf.PCA(2, solver=solver, standardize=standardize).fit(storage(np.insert(Z, 1, level, axis=1)))
        assert model.certificate_.holds and model.route_ == route
        assert model.mean_[1] == pytest.approx(level, rel=1e-14)
        if not standardize:
            np.testing.assert_allclose(model.explained_variance_ / size / size, variances, rtol=1e-9)


def test_standardized_columns_of_any_sizes_have_products_of_rows():
    Z = np.cos(np.outer(np.arange(6), np.arange(1, 301)))
    sizes = np.where(np.arange(300) % 2, 1e-150, 1e150)
    model, alone = cf.PCA(2, standardize=True).fit(Z * sizes), cf.PCA(2, standardize=True).fit(Z)
    assert model.certificate_.holds and model.route_ == "rows"
    np.testing.assert_allclose(model.explained_variance_, alone.explained_variance_, rtol=1e-9)


@pytest.mark.parametrize("constant", [0.1, 1e14, 1e-12])
@pytest.mark.parametrize("kind", ["shared", "class", "diagonal"])
def test_a_constant_column_is_shrunk_in_its_own_unit(kind, constant, rng):
    """Its standard deviation counts as 1, as everywhere: 1e14 had a variance of 1e27, and the certificate held."""
    pytest.importorskip("flint", reason="python-flint is not installed (certifit[exact])")
    X, y = np.c_[rng.normal(size=(28, 2)), np.full(28, constant)], np.arange(28) % 2
    model = cf.GaussianDiscriminant(kind, shrinkage=0.5, standardize=True).fit(X, y)
    zeros = cf.GaussianDiscriminant(kind, shrinkage=0.5, standardize=True).fit(X * [1, 1, 0], y)
    assert model.covariance_ == pytest.approx(zeros.covariance_, rel=1e-12)
    assert cf.verify(model, X, y, exact=True)
