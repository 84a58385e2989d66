"""Folds of logistic regression over gathered rows give the scores of refits."""

import numpy as np
import pytest
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold

import certifit as cf
from certifit.data.source import Memory
from certifit.models.folds import Candidates, RowFolds
from certifit.selection.folds.engine import has_sums
from certifit.selection.folds.rows import Shared

ALPHAS = [0.01, 1.0]


def table(n_rows: int, n_columns: int, n_classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Columns of unlike sizes, far from 0, some of which tell the class."""
    random = np.random.default_rng(n_columns)
    y = np.arange(n_rows) % n_classes
    X = random.standard_normal((n_rows, n_columns))
    X[:, :3] += random.standard_normal((n_classes, 3))[y]
    return (X + 5) * np.geomspace(0.1, 10, n_columns), np.array(["ash", "elm", "fir", "oak"])[y]


def refitted(model: cf.LogisticRegression, X: np.ndarray, y: np.ndarray, cv: StratifiedKFold, **fit) -> np.ndarray:
    """Log loss of every split, each model fitted by itself."""
    losses = []
    for train, test in cv.split(X, y):
        weights = {name: value[train] for name, value in fit.items()}
        chances = model.fit(X[train], y[train], **weights).predict_proba(X[test])
        weight = fit["sample_weight"][test] if fit else None
        losses.append(log_loss(y[test], chances, labels=np.unique(y), sample_weight=weight))
    return np.array(losses)


def folds_are_refits(X: np.ndarray, y: np.ndarray, parameters: dict, n_splits: int, rtol: float) -> None:
    """Every alpha's loss on every held-out fold is that of a fit to the other folds."""
    cv = StratifiedKFold(n_splits, shuffle=True, random_state=0)
    model = cf.LogisticRegression(**parameters)
    search = cf.CrossValidated(model, {"alpha": ALPHAS}, cv=cv, scoring="neg_log_loss").fit(X, y)
    for at, alpha in enumerate(ALPHAS):
        of_refits = refitted(cf.LogisticRegression(alpha, **parameters), X, y, cv)
        of_folds = [-search.cv_results_[f"split{s}_test_score"][at] for s in range(n_splits)]
        np.testing.assert_allclose(of_folds, of_refits, rtol=rtol)


@pytest.mark.parametrize("parameters", [{}, {"standardize": True}, {"fit_intercept": False},
                                        {"class_weight": "balanced"}])  # fmt: skip
@pytest.mark.parametrize("shape", [(32, 60, 4), (40, 6, 3), (24, 210, 2), (30, 202, 3)])
def test_scores_are_those_of_refits(shape, parameters):
    folds_are_refits(*table(*shape), parameters, n_splits=4, rtol=1e-4)


def test_weights_of_rows_count():
    X, y = table(36, 50, 3)
    weight = 1.0 + np.arange(36) % 3
    cv = StratifiedKFold(3, shuffle=True, random_state=1)
    search = cf.CrossValidated(cf.LogisticRegression(), {"alpha": [0.05]}, cv=cv, scoring="neg_log_loss")
    scores = search.fit(X, y, sample_weight=weight).cv_results_
    of_refits = refitted(cf.LogisticRegression(0.05), X, y, cv, sample_weight=weight)
    np.testing.assert_allclose([-scores[f"split{s}_test_score"][0] for s in range(3)], of_refits, rtol=1e-4)


def folds_of(model: cf.LogisticRegression, X: np.ndarray, codes: np.ndarray, classes: np.ndarray, settings: list):
    from certifit.data.cells import ByRow, Splits

    source = Memory(X, codes.astype(float))
    return model.folds(source, [Splits.folds(ByRow(4, 0))], Candidates(settings, classes), Shared())


@pytest.mark.parametrize("parameters", [
    {"l1_ratio": 1.0}, {"l1_ratio": 0.5, "standardize": True}, {"penalty_factors": [0, 1, 2, 1, 1, 1]},
    {"bounds": (-0.1, 0.2), "class_weight": "balanced"}, {"l1_ratio": 1.0, "fit_intercept": False},
])  # fmt: skip
def test_an_l1_penalty_factors_and_bounds_share_fits_too(parameters):
    X, y = table(60, 6, 3)
    classes, codes = np.unique(y, return_inverse=True)
    model = cf.LogisticRegression(**parameters)
    assert isinstance(folds_of(model, X, codes, classes, [{"alpha": alpha} for alpha in ALPHAS]), RowFolds)
    folds_are_refits(X, y, parameters, n_splits=3, rtol=1e-7)


def test_the_default_alphas_of_an_l1_penalty_begin_where_all_weights_are_0():
    X, y = table(60, 6, 3)
    codes = np.unique(y, return_inverse=True)[1]
    model = cf.LogisticRegression(l1_ratio=0.5)
    alphas = [candidate["alpha"] for candidate in model.candidates(Memory(X, codes.astype(float)))]
    assert not cf.LogisticRegression(alphas[0] * (1 + 1e-9), 0.5).fit(X, y).coef_.any()
    assert cf.LogisticRegression(alphas[1], 0.5).fit(X, y).coef_.any()


@pytest.mark.parametrize("parameters", [{"alpha": 0.0}, {"solver": "lbfgs"}, {"start": "zero"}])
def test_what_is_no_such_minimum_is_refitted(parameters):
    X, y = table(40, 6, 3)
    classes, codes = np.unique(y, return_inverse=True)
    assert folds_of(cf.LogisticRegression(**parameters), X, codes, classes, [{}]) is None


def test_a_class_that_the_training_rows_lack_has_no_chance():
    X, y = table(41, 6, 3)
    y[:] = np.where(y == "fir", "ash", y)
    y[-1] = "oak"  # one row: the split that validates it has not seen its class
    classes, codes = np.unique(y, return_inverse=True)
    folds = folds_of(cf.LogisticRegression(), X, codes, classes, [{"alpha": 0.1}])
    assert isinstance(folds, RowFolds)
    by_split = [state.places.tolist() for state in folds.states[0][0]]
    assert sorted(map(len, by_split)) == [2, 3, 3, 3]


def test_many_rows_are_left_to_refits_of_fewer_candidates():
    X, y = table(400, 30, 4)
    classes, codes = np.unique(y, return_inverse=True)
    assert has_sums(cf.LogisticRegression(), Memory(X, codes.astype(float)), classes)
    settings = [{"alpha": alpha} for alpha in np.geomspace(1e-4, 1, 2000)]
    assert folds_of(cf.LogisticRegression(), X, codes, classes, settings) is None


@pytest.mark.parametrize("standardize", [False, True])
def test_more_columns_than_rows_are_fitted_to_the_end(standardize):
    X, y = table(30, 500, 3)
    model = cf.LogisticRegression(0.1, standardize=standardize).fit(X, y)
    assert model.certificate_.holds and model.n_iter_ <= 5
