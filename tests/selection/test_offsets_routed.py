"""Offsets of generalised linear models on folds, and through the tools of scikit-learn, which go by signature."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import sklearn
from offset_models import DEVIANCE, MODELS, N, Rate, drawn, fold_scores, routed, scans
from sklearn import config_context
from sklearn.base import clone
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.linear_model import PoissonRegressor as SklearnPoisson
from sklearn.metrics import accuracy_score, d2_tweedie_score, log_loss, mean_poisson_deviance, r2_score, roc_auc_score
from sklearn.model_selection import GridSearchCV
from sklearn.model_selection import cross_validate as sklearn_cross_validate
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

import certifit as cf

# Before 1.8 scikit-learn hands the score of a pipeline no metadata.
ROUTES_SCORES = tuple(int(part) for part in sklearn.__version__.split(".")[:2]) >= (1, 8)


def poisson() -> Any:
    return cf.PoissonRegressor(alpha=0.0)


@pytest.fixture
def data(rng):
    return drawn(rng)


@pytest.mark.parametrize("model", [*MODELS, lambda: cf.CrossValidated(Rate(), {"shrink": [1.0]}, cv=3)])
def test_routing_carries_offsets_through_a_pipeline(model, data):
    X, y, offset, exposure = data
    with config_context(enable_metadata_routing=True):
        estimator = routed(model()).set_predict_request(offset=True, exposure=True)
        pipe = Pipeline([("scale", StandardScaler()), ("model", estimator)])
        pipe.fit(X, y, offset=offset, exposure=exposure)
        found = pipe.predict(X, offset=offset, exposure=exposure)
    alone = clone(estimator).fit(X, y, offset=offset, exposure=exposure)
    np.testing.assert_allclose(found, alone.predict(X, offset=offset, exposure=exposure), rtol=1e-15)


@pytest.mark.parametrize("model", MODELS)
def test_routing_carries_offsets_through_scikit_learns_folds(model, data):
    X, y, offset, exposure = data
    params = {"offset": offset, "exposure": exposure}
    splits = list(cf.Folds(5).split(X))
    with config_context(enable_metadata_routing=True):
        found = sklearn_cross_validate(routed(model()), X, y, cv=splits, params=params)
        search = GridSearchCV(routed(model()), {"shrink": [0.5, 1.0]}, cv=splits).fit(X, y, **params)
    np.testing.assert_allclose(found["test_score"], fold_scores(data, r2_score), rtol=1e-12)
    means = [fold_scores(data, r2_score, shrink=shrink).mean() for shrink in (0.5, 1.0)]
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], means, rtol=1e-12)


def glm_scores(data: Any, splits: Any) -> Any:
    """D2 of scikit-learn on held-out rows, of fits to rates weighted by their exposure: the same optimum."""
    X, y, offset, exposure = data
    times = exposure * np.exp(offset)
    scores = []
    for train, test in splits:
        model = SklearnPoisson(alpha=0.0, tol=1e-10, max_iter=10_000)
        model.fit(X[train], y[train] / times[train], sample_weight=times[train])
        scores.append(model.score(X[test], y[test] / times[test], sample_weight=times[test]))
    return np.array(scores)


def test_the_score_of_a_glm_is_the_share_of_deviance_explained(data, tmp_path):
    X, y, offset, exposure = data
    model = poisson().fit(X, y, offset=offset, exposure=exposure)
    found = model.score(X, y, offset=offset, exposure=exposure)
    assert found == pytest.approx(glm_scores(data, [(np.arange(N), np.arange(N))])[0], rel=1e-7)
    for name, scan in scans(data, tmp_path).items():
        own = poisson().fit(scan)
        assert own.score(scan) == pytest.approx(found, rel=1e-12), name
    plain = poisson().fit(X, y)
    assert plain.score(X, y) == pytest.approx(d2_tweedie_score(y, plain.predict(X), power=1), rel=1e-12)
    assert poisson().fit(X, y).score(X, np.zeros(N)) == 0.0


def test_a_glm_is_scored_on_folds_with_its_offsets(data):
    X, y, offset, exposure = data
    times = exposure * np.exp(offset)
    truth = []
    for train, test in cf.Folds(5).split(X):
        model = SklearnPoisson(alpha=0.0, tol=1e-10, max_iter=10_000)
        model.fit(X[train], y[train] / times[train], sample_weight=times[train])
        truth.append(-mean_poisson_deviance(y[test], model.predict(X[test]) * times[test]))
    found = cf.cross_validate(poisson(), X, y, cv=5, scoring=DEVIANCE, offset=offset, exposure=exposure)
    np.testing.assert_allclose(found.validation, truth, rtol=1e-6)


@pytest.mark.slow
def test_a_glm_is_tuned_on_scans_as_on_arrays(data, tmp_path):
    X, y, offset, exposure = data
    grid = {"alpha": [0.0, 0.01, 0.1]}
    truth = cf.CrossValidated(poisson(), grid, cv=5, scoring=DEVIANCE).fit(X, y, offset=offset, exposure=exposure)
    splits = list(cf.Folds(5).split(X))
    for at, alpha in enumerate(grid["alpha"]):
        scores = []
        for train, test in splits:
            model = cf.PoissonRegressor(alpha=alpha).fit(
                X[train], y[train], offset=offset[train], exposure=exposure[train]
            )
            mean = model.predict(X[test], offset=offset[test], exposure=exposure[test])
            scores.append(-mean_poisson_deviance(y[test], mean))
        assert truth.cv_results_["mean_test_score"][at] == pytest.approx(np.mean(scores), rel=1e-6)
    for name, scan in scans(data, tmp_path).items():
        found = cf.CrossValidated(poisson(), grid, cv=5, scoring=DEVIANCE).fit(scan)
        own, other = (one.cv_results_["mean_test_score"] for one in (found, truth))
        np.testing.assert_allclose(own, other, rtol=1e-9, err_msg=name)
        assert found.best_estimator_.exposure_name_ == "e"
        board = cf.leaderboard({"poisson": poisson()}, scan, cv=5, scoring=DEVIANCE)
        np.testing.assert_allclose(board.baseline.fold_scores, -fold_scores(data, mean_poisson_deviance), rtol=1e-12)


def test_routing_carries_offsets_to_a_glm(data):
    X, y, offset, exposure = data
    params = {"offset": offset, "exposure": exposure}
    splits = list(cf.Folds(5).split(X))
    truth = glm_scores(data, splits)
    with config_context(enable_metadata_routing=True):
        model = routed(poisson()).set_predict_request(offset=True, exposure=True)
        pipe = Pipeline([("scale", StandardScaler()), ("model", model)])
        found = sklearn_cross_validate(pipe, X, y, cv=splits, params=params)["test_score"]
        search = GridSearchCV(pipe, {"model__alpha": [0.0, 10.0]}, cv=splits).fit(X, y, **params)
        predicted = clone(pipe).fit(X, y, **params).predict(X, **params)
    if ROUTES_SCORES:
        np.testing.assert_allclose(found, truth, rtol=1e-6)
        assert search.cv_results_["mean_test_score"][0] == pytest.approx(truth.mean(), rel=1e-6)
    alone = poisson().fit(X, y, **params)
    np.testing.assert_allclose(predicted, alone.predict(X, **params), rtol=1e-6)


def test_without_routing_offsets_reach_the_last_step_by_its_name(data):
    X, y, _, exposure = data
    pipe = Pipeline([("scale", StandardScaler()), ("model", poisson())]).fit(X, y, model__exposure=exposure)
    alone = poisson().fit(X, y, exposure=exposure)
    np.testing.assert_allclose(pipe.predict(X, exposure=exposure), alone.predict(X, exposure=exposure), rtol=1e-6)


def test_a_forgotten_request_is_an_error_of_scikit_learn(data):
    X, y, _, exposure = data
    with config_context(enable_metadata_routing=True):
        pipe = Pipeline([("scale", StandardScaler()), ("model", poisson())])
        with pytest.raises(UnsetMetadataPassedError, match="exposure"):
            pipe.fit(X, y, exposure=exposure)


@pytest.fixture
def labelled(data, rng):
    X, _, offset, _ = data
    return X, np.where(rng.random(N) < 1 / (1 + np.exp(-X[:, 0] - offset)), "yes", "no"), offset


def test_a_logistic_regression_is_validated_with_the_offsets_of_its_rows(labelled, tmp_path):
    X, y, offset = labelled
    model = cf.LogisticRegression(alpha=0.01)
    splits = list(cf.Folds(4, stratify=True).split(X, y))
    proba = np.empty((N, 2))
    for train, test in splits:
        proba[test] = (
            clone(model).fit(X[train], y[train], offset=offset[train]).predict_proba(X[test], offset=offset[test])
        )
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2], "y": y, "o": offset})
    frame.to_csv(tmp_path / "rows.csv", index=False)
    scan = cf.scan_csv(tmp_path / "rows.csv", "y", offset="o")
    for given in ((X, y, {"offset": offset}), (scan, None, {})):
        found = cf.class_validation(model, given[0], given[1], cv=4, **given[2])
        np.testing.assert_allclose(found.proba(), proba, atol=1e-6)
        for scoring in ("neg_log_loss", None, "roc_auc"):
            scores = cf.cross_validate(model, given[0], given[1], cv=4, scoring=scoring, **given[2]).validation
            truth = [
                -log_loss(y[test], proba[test]) if scoring == "neg_log_loss"
                else accuracy_score(y[test], np.array(["no", "yes"])[proba[test].argmax(axis=1)]) if scoring is None
                else roc_auc_score(y[test], proba[test, 1])
                for _, test in splits
            ]  # fmt: skip
            np.testing.assert_allclose(scores, truth, atol=1e-6)
        board = cf.leaderboard({"logistic": model}, given[0], given[1], cv=4, **given[2])
        assert board["logistic"].score == pytest.approx(-log_loss(y, proba), abs=0.02)


def test_routing_carries_offsets_to_a_logistic_regression(labelled):
    X, y, offset = labelled
    splits = list(cf.Folds(4, stratify=True).split(X, y))
    with config_context(enable_metadata_routing=True):
        model = cf.LogisticRegression(alpha=0.01).set_fit_request(offset=True).set_score_request(offset=True)
        found = sklearn_cross_validate(model, X, y, cv=splits, params={"offset": offset})["test_score"]
    own = cf.cross_validate(cf.LogisticRegression(alpha=0.01), X, y, cv=splits, offset=offset)
    np.testing.assert_allclose(found, own.validation, rtol=1e-12)


def test_a_logistic_regression_is_given_no_exposure(labelled):
    X, y, offset = labelled
    with pytest.raises(ValueError, match="LogisticRegression takes no exposure"):
        cf.cross_validate(cf.LogisticRegression(), X, y, cv=3, exposure=np.exp(offset))
