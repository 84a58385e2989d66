"""Offsets and exposures keep to their rows in folds, refits, curves, leaderboards and selections."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from offset_models import DEVIANCE, MODELS, N, Odds, Rate, ScannedRate, drawn, fold_scores, scans
from sklearn.metrics import log_loss, mean_poisson_deviance, r2_score

import certifit as cf
from certifit.selection.folds.rows import Rows, WithOffset


@pytest.fixture
def data(rng):
    return drawn(rng)


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
    for score, (took, left) in zip(found, cf.Bootstrap(3).split(X), strict=True):
        rate = y[took].sum() / times[took].sum()
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
