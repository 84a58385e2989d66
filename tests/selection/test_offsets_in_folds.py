"""Offsets and exposures keep to their rows in folds, refits, curves, leaderboards and selections."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.linear_model import PoissonRegressor as SklearnPoisson
from sklearn.metrics import d2_tweedie_score, log_loss, mean_poisson_deviance, r2_score
from sklearn.model_selection import GridSearchCV
from sklearn.model_selection import cross_validate as sklearn_cross_validate
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

import certifit as cf
from certifit.data.gate import fit_source, predict_rows, predict_source
from certifit.data.source import Block, Source
from certifit.selection.offsets import WithOffset
from certifit.selection.rows import Rows

N = 60
DEVIANCE = "neg_mean_poisson_deviance"


class Rate(RegressorMixin, BaseEstimator):
    """shrink x the mean rate, times the exposure of a row. Knows arrays alone."""

    def __init__(self, shrink: float = 1.0) -> None:
        self.shrink = shrink

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, offset: Any = None, exposure: Any = None) -> Any:
        weight = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight)
        self.n_features_in_ = X.shape[1]
        self.rate_ = self.shrink * float(weight @ np.asarray(y) / (weight @ exposure_of(len(y), offset, exposure)))
        return self

    def predict(self, X: Any, offset: Any = None, exposure: Any = None) -> Any:
        return self.rate_ * exposure_of(len(X), offset, exposure)

    def score(self, X: Any, y: Any, sample_weight: Any = None, offset: Any = None, exposure: Any = None) -> float:
        return float(r2_score(y, self.predict(X, offset, exposure), sample_weight=sample_weight))


class ScannedRate(Rate):
    """The same for checked rows of any source, as the models of this library take them."""

    encoder_: Any = None

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, offset: Any = None, exposure: Any = None) -> Any:
        source = fit_source(self, X, y, sample_weight, offset, exposure)
        self.encoder_ = cf.TableEncoder() if source.is_table else None
        total, times = source.reduce(of_rate)
        self.rate_ = self.shrink * float(total / times)
        return self

    def predict(self, X: Any, offset: Any = None, exposure: Any = None) -> Any:
        if isinstance(X, Source):
            return np.concatenate(list(predict_source(self, X, offset, exposure).map(self._of_block)))
        return self._of_block(predict_rows(self, X, offset, exposure))

    def fold_path(self, source: Any, rounds: Any, candidates: Any) -> None:
        return None

    def _of_block(self, block: Block) -> Any:
        return self.rate_ * exposure_of(block.n_rows, block.offset, None)


def of_rate(block: Block) -> Any:
    weight = np.ones(block.n_rows) if block.weight is None else block.weight
    return np.array([weight @ block.y, weight @ exposure_of(block.n_rows, block.offset, None)])


def exposure_of(n_rows: int, offset: Any, exposure: Any) -> Any:
    times = np.ones(n_rows) if exposure is None else np.asarray(exposure)
    return times if offset is None else times * np.exp(offset)


class Odds(ClassifierMixin, BaseEstimator):
    """Two classes: log-odds of the training shares, plus the offset of a row."""

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, offset: Any = None) -> Any:
        self.classes_ = np.unique(y)
        share = np.average(np.asarray(y) == self.classes_[1], weights=sample_weight)
        self.odds_ = np.log(share / (1 - share))
        return self

    def predict_proba(self, X: Any, offset: Any = None) -> Any:
        z = self.odds_ + (np.zeros(len(X)) if offset is None else offset)
        return np.column_stack([1 / (1 + np.exp(z)), 1 / (1 + np.exp(-z))])

    def predict(self, X: Any, offset: Any = None) -> Any:
        return self.classes_[self.predict_proba(X, offset).argmax(axis=1)]


MODELS = [Rate, ScannedRate]


def poisson() -> Any:
    return cf.PoissonRegressor(alpha=0.0)


@pytest.fixture
def data(rng):
    exposure = rng.uniform(0.2, 5.0, N)
    offset = rng.normal(size=N)
    y = rng.poisson(2 * exposure * np.exp(offset)).astype(float)
    return rng.normal(size=(N, 3)), y, offset, exposure


def fold_scores(data: Any, score: Any, n_splits: int = 5, shrink: float = 1.0, weight: Any = None) -> Any:
    """Scores of the rate of the other folds, written out."""
    X, y, offset, exposure = data
    times = exposure * np.exp(offset)
    weight = np.ones(N) if weight is None else weight
    scores = []
    for train, test in cf.Folds(n_splits).split(X):
        rate = shrink * (weight[train] @ y[train]) / (weight[train] @ times[train])
        scores.append(score(y[test], rate * times[test], sample_weight=weight[test]))
    return np.array(scores)


@pytest.mark.parametrize("scoring", [None, DEVIANCE])
@pytest.mark.parametrize("model", MODELS)
def test_every_fold_has_the_offsets_of_its_rows(model, scoring, data):
    X, y, offset, exposure = data
    found = cf.cross_validate(model(), X, y, cv=5, scoring=scoring, offset=offset, exposure=exposure)
    truth = fold_scores(data, r2_score) if scoring is None else -fold_scores(data, mean_poisson_deviance)
    np.testing.assert_allclose(found.validation, truth, rtol=1e-12)


@pytest.mark.parametrize("model", MODELS)
def test_weights_and_offsets_go_together(model, data, rng):
    X, y, offset, exposure = data
    weight = rng.integers(1, 4, N).astype(float)
    beside = {"sample_weight": weight, "offset": offset, "exposure": exposure}
    found = cf.cross_validate(model(), X, y, cv=5, scoring=DEVIANCE, **beside)
    np.testing.assert_allclose(found.validation, -fold_scores(data, mean_poisson_deviance, weight=weight), rtol=1e-12)


@pytest.mark.parametrize("model", MODELS)
def test_parameters_are_chosen_with_offsets(model, data):
    X, y, offset, exposure = data
    search = cf.CrossValidated(model(), {"shrink": [0.5, 1.0, 1.5]}, cv=5, scoring=DEVIANCE)
    search.fit(X, y, offset=offset, exposure=exposure)
    means = [-fold_scores(data, mean_poisson_deviance, shrink=shrink).mean() for shrink in (0.5, 1.0, 1.5)]
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], means, rtol=1e-12)
    whole = model(shrink=search.best_params_["shrink"]).fit(X, y, offset=offset, exposure=exposure)
    assert search.best_estimator_.rate_ == whole.rate_
    np.testing.assert_array_equal(search.predict(X, exposure=exposure), whole.predict(X, exposure=exposure))
    assert search.score(X, y, offset=offset, exposure=exposure) == pytest.approx(
        -mean_poisson_deviance(y, whole.predict(X, offset, exposure)), rel=1e-12
    )


def scans(data: Any, folder: Any) -> dict[str, Any]:
    X, y, offset, exposure = data
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2], "y": y, "o": offset, "e": exposure})
    frame.to_csv(folder / "rows.csv", index=False)
    frame.to_parquet(folder / "rows.parquet", row_group_size=7)
    roles = {"target": "y", "offset": "o", "exposure": "e"}
    dask = pytest.importorskip("dask.dataframe")
    return {
        "memory": cf.from_arrow(pa.Table.from_pandas(frame), **roles),
        "csv": cf.scan_csv(folder / "rows.csv", **roles),
        "parquet": cf.scan_parquet(folder / "rows.parquet", **roles),
        "dask": cf.from_dask(dask.from_pandas(frame, npartitions=3), **roles),
    }


def test_scans_carry_their_offsets_through_folds(data, tmp_path):
    truth = -fold_scores(data, mean_poisson_deviance)
    for name, scan in scans(data, tmp_path).items():
        found = cf.cross_validate(ScannedRate(), scan, cv=5, scoring=DEVIANCE)
        np.testing.assert_allclose(found.validation, truth, rtol=1e-12, err_msg=name)


def test_a_resampled_row_keeps_its_offset(data):
    X, y, offset, exposure = data
    found = cf.cross_validate(
        Rate(), X, y, cv=cf.Bootstrap(3), scoring=DEVIANCE, offset=offset, exposure=exposure
    ).validation
    times = exposure * np.exp(offset)
    for score, (drawn, left) in zip(found, cf.Bootstrap(3).split(X), strict=True):
        rate = y[drawn].sum() / times[drawn].sum()
        assert score == pytest.approx(-mean_poisson_deviance(y[left], rate * times[left]), rel=1e-12)


@pytest.mark.parametrize("model", MODELS)
def test_curves_take_offsets(model, data):
    X, y, offset, exposure = data
    beside = {"cv": 5, "scoring": DEVIANCE, "offset": offset, "exposure": exposure}
    validation = cf.validation_curve(model(), X, y, param_name="shrink", param_range=[0.5, 1.0], **beside)
    for k, shrink in enumerate((0.5, 1.0)):
        truth = -fold_scores(data, mean_poisson_deviance, shrink=shrink)
        np.testing.assert_allclose(validation.validation[k], truth, rtol=1e-12)
    learning = cf.learning_curve(model(), X, y, train_sizes=[0.5, 1.0], **beside)
    np.testing.assert_allclose(learning.validation[-1], -fold_scores(data, mean_poisson_deviance), rtol=1e-12)


@pytest.mark.parametrize("model", MODELS)
def test_a_leaderboard_compares_with_the_mean_rate(model, data):
    X, y, offset, exposure = data
    models = {"whole": model(), "half": model(shrink=0.5)}
    board = cf.leaderboard(models, X, y, cv=5, scoring=DEVIANCE, offset=offset, exposure=exposure)
    truth = -fold_scores(data, mean_poisson_deviance)
    np.testing.assert_allclose(board["whole"].fold_scores, truth, rtol=1e-12)
    np.testing.assert_allclose(board.baseline.fold_scores, truth, rtol=1e-12)
    assert board.best.name == "whole"


def test_a_leaderboard_of_a_scan_compares_with_its_mean_rate(data, tmp_path):
    for scan in scans(data, tmp_path).values():
        board = cf.leaderboard({"rate": ScannedRate()}, scan, cv=5, scoring=DEVIANCE)
        np.testing.assert_allclose(board.baseline.fold_scores, -fold_scores(data, mean_poisson_deviance), rtol=1e-12)


@pytest.mark.parametrize("model", MODELS)
def test_a_selection_scores_subsets_with_offsets(model, data):
    X, y, offset, exposure = data
    chosen = cf.ForwardSelection(model(), 1, cv=5, scoring=DEVIANCE).fit(X, y, offset=offset, exposure=exposure)
    truth = -fold_scores(data, mean_poisson_deviance)
    np.testing.assert_allclose(chosen.steps_[0].fold_scores, truth, rtol=1e-12)
    np.testing.assert_allclose(
        chosen.predict(X, offset=offset, exposure=exposure),
        model().fit(X, y, offset=offset, exposure=exposure).predict(X, offset, exposure),
        rtol=1e-15,
    )


def test_classes_are_validated_with_the_offsets_of_their_rows(data):
    X, _, offset, _ = data
    y = np.where(np.random.default_rng(0).random(N) < 0.5, "no", "yes")
    found = cf.class_validation(Odds(), X, y, cv=4, offset=offset)
    proba = np.empty((N, 2))
    for train, test in cf.Folds(4, stratify=True).split(X, y):
        proba[test] = Odds().fit(X[train], y[train]).predict_proba(X[test], offset[test])
    np.testing.assert_allclose(found.proba(), proba, rtol=1e-12)
    scores = cf.cross_validate(Odds(), X, y, cv=4, offset=offset, scoring="neg_log_loss").validation
    splits = list(cf.Folds(4, stratify=True).split(X, y))
    np.testing.assert_allclose(scores, [-log_loss(y[test], proba[test]) for _, test in splits], rtol=1e-12)


def test_rows_in_memory_have_one_offset_with_the_exposure_in_it(data):
    X, y, offset, exposure = data
    for model in MODELS:
        rows = Rows.of(model(), X, y, offset=offset, exposure=exposure, groups=np.arange(N) % 7)
        np.testing.assert_array_equal(rows.offset, offset + np.log(exposure))
        np.testing.assert_array_equal(rows.source.first_block().offset, rows.offset)


USES = {
    "cross_validate": lambda model, X, y, **given: cf.cross_validate(model, X, y, cv=3, **given),
    "CrossValidated": lambda model, X, y, **given: cf.CrossValidated(model, cv=3).fit(X, y, **given),
    "leaderboard": lambda model, X, y, **given: cf.leaderboard({"one": model}, X, y, cv=3, **given),
    "ForwardSelection": lambda model, X, y, **given: cf.ForwardSelection(model, 1, cv=3).fit(X, y, **given),
}


@pytest.mark.parametrize("use", USES)
def test_a_model_that_takes_no_offset_is_not_given_one(use, data, tmp_path):
    X, y, _, exposure = data
    with pytest.raises(ValueError, match="LinearRegression takes no exposure"):
        USES[use](cf.LinearRegression(), X, y, exposure=exposure)
    with pytest.raises(ValueError, match="LinearRegression takes none"):
        USES[use](cf.LinearRegression(), scans(data, tmp_path)["csv"], None)


@pytest.mark.parametrize("use", USES)
def test_wrong_exposures_are_refused_before_any_fit(use, data):
    X, y, _, exposure = data
    for model in MODELS:
        with pytest.raises(ValueError, match=r"exposure must be > 0\. It is 0 at row 4"):
            USES[use](model(), X, y, exposure=np.where(np.arange(N) == 4, 0.0, exposure))
        with pytest.raises(ValueError, match="exposure has 59 entries but X has 60 rows"):
            USES[use](model(), X, y, exposure=exposure[1:])


def test_a_score_without_an_offset_is_not_computed_without_it(data):
    class Deaf(Rate):
        def predict(self, X: Any) -> Any:
            return np.ones(len(X))

    X, y, offset, _ = data
    with pytest.raises(TypeError, match="predict of Deaf takes no offset"):
        WithOffset(Deaf().fit(X, y), offset).predict(X)


def test_intervals_are_those_of_the_held_out_errors_with_offsets(data, tmp_path):
    X, y, offset, exposure = data
    times = exposure * np.exp(offset)
    splits = list(cf.Folds(5).split(X))
    rates = [y[train].sum() / times[train].sum() for train, _ in splits]
    ends = [rates[k] * times[0] + np.abs(y[test] - rates[k] * times[test]) for k, (_, test) in enumerate(splits)]
    upper = np.sort(np.concatenate(ends))[int(np.ceil(0.9 * (N + 1))) - 1]
    for model in MODELS:
        search = cf.CrossValidated(model(), intervals=True, scoring=DEVIANCE, cv=5)
        search.fit(X, y, offset=offset, exposure=exposure)
        found = search.predict_interval(X[:1], offset=offset[:1], exposure=exposure[:1])
        assert found[0, 1] == pytest.approx(upper, rel=1e-9)


# scikit-learn's own tools route what fit and score name in their signatures.


def routed(model: Any) -> Any:
    return model.set_fit_request(offset=True, exposure=True).set_score_request(offset=True, exposure=True)


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
    found = cf.cross_validate(poisson(), X, y, cv=5, offset=offset, exposure=exposure)
    np.testing.assert_allclose(found.validation, glm_scores(data, cf.Folds(5).split(X)), rtol=1e-6)


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
