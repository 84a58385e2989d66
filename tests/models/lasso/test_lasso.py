"""Lasso and elastic net: the conditions of a minimum, the peers' answers, bounds, factors, paths, cross-validation."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from reference import elastic_net_excess
from scipy.optimize import lsq_linear, nnls
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import ElasticNet as PeerElasticNet
from sklearn.linear_model import Lasso as PeerLasso
from sklearn.linear_model import lasso_path

import certifit as cf

SHAPES = {"more rows": (90, 12), "more columns": (20, 32)}
FREE = [0.0, 0.0, 1.0]
PENALTIES: dict[str, dict[str, Any]] = {
    "lasso": {},
    "factors": {"penalty_factors": [0.5, 2.0, 1.0]},
    "unpenalised": {"penalty_factors": FREE},
    "not negative": {"bounds": (0.0, np.inf)},
    "not positive": {"bounds": (-np.inf, 0.0)},
    "box": {"bounds": (-0.1, 0.2)},
    "unpenalised, not negative": {"penalty_factors": FREE, "bounds": (0.0, np.inf)},
    "unpenalised, at most 0.1": {"penalty_factors": FREE, "bounds": (-np.inf, 0.1)},
}


def rows(rng: np.random.Generator, shape: str) -> tuple[Any, Any, Any]:
    n, d = SHAPES[shape]
    X = rng.normal(size=(n, d)) * 2.0 ** rng.integers(-2, 3, d) + rng.normal(size=d)
    y = X[:, :6] @ rng.normal(size=6) + rng.normal(size=n) + 3
    return X, y, rng.random(n) + 0.1


def options(penalty: str, d: int) -> dict[str, Any]:
    """The named penalty for d columns: factors of the first three, 1 for the rest."""
    given = dict(PENALTIES[penalty])
    if "penalty_factors" in given:
        given["penalty_factors"] = np.concatenate([given["penalty_factors"], np.ones(d - 3)])
    return given


def excess(model: Any, X: Any, y: Any, weight: Any) -> float:
    """How far the objective at the model's weights is above the least, from a slow solver; relative."""
    d = X.shape[1]
    factors = np.ones(d) if model.penalty_factors is None else np.asarray(model.penalty_factors)
    low, high = (-np.inf, np.inf) if model.bounds is None else model.bounds
    ratio = getattr(model, "l1_ratio", 1.0)
    penalty = (model.alpha * ratio * factors, model.alpha * (1 - ratio) * factors, low, high)
    return elastic_net_excess(X, y, weight, penalty, model.coef_, model.intercept_)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("shape", SHAPES)
def test_the_weights_are_those_of_scikit_learn(rng, shape, fit_intercept, weighted):
    X, y, weight = rows(rng, shape)
    weight = weight if weighted else None
    tight = {"fit_intercept": fit_intercept, "tol": 1e-15, "max_iter": 1_000_000}
    for alpha in (0.05, 0.3, 100.0):
        for ours, peer in (
            (cf.Lasso(alpha, fit_intercept=fit_intercept), PeerLasso(alpha, **tight)),
            (cf.ElasticNet(alpha, 0.3, fit_intercept=fit_intercept), PeerElasticNet(alpha, l1_ratio=0.3, **tight)),
        ):
            ours.fit(X, y, weight)
            peer.fit(X, y, weight)
            assert ours.coef_ == pytest.approx(peer.coef_, rel=1e-8, abs=1e-10)
            assert ours.intercept_ == pytest.approx(peer.intercept_, rel=1e-8, abs=1e-10)
            assert np.array_equal(ours.coef_ != 0, peer.coef_ != 0)
            assert ours.certificate_.holds


@pytest.mark.parametrize("ratio", [1.0, 0.4])
@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("shape", SHAPES)
def test_no_state_is_better_and_the_certificate_says_so(rng, shape, penalty, ratio):
    X, y, weight = rows(rng, shape)
    model = cf.ElasticNet(0.2, ratio, **options(penalty, X.shape[1])).fit(X, y, weight)
    assert model.certificate_.value < 1e-10
    assert abs(excess(model, X, y, weight)) < 1e-10
    low, high = (-np.inf, np.inf) if model.bounds is None else model.bounds
    assert ((model.coef_ >= low) & (model.coef_ <= high)).all()


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.slow
def test_a_perturbed_state_is_refused_and_its_excess_never_understated(rng, shape, penalty):
    X, y, weight = rows(rng, shape)
    model = cf.Lasso(0.2, **options(penalty, X.shape[1])).fit(X, y, weight)
    best, intercept = model.coef_.copy(), model.intercept_
    low, high = (-np.inf, np.inf) if model.bounds is None else model.bounds
    for size in (1e-6, 1e-3, 0.1):
        for which in (best != 0, np.arange(len(best)) == 8, np.ones(len(best), bool)):
            model.coef_ = np.clip(best + size * which * rng.normal(size=len(best)), low, high)
            model.intercept_ = intercept + size * rng.normal()
            said = model.certify(X, y, weight)
            true = excess(model, X, y, weight)
            assert said.value >= true * (1 - 1e-6) - 1e-12
            assert not (true > model.tol and said.holds)
    model.coef_, model.intercept_ = best + 0.5, intercept
    assert not model.certify(X, y, weight).holds


def test_weights_outside_their_bounds_are_never_certified(rng):
    X, y, _ = rows(rng, "more rows")
    model = cf.Lasso(0.1, bounds=(0.0, np.inf)).fit(X, y)
    free = cf.Lasso(0.1).fit(X, y)
    model.coef_, model.intercept_ = free.coef_, free.intercept_
    assert free.coef_.min() < 0
    assert model.certify(X, y).value == np.inf


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_without_a_penalty_bounds_give_scipys_bounded_least_squares(rng, fit_intercept):
    X, y, _ = rows(rng, "more rows")
    centre = (X.mean(axis=0), y.mean()) if fit_intercept else (0.0, 0.0)
    Z, t = X - centre[0], y - centre[1]
    model = cf.Lasso(0.0, bounds=(0.0, np.inf), fit_intercept=fit_intercept).fit(X, y)
    assert model.coef_ == pytest.approx(nnls(Z, t)[0], rel=1e-9, abs=1e-11)
    assert model.certificate_.holds
    box = cf.Lasso(0.0, bounds=(-0.2, 0.3), fit_intercept=fit_intercept).fit(X, y)
    peer = lsq_linear(Z, t, (-0.2, 0.3), tol=1e-14, method="bvls").x
    assert box.coef_ == pytest.approx(peer, rel=1e-8, abs=1e-9)
    assert box.certificate_.holds


def test_names_carry_factors_and_bounds_and_a_category_brings_its_levels(rng):
    n = 300
    frame = pd.DataFrame({"size": rng.normal(size=n), "age": rng.normal(size=n), "place": rng.choice(list("abc"), n)})
    y = 2 * frame["size"] - frame["age"] + (frame["place"] == "b") + rng.normal(size=n)
    bounds = {"size": "decreasing", "age": (-0.3, 0.0), "place": "increasing"}
    model = cf.Lasso(0.01, bounds=bounds, penalty_factors={"age": 0.0, "place": 5}, encoder=cf.TableEncoder())
    model.fit(frame, y)
    weights = dict(zip(model.column_names_, model.coef_, strict=True))
    assert weights["size"] == 0
    assert weights["age"] == -0.3
    assert min(weight for name, weight in weights.items() if name.startswith("place")) >= 0
    assert len(weights) == 4
    assert model.certificate_.holds


def test_levels_may_outnumber_the_rows(rng):
    frame = pd.DataFrame(
        {"size": rng.normal(size=40), "place": [f"p{i % 38}" for i in range(40)], "flag": ["u", "v"] * 20}
    )
    frame[["a", "b", "c"]] = rng.normal(size=(40, 3))
    y = 2 * frame["size"] + (frame["place"] == "p3") + rng.normal(size=40)
    model = cf.Lasso(0.05, encoder=cf.TableEncoder()).fit(frame, y)
    expanded = pd.DataFrame({name: np.zeros(40) for name in model.column_names_})
    for name in model.column_names_:
        column, _, level = name.partition("=")
        expanded[name] = (frame[column] == level).astype(float) if level else frame[column]
    assert len(model.column_names_) > len(frame)
    peer = PeerLasso(0.05, tol=1e-15, max_iter=1_000_000).fit(expanded, y)
    assert model.coef_ == pytest.approx(peer.coef_, rel=1e-8, abs=1e-10)
    assert model.certificate_.holds


def test_the_objective_is_told_as_it_is_minimised():
    plain, standard = cf.ElasticNet(0.5, 0.25), cf.ElasticNet(0.5, 0.25, standardize=True, penalty_factors=[1, 2])
    assert plain.objective.endswith("0.5 (0.25 |w|_1 + 0.75/2 |w|^2)")
    assert standard.objective.endswith("0.5 (0.25 factors * sd * |w|_1 + 0.75/2 factors * sd^2 * |w|^2)")
    assert cf.Lasso(0.5, standardize=True, bounds=(0, 1)).objective.endswith("0.5 sd * |w|_1 within bounds")


@pytest.mark.parametrize("shape", SHAPES)
def test_a_path_is_its_single_fits_and_scikit_learns_path(rng, shape):
    X, y, _ = rows(rng, shape)
    path = cf.Lasso().path(X, y, n_alphas=12)
    assert path.n_nonzero[0] == 0
    assert path.n_nonzero[1] > 0
    assert (np.diff(path.alphas) < 0).all()
    _, peer, _ = lasso_path(X - X.mean(axis=0), y - y.mean(), alphas=path.alphas, tol=1e-15, max_iter=1_000_000)
    assert path.coef == pytest.approx(peer.T, rel=1e-7, abs=1e-8)
    for alpha, coef, intercept in zip(path.alphas, path.coef, path.intercept, strict=True):
        single = cf.Lasso(alpha).fit(X, y)
        assert coef == pytest.approx(single.coef_, rel=1e-8, abs=1e-10)
        assert intercept == pytest.approx(single.intercept_, rel=1e-8, abs=1e-10)
    mixed = cf.Lasso().path(X, y, alphas=path.alphas[[3, 1, 7]])
    assert mixed.coef == pytest.approx(path.coef[[3, 1, 7]], rel=1e-8, abs=1e-10)


@pytest.mark.parametrize("kind", [sp.csr_array, sp.csc_array, sp.coo_array])
@pytest.mark.parametrize("shape", SHAPES)
def test_sparse_rows_give_the_dense_fit(rng, shape, kind):
    X, y, weight = rows(rng, shape)
    X[rng.random(X.shape) < 0.7] = 0
    dense, sparse = cf.Lasso(0.1).fit(X, y, weight), cf.Lasso(0.1).fit(kind(X), y, weight)
    assert sparse.coef_ == pytest.approx(dense.coef_, rel=1e-9, abs=1e-11)
    assert sparse.certificate_.holds


@pytest.mark.parametrize("shape", SHAPES)
def test_weights_are_repetitions(rng, shape):
    X, y, _ = rows(rng, shape)
    times = rng.integers(0, 4, len(y))
    weighted = cf.Lasso(0.1).fit(X, y, times)
    repeated = cf.Lasso(0.1).fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    assert weighted.coef_ == pytest.approx(repeated.coef_, rel=1e-9, abs=1e-11)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_fold_scores_are_those_of_refits(rng, shape, weighted):
    X, y, weight = rows(rng, shape)
    weight = weight if weighted else None
    model = cf.ElasticNet(l1_ratio=0.7)
    alphas = [0.02, 0.5, 0.1]
    tuned = cf.CrossValidated(model, {"alpha": alphas}, cv=4).fit(X, y, weight)
    assert tuned.route_ == "statistics"
    for k, (train, test) in enumerate(cf.Folds(4).split(X, y)):
        for a, alpha in enumerate(alphas):
            fold = PeerElasticNet(alpha, l1_ratio=0.7, tol=1e-15, max_iter=1_000_000)
            sides = (None, None) if weight is None else (weight[train], weight[test])
            fold.fit(X[train], y[train], sides[0])
            expected = fold.score(X[test], y[test], sides[1])
            assert tuned.cv_results_[f"split{k}_test_score"][a] == pytest.approx(expected, rel=1e-8, abs=1e-10)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.slow
def test_one_standard_error_never_penalises_less_than_the_minimum(rng, shape):
    for _ in range(10):
        X, y, _ = rows(rng, shape)
        least = cf.CrossValidated(cf.Lasso(), cv=5).fit(X, y)
        parsimonious = cf.CrossValidated(cf.Lasso(), cv=5, rule="1se").fit(X, y)
        assert parsimonious.best_params_["alpha"] >= least.best_params_["alpha"]
        counts = [np.count_nonzero(tuned.best_estimator_.coef_) for tuned in (parsimonious, least)]
        assert counts[0] <= counts[1] + 2  # an alpha above may bring a column back, not many


@pytest.mark.slow
def test_a_fit_that_stops_early_says_how_far_it_can_be(rng):
    X = rng.normal(size=(200, 1)) + 0.05 * rng.normal(size=(200, 40))
    y = X @ rng.normal(size=40) + rng.normal(size=200)
    with pytest.warns(ConvergenceWarning, match="NOT certified: the objective can be up to"):
        model = cf.Lasso(1e-4, max_iter=1).fit(X, y)
    assert model.n_iter_ == 1
    best = cf.Lasso(1e-4).fit(X, y)
    moved = np.sqrt(np.mean((model.predict(X) - best.predict(X)) ** 2))
    assert 1e-6 < moved <= model.certificate_.prediction_change
    assert f"Predictions can still move by up to {model.certificate_.prediction_change:.2g}" in str(model.certificate_)
    assert model.certificate_.value >= excess(model, X, y, None) > model.tol


@pytest.mark.parametrize("share", [0.1, 1e-4, 1e-8])
@pytest.mark.parametrize("apart", [1e-3, 1e-5, 1e-9])
def test_nearly_equal_columns_are_no_excuse(rng, apart, share):
    base = rng.normal(size=(300, 10))
    X = np.column_stack([base, base + apart * rng.normal(size=base.shape)])
    y = X @ rng.normal(size=20) + rng.normal(size=300)
    largest = cf.Lasso().path(X, y, n_alphas=2).alphas[0]
    assert cf.Lasso(share * largest).fit(X, y).certificate_.holds


@pytest.mark.parametrize("shape", SHAPES)
def test_the_trace_goes_from_no_weights_to_the_end(rng, shape):
    X, y, weight = rows(rng, shape)
    model = cf.Lasso(0.1).fit(X, y, weight)
    first, last = model.history_[0], model.history_[-1]
    share = weight / weight.sum()
    null = share @ (y - share @ y) ** 2 / 2
    best = share @ (y - model.predict(X)) ** 2 / 2 + 0.1 * np.abs(model.coef_).sum()
    assert first["objective"] == pytest.approx(null, rel=1e-12)
    assert last["objective"] == pytest.approx(best, rel=1e-12)
    assert first["gap"] == pytest.approx(null - best, rel=1e-9)
    assert last["gap"] / last["objective"] == pytest.approx(model.certificate_.value, rel=1e-12)
    assert last["iteration"] == model.n_iter_


def test_the_grid_starts_where_the_first_weight_appears(rng):
    for shape in SHAPES:
        X, y, _ = rows(rng, shape)
        largest = cf.Lasso().path(X, y, n_alphas=2).alphas[0]
        assert largest == pytest.approx(np.abs((X - X.mean(axis=0)).T @ (y - y.mean())).max() / len(y), rel=1e-12)
        assert not cf.Lasso(largest * (1 + 1e-9)).fit(X, y).coef_.any()
        assert cf.Lasso(largest * (1 - 1e-6)).fit(X, y).coef_.any()


@pytest.mark.parametrize("shape", SHAPES)
def test_a_second_look_at_the_data_gives_the_same_certificate(rng, shape):
    X, y, weight = rows(rng, shape)
    model = cf.Lasso(0.1).fit(X, y, weight)
    assert model.certify(X, y, weight) == model.certificate_


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("shape", SHAPES)
def test_standardize_is_the_fit_of_standardised_columns(rng, shape, fit_intercept):
    X, y, weight = rows(rng, shape)
    share = weight / weight.sum()
    mean = share @ X if fit_intercept else 0.0
    spread = np.sqrt(share @ (X - mean) ** 2)
    for bounds in (None, (-0.1, np.inf)):
        own = None if bounds is None else (bounds[0] * spread, bounds[1] * spread)
        plain = cf.ElasticNet(0.1, 0.6, fit_intercept=fit_intercept, bounds=own).fit((X - mean) / spread, y, weight)
        given = {"fit_intercept": fit_intercept, "bounds": bounds, "standardize": True}
        model = cf.ElasticNet(0.1, 0.6, **given).fit(X, y, weight)
        assert model.coef_ == pytest.approx(plain.coef_ / spread, rel=1e-9, abs=1e-11)
        assert model.certificate_.holds
        sparse = clone(model).fit(sp.csr_array(X), y, weight)
        assert sparse.coef_ == pytest.approx(model.coef_, rel=1e-9, abs=1e-11)
        assert sparse.certificate_.holds


@pytest.mark.parametrize("ratio", [1.0, 0.6])
@pytest.mark.parametrize("shape", SHAPES)
def test_every_training_set_is_standardised_by_its_own_rows(rng, shape, ratio):
    X, y, _ = rows(rng, shape)
    for bounds in (None, (-0.1, 0.2)):
        model = cf.ElasticNet(0.1, ratio, bounds=bounds, standardize=True)
        tuned = cf.CrossValidated(model, {"alpha": [0.05, 0.2]}, cv=4).fit(X, y)
        assert tuned.route_ == ("refits" if ratio < 1 and shape == "more columns" else "statistics")
        for k, (train, test) in enumerate(cf.Folds(4).split(X, y)):
            for a, alpha in enumerate([0.05, 0.2]):
                score = clone(model).set_params(alpha=alpha).fit(X[train], y[train]).score(X[test], y[test])
                assert tuned.cv_results_[f"split{k}_test_score"][a] == pytest.approx(score, rel=1e-8, abs=1e-10)


def test_a_column_that_never_varies_has_no_weight_standardised_or_not(rng):
    X, y, _ = rows(rng, "more rows")
    for constant in (0.0, 3.7, 1e12 / 3):
        X[:, 4] = constant
        for standardize in (False, True):
            model = cf.Lasso(0.05, standardize=standardize).fit(X, y)
            assert model.coef_[4] == 0
            assert model.certificate_.holds


def test_columns_that_sums_cannot_tell_apart_are_not_certified_wrongly(rng):
    x, z, other = rng.normal(size=(3, 200))
    X = np.column_stack([x, x + 1e-7 * z, other])  # (-1e7, 1e7, 0) fits z exactly
    exact = cf.Lasso(0.0).fit(X, z)
    assert exact.certificate_.holds
    assert exact.coef_ == pytest.approx([-1e7, 1e7, 0.0], rel=1e-4, abs=1e-3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for given in ({"penalty_factors": [0, 0, 1]}, {"bounds": (-np.inf, 1e9), "penalty_factors": [0, 0, 0]}):
            model = cf.Lasso(0.1, **given).fit(X, z)
            squares = np.mean((z - model.predict(X)) ** 2) / 2
            assert squares < 1e-10 or not model.certificate_.holds


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_standardised_fits_do_not_depend_on_units(rng, shape, sparse):
    X, y, _ = rows(rng, shape)
    X[rng.random(X.shape) < 0.6 * sparse] = 0.0
    form = sp.csr_array if sparse else np.asarray
    expected = cf.Lasso(0.1, standardize=True).fit(form(X), y).predict(form(X))
    for unit in (1e-29, 1e-15, 1e14, 1e100):
        whole, single = X * unit, X.copy()
        single[:, 0] *= unit
        for Z in (whole, single):
            model = cf.Lasso(0.1, standardize=True).fit(form(Z), y)
            assert model.predict(form(Z)) == pytest.approx(expected, rel=1e-9, abs=1e-9)
            assert model.certificate_.holds


@pytest.mark.parametrize("shape", SHAPES)
def test_an_offset_far_beyond_the_spread_changes_nothing(rng, shape):
    X, y, _ = rows(rng, shape)
    X = np.round(X * 64) / 64
    expected = cf.Lasso(0.1, standardize=True).fit(X, y).coef_
    # Sums of sparse columns are not shifted: with more rows than columns such an offset costs their digits.
    for form in (np.asarray,) if shape == "more rows" else (np.asarray, sp.csr_array):
        for offset in (1e5, 1e7):
            model = cf.Lasso(0.1, standardize=True).fit(form(X + offset), y)
            assert model.coef_ == pytest.approx(expected, rel=1e-6, abs=1e-7)


def test_sparse_columns_that_never_vary_have_no_weight(rng):
    for _ in range(50):
        X = np.column_stack([np.full(7, rng.choice([0.7, 0.1, 0.3])), rng.integers(0, 2, 7), np.ones(7)])
        for standardize in (False, True):
            model = cf.Lasso(0.1, standardize=standardize).fit(sp.csr_array(X), rng.normal(size=7))
            assert model.coef_[[0, 2]].tolist() == [0.0, 0.0]
            assert model.certificate_.holds


BAD = {
    "a negative alpha": (cf.Lasso(-1.0), "alpha must be a finite number >= 0"),
    "no share of L1": (cf.ElasticNet(l1_ratio=0.0), "For 0 use Ridge"),
    "a share above 1": (cf.ElasticNet(l1_ratio=1.5), "l1_ratio must be a number above 0 and at most 1"),
    "bounds without 0": (cf.Lasso(bounds=(0.5, 1.0)), "must have 0 between them"),
    "bounds that are NaN": (cf.Lasso(bounds=(np.nan, 1.0)), "must have 0 between them"),
    "bounds of a stranger": (
        cf.Lasso(bounds={"colour": (0, 1)}),
        "the data has no column 'colour'",
    ),
    "bounds in other words": (cf.Lasso(bounds={"x0": "up"}), "'increasing' or 'decreasing'"),
    "a number as a bound": (cf.Lasso(bounds={"x0": 3}), "must be .low, high."),
    "three ends": (cf.Lasso(bounds={"x0": (0, 1, 2)}), "must be .low, high."),
    "a factor beyond float64": (cf.Lasso(1e300, penalty_factors={"x0": 1e300}), "exceeds float64"),
    "three bounds": (cf.Lasso(bounds=(0, 1, 2)), "bounds must be"),
    "too few bounds": (cf.Lasso(bounds=([0.0], [1.0, 1.0])), "bounds must be"),
    "too few factors": (cf.Lasso(penalty_factors=[1.0]), "penalty_factors must be 12 finite numbers"),
    "a negative factor": (cf.Lasso(penalty_factors={"x0": -1.0}), "must be a finite number >= 0"),
    "no passes": (cf.Lasso(max_iter=0), "max_iter must be a whole number >= 1"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_parameter_is_named_with_what_is_legal(rng, case):
    X, y, _ = rows(rng, "more rows")
    model, words = BAD[case]
    with pytest.raises(ValueError, match=words):
        model.fit(X, y)


@pytest.mark.parametrize("alpha", [1e-8, 1e-16, 1e-30, 1e-300, 1e-320])
@pytest.mark.parametrize("shape", SHAPES)
def test_a_penalty_below_rounding_is_certified_too(rng, shape, alpha):
    X, y, weight = rows(rng, shape)
    model = cf.Lasso(alpha).fit(X, y, weight)
    assert model.certificate_.holds
    if shape == "more rows":
        plain = cf.LinearRegression().fit(X, y, weight)
        assert model.coef_ == pytest.approx(plain.coef_, rel=1e-5, abs=1e-6)


def test_no_bound_may_be_said_by_none(rng):
    X, y, _ = rows(rng, "more rows")
    given = cf.Lasso(0.01, bounds={"x0": (None, 0.1), "x1": (0, None)}).fit(X, y)
    same = cf.Lasso(0.01, bounds={"x0": (-np.inf, 0.1), "x1": "increasing"}).fit(X, y)
    assert np.array_equal(given.coef_, same.coef_)


def test_any_number_of_passes_is_legal(rng):
    X, y, _ = rows(rng, "more rows")
    assert cf.Lasso(0.1, max_iter=2**70).fit(X, y).certificate_.holds


def test_alphas_of_a_path_are_checked(rng):
    X, y, _ = rows(rng, "more rows")
    for alphas in ([0.1, -1.0], [np.nan], [np.inf]):
        with pytest.raises(ValueError, match="alphas must be a finite number >= 0"):
            cf.Lasso().path(X, y, alphas=alphas)
    for alphas in ([], [[1.0, 2.0]], "few", [None]):
        with pytest.raises(ValueError, match="alphas must be"):
            cf.Lasso().path(X, y, alphas=alphas)
    for n_alphas in (0, -1, 2.5, True, "two"):
        with pytest.raises(ValueError, match="n_alphas must be a whole number >= 1"):
            cf.Lasso().path(X, y, n_alphas=n_alphas)


def test_no_inference_under_a_penalty_and_the_reason_is_given(rng):
    X, y, _ = rows(rng, "more rows")
    with pytest.raises(ValueError, match="penalty"):
        cf.Lasso(0.1).fit(X, y).summary()


def test_sparse_columns_have_the_bits_of_sparse_rows_however_they_are_stored(rng):
    X = sp.random_array((30, 60), density=0.2, random_state=rng, format="csr")
    y = X[:, :3].sum(axis=1) + rng.normal(size=30)
    by_rows = cf.Lasso(alpha=0.01).fit(X, y)
    columns = sp.csc_array(X)
    turned = columns.copy()  # the entries of every column from the last to the first
    for j in range(60):
        at = slice(columns.indptr[j], columns.indptr[j + 1])
        turned.data[at], turned.indices[at] = columns.data[at][::-1], columns.indices[at][::-1]
    for given in (columns, turned, columns.astype(np.float32)):
        expected = by_rows if given.dtype == np.float64 else cf.Lasso(alpha=0.01).fit(given.tocsr(), y)
        np.testing.assert_array_equal(cf.Lasso(alpha=0.01).fit(given, y).coef_, expected.coef_)


def test_weights_that_leave_float64_are_refused_as_other_values_are():
    """Or fitted: where products of weights of rows 1e91 apart with a penalty of 1e-303 end differs by machine."""
    X, y, weight = np.array([[1.9, 0, 0.3], [0, 0, -1.1]]), np.array([-2.0, -0.8]), np.array([1e-31, 3e60])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        try:
            cf.ElasticNet(1e-303, l1_ratio=1e-6).fit(sp.csc_array(X), y, weight)
        except ValueError as refusal:
            assert "beyond float64" in str(refusal)
