"""standardize=True: the fit of standardised columns, told in the user's units. Another unit changes nothing."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from chunks import batches, memory
from sklearn.base import clone
from sklearn.linear_model import ElasticNet as PeerElasticNet
from sklearn.linear_model import LogisticRegression as PeerLogistic
from sklearn.linear_model import Ridge as PeerRidge
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import certifit as cf

UNITS = np.array([1000.0, 1.0, 1.0, 1e-3, 1.0])
MODELS = {
    "ridge": cf.Ridge(0.1, standardize=True),
    "ridge without intercept": cf.Ridge(0.1, standardize=True, fit_intercept=False),
    "ridge with an L1 part": cf.ElasticNet(0.1, 0.3, standardize=True),
    "ridge with an L1 part without intercept": cf.ElasticNet(0.1, 0.3, standardize=True, fit_intercept=False),
    "Huber": cf.HuberRegressor(alpha=0.1, standardize=True),
    "Huber of a median scale": cf.HuberRegressor(alpha=0.1, scale="mad", standardize=True),
    "Huber without intercept": cf.HuberRegressor(alpha=0.1, scale=0.5, standardize=True, fit_intercept=False),
    "logistic": cf.LogisticRegression(0.05, standardize=True),
    "logistic with an L1 part": cf.LogisticRegression(0.05, 0.5, standardize=True),
    "softmax": cf.LogisticRegression(0.05, standardize=True),
    "softmax without intercepts": cf.LogisticRegression(0.05, standardize=True, fit_intercept=False),
    "Poisson": cf.PoissonRegressor(0.1, standardize=True),
    "Poisson lasso": cf.PoissonRegressor(0.05, 1.0, standardize=True),
    "Poisson without intercept": cf.PoissonRegressor(0.1, 0.5, standardize=True, fit_intercept=False),
    "Gamma": cf.GammaRegressor(0.1, standardize=True),
    "GLM": cf.GLM("poisson", alpha=0.1, l1_ratio=0.3, standardize=True, penalty_factors=[1.0, 0.0, 2.0, 1.0, 1.0]),
}
TUNED = ["ridge", "logistic", "softmax", "Poisson", "Gamma"]


def problem(name: str) -> tuple[Any, Any, Any]:
    """Columns of unlike sizes far from zero, a target of the model's kind, and weights."""
    rng = np.random.default_rng(3)
    Z = rng.normal(size=(150, 5))
    X = Z * [1.0, 100.0, 0.01, 5.0, 1e4] + [0.0, 3.0, 1.0, -20.0, 1e5]
    z = Z @ [0.5, -0.4, 0.3, 0.0, 0.2]
    kinds = {
        "logistic": lambda: (z + rng.logistic(size=150) > 0).astype(int),
        "softmax": lambda: np.digitize(z + rng.normal(size=150), [-0.5, 0.5]),
        "Poisson": lambda: rng.poisson(np.exp(z)).astype(float),
        "GLM": lambda: rng.poisson(np.exp(z)).astype(float),
        "Gamma": lambda: rng.gamma(2.0, np.exp(z) / 2),
        "ridge": lambda: z + rng.normal(size=150),
        "Huber": lambda: z + rng.standard_t(2, size=150),
    }
    return X, kinds[name.split(maxsplit=1)[0]](), rng.uniform(0.5, 2.0, 150)


def answers(model: Any, X: Any) -> Any:
    return model.predict_proba(X) if hasattr(model, "predict_proba") else model.predict(X)


def standardised(X: Any, weight: Any, centred: bool) -> Any:
    centre = np.average(X, axis=0, weights=weight) if centred else 0.0
    return (X - centre) / np.sqrt(np.average((X - centre) ** 2, axis=0, weights=weight))


@pytest.fixture(scope="module", params=MODELS)
def fit(request: Any) -> tuple[Any, Any, Any, Any]:
    X, y, weight = problem(request.param)
    return clone(MODELS[request.param]).fit(X, y, weight), X, y, weight


def test_the_fit_is_certified_and_that_of_standardised_columns(fit):
    model, X, y, weight = fit
    Z = standardised(X, weight, model.fit_intercept)
    other = clone(model).set_params(standardize=False).fit(Z, y, weight)
    assert model.certificate_.holds
    assert answers(model, X) == pytest.approx(answers(other, Z), rel=1e-8, abs=1e-9)


@pytest.mark.parametrize("shape", [(120, 4), (20, 40)])
@pytest.mark.parametrize(
    "model, of_columns",
    [
        (cf.Lasso(0.5, standardize=True), PeerElasticNet(0.5, l1_ratio=1.0, tol=1e-12, max_iter=100_000)),
        (cf.ElasticNet(0.5, 0.3, standardize=True), PeerElasticNet(0.5, l1_ratio=0.3, tol=1e-12, max_iter=100_000)),
        (
            cf.GLM(alpha=0.5, l1_ratio=0.3, standardize=True),
            PeerElasticNet(0.5, l1_ratio=0.3, tol=1e-12, max_iter=9999),
        ),
    ],
)
def test_it_is_scikit_learns_model_behind_its_scaler(model, of_columns, shape):
    """Of a target whose spread is far from 1: no part of the penalty is in units of it."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=shape) * np.geomspace(0.1, 10.0, shape[1]) + 5.0
    y = 40.0 * X[:, 0] + 5.0 * X[:, 1] + 3.0 * rng.normal(size=shape[0])
    theirs = make_pipeline(StandardScaler(), of_columns).fit(X, y)
    ours = clone(model).fit(X, y)
    assert ours.predict(X) == pytest.approx(theirs.predict(X), rel=1e-5)
    folds, refits = (
        cf.cross_validate(one, X, y, cv=list(KFold(4).split(X)), scoring="neg_mean_squared_error").validation
        for one in (model, theirs)
    )
    assert folds == pytest.approx(refits, rel=1e-4)


def test_another_unit_changes_no_prediction(fit):
    model, X, y, weight = fit
    other = clone(model).fit(X * UNITS, y, weight)
    assert answers(other, X * UNITS) == pytest.approx(answers(model, X), rel=1e-8, abs=1e-9)
    assert other.coef_ * UNITS == pytest.approx(model.coef_, rel=1e-6, abs=1e-12)


def test_the_objective_names_the_spreads(fit):
    model = fit[0]
    assert ("sd * |w|_1" in model.objective) == (getattr(model, "l1_ratio", 0) > 0)
    assert ("sd^2 * |w|^2" in model.objective) == (getattr(model, "l1_ratio", 0) < 1)
    assert "sd" not in clone(model).set_params(standardize=False).objective


@pytest.mark.slow
def test_a_perturbed_state_is_refused(fit):
    model, X, y, weight = fit
    for name in ("coef_", "intercept_"):
        if name == "intercept_" and not model.fit_intercept:
            continue
        worse = copy.copy(model)
        setattr(worse, name, getattr(model, name) * 1.01 + 1e-3 * (name == "intercept_"))
        assert not worse.certify(X, y, weight).holds
    plain = copy.copy(model).set_params(standardize=False)
    assert not plain.certify(X, y, weight).holds  # the minimum of another objective


def test_sparse_rows_and_chunks_give_the_same_fit(fit):
    model, X, y, weight = fit
    again = clone(model).fit(sp.csr_array(X), y, weight)
    assert answers(again, X) == pytest.approx(answers(model, X), rel=1e-8, abs=1e-9)


def test_a_file_keeps_the_switch_and_the_predictions(fit, tmp_path):
    model, X, y, weight = fit
    cf.save(model, tmp_path / "m.certifit")
    again = cf.load(tmp_path / "m.certifit")
    assert again.standardize is True
    assert np.array_equal(answers(again, X), answers(model, X))
    shown = cf.modelfile.inspect(tmp_path / "m.certifit")
    assert shown.model["objective"] == model.objective
    assert cf.modelfile.verify(tmp_path / "m.certifit", X, y, sample_weight=weight).holds


def test_an_unstandardised_file_says_nothing_of_it(tmp_path):
    X, y, _ = problem("ridge")
    cf.save(cf.Ridge(0.1).fit(X, y), tmp_path / "m.certifit")
    assert "standardize" not in cf.modelfile.inspect(tmp_path / "m.certifit").model["parameters"]


@pytest.mark.parametrize("name", TUNED)
@pytest.mark.slow
def test_another_unit_changes_no_choice_of_a_penalty(name):
    X, y, _ = problem(name)
    model = clone(MODELS[name]).set_params(alpha=0.1 if name in ("Poisson", "Gamma") else None)
    folds = [cf.CrossValidated(clone(model), cv=cf.Folds(4)).fit(rows, y) for rows in (X, X * UNITS)]
    assert folds[0].best_params_ == folds[1].best_params_
    assert folds[0].cv_results_["mean_test_score"] == pytest.approx(folds[1].cv_results_["mean_test_score"], rel=1e-8)


@pytest.mark.parametrize("shape", ["more rows", "more columns"])
@pytest.mark.parametrize("name", ["ridge", "logistic", "Poisson"])
def test_folds_standardise_by_their_training_rows_alone(name, shape):
    X, y, _ = problem(name)
    if shape == "more columns":
        X = X @ np.random.default_rng(0).normal(size=(5, 200))
    alphas = [{"alpha": alpha} for alpha in (1e-3, 0.1)]
    cv = [(np.arange(150) % 3 != k, np.arange(150) % 3 == k) for k in range(3)]
    score = "neg_log_loss" if name == "logistic" else "neg_mean_squared_error"
    model = clone(MODELS[name])
    found = cf.CrossValidated(
        model, {"alpha": [1e-3, 0.1]}, cv=[tuple(map(np.flatnonzero, one)) for one in cv], scoring=score
    )
    scores = found.fit(X, y).cv_results_["mean_test_score"]
    for candidate, mean in zip(alphas, scores, strict=True):
        errors = []
        for train, test in cv:
            own = clone(model).set_params(**candidate).fit(X[train], y[train])
            if name == "logistic":
                errors.append(np.log(own.predict_proba(X[test])[np.arange(test.sum()), y[test]]).mean())
            else:
                errors.append(-np.mean((own.predict(X[test]) - y[test]) ** 2))
        assert mean == pytest.approx(np.mean(errors), rel=1e-8)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_more_columns_than_rows(fit_intercept):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(30, 90)) * np.exp(2 * rng.normal(size=90)) + 1.0
    X[:, 7] = 3.0
    y = X[:, 0] + rng.normal(size=30)
    model = cf.Ridge(0.2, standardize=True, fit_intercept=fit_intercept).fit(X, y)
    varies = X[:, np.arange(90) != 7] if fit_intercept else X
    Z = standardised(varies, np.ones(30), fit_intercept)
    peer = PeerRidge(0.2 * 30, fit_intercept=fit_intercept).fit(Z, y)
    assert model.certificate_.holds
    assert model.predict(X) == pytest.approx(peer.predict(Z), rel=1e-9, abs=1e-9)
    worse = copy.copy(model)
    worse.coef_ = model.coef_ * 1.001
    assert not worse.certify(X, y).holds


def test_the_fits_are_those_of_scikit_learn_after_its_scaler():
    X, y, weight = problem("ridge")
    Z = StandardScaler().fit(X, sample_weight=weight).transform(X)
    peer = PeerRidge(0.1 * weight.sum()).fit(Z, y, weight)
    assert cf.Ridge(0.1, standardize=True).fit(X, y, weight).predict(X) == pytest.approx(peer.predict(Z), abs=1e-9)
    for name in ("logistic", "softmax"):
        y = problem(name)[1]
        other = PeerLogistic(C=1 / (0.1 * weight.sum()), tol=1e-10, max_iter=10_000).fit(Z, y, weight)
        model = cf.LogisticRegression(0.1, standardize=True).fit(X, y, weight)
        assert model.predict_proba(X) == pytest.approx(other.predict_proba(Z), abs=1e-6)


@pytest.mark.parametrize("name", ["ridge", "Poisson"])
def test_parts_of_rows_do_not_change_a_bit(name):
    X, y, weight = problem(name)
    model = clone(MODELS[name]).fit(memory(X, y, weight, block_rows=7))
    for cuts in ([], [1, 20, 70]):
        other = clone(model).fit(batches(X, y, weight, block_rows=7, cuts=cuts))
        assert np.array_equal(other.coef_, model.coef_) and other.intercept_ == model.intercept_


def test_redundant_columns_and_a_constant_one():
    X, y, weight = problem("ridge")
    X = np.column_stack([X, X[:, 0] + 2 * X[:, 1], np.full(150, 7.0)])
    model = cf.Ridge(1e-3, standardize=True).fit(X, y, weight)
    Z = standardised(X[:, :6], weight, True)
    peer = PeerRidge(1e-3 * weight.sum(), solver="svd").fit(Z, y, weight)
    assert model.certificate_.holds and model.coef_[-1] == 0
    assert model.predict(X) == pytest.approx(peer.predict(Z), abs=1e-8)


def test_a_path_is_that_of_single_fits():
    X, y, _ = problem("Poisson")
    path = cf.PoissonRegressor(1.0, 1.0, standardize=True).path(X, y, n_alphas=5)
    assert not path.coef[0].any()
    own = cf.PoissonRegressor(float(path.alphas[3]), 1.0, standardize=True).fit(X, y)
    assert path.coef[3] == pytest.approx(own.coef_, rel=1e-5, abs=1e-9)


def test_rows_in_parts_are_refused():
    X, y, _ = problem("Poisson")
    with pytest.raises(ValueError, match="standard deviations of all rows"):
        cf.PoissonRegressor(standardize=True, solver="sgd").partial_fit(X, y)


@pytest.mark.parametrize("solver", ["lbfgs", "newton"])
def test_other_solvers_see_the_same_penalty(solver):
    X, y, _ = problem("logistic")
    model = cf.LogisticRegression(0.5, standardize=True, solver=solver, tol=1e-12).fit(X, y)
    auto = cf.LogisticRegression(0.5, standardize=True).fit(X, y)
    assert answers(model, X) == pytest.approx(answers(auto, X), abs=1e-5)


@pytest.mark.parametrize("model", [cf.Ridge(standardize=1), cf.PoissonRegressor(standardize="yes")], ids=str)
def test_what_is_no_flag_is_refused(model):
    with pytest.raises(TypeError, match="standardize must be True or False"):
        model.fit([[1.0], [2.0], [4.0]], [1.0, 2.0, 3.0])


@pytest.mark.parametrize("name", ["ridge", "logistic", "softmax", "Poisson lasso"])
def test_exact_arithmetic_proves_the_standardised_objective(name, tmp_path):
    pytest.importorskip("flint")
    X, y, weight = problem(name)
    X, y, weight = X[:24], y[:24], weight[:24]
    model = clone(MODELS[name]).fit(X, y, weight)
    cf.save(model, tmp_path / "m.certifit")
    proof = cf.modelfile.verify(tmp_path / "m.certifit", X, y, sample_weight=weight, exact=True)
    assert proof.holds


UNEVEN = np.array([1.0, 1e-6, 1e-9, 1e-12, 1e-9, 1e-6])
# Columns whose spread float64 sums do not tell: rows, and weights of the rows or none.
FAINT = {
    "a mean far from that of the first rows": (np.arange(6.0) ** 2, UNEVEN),
    "one heavy row": (np.arange(6.0) ** 3, UNEVEN**4),
    "an offset": (1e14 + np.arange(6.0) ** 2, None),
    "one entry": (
        np.array([0.0, 0.0, 1e-30, 0.0, 0.0, 0.0]) + 1e-14 * np.arange(6),
        np.array([1, 1e-30, 1, 1, 1, 1e-9]),
    ),
}


@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("name", FAINT)
@pytest.mark.slow
def test_spreads_are_those_of_the_numbers_given_however_faint(name, storage):
    """The penalty is of weights times standard deviations: one that is off makes another objective."""
    column, weight = FAINT[name]
    X, y = np.column_stack([column, np.cos(np.arange(6.0))]), np.array([1.0, 3.0, 2.0, 5.0, 4.0, 7.0])
    models = (
        cf.Ridge(0.1),
        cf.HuberRegressor(alpha=0.1, scale=1.0),
        cf.HuberRegressor(alpha=0.1, scale="mad"),
        cf.Lasso(0.1),
        cf.ElasticNet(0.1),
        cf.GLM(alpha=0.1),
        cf.PoissonRegressor(0.1, 0.5),
    )
    for model in models:
        fit = clone(model).set_params(standardize=True).fit(storage(X), y, weight)
        proof = cf.verify(fit, storage(X), y, weight, exact=True).exact
        assert proof.lower <= fit.certificate_.value


@pytest.mark.parametrize("model", [cf.Ridge(0.0), cf.Lasso(0.1), cf.QuantileRegressor(alpha=0.1), cf.GLM(alpha=0.1)])
def test_spreads_below_float64_are_refused_in_words(model):
    X, weight = 1e-300 * np.array([[1.0], [-0.3], [0.4], [-1.5]]), np.array([1e-140, 1e-130, 1e-50, 1.0])
    with pytest.raises(ValueError, match=r"standard deviation of .* is too small for float64"):
        clone(model).set_params(standardize=True).fit(X, np.array([1.0, 3.0, 2.0, 5.0]), weight)


@pytest.mark.parametrize("solver", ["columns", "rows", "randomized"])
def test_components_refuse_spreads_below_float64_in_words(solver):
    X = 1e-310 * np.array([[1.0, 0.2], [-0.3, 2.0], [0.4, -1.0], [-1.5, 0.7]])
    with pytest.raises(ValueError, match=r"standard deviation of .* is too small for float64"):
        cf.PCA(1, standardize=True, solver=solver).fit(X)
