"""Kernel ridge regression: against its equations, ridge on explicit maps and scikit-learn; its proof; folds; files."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_ridge import KernelRidge as TheirRidge
from sklearn.model_selection import KFold, LeaveOneOut

import certifit as cf
from certifit import kernels as ks
from certifit.cli.inspect import inspect
from certifit.modelfile.files import from_bytes, to_bytes
from certifit.models.kernel import folds, solver
from certifit.models.kernel.fold_systems import Columns, FoldSystems

RNG = np.random.default_rng(20)
N = 120
X = RNG.normal(size=(N, 3)) * [1.0, 2.0, 0.5]
Y = np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * RNG.normal(size=N)
WEIGHT = RNG.integers(1, 4, size=N).astype(float)
NEW = RNG.normal(size=(30, 3))
KERNEL = ks.Gaussian(1.5)
ALPHAS = [1e-5, 1e-2, None, 1.0]


def objective(model, f_rows, norm, weight=None):
    errors = np.average(np.square(Y - f_rows), weights=weight)
    return errors / 2 + model.alpha_ / 2 * norm


def at(model, dual, intercept, weight=None):
    """The objective of other coefficients."""
    K = model.kernel_(model.X_fit_, model.X_fit_)
    return objective(model, model.kernel_(X, model.X_fit_) @ dual + intercept, dual @ K @ dual, weight)


@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["rows", "weights"])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_coefficients_solve_the_equations(fit_intercept, weight):
    model = cf.KernelRidge(0.01, kernel=KERNEL, fit_intercept=fit_intercept).fit(X, Y, weight)
    w = np.ones(N) if weight is None else weight
    left = KERNEL(X, X) @ model.dual_coef_ + 0.01 * w.sum() * model.dual_coef_ / w + model.intercept_
    np.testing.assert_allclose(left, Y, atol=1e-11)
    assert abs(model.dual_coef_.sum()) < 1e-10 if fit_intercept else model.intercept_ == 0
    assert model.certificate_.holds and model.certificate_.value < 1e-15


@pytest.mark.parametrize(
    "kernel, phi",
    [(ks.Linear(), np.asarray), (ks.Polynomial(2, 0.0), ks.products), (ks.FeatureMap(ks.powers), ks.powers)],
    ids=["linear", "squares", "powers"],
)
def test_it_is_ridge_on_the_explicit_map(kernel, phi):
    ridge, model = cf.Ridge(0.1).fit(phi(X), Y), cf.KernelRidge(0.1, kernel=kernel).fit(X, Y)
    np.testing.assert_allclose(model.predict(NEW), ridge.predict(phi(NEW)), rtol=1e-8, atol=1e-8)
    assert model.intercept_ == pytest.approx(ridge.intercept_, rel=1e-8)


def test_without_an_intercept_it_is_scikit_learns():
    theirs = TheirRidge(alpha=1.0, kernel="rbf", gamma=1 / (3 * X.var())).fit(X, Y)
    np.testing.assert_allclose(
        cf.KernelRidge(fit_intercept=False).fit(X, Y).predict(NEW), theirs.predict(NEW), atol=1e-11
    )


def test_conjugate_gradients_find_what_a_factor_finds(monkeypatch):
    direct = cf.KernelRidge(1e-3, kernel=KERNEL).fit(X, Y, WEIGHT)
    monkeypatch.setattr(solver, "DIRECT", 10)
    model = cf.KernelRidge(1e-3, kernel=KERNEL).fit(X, Y, WEIGHT)
    np.testing.assert_allclose(model.predict(NEW), direct.predict(NEW), atol=1e-8)
    assert model.certificate_.holds


@pytest.mark.parametrize("kernel", [KERNEL, ks.Polynomial(3), ks.Gaussian(0.5) + 0.1 * ks.Linear()], ids=str)
def test_the_certificate_is_never_below_the_true_excess(kernel):
    model = cf.KernelRidge(0.01, kernel=kernel).fit(X, Y, WEIGHT)
    dual, intercept = model.dual_coef_, model.intercept_
    best = at(model, dual, intercept, WEIGHT)
    for size in (1e-8, 1e-4, 1e-1, 10.0):
        model.dual_coef_ = dual + size * np.std(dual) * RNG.normal(size=N)
        model.intercept_ = intercept + size * RNG.normal()
        value = at(model, model.dual_coef_, model.intercept_, WEIGHT)
        assert model.certify(X, Y, WEIGHT).value * value >= (value - best) * (1 - 1e-6) - 1e-14


def test_a_nudge_of_a_coefficient_is_seen():
    model = cf.KernelRidge(0.01).fit(X, Y)
    before = model.certificate_
    model.dual_coef_ = model.dual_coef_.copy()
    model.dual_coef_[7] *= 1 + 1e-4
    after = model.certify(X, Y)
    assert after.value > 10 * before.value + after.rounding


def test_rows_in_another_order_prove_the_same_function():
    model, order = cf.KernelRidge(0.01).fit(X, Y), RNG.permutation(N)
    assert model.certify(X[order], Y[order]).holds
    assert not model.certify(X[order], Y).holds


def test_landmarks_are_bounded_against_the_exact_model():
    exact = cf.KernelRidge(0.01, kernel=KERNEL).fit(X, Y)
    best = at(exact, exact.dual_coef_, exact.intercept_)
    gaps = []
    for n_landmarks in (5, 40, N):
        model = cf.KernelRidge(0.01, kernel=KERNEL, n_landmarks=n_landmarks, tol=10.0).fit(X, Y)
        value = at(model, model.dual_coef_, model.intercept_)
        assert len(model.X_fit_) <= n_landmarks
        assert (value - best) / value <= model.certificate_.value + 1e-12
        gaps.append(model.certificate_.value)
    assert gaps[0] > gaps[1] > gaps[2] and gaps[2] < 1e-8
    with pytest.warns(ConvergenceWarning, match="Raise n_landmarks"):
        cf.KernelRidge(0.01, kernel=KERNEL, n_landmarks=5).fit(X, Y)


def test_a_precomputed_matrix_gives_the_same_fit():
    ours = cf.KernelRidge(0.01, kernel=KERNEL).fit(X, Y, WEIGHT)
    given = cf.KernelRidge(0.01, kernel="precomputed").fit(KERNEL(X, X), Y, WEIGHT)
    np.testing.assert_allclose(given.predict(KERNEL(NEW, X)), ours.predict(NEW), atol=1e-10)
    assert given.__sklearn_tags__().input_tags.pairwise
    assert given.certificate_.holds and str(given.certificate_).startswith("If the kernel is Mercer")
    assert from_bytes(to_bytes(given)).predict(KERNEL(NEW, X)).tolist() == given.predict(KERNEL(NEW, X)).tolist()
    with pytest.raises(ValueError, match="square matrix"):
        cf.KernelRidge(kernel="precomputed").fit(X, Y)


def test_a_kernel_that_the_rows_refute_is_refused_with_its_vector_or_claims_less():
    def distance(A, B):
        return np.abs(A[:, :1] - B[:, :1].T)

    with pytest.raises(ValueError, match=r"c'Gc = -.* at row .*indefinite='allow'"):
        cf.KernelRidge(kernel=distance).fit(X, Y)
    model = cf.KernelRidge(0.1, kernel=distance, indefinite="allow").fit(X, Y)
    assert str(model.certificate_).startswith("Stationary point only")
    with pytest.raises(ValueError, match="not symmetric"):
        cf.KernelRidge(kernel=lambda A, B: A[:, :1] + 0 * B[:, :1].T, indefinite="allow").fit(X, Y)


def refits(model, alphas, splits, weight=None):
    scores = np.zeros(len(alphas))
    for k, alpha in enumerate(alphas):
        errors, total = 0.0, 0.0
        for train, test in splits:
            w = np.ones(N) if weight is None else weight
            fit = clone(model).set_params(alpha=alpha).fit(X[train], Y[train], w[train])
            errors += w[test] @ np.square(Y[test] - fit.predict(X[test])) / (w[test].sum() if len(test) > 1 else 1)
            total += 1
        scores[k] = errors / total
    return scores


@pytest.mark.parametrize("most_eigen", [1500, 20], ids=["eigenvalues", "gradients"])
@pytest.mark.parametrize("standardize", [False, True])
def test_folds_of_all_alphas_are_those_of_refits(monkeypatch, standardize, most_eigen):
    monkeypatch.setattr(folds, "MOST_EIGEN", most_eigen)
    cv = KFold(3, shuffle=True, random_state=0)
    model = cf.KernelRidge(kernel=KERNEL, standardize=standardize)
    search = cf.CrossValidated(model, {"alpha": ALPHAS}, cv=cv, scoring="neg_mean_squared_error").fit(X, Y, WEIGHT)
    expected = refits(model, ALPHAS, list(cv.split(X)), WEIGHT)
    np.testing.assert_allclose(-search.cv_results_["mean_test_score"], expected, rtol=1e-8)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize(
    "kernel", [900.0 * ks.Polynomial(2, c=1.0), ks.Gaussian(1.5) + ks.Linear()], ids=["scaled", "sum"]
)
def test_steps_in_float32_find_the_fits_of_all_folds(monkeypatch, kernel, fit_intercept):
    model = cf.KernelRidge(kernel=kernel, fit_intercept=fit_intercept)
    cv = KFold(3, shuffle=True, random_state=0)
    alphas = {"alpha": [3.0, 100.0]}
    exact = cf.CrossValidated(model, alphas, cv=cv, scoring="neg_mean_squared_error").fit(X, Y)
    monkeypatch.setattr(folds, "MOST_EIGEN", 20)
    monkeypatch.setattr(folds, "_alone", None)  # float32 must do
    search = cf.CrossValidated(model, alphas, cv=cv, scoring="neg_mean_squared_error").fit(X, Y)
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], exact.cv_results_["mean_test_score"], rtol=1e-7)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_alphas_between_others_are_solved_to_the_same_digits(monkeypatch, fit_intercept):
    model = cf.KernelRidge(kernel=KERNEL, fit_intercept=fit_intercept)
    cv = KFold(3, shuffle=True, random_state=0)
    alphas = {"alpha": list(RNG.permutation(np.geomspace(1e-3, 1.0, 9)))}
    exact = cf.CrossValidated(model, alphas, cv=cv, scoring="neg_mean_squared_error").fit(X, Y)
    monkeypatch.setattr(folds, "MOST_EIGEN", 20)
    monkeypatch.setattr(folds, "_alone", None)
    search = cf.CrossValidated(model, alphas, cv=cv, scoring="neg_mean_squared_error").fit(X, Y)
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], exact.cv_results_["mean_test_score"], rtol=1e-8)


def test_an_alpha_is_between_two_near_ones_of_its_own_training_set():
    columns = Columns(np.repeat([0, 1], [5, 4]), np.array([16.0, 1.0, 4.0, 2.0, 1e9, 1.0, 3.0, 100.0, 200.0]))
    np.testing.assert_array_equal(np.flatnonzero(columns.between()), [3])  # 2 of 1, 2, 4; not 16 of 4, 16, 1e9


@pytest.mark.parametrize("is_alike", [True, False], ids=["groups", "rows"])
def test_the_preconditioner_has_the_rows_of_each_training_set(is_alike):
    is_in = np.arange(N)[:, None] % 4 != np.arange(4)
    roots = np.sqrt(is_in * WEIGHT[:, None] * (1.0 if is_alike else RNG.uniform(1.0, 2.0, size=(N, 4))))
    roots /= np.linalg.norm(roots, axis=0)
    systems = FoldSystems(KERNEL, X, roots, 1.0, is_centred=False, seed=0)
    for root, values, vectors in zip(systems.roots.T, systems.values, systems.vectors, strict=True):
        part = root[:, None] * systems.F.astype(np.float64)
        np.testing.assert_allclose((vectors * values) @ vectors.T, part.T @ part, atol=1e-6)


def test_alphas_that_float32_cannot_step_for_are_solved_in_float64(monkeypatch):
    model, cv = cf.KernelRidge(kernel=KERNEL), KFold(3, shuffle=True, random_state=0)
    alphas = {"alpha": [1e-10, 1e9]}
    exact = cf.CrossValidated(model, alphas, cv=cv, scoring="neg_mean_squared_error").fit(X, Y)
    monkeypatch.setattr(folds, "MOST_EIGEN", 20)
    search = cf.CrossValidated(model, alphas, cv=cv, scoring="neg_mean_squared_error").fit(X, Y)
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], exact.cv_results_["mean_test_score"], rtol=1e-4)


def test_folds_fill_gaps_by_their_own_means():
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(kind=np.where(X[:, 0] > 0, "u", "v"))
    frame.loc[RNG.random(N) < 0.2, "b"] = np.nan
    cv = KFold(3, shuffle=True, random_state=1)
    model = cf.KernelRidge(0.01, kernel=ks.Gaussian(2.0), standardize=True, encoder=cf.TableEncoder())
    search = cf.CrossValidated(model, {"alpha": [0.01]}, cv=cv, scoring="neg_mean_squared_error").fit(frame, Y)
    expected = []
    for train, test in cv.split(frame):
        fit = clone(model).fit(frame.iloc[train], Y[train])
        expected.append(np.mean(np.square(Y[test] - fit.predict(frame.iloc[test]))))
    assert -search.cv_results_["mean_test_score"][0] == pytest.approx(np.mean(expected), rel=1e-9)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.slow
def test_leaving_out_one_row_is_that_of_refits(monkeypatch, fit_intercept):
    model = cf.KernelRidge(kernel=KERNEL, fit_intercept=fit_intercept)
    search = cf.CrossValidated(model, {"alpha": ALPHAS}, cv="loo", scoring="neg_mean_squared_error").fit(X[:40], Y[:40])
    expected = refits(model, ALPHAS, list(LeaveOneOut().split(X[:40])))
    np.testing.assert_allclose(-search.cv_results_["mean_test_score"], expected, rtol=1e-7)
    monkeypatch.setattr(folds, "MOST_LEFT_OUT", 30)
    with pytest.raises(ValueError, match="cv=10"):
        search.fit(X[:40], Y[:40])


def test_a_width_from_the_data_is_one_for_all_folds():
    cv = KFold(4)
    found = cf.CrossValidated(cf.KernelRidge(), {"alpha": ALPHAS}, cv=cv).fit(X, Y)
    fixed = cf.KernelRidge(kernel=ks.Gaussian("scale").resolved(X))
    expected = cf.CrossValidated(fixed, {"alpha": ALPHAS}, cv=cv).fit(X, Y)
    np.testing.assert_allclose(
        found.cv_results_["mean_test_score"], expected.cv_results_["mean_test_score"], rtol=1e-12
    )


def test_what_exceeds_the_memory_is_refused_with_what_to_do():
    with cf.memory(1e5), pytest.raises(MemoryError, match="n_landmarks=1000"):
        cf.KernelRidge().fit(X, Y)


STORED = {
    "gaussian": None,
    "sum": 2 * ks.Gaussian(1.0) + ks.Linear().on([0, 2]) ** 2,
    "polynomial": ks.Polynomial(2).polynomial((1.0, 0.5)) * ks.Matrix(np.eye(3)),
    "exp": (0.1 * ks.Linear()).exp() + ks.Constant(0.5),
}


@pytest.mark.parametrize("name", STORED)
def test_a_file_gives_the_model_back(name):
    model = cf.KernelRidge(0.05, kernel=STORED[name], standardize=name == "sum").fit(X, Y)
    again = from_bytes(to_bytes(model))
    assert again.predict(NEW).tolist() == model.predict(NEW).tolist()
    assert again.kernel == model.kernel and again.kernel_ == model.kernel_
    assert again.objective == model.objective and again.certificate_ == model.certificate_
    assert again.certify(X, Y).holds and to_bytes(again) == to_bytes(model)


def test_a_file_of_an_earlier_version_gives_the_numbers_that_it_gave_then():
    model = cf.load(Path(__file__).parents[2] / "modelfile" / "files" / "kernel_ridge_0.1.certifit")
    points = np.linspace(-1, 1, 6).reshape(2, 3)
    np.testing.assert_allclose(model.predict(points), [-1.671243658776616, -0.9881414979746804], rtol=1e-12)
    assert model.kernel == ks.Gaussian("scale") + 0.5 * ks.Linear() and model.certificate_.holds


def test_an_inspection_states_that_rows_are_kept(tmp_path):
    cf.save(cf.KernelRidge(0.1).fit(X, Y), tmp_path / "model.certifit")
    result = CliRunner().invoke(inspect, [str(tmp_path / "model.certifit")])
    assert f"{N} of them are, for predictions are made of them, in the file" in " ".join(result.output.split())


def test_a_function_is_not_stored():
    model = cf.KernelRidge(0.1, kernel=lambda A, B: A @ B.T).fit(X, Y)
    with pytest.raises(ValueError, match="no code"):
        to_bytes(model)
    with pytest.raises(ValueError, match="no code"):
        to_bytes(cf.KernelRidge(0.1, kernel=ks.Linear().of(np.tanh)).fit(X, Y))


def test_parameters_are_refused_in_words():
    for settings, words in (
        ({"kernel": "rbf"}, "certifit.kernels.Gaussian"),
        ({"kernel": 3}, "kernel of certifit.kernels"),
        ({"alpha": 0.0}, "above 0"),
        ({"kernel": "precomputed", "standardize": True}, "needs rows"),
        ({"n_landmarks": N + 1}, "at most the number of rows"),
    ):
        with pytest.raises((ValueError, TypeError), match=words):
            cf.KernelRidge(**settings).fit(X, Y)
    with pytest.raises(ValueError, match="beyond the largest float64"):
        cf.KernelRidge(kernel=ks.Polynomial(9)).fit(X * 1e60, Y)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_landmarks_of_rows_whose_kernel_is_0_everywhere(fit_intercept):
    X = np.zeros((5, 2))
    y = np.arange(1.0, 6.0)
    model = cf.KernelRidge(0.1, kernel=cf.kernels.Linear(), n_landmarks=2, fit_intercept=fit_intercept).fit(X, y)
    assert model.certificate_.holds and model.predict([[0.0, 1.0]]) == [3.0 * fit_intercept]


def test_landmarks_whose_equations_are_singular_are_no_error():
    """The penalty is lost beside the squares of the features, and one row has all the weight."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        X, y = 1e3 * rng.normal(size=(10, 2)), rng.normal(size=10)
        weight = 10.0 ** -rng.uniform(38, 280, size=10)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = cf.KernelRidge(1e-9, kernel=cf.kernels.Polynomial(2), n_landmarks=4).fit(X, y, weight)
        assert np.isfinite(model.predict(X)).all()
