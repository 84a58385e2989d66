"""Claims: candidates x folds of generalised linear models are those of refits, at the price of few passes."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from folding import offered
from sklearn.linear_model import LogisticRegressionCV
from sklearn.model_selection import StratifiedKFold

import certifit as cf
from certifit.data.source import Memory
from certifit.models.glm.fold_solver import FoldLosses
from certifit.selection.folds.engine import _refitted, has_sums, offered_scores
from certifit.selection.folds.metrics import own_scoring
from certifit.selection.folds.rows import Rows
from certifit.selection.folds.splits import rounds_of

N, D = 500, 6
ALPHAS = [{"alpha": alpha} for alpha in (1.0, 1e-5, 1e-2, 0.0)]
KINDS = ["logistic", "poisson", "gamma"]
MODELS = {"logistic": cf.LogisticRegression, "poisson": cf.PoissonRegressor, "gamma": cf.GammaRegressor}
SPLITS = {
    "folds": 5,
    "repeated": cf.Folds(3, repeats=2),
    "stratified": cf.Folds(4, stratify=True),
    "bootstrap": cf.Bootstrap(3),
    "scikit-learn": StratifiedKFold(3, shuffle=True, random_state=0),
}

OF_CLASSES = ("stratified", "scikit-learn")


@pytest.fixture
def problem(rng):
    """Rows of unequal units, their scores, and an offset that is in them."""
    X = rng.normal(size=(N, D)) * 10.0 ** rng.uniform(-2, 2, D) + rng.normal(size=D)
    offset = rng.normal(size=N) / 3
    z = (X - X.mean(axis=0)) / X.std(axis=0) @ (rng.normal(size=D) / 2) + offset
    return X, z, offset


def target(kind, z, rng):
    if kind == "logistic":
        return np.where(rng.random(len(z)) < 1 / (1 + np.exp(-z)), "yes", "no")
    return rng.poisson(np.exp(z)).astype(float) if kind == "poisson" else rng.gamma(2.0, np.exp(z) / 2)


def compared(model, rows, cv, candidates=ALPHAS, scoring=None):
    """Scores of all folds at once, and of refits."""
    rounds = rounds_of(cv, rows.source, rows.labels, rows.groups)
    found = offered_scores(model, rows, rounds, candidates, scoring, with_training=True)
    refits = _refitted(model, rows, rounds, candidates, own_scoring(model, scoring), None, "refits")
    return found, refits


def same(found, refits):
    assert found.route == "statistics" and refits.route == "refits"
    np.testing.assert_allclose(found.validation, refits.validation, rtol=1e-8)
    np.testing.assert_allclose(found.train, refits.train, rtol=1e-8)
    np.testing.assert_allclose(found.weight, refits.weight)


@pytest.mark.parametrize(
    ("kind", "cv"), [(kind, cv) for kind in KINDS for cv in SPLITS if kind == "logistic" or cv not in OF_CLASSES]
)
@pytest.mark.slow
def test_scores_of_all_splits_are_those_of_refits(kind, cv, problem, rng):
    X, z, _ = problem
    rows = Rows.of(MODELS[kind](), X, target(kind, z, rng))
    scoring = "neg_log_loss" if kind == "logistic" else None
    same(*compared(MODELS[kind](), rows, SPLITS[cv], scoring=scoring))


@pytest.mark.parametrize("kind", KINDS)
def test_coefficients_of_all_splits_are_those_of_refits(kind, problem, rng):
    X, z, _ = problem
    model, y = MODELS[kind](), target(kind, z, rng)
    rows = Rows.of(model, X, y)
    rounds = rounds_of(cf.Folds(4), rows.source)
    states = offered(model, rows.source, rounds, ALPHAS, rows.classes).states[0]
    fits = [[state.model if kind == "logistic" else state.weights for state in of_splits] for of_splits in states]
    for own, candidate in zip(fits, ALPHAS, strict=True):
        for fit, (train, _) in zip(own, cf.Folds(4).split(X), strict=True):
            alone = MODELS[kind](**candidate).fit(X[train], y[train])
            units = X.std(axis=0)
            np.testing.assert_allclose(fit.coef * units, np.ravel(alone.coef_) * units, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("kind", KINDS)
def test_weights_and_offsets_count_in_fits_and_in_scores(kind, problem, rng):
    X, z, offset = problem
    weight = rng.integers(0, 4, N).astype(float)
    rows = Rows.of(MODELS[kind](), X, target(kind, z, rng), weight, offset=offset)
    same(*compared(MODELS[kind](), rows, 4, scoring="neg_log_loss" if kind == "logistic" else None))


def test_groups_stay_together(problem, rng):
    X, z, _ = problem
    groups = rng.integers(0, 12, N)
    rows = Rows.of(cf.PoissonRegressor(), X, target("poisson", z, rng), groups=groups)
    same(*compared(cf.PoissonRegressor(), rows, 3))


@pytest.mark.parametrize("class_weight", ["balanced", {"yes": 3.0}])
def test_class_weights_are_those_of_every_training_set(class_weight, problem, rng):
    X, z, _ = problem
    model = cf.LogisticRegression(class_weight=class_weight)
    rows = Rows.of(model, X, target("logistic", z - 1, rng), rng.uniform(0.5, 2.0, N))
    candidates = [{"alpha": None}, {"alpha": 0.01}]
    same(*compared(model, rows, cf.Folds(4), candidates, "neg_log_loss"))


def test_alpha_none_is_one_over_the_weight_of_the_training_rows(problem, rng):
    X, z, _ = problem
    rows = Rows.of(cf.LogisticRegression(), X, target("logistic", z, rng))
    same(*compared(cf.LogisticRegression(), rows, cf.Bootstrap(2), [{"alpha": None}], "neg_log_loss"))


@pytest.mark.parametrize(
    "scoring", ["r2", "neg_mean_squared_error", "neg_mean_absolute_error", "neg_mean_gamma_deviance"]
)
def test_means_have_other_scores_too(scoring, problem, rng):
    X, z, _ = problem
    y = 1.0 + target("poisson", z, rng)
    same(*compared(cf.PoissonRegressor(), Rows.of(cf.PoissonRegressor(), X, y), 4, scoring=scoring))


def test_candidates_may_differ_in_more_than_alpha(problem, rng):
    X, z, _ = problem
    rows = Rows.of(cf.PoissonRegressor(), X, target("poisson", z, rng))
    grid = [
        {"alpha": a, "fit_intercept": b, "penalty_factors": {"x1": f}}
        for a in (1.0, 0.1)
        for b in (True, False)
        for f in (0.0, 2.0)
    ]
    same(*compared(cf.PoissonRegressor(), rows, 3, grid))


def test_a_fold_that_lacks_a_column_has_the_score_of_its_refit(problem, rng):
    """A column that is constant in some training rows has no weight there, penalty or none."""
    X, z, _ = problem
    X[:, 0] = np.arange(N) < 4  # all in the first fold of four
    cv = [(np.arange(4, N), np.arange(4)), (np.arange(N - 100), np.arange(N - 100, N))]
    rows = Rows.of(cf.PoissonRegressor(), X, target("poisson", z, rng))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        same(*compared(cf.PoissonRegressor(), rows, cv))


def test_classes_that_one_fold_separates_have_the_score_of_its_refit(rng):
    """Without a penalty there is no minimum: the fit of that fold goes its own way."""
    X = np.linspace(-1, 1, 60)[:, None]
    y = (X[:, 0] > 0).astype(int)
    y[[28, 31]] = 1 - y[[28, 31]]
    rows = Rows.of(cf.LogisticRegression(), X, y)
    cv = [(np.delete(np.arange(60), [28, 31]), np.array([28, 31])), (np.arange(10, 60), np.arange(10))]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found, refits = compared(cf.LogisticRegression(), rows, cv, [{"alpha": 0.0}, {"alpha": 1e-3}], None)
    np.testing.assert_allclose(found.validation, refits.validation, rtol=1e-8)


@pytest.mark.parametrize("kind", ["logistic", "poisson"])
def test_a_path_on_all_folds_takes_few_passes(kind, problem, rng, monkeypatch):
    X, z, _ = problem
    passes = {"evaluate": 0, "at": 0}
    for name in passes:
        inner = getattr(FoldLosses, name)

        def counted(self, *given, name=name, inner=inner):
            passes[name] += 1
            return inner(self, *given)

        monkeypatch.setattr(FoldLosses, name, counted)
    model = cf.CrossValidated(MODELS[kind](), {"alpha": np.geomspace(10, 1e-4, 10)}, cv=10).fit(X, target(kind, z, rng))
    assert model.route_ == "statistics"
    assert sum(passes.values()) <= 100  # one per fit


def test_weak_penalties_on_separable_classes_do_not_renew_hessians_in_vain(rng, monkeypatch):
    X = rng.normal(size=(300, 8)) * np.exp(2 * rng.normal(size=(300, 8)))
    rows = Rows.of(cf.LogisticRegression(), X, np.where(X[:, 0] + X[:, 1] > 0, "yes", "no"))
    passes, inner = [], FoldLosses.evaluate
    monkeypatch.setattr(FoldLosses, "evaluate", lambda *given: passes.append(1) or inner(*given))
    alphas = [{"alpha": alpha} for alpha in np.geomspace(1e-1, 1e-8, 8)]
    found, refits = compared(cf.LogisticRegression(), rows, 5, alphas, "neg_log_loss")
    np.testing.assert_allclose(found.validation, refits.validation, rtol=1e-6)
    assert len(passes) <= 25 * len(alphas)  # of 40 at most


@pytest.mark.slow
def test_the_default_grid_holds_the_best_alpha(problem, rng):
    X, z, _ = problem
    model = cf.CrossValidated(cf.LogisticRegression(), scoring="neg_log_loss").fit(X, target("logistic", z, rng))
    assert len(model.cv_results_["params"]) == 50 and 0 < model.best_index_ < 49
    model = cf.CrossValidated(cf.PoissonRegressor()).fit(X, target("poisson", z, rng))
    assert model.score(X, target("poisson", z, rng)) < 0  # a negative deviance


def test_more_than_two_classes_have_a_default_grid_and_folds_without_refits(problem, rng):
    X, z, _ = problem
    y = np.digitize(z, [-0.3, 0.3])
    rows = Rows.of(cf.LogisticRegression(), X, y)
    rounds = rounds_of(3, rows.source)
    assert len(cf.LogisticRegression().candidates(rows.source)) == 50
    assert has_sums(cf.LogisticRegression(), rows.source, rows.classes)
    assert offered(cf.LogisticRegression(), rows.source, rounds, classes=rows.classes) is not None
    by_name = cf.LogisticRegression(solver="lbfgs")
    assert offered(by_name, rows.source, rounds, classes=rows.classes) is None


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("l1_ratio", [1.0, 0.5])
def test_l1_penalties_share_a_path_with_the_scores_of_refits(kind, l1_ratio, problem, rng):
    X, z, _ = problem
    model = MODELS[kind](l1_ratio=l1_ratio, standardize=True)
    rows = Rows.of(model, X, target(kind, z, rng), rng.integers(0, 3, N).astype(float))
    candidates = [{"alpha": alpha} for alpha in (0.3, 1e-4, 0.1, 0.03, 0.0)]
    same(*compared(model, rows, 4, candidates, "neg_log_loss" if kind == "logistic" else None))


def test_bounds_and_penalty_factors_share_a_path_with_the_scores_of_refits(problem, rng):
    X, z, offset = problem
    X = X / X.std(axis=0)
    model = cf.PoissonRegressor(l1_ratio=0.9, bounds={"x0": (0, 0.1), "x1": (-0.05, 0)}, penalty_factors={"x2": 0.0})
    rows = Rows.of(model, X, target("poisson", z, rng), offset=offset)
    same(*compared(model, rows, 3, [{"alpha": 0.1}, {"alpha": 1e-3}]))


def test_l1_penalties_on_many_columns_are_a_path_of_working_sets_per_split(rng):
    X = rng.normal(size=(60, 450))
    y = target("logistic", 2 * X[:, 0] - X[:, 1], rng)
    model = cf.LogisticRegression(l1_ratio=1.0)
    found, refits = compared(model, Rows.of(model, X, y), 3, [{"alpha": 0.05}, {"alpha": 0.1}], "neg_log_loss")
    same(found, refits)


def test_a_column_that_a_training_set_lacks_has_no_weight_under_an_l1_penalty(problem, rng):
    X, z, _ = problem
    X[:, 0] = np.arange(N) < 4
    cv = [(np.arange(4, N), np.arange(4)), (np.arange(N - 100), np.arange(N - 100, N))]
    model = cf.PoissonRegressor(l1_ratio=1.0)
    same(*compared(model, Rows.of(model, X, target("poisson", z, rng)), cv, [{"alpha": 0.01}, {"alpha": 1e-4}]))


def test_a_solver_and_a_stop_of_the_users_choice_are_refitted(problem, rng):
    X, z, _ = problem
    y = target("poisson", z, rng)
    rows = Rows.of(cf.PoissonRegressor(), X, y)
    rounds = rounds_of(3, rows.source)
    for model in (cf.PoissonRegressor(solver="lbfgs"), cf.PoissonRegressor(step_tol=1.0)):
        assert offered(model, rows.source, rounds) is None


def test_losses_agree_with_scikit_learn(problem, rng):
    X, z, _ = problem
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    y = target("logistic", z, rng)
    folds = StratifiedKFold(4)
    strengths = np.array([0.01, 1.0, 100.0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        theirs = LogisticRegressionCV(
            Cs=strengths, cv=folds, scoring="neg_log_loss", solver="newton-cholesky", tol=1e-12, max_iter=1000
        ).fit(X, y)
    n_train = [len(train) for train, _ in folds.split(X, y)]
    for k, C in enumerate(strengths):
        rows = Rows.of(cf.LogisticRegression(), X, y)
        rounds = rounds_of(folds, rows.source, rows.labels)
        found = offered_scores(cf.LogisticRegression(), rows, rounds, [{"alpha": 1 / (C * n_train[0])}], "neg_log_loss")
        their_scores = np.asarray(next(iter(theirs.scores_.values())))[:, k].ravel()
        np.testing.assert_allclose(found.validation[0], their_scores, rtol=1e-7)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.slow
def test_files_and_dask_give_the_bits_of_arrays(kind, problem, rng, tmp_path):
    import dask.dataframe as dd

    X, z, offset = problem
    table = pd.DataFrame(X, columns=[f"c{j}" for j in range(D)])
    table["y"], table["w"], table["o"] = target(kind, z, rng), rng.uniform(0.5, 2.0, N), offset
    table.to_parquet(tmp_path / "rows.parquet", row_group_size=77)
    roles = {"target": "y", "weight": "w", "offset": "o"}
    scans = [
        cf.scan_parquet(tmp_path / "rows.parquet", **roles),
        cf.from_dask(dd.from_pandas(table, npartitions=3), **roles),
        cf.from_arrow(table, **roles),
    ]
    results = []
    for scan in scans:
        model = cf.CrossValidated(MODELS[kind](), {"alpha": [1.0, 0.01]}, cv=cf.Folds(4), scoring=None)
        results.append(model.fit(scan).cv_results_)
        assert model.route_ == "statistics"
    for other in results[1:]:
        for k in range(4):
            assert other[f"split{k}_test_score"].tobytes() == results[0][f"split{k}_test_score"].tobytes()


@pytest.mark.parametrize(("n_rows", "n_columns", "shares"), [(9, 200, True), (20_000, 500, True), (60_000, 500, False)])
def test_folds_of_many_columns_share_passes_up_to_a_number_of_products(n_rows, n_columns, shares):
    rows = Memory(np.broadcast_to(0.0, (n_rows, n_columns)), np.zeros(n_rows))
    assert cf.PoissonRegressor().shares_folds(rows, 0) is shares
