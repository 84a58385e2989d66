"""Kernel PCA and kernel LMS: against explicit maps, scikit-learn and their formulas; what proofs refuse; files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sklearn.decomposition import KernelPCA as TheirPCA
from sklearn.exceptions import ConvergenceWarning

import certifit as cf
from certifit import kernels as ks
from certifit.modelfile.files import from_bytes, to_bytes
from certifit.models.kernel import components, descent

RNG = np.random.default_rng(21)
N = 90
X = RNG.normal(size=(N, 3)) * [1.0, 2.0, 0.5]
Y = np.sin(X[:, 0]) + X[:, 1] * X[:, 2]
NEW = RNG.normal(size=(20, 3))
KERNEL = ks.Gaussian(1.5)
FILES = Path(__file__).parents[2] / "modelfile" / "files"


def up_to_sign(a, b, **within):
    np.testing.assert_allclose(a * np.sign(np.sum(a * b, axis=0)), b, **within)


@pytest.mark.parametrize("weight", [None, RNG.integers(0, 3, size=N).astype(float)], ids=["rows", "weights"])
def test_kernel_pca_of_a_map_is_pca_of_its_features(weight):
    ours = cf.KernelPCA(3, kernel=ks.FeatureMap(ks.powers)).fit(X, sample_weight=weight)
    explicit = cf.PCA(3, ddof=0).fit(ks.powers(X), sample_weight=weight)
    up_to_sign(ours.transform(NEW), explicit.transform(ks.powers(NEW)), atol=1e-7)
    np.testing.assert_allclose(ours.explained_variance_, explicit.explained_variance_, rtol=1e-9)
    assert ours.certificate_.holds


def test_kernel_pca_is_scikit_learns():
    ours, theirs = cf.KernelPCA(4, kernel=KERNEL).fit(X), TheirPCA(4, kernel="rbf", gamma=1 / (2 * 1.5**2)).fit(X)
    np.testing.assert_allclose(ours.eigenvalues_, theirs.eigenvalues_, rtol=1e-9)
    up_to_sign(ours.transform(NEW), theirs.transform(NEW), atol=1e-9)


def test_few_directions_of_many_rows_are_those_of_all(monkeypatch):
    exact = cf.KernelPCA(3, kernel=KERNEL).fit(X)
    monkeypatch.setattr(components, "EXACT_UP_TO", 20)
    model = cf.KernelPCA(3, kernel=KERNEL).fit(X)
    assert model.certificate_.holds and model.certificate_.outside is not None
    up_to_sign(model.transform(NEW), exact.transform(NEW), atol=1e-6)


def test_scores_have_the_variances_of_their_directions():
    model = cf.KernelPCA(kernel=KERNEL).fit(X)
    scores = model.transform(X)
    np.testing.assert_allclose(np.mean(scores**2, axis=0), model.explained_variance_, atol=1e-10)
    np.testing.assert_allclose(scores.mean(axis=0), 0, atol=1e-9)
    assert model.explained_variance_.sum() == pytest.approx(model.total_variance_, rel=1e-9)


def test_a_turned_direction_is_not_proven():
    model = cf.KernelPCA(2, kernel=KERNEL).fit(X)
    model.eigenvectors_ = model.eigenvectors_ + 1e-4 * RNG.normal(size=model.eigenvectors_.shape)
    assert not model.certify(X).holds


def test_kernel_pca_takes_a_matrix_and_refuses_one_that_is_not_mercer():
    given = cf.KernelPCA(2, kernel="precomputed").fit(KERNEL(X, X))
    up_to_sign(given.transform(KERNEL(NEW, X)), cf.KernelPCA(2, kernel=KERNEL).fit(X).transform(NEW), atol=1e-8)
    with pytest.raises(ValueError, match="c'Gc = -"):
        cf.KernelPCA(2, kernel=lambda A, B: np.abs(A[:, :1] - B[:, :1].T)).fit(X)
    with pytest.raises(ValueError, match="at most the number of rows"):
        cf.KernelPCA(N + 1).fit(X)


def lms(phi, step, epochs, is_batch):
    """LMS on explicit features: theta += step (y - theta'phi) phi."""
    theta = np.zeros(phi.shape[1])
    for _ in range(epochs):
        if is_batch:
            theta = theta + step * phi.T @ (Y - phi @ theta)
        else:
            for row, y in zip(phi, Y, strict=True):
                theta = theta + step * (y - row @ theta) * row
    return theta


@pytest.mark.parametrize("updates", ["batch", "rows"])
def test_kernel_lms_is_lms_in_feature_space(updates):
    model = cf.KernelLMS(kernel=ks.Polynomial(2, 0.0), updates=updates, max_iter=7).fit(X, Y)
    theta = lms(ks.products(X), model.step_, 7, updates == "batch")
    np.testing.assert_allclose(model.predict(NEW), ks.products(NEW) @ theta, atol=1e-9)
    assert [row["iteration"] for row in model.history_] == list(range(1, 8))


@pytest.mark.parametrize("updates", ["batch", "rows"])
def test_a_step_that_is_not_stable_is_refused_with_the_largest_that_is(updates):
    G = KERNEL(X, X)
    limit = 2 / np.linalg.eigvalsh(G)[-1] if updates == "batch" else 2.0
    model = cf.KernelLMS(0.999 * limit, kernel=KERNEL, updates=updates).fit(X, Y)
    objectives = [row["objective"] for row in model.history_]
    assert model.certificate_.holds and objectives[-1] < objectives[0]
    with pytest.raises(ValueError, match="step must be below"):
        cf.KernelLMS(1.001 * limit, kernel=KERNEL, updates=updates).fit(X, Y)


@pytest.mark.parametrize("kernel", [KERNEL, ks.Linear(), ks.Polynomial(3)], ids=str)
def test_the_bound_on_the_largest_eigenvalue_is_one(monkeypatch, kernel):
    largest = np.linalg.eigvalsh(kernel(X, X))[-1]
    tight = 2 / cf.KernelLMS(kernel=kernel, max_iter=1).fit(X, Y).certificate_.largest_step
    assert largest * (1 - 1e-12) <= tight <= largest * 1.001
    monkeypatch.setattr(descent, "MOST_FACTORED", 10)
    loose = 2 / cf.KernelLMS(kernel=kernel, max_iter=1).fit(X, Y).certificate_.largest_step
    assert largest * (1 - 1e-12) <= loose


def test_an_objective_of_lms_below_float64_is_not_stated():
    rows = np.arange(5.0)[:, None] * 1e-151
    model = cf.KernelLMS(kernel=ks.Linear()).fit(rows, np.zeros(5))
    assert model.certificate_.holds  # all errors are 0
    model.dual_coef_ = np.ones(5)  # errors of 1e-301, whose squares are not
    certificate = model.certify(rows, np.zeros(5))
    assert not certificate.holds
    assert "below what float64 can state" in str(certificate)


def test_a_changed_coefficient_of_lms_is_seen():
    model = cf.KernelLMS(kernel=KERNEL).fit(X, Y)
    assert model.certify(X, Y).holds
    model.dual_coef_ = model.dual_coef_ * (1 + 1e-4)
    found = model.certify(X, Y)
    assert not found.holds and "states" in str(found)


def test_files_give_the_models_back():
    pca = cf.KernelPCA(2, kernel=ks.Gaussian() + ks.Linear(), standardize=True).fit(X)
    again = from_bytes(to_bytes(pca))
    assert np.array_equal(again.transform(NEW), pca.transform(NEW)) and again.certificate_ == pca.certificate_
    assert again.objective == pca.objective and again.certify(X).holds
    model = cf.KernelLMS(kernel=KERNEL, updates="rows", max_iter=5).fit(X, Y)
    again = from_bytes(to_bytes(model))
    assert np.array_equal(again.predict(NEW), model.predict(NEW)) and again.certificate_ == model.certificate_
    assert again.objective == model.objective and again.certify(X, Y).holds


def test_files_of_an_earlier_version_give_the_numbers_that_they_gave_then():
    points = np.linspace(-1, 1, 6).reshape(2, 3)
    np.testing.assert_allclose(
        cf.load(FILES / "kernel_lms_0.1.certifit").predict(points),
        [-1.3362798635107862, -0.6340147401378675],
        rtol=1e-12,
    )
    np.testing.assert_allclose(
        cf.load(FILES / "kernel_pca_0.1.certifit").transform(points),
        [[0.5326194032986962, -1.2450164852411696], [-1.480280842875881, -0.8638632065238389]],
        rtol=1e-12,
    )


def test_lms_on_rows_whose_kernel_is_all_rounding_is_not_proven():
    # Rows a few ulps apart at 1e150: the distances that the kernel reads are rounding.
    X = np.array([[1.0, 2.0], [1.0 + 2**-50, 2.0], [1.5, 2.0], [1.0, 2.0 + 2**-49]]) * 1e150
    with pytest.warns(ConvergenceWarning, match="NOT proven"):
        model = cf.KernelLMS(kernel=cf.kernels.Gaussian(60.0), max_iter=5).fit(X, [1.0, 2.0, 3.0, 4.0])
    assert not model.certificate_.holds
    assert "Rounding" in model.certificate_.fault


def test_rows_close_to_each_other_beside_an_identifier_keep_their_digits(seed):
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.normal(size=(40, 8)), 1e9 + rng.integers(10**6, size=40)])
    model = cf.KernelPCA(2).fit(X)  # the width is that of all entries, as for scikit-learn: k is 1 but for some 1e-6
    apart = X - X.mean(axis=0)
    squares = ((apart[:, None] - apart) ** 2).sum(axis=2)
    K = np.expm1(-squares / (2 * model.kernel_.sigma**2))
    K -= K.mean(axis=0)
    K -= K.mean(axis=1, keepdims=True)
    assert model.certificate_.holds
    assert model.explained_variance_ == pytest.approx(np.linalg.eigvalsh(K / 40)[:-3:-1], rel=1e-8, abs=0)
