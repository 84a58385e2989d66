"""Calibrated machines on all folds together: chances of rows left out are those of refits, and of the definition."""

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize
from scipy.special import expit

import certifit as cf
from certifit.models.calibrated.sigmoid import sigmoid_maps
from certifit.models.folds import Candidates, RowFolds
from certifit.selection.folds.engine import _refitted, offered_scores
from certifit.selection.folds.rows import Rows
from certifit.selection.folds.splits import rounds_of

ALPHAS = [{"estimator__alpha": alpha} for alpha in (1e-3, 1e-1)]


def table(n_classes, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(60) % n_classes
    X = rng.normal(size=(60, 4))
    X[:, 0] += y
    X[50:] = X[:10]  # equal rows, of equal and of other classes
    return X, np.array(list("abc"))[y], rng.integers(0, 3, 60).astype(float)


def folds_of(model, X, y, weight=None):
    rows = Rows.of(model, X, y, weight)
    return rows, rounds_of(cf.Folds(3, stratify=True), rows.source, rows.labels, rows.groups)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("is_frame", [False, True])
def test_scores_of_rows_left_out_are_those_of_refits(n_classes, is_frame):
    X, y, weight = table(n_classes)
    encoder = None
    if is_frame:
        encoder = cf.TableEncoder()
        X = pd.DataFrame(X, columns=list("pqrs")).assign(kind=np.where(X[:, 1] > 0, "left", "right"))
        X.loc[::7, "q"] = np.nan
    model = cf.Calibrated(cf.SVC(standardize=True, tol=1e-9, encoder=encoder), cv=3)
    rows, rounds = folds_of(model, X, y, weight)
    together = offered_scores(model, rows, rounds, ALPHAS, "neg_log_loss", with_rows=True)
    refits = _refitted(model, rows, rounds, ALPHAS, "neg_log_loss", None, "folds", True)
    assert together.validation == pytest.approx(refits.validation, abs=1e-6)
    for one, other in zip(together.held_out, refits.held_out, strict=True):
        assert np.array_equal(one.numbers, other.numbers)
        assert one.values["score"] == pytest.approx(other.values["score"], abs=1e-5)


@pytest.mark.parametrize(
    "model",
    [
        cf.Calibrated(cf.SVC(), "isotonic"),
        cf.Calibrated(cf.SVC(class_weight="balanced")),
        cf.Calibrated(cf.LogisticRegression()),
    ],
)
def test_what_has_no_scores_of_all_copies_is_refitted(model):
    X, y, _ = table(2)
    rows, rounds = folds_of(model, X, y)
    assert not isinstance(model.folds(rows.source, rounds, Candidates([{}], rows.classes), rows.shared), RowFolds)


def test_sigmoid_maps_are_the_least_of_their_costs():
    rng = np.random.default_rng(0)
    scores = np.stack([rng.normal(size=40), 1e3 + 1e-2 * rng.normal(size=40), np.ones(40), rng.normal(size=40)])
    targets = np.stack([expit(2 * scores[0] + 1), expit(1e3 * (scores[1] - 1e3)), np.full(40, 0.2), expit(-scores[3])])
    weight = rng.uniform(0.5, 2, size=40)
    slope, level = sigmoid_maps(scores, targets, weight)
    assert slope[0] == pytest.approx(2) and level[0] == pytest.approx(1)
    assert slope[1] == pytest.approx(1e3, rel=1e-6)
    assert slope[2] == slope[3] == 0  # scores that say nothing, and one that falls where chances rise
    assert expit(level[2]) == pytest.approx(0.2)
    assert expit(level[3]) == pytest.approx(np.average(targets[3], weights=weight))
    noisy = np.clip(targets[:1] + 0.2 * rng.normal(size=(1, 40)), 0.01, 0.99)

    def cost(point):
        z = point[0] * scores[0] + point[1]
        return weight @ (np.logaddexp(0, z) - noisy[0] * z)

    best = minimize(cost, [1.0, 0.0], method="BFGS", tol=1e-9).x
    assert np.concatenate(sigmoid_maps(scores[:1], noisy, weight)) == pytest.approx(best, abs=1e-4)
