"""Folds of logistic regression over many sparse columns give the scores of refits."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import log_loss

import certifit as cf
from certifit.data.cells import Listed, Splits
from certifit.data.source import Memory
from certifit.models import gathered
from certifit.models.folds import Candidates
from certifit.models.glm import folds as column_folds
from certifit.models.glm.sparse_folds import SparsePath
from certifit.selection.folds.rows import Shared

ALPHAS = [0.0005, 0.02, 1.0]
N_FOLDS = 3


@pytest.fixture
def no_hessians(monkeypatch):
    """As if the columns were too many for Hessians, and no fewer than rows."""
    monkeypatch.setattr(column_folds, "fits_in_memory", lambda *of: False)
    monkeypatch.setattr(gathered, "FEW_COLUMNS", 1000)


def words() -> tuple[sp.csr_array, np.ndarray, np.ndarray]:
    """Rows of few words, codes of two classes, the fold of every row."""
    random = np.random.default_rng(0)
    X = sp.csr_array((random.random((90, 140)) < 0.06).astype(float))
    z = X @ random.standard_normal(140) * 2 + 0.3
    return X, (z + random.logistic(size=90) > 0).astype(float), np.arange(90) % N_FOLDS


def folds_of(model, X, codes, cells, settings, **roles):
    source = Memory(X, codes, **roles)
    splits = Splits.folds(Listed(N_FOLDS, cells.astype(np.int8)))
    return model.folds(source, [splits], Candidates(settings, np.array([0, 1])), Shared())


@pytest.mark.parametrize("standardize", [False, True])
def test_scores_are_those_of_refits(standardize, no_hessians):
    X, y, cells = words()
    weight, offset = 1.0 + np.arange(90) % 2, np.linspace(-1, 1, 90)
    settings = [{"alpha": alpha} for alpha in ALPHAS]
    folds = folds_of(
        cf.LogisticRegression(standardize=standardize), X, y, cells, settings, weight=weight, offset=offset
    )
    assert folds.route == "statistics"
    for at, alpha in enumerate(ALPHAS):
        for split, (codes, log_proba, _) in enumerate(folds.of_candidates([at]).validated(0)):
            train, test = cells != split, cells == split
            model = cf.LogisticRegression(alpha, standardize=standardize).fit(
                X[train], y[train], weight[train], offset[train]
            )
            of_refit = model.predict_proba(X[test], offset=offset[test])
            assert log_loss(codes, np.exp(log_proba)) == pytest.approx(log_loss(y[test], of_refit), rel=1e-4)


@pytest.mark.parametrize("parameters", [{"l1_ratio": 0.5}, {"fit_intercept": False}, {"class_weight": "balanced"}])
def test_other_objectives_are_refitted(parameters, no_hessians):
    X, y, cells = words()
    assert folds_of(cf.LogisticRegression(**parameters), X, y, cells, [{"alpha": 0.1}]) is None


def test_dense_columns_are_refitted(no_hessians):
    X, y, cells = words()
    assert folds_of(cf.LogisticRegression(), X.toarray(), y, cells, [{"alpha": 0.1}]) is None


@pytest.mark.slow
def test_a_path_begun_from_the_fits_before_has_the_weights_of_refits():
    """Twelve alphas, one of them twice: a polynomial through equal places has no value, and the fit goes on without."""
    X, y, cells = words()
    alphas = np.append(np.geomspace(1.0, 1e-3, 11), 1e-3)
    shares = (cells[:, None] != np.arange(N_FOLDS)).astype(float)
    path = SparsePath(X, y, shares / shares.sum(axis=0), None)
    for alpha, (coef, intercept) in zip(alphas, path.fits(np.repeat(alphas[:, None], N_FOLDS, axis=1)), strict=True):
        for split in range(N_FOLDS):
            refit = cf.LogisticRegression(alpha).fit(X[cells != split], y[cells != split])
            size = np.abs(refit.coef_).max()
            np.testing.assert_allclose(coef[:, split], np.ravel(refit.coef_), rtol=0, atol=1e-4 * size)
            np.testing.assert_allclose(intercept[split], refit.intercept_, rtol=0, atol=1e-4 * (1 + size))
