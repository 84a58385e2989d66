"""Models compared on the same columns and splits draw on one Gram matrix by cell."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import certifit as cf
from certifit.data.cells import ByRow, Splits
from certifit.data.source import Memory, Source
from certifit.models.folds import Candidates
from certifit.models.least_squares import fold_path
from certifit.selection.folds import rows as store
from certifit.selection.folds.rows import Shared

THREE = {"least squares": cf.LinearRegression(), "ridge": cf.Ridge(), "lasso": cf.CrossValidated(cf.Lasso())}
LABELS = np.array(["no", "yes"])


@pytest.fixture
def passes(monkeypatch):
    """The sources whose Gram matrices were summed by cell, one entry per pass."""
    sources = []

    def counted(source, *args):
        sources.append(source)
        return cell_grams(source, *args)

    cell_grams = fold_path.cell_grams
    monkeypatch.setattr(fold_path, "cell_grams", counted)
    return sources


def problem(rng, n=120):
    X = rng.normal(size=(n, 4))
    return X, X @ [1.0, 2.0, 0.0, 0.5] + rng.normal(size=n)


def scan(**columns):
    return cf.from_arrow(pd.DataFrame(columns), target="y")


def test_three_models_take_one_pass_for_their_folds(rng, passes):
    X, y = problem(rng)
    board = cf.leaderboard(THREE, X, y)
    assert {entry.route for entry in board.entries} == {"statistics"}
    assert len(passes) == 1


def test_bias_and_variance_take_no_pass_of_their_own(rng, passes):
    X, y = problem(rng)
    parts = cf.leaderboard(THREE, X, y, n_decomposed=5).decomposition
    assert len(passes) == 1
    assert len(parts.candidates) == len(parts.error) == len(parts.variance) == 5
    assert cf.leaderboard(THREE, X, y).decomposition is None
    too_coarse = cf.leaderboard(THREE, X, y, cv=4, n_decomposed=5).decomposition  # four cells tell no variance
    assert too_coarse is not None and len(passes) == 1 + 1 + 2


@pytest.mark.slow
def test_variance_by_folds_is_that_of_fits_to_new_rows(rng):
    alphas, fits = [1e-3, 0.1, 1.0], []
    for _ in range(100):
        X, y = problem(rng, 300)
        models = [cf.Ridge(alpha).fit(X, y) for alpha in alphas]
        fits.append([np.append(model.coef_, model.intercept_) for model in models])
    truth = np.var(fits, axis=0, ddof=1).sum(axis=1)  # the columns are independent, of mean 0 and variance 1
    ratios = []
    for _ in range(12):
        X, y = problem(rng, 300)
        board = cf.leaderboard(
            {"ridge": cf.CrossValidated(cf.Ridge(), {"alpha": [*alphas, 2.0]})}, X, y, n_decomposed=3
        )
        assert [one["alpha"] for one in board.decomposition.candidates] == [1e-3, 1.0, 2.0]
        ratios.append(board.decomposition.variance[:2] / truth[[0, 2]])
    np.testing.assert_allclose(np.mean(ratios, axis=0), 1, atol=0.35)


def test_models_of_a_table_share_its_encoded_columns(rng, passes):
    X, y = problem(rng)
    table = scan(a=X[:, 0], b=np.where(X[:, 1] > 1, np.nan, X[:, 1]), y=y)
    cf.leaderboard(THREE, table)
    assert len(passes) == 1


@pytest.mark.parametrize("model", [cf.Lasso(), cf.ElasticNet(standardize=True), cf.Lasso(fit_intercept=False)])
@pytest.mark.parametrize("is_table", [False, True])
def test_the_default_alphas_of_the_lasso_take_no_pass(rng, model, is_table, monkeypatch):
    X, y = problem(rng)
    rows = (scan(a=X[:, 0], b=np.where(X[:, 1] > 1, np.nan, X[:, 1]), y=y),) if is_table else (X, y)
    alphas = cf.CrossValidated(model, cv=5).fit(*rows).cv_results_["param_alpha"]
    expected = model.path(*rows).alphas
    np.testing.assert_allclose(np.asarray(alphas, dtype=float), expected, rtol=1e-12)
    reduce, passes = Source.reduce, []

    def counted(source, f):
        passes.append(f)
        return reduce(source, f)

    monkeypatch.setattr(Source, "reduce", counted)
    counts = []
    for grid in (None, {"alpha": list(expected)}):
        passes.clear()
        cf.leaderboard({"lasso": cf.CrossValidated(model, grid)}, *rows, cv=5)
        counts.append(len(passes))
    assert counts[0] == counts[1] > 0


def test_splits_that_leave_rows_out_have_the_alphas_of_all_rows(rng):
    X, y = problem(rng)
    y[:20] += 50 * X[:20, 0]
    splits = [(np.arange(40, 120), np.arange(20, 40)), (np.arange(20, 80), np.arange(80, 120))]
    alphas = cf.CrossValidated(cf.Lasso(), cv=splits).fit(X, y).cv_results_["param_alpha"]
    np.testing.assert_allclose(np.asarray(alphas, dtype=float), cf.Lasso().path(X, y).alphas, rtol=1e-12)


def test_a_nested_choice_takes_no_further_pass(rng, passes):
    X, y = problem(rng)
    cf.leaderboard(THREE, X, y, cv=4, nested=True)
    assert len(passes) == 1


def test_other_columns_have_their_own_pass(rng, passes):
    X, y = problem(rng)
    cf.leaderboard({"plane": cf.LinearRegression(), "curve": cf.LinearRegression(basis=cf.Polynomial(2))}, X, y)
    assert len(passes) == 2


def test_scores_are_those_of_models_alone(rng):
    X, y = problem(rng)
    board = cf.leaderboard(THREE, X, y)
    for name, model in THREE.items():
        assert np.array_equal(board[name].fold_scores, cf.leaderboard({name: model}, X, y)[name].fold_scores)


def test_what_is_forgotten_is_made_again_with_equal_bits(rng, passes, monkeypatch):
    monkeypatch.setattr(store, "MOST_BYTES", 1)
    X, y = problem(rng)
    source, shared = Memory(X, y), Shared()
    rounds = [Splits.folds(ByRow(5, seed)) for seed in (0, 1)]
    first, _, again = (
        cf.Ridge().folds(source, [splits], Candidates([{}]), shared).squares() for splits in (*rounds, rounds[0])
    )
    assert len(passes) == 3
    assert np.array_equal(first.validation, again.validation)


ESTIMATORS = {
    "numbers": [
        cf.LinearRegression(), cf.Ridge(0.1), cf.Lasso(0.1), cf.ElasticNet(0.1), cf.HuberRegressor(scale=1.0),
        cf.GLM("gaussian"),
    ],
    "counts": [cf.PoissonRegressor(0.1), cf.GammaRegressor(0.1)],
    "classes": [
        cf.LogisticRegression(), cf.GaussianDiscriminant(), cf.GaussianNB(), cf.BernoulliNB(), cf.MultinomialNB(),
        cf.Perceptron(max_iter=5),
    ],
}  # fmt: skip


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("kind", ESTIMATORS)
@pytest.mark.slow
def test_every_estimator_is_cross_validated_on_a_scan_as_on_arrays(rng, kind):
    X, z = problem(rng)
    X = np.abs(X)
    y = {"numbers": z, "counts": np.exp(z / 9), "classes": LABELS[(z > 0).astype(int)]}[kind]
    source = scan(**{f"x{j}": X[:, j] for j in range(4)}, y=y)
    for model in ESTIMATORS[kind]:
        grid = {"fit_intercept": [True, False]} if "fit_intercept" in model.get_params() else None
        folds = cf.Folds(4, stratify=kind == "classes")
        of_scan, of_arrays = (
            cf.CrossValidated(model, grid, cv=folds).fit(*data).cv_results_["mean_test_score"]
            for data in ((source,), (X, y))
        )
        np.testing.assert_allclose(of_scan, of_arrays, rtol=1e-9, err_msg=repr(model))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_model_of_margins_has_no_log_loss(rng):
    X, z = problem(rng)
    source = scan(a=X[:, 0], y=LABELS[(z > 0).astype(int)])
    with pytest.raises(AttributeError, match="predict_proba"):
        cf.CrossValidated(cf.Perceptron(max_iter=5), scoring="neg_log_loss", cv=3).fit(source)
