"""Calibration beside what it says: out-of-fold scores, Platt's sigmoid, isotonic maps, certificates and files."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression as TheirLogistic
from sklearn.model_selection import StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier

import certifit as cf
from certifit.data.source import Memory
from certifit.models.calibrated.certificate import IsotonicTask, Steps, certify
from certifit.models.calibrated.isotonic import IsotonicMap
from certifit.models.calibrated.model import platt_targets
from certifit.models.ensembles.draws import distinct_rows


def rows(n=200, seed=0, n_classes=2):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)).round(2)
    score = X[:, 0] + 0.5 * rng.normal(size=n)
    cuts = [0.0] if n_classes == 2 else [-0.5, 0.5]
    return X, np.array(["a", "b", "c"])[np.digitize(score, cuts)], rng.integers(1, 4, n).astype(float)


def held_scores(model, X, y):
    """Scores of the rows that differ by the copy that has not seen them, codes and weights, by the rule of the page."""
    codes = np.searchsorted(model.classes_, y)
    distinct = distinct_rows(X, codes, None)
    order = np.argsort(codes[distinct.numbers], kind="stable")
    scores = np.zeros(len(order))
    for place, k in enumerate(order):
        row = X[[distinct.numbers[k]]]
        scores[k] = np.ravel(model.estimators_[place % model.cv].decision_function(row))[-1]
    return scores, codes[distinct.numbers], distinct.weight


def test_the_sigmoid_is_the_best_for_platt_targets_of_out_of_fold_scores():
    X, y, _ = rows()
    model = cf.Calibrated(cf.LogisticRegression(0.1), cv=4).fit(X, y)
    scores, codes, weight = held_scores(model, X, y)
    targets = np.where(codes == 1, (weight[codes == 1].sum() + 1) / (weight[codes == 1].sum() + 2), 0.0)
    targets[codes == 0] = 1 / (weight[codes == 0].sum() + 2)
    assert np.allclose(targets, platt_targets(codes == 1, weight))

    def loss(at):
        z = at[0] * scores + at[1]
        return weight @ (np.logaddexp(0, z) - targets * z)

    best = minimize(loss, [1.0, 0.0], tol=1e-12)
    own = model.maps_[0]
    assert np.allclose([own.coef_[0], own.intercept_], best.x, rtol=1e-4, atol=1e-4)
    assert loss([own.coef_[0], own.intercept_]) <= best.fun * (1 + 1e-12)
    chances = 1 / (1 + np.exp(-(own.coef_[0] * model.final_.decision_function(X) + own.intercept_)))
    assert np.allclose(model.predict_proba(X), np.column_stack([1 - chances, chances]))


def test_isotonic_maps_are_those_of_a_peer():
    X, y, _ = rows(300)
    model = cf.Calibrated(cf.LogisticRegression(0.1), "isotonic", cv=3).fit(X, y)
    scores, codes, weight = held_scores(model, X, y)
    peer = IsotonicRegression(out_of_bounds="clip").fit(scores, codes, weight)
    at = np.linspace(scores.min() - 1, scores.max() + 1, 500)
    assert np.allclose(model.maps_[0].predict(at[:, None]), peer.predict(at), rtol=0, atol=1e-7)


def excess(task, m):
    """How far the squares of a map are above the best, which pools by the formula of the smallest of largest means."""
    n = len(task.y)
    sums, mass = np.append(0, np.cumsum(task.weight * task.y)), np.append(0, np.cumsum(task.weight))
    means = [[(sums[j] - sums[i]) / (mass[j] - mass[i]) for j in range(i + 1, n + 1)] for i in range(n)]
    best = np.array([max(min(means[i][k - i :]) for i in range(k + 1)) for k in range(n)])
    return task.objective(m) - task.objective(best)


def test_the_gap_is_never_below_the_true_excess_and_small_at_the_best():
    rng = np.random.default_rng(3)
    for trial in range(60):
        n = int(rng.integers(2, 25))
        x = rng.integers(0, 12, n).astype(float) if trial % 2 else rng.normal(size=n)
        y, weight = (rng.random(n) < 1 / (1 + np.exp(-x / 3))).astype(float), rng.uniform(0.1, 3, n)
        task = IsotonicTask(Memory(x[:, None], y, weight))
        own = IsotonicMap().fit(x[:, None], y, weight)
        assert own.certificate_.value < 1e-12
        assert abs(excess(task, own._state().at(task.x))) < 1e-10
        for size in (1e-4, 1e-2, 0.3):
            values = np.sort(own.values_ + size * rng.normal(size=len(own.values_)))
            state = Steps(own.thresholds_, values)
            found = certify(task, state, 1e-8)
            m = state.at(task.x)
            if not found.is_exact_fit:
                assert found.value * task.objective(m) >= excess(task, m) - 1e-12
    assert not certify(task, Steps(np.array([0.0, 1.0]), np.array([1.0, 0.0])), 1e-8).holds


@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_probabilities_add_up_and_the_largest_is_predicted(method, n_classes):
    X, y, weight = rows(n_classes=n_classes)
    model = cf.Calibrated(cf.GaussianNB(), method, cv=3).fit(X, y, weight)
    chances = model.predict_proba(X)
    assert np.allclose(chances.sum(axis=1), 1) and (chances >= 0).all()
    assert np.array_equal(model.predict(X), model.classes_[chances.argmax(axis=1)])
    if n_classes == 3:
        scores = model.final_.predict_proba(X)
        each = np.column_stack([own.predict(scores[:, [k]]) for k, own in enumerate(model.maps_)])
        assert np.allclose(chances, each / each.sum(axis=1, keepdims=True))
    assert model.certificate_.holds
    assert model.certify(X, y, weight).holds
    assert cf.verify(model, X, y, sample_weight=weight).holds


@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
def test_a_changed_map_or_copy_is_refused(method):
    X, y, _ = rows()
    model = cf.Calibrated(cf.LogisticRegression(0.1), method, cv=3).fit(X, y)
    own, name = model.maps_[0], {"sigmoid": "coef_", "isotonic": "values_"}[method]
    kept = getattr(own, name)
    setattr(own, name, kept * (1 - 1e-4))
    result = cf.verify(model, X, y)
    assert not result.holds and "estimators_[4]" in result.reasons[0]
    setattr(own, name, kept)
    assert cf.verify(model, X, y).holds
    model.estimators_[1].coef_ = model.estimators_[1].coef_ * 1.01
    assert not cf.verify(model, X, y).holds


def test_margins_become_probabilities_that_come_true():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(1600, 2))
    truth = 1 / (1 + np.exp(-2 * X[:, 0]))
    y = rng.random(1600) < truth
    model = cf.Calibrated(cf.SVC(kernel=cf.kernels.Linear()), cv=3).fit(X[:600], y[:600])
    assert np.abs(model.predict_proba(X[600:])[:, 1] - truth[600:]).mean() < 0.05


@pytest.mark.parametrize("estimator", [cf.GaussianNB(), KNeighborsClassifier(3), TheirLogistic()])
def test_weights_are_copies_and_order_is_nothing(estimator):
    X, y, weight = rows(80)
    copies = np.random.default_rng(0).permutation(np.repeat(np.arange(80), weight.astype(int)))
    one = cf.Calibrated(estimator, cv=3).fit(X, y, weight)
    other = cf.Calibrated(estimator, cv=3).fit(X[copies], y[copies])
    assert np.allclose(one.predict_proba(X), other.predict_proba(X), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
def test_files_nest_ours_and_refuse_others_by_name(method, tmp_path):
    X, y, _ = rows(n_classes=3)
    model = cf.Calibrated(cf.GaussianNB(), method, cv=2).fit(X, y)
    cf.save(model, tmp_path / "own.model")
    again = cf.load(tmp_path / "own.model")
    assert np.array_equal(again.predict_proba(X), model.predict_proba(X))
    assert cf.verify(tmp_path / "own.model", X, y).holds
    foreign = cf.Calibrated(KNeighborsClassifier(), method, cv=2).fit(X, y)
    assert foreign.certificates_[-1].holds
    with pytest.raises(ValueError, match="KNeighborsClassifier"):
        cf.save(foreign, tmp_path / "foreign.model")
    with pytest.raises(AttributeError, match="KNeighborsClassifier has no certificates"):
        cf.verify(foreign, X, y)
    with pytest.raises(AttributeError, match="no certificates"):
        _ = foreign.certificate_


def test_what_cannot_be_calibrated_says_why():
    X, y, weight = rows(40)
    with pytest.raises(ValueError, match=r"the parameter cv|parameter cv must be"):
        cf.Calibrated(cf.GaussianNB(), cv=1).fit(X, y)
    with pytest.raises(ValueError, match="method must be one of 'sigmoid', 'isotonic'"):
        cf.Calibrated(cf.GaussianNB(), "beta").fit(X, y)
    with pytest.raises(TypeError, match="Ridge has neither"):
        cf.Calibrated(cf.Ridge()).fit(X, y)
    with pytest.raises(ValueError, match="Row 0 is the only one of its class"):
        cf.Calibrated(cf.GaussianNB()).fit(X, np.where(np.arange(40) == 0, "rare", y))
    with pytest.raises(ValueError, match="folds need as many rows that differ"):
        cf.Calibrated(cf.GaussianNB()).fit([[0.0], [1.0], [2.0], [3.0]], [0, 1, 0, 1])
    with pytest.raises(ValueError, match="takes no sample_weight: weights must be whole"):
        cf.Calibrated(KNeighborsClassifier()).fit(X, y, weight + 0.5)


def test_splits_of_the_user_are_those_of_a_splitter_and_a_row_by_row_check():
    X, y, weight = rows()
    splits = list(StratifiedKFold(4).split(X, y))
    model = cf.Calibrated(cf.LogisticRegression(0.1), cv=splits).fit(X, y, weight)
    same = cf.Calibrated(cf.LogisticRegression(0.1), cv=StratifiedKFold(4)).fit(X, y, weight)
    assert np.array_equal(model.predict_proba(X), same.predict_proba(X))
    scores = np.empty(len(X))
    for train, test in splits:
        scores[test] = cf.LogisticRegression(0.1).fit(X[train], y[train], weight[train]).decision_function(X[test])
    peer = cf.GLM("binomial").fit(scores[:, None], platt_targets(y == model.classes_[1], weight), weight)
    assert np.allclose(model.maps_[0].coef_, peer.coef_, rtol=1e-6)
    assert cf.verify(model, X, y, sample_weight=weight)
    with pytest.raises(ValueError, match="cv must be a whole number"):
        cf.save(model, "not_there.certifit")


@pytest.mark.parametrize(
    ("cv", "message"),
    [
        ([([0, 1], [1, 2])], "Split 0 of cv scores row 1, which it is fitted to"),
        ([([0, 1], [2000])], "names row 2000, and rows go from 0 to 199"),
        ([([0, 1],)], "must be two lists of row numbers"),
        ([([0.5], [1])], "must be two lists of row numbers"),
        ([([0], [1])], "no row of class number"),
        ([], "cv must be a whole number from 2 to 1000, a list"),
    ],
)
def test_splits_that_cannot_be_are_refused(cv, message):
    X, y, _ = rows()
    with pytest.raises(ValueError, match=message):
        cf.Calibrated(cf.LogisticRegression(0.1), cv=cv).fit(X, y)


def test_a_sigmoid_never_falls():
    """Two rows of each class that only noise tells apart: held-out scores point the wrong way, and the map is flat."""
    X, y = np.array([[0.0], [1.0], [0.1], [0.9]]), np.array([0, 0, 1, 1])
    model = cf.Calibrated(cf.LogisticRegression(0.1), cv=4).fit(X, y)
    assert model.maps_[0].coef_[0] == 0 and model.certificate_.holds
    assert np.ptp(model.predict_proba(X), axis=0).max() < 1e-12


def isotonic_optimum(x, y, weight):
    """Half the least sum of weighted squares of a map that never falls, by pooling in rationals."""
    rows = [(a, Fraction(b), Fraction(w)) for a, b, w in zip(x.tolist(), y.tolist(), weight.tolist(), strict=True) if w]
    pools = []
    for score in sorted({row[0] for row in rows}):
        mine = [(b, w) for a, b, w in rows if a == score]
        pools.append(mine)
        while len(pools) > 1 and mean_of(pools[-2]) > mean_of(pools[-1]):
            last = pools.pop()
            pools[-1] = pools[-1] + last
    return sum(w * (b - mean_of(pool)) ** 2 for pool in pools for b, w in pool) / 2


def mean_of(pool):
    return sum(w * b for b, w in pool) / sum(w for _, w in pool)


@pytest.mark.filterwarnings("ignore:NOT certified")
@pytest.mark.parametrize("spread", [1, 30, 200])
def test_an_isotonic_map_claims_no_less_than_its_excess_where_weights_are_far_apart(spread):
    """Squares of light rows' residuals vanish in float64 before the rows do; weight 0 is no row."""
    rng = np.random.default_rng(spread)
    n_held = 0
    for _ in range(60):
        n = int(rng.integers(2, 9))
        x, y = rng.integers(-3, 4, size=n).astype(float), rng.integers(0, 2, size=n).astype(float)
        weight = 10.0 ** -rng.uniform(0, spread, size=n)
        weight[rng.random(n) < 0.1] = 0
        if not weight.any():
            continue
        model = IsotonicMap().fit(x[:, None], y, weight)
        proof, values = model.certificate_, model.predict(x[:, None])
        objective = sum(
            Fraction(w) * (Fraction(a) - Fraction(m)) ** 2
            for a, m, w in zip(y.tolist(), values.tolist(), weight.tolist(), strict=True)
        )
        excess = objective / 2 - isotonic_optimum(x, y, weight)
        n_held += proof.holds
        if proof.is_exact_fit:
            objective = 2 * isotonic_null(y, weight)
        assert excess <= Fraction(proof.value if proof.holds else np.finfo(float).max) * objective / 2
    assert n_held > 30


def isotonic_null(y, weight):
    rows = [(Fraction(b), Fraction(w)) for b, w in zip(y.tolist(), weight.tolist(), strict=True) if w]
    return sum(w * (b - mean_of(rows)) ** 2 for b, w in rows) / 2


@pytest.mark.filterwarnings("ignore:NOT certified")
def test_an_isotonic_map_whose_squares_vanish_is_not_proven():
    """The excess is 2e-21 of the objective, and its square roots times weights are below float64."""
    model = IsotonicMap().fit([[1.0], [1.0], [-2.0]], [1.0, 0.0, 0.0], [5.2e-257, 2.5e-268, 1.5e-13])
    assert not model.certificate_.holds


def test_isotonic_maps_refuse_weights_that_float64_cannot_add_up():
    with pytest.raises(ValueError, match="more powers of ten"):
        IsotonicMap().fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 0.5], [5e-324, 1.0, 2.0])
