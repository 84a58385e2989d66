"""Claims about rows that come in parts, for models of scores with a solver that learns row by row."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import certifit as cf


@pytest.fixture
def rows(rng):
    X = rng.normal(size=(300, 3))
    z = X @ [0.5, -0.3, 0.2]
    return X, rng.poisson(np.exp(z)).astype(float), rng.random(300) < 1 / (1 + np.exp(-z))


def test_one_part_without_shuffling_is_the_rule_of_the_course(rows):
    X, y, _ = rows
    model = cf.PoissonRegressor(alpha=0.0, solver=cf.SGD(step=0.01, schedule="constant", shuffle=False))
    model.partial_fit(X[:50], y[:50])
    w, b = np.zeros(3), 0.0
    for x, target in zip(X[:50], y[:50], strict=True):
        error = target - np.exp(b + x @ w)  # w += step (y - h(x)) x
        w, b = w + 0.01 * error * x, b + 0.01 * error
    np.testing.assert_allclose(model.coef_, w, rtol=1e-12)
    assert model.intercept_ == pytest.approx(b, rel=1e-12)


def test_parts_go_on_from_each_other(rows):
    X, y, _ = rows
    solver = cf.SGD(step=0.01, schedule="inverse", decay=0.01, shuffle=False)
    parts = cf.PoissonRegressor(alpha=0.1, solver=solver)
    for begin in range(0, 300, 100):
        parts.partial_fit(X[begin : begin + 100], y[begin : begin + 100])
    whole = cf.PoissonRegressor(alpha=0.1, solver=solver).partial_fit(X, y)
    np.testing.assert_allclose(parts.coef_, whole.coef_, rtol=1e-12)
    assert parts.data_["n_rows"] == whole.data_["n_rows"] == 300
    assert [row["iteration"] for row in parts.history_] == [0, 1, 2]


def test_classes_come_in_parts_and_many_passes_come_near_the_fit(rows):
    X, _, labels = rows
    names = np.where(labels, "yes", "no")
    model = cf.LogisticRegression(alpha=0.01, solver="averaged-sgd")
    for _ in range(60):
        model.partial_fit(X[:150], names[:150], classes=["no", "yes"])
        model.partial_fit(X[150:], names[150:])
    best = cf.LogisticRegression(alpha=0.01).fit(X, names)
    np.testing.assert_allclose(model.predict_proba(X), best.predict_proba(X), atol=0.03)
    assert model.coef_.shape == (1, 3)
    assert not model.certificate_.holds
    assert "seen once" in str(model.certificate_)
    assert model.certify(X, names).value < 0.05


@pytest.fixture
def three(rng):
    X = rng.normal(size=(300, 3))
    return X, (X @ rng.normal(size=(3, 3)) / 2 + rng.gumbel(size=(300, 3))).argmax(axis=1)


def test_one_part_of_three_classes_is_the_rule_of_the_course(three):
    X, y = three
    solver = cf.SGD(step=0.1, schedule="constant", shuffle=False)
    model = cf.LogisticRegression(alpha=0.01, solver=solver).partial_fit(X[:50], y[:50], classes=[0, 1, 2])
    w, b = np.zeros((3, 3)), np.zeros(3)
    for x, label in zip(X[:50], y[:50], strict=True):
        p = np.exp(b + w @ x)
        error = (np.arange(3) == label) - p / p.sum()  # w_k += step (1{y = k} - p_k) x
        w, b = w * (1 - 0.1 * 0.01) + 0.1 * np.outer(error, x), b + 0.1 * error
    np.testing.assert_allclose(model.coef_, w, rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(model.intercept_, b, rtol=1e-11, atol=1e-13)


def test_three_classes_come_in_parts_that_may_lack_one(three):
    X, y = three
    parts = [np.flatnonzero(y < 2), np.flatnonzero(y == 2), np.arange(300)]
    model = cf.LogisticRegression(alpha=0.1, solver="averaged-sgd")
    for part in parts * 10:
        model.partial_fit(X[part], y[part], classes=[0, 1, 2])
    assert model.data_["n_rows"] == 6000 and len(model.history_) == 30
    assert model.coef_.shape == (3, 3) and not model.certificate_.holds
    assert model.certify(X, y).value < 0.05
    solver = cf.SGD(step=0.01, schedule="inverse", decay=0.01, shuffle=False)
    halves = cf.LogisticRegression(alpha=0.1, solver=solver).partial_fit(X[:150], y[:150], classes=[0, 1, 2])
    halves.partial_fit(X[150:], y[150:])
    whole = cf.LogisticRegression(alpha=0.1, solver=solver).partial_fit(X, y, classes=[0, 1, 2])
    np.testing.assert_allclose(halves.coef_, whole.coef_, rtol=1e-12)


def test_what_parts_cannot_tell_is_refused(rows):
    X, y, labels = rows
    assert not hasattr(cf.PoissonRegressor(), "partial_fit")
    with pytest.raises(ValueError, match="classes must be passed"):
        cf.LogisticRegression(alpha=0.1, solver="sgd").partial_fit(X, labels)
    with pytest.raises(ValueError, match="alpha=None"):
        cf.LogisticRegression(solver="sgd").partial_fit(X, labels, classes=[False, True])
    with pytest.raises(ValueError, match="balanced"):
        cf.LogisticRegression(alpha=0.1, solver="sgd", class_weight="balanced").partial_fit(X, labels, classes=[0, 1])
    with pytest.raises(ValueError, match="L1"):
        cf.PoissonRegressor(alpha=0.1, l1_ratio=1.0, solver="sgd").partial_fit(X, y)
    with pytest.raises(ValueError, match="diverged"):
        cf.PoissonRegressor(alpha=0.1, solver=cf.SGD(step=1e6)).partial_fit(X, y)


def test_a_fit_begins_anew(rows):
    X, y, _ = rows
    model = cf.PoissonRegressor(alpha=0.1, solver="averaged-sgd").partial_fit(X, y)
    again = model.fit(X, y).coef_
    np.testing.assert_array_equal(again, cf.PoissonRegressor(alpha=0.1, solver="averaged-sgd").fit(X, y).coef_)
    assert model.certificate_.holds


@pytest.mark.parametrize("solver", ["sgd", "averaged-sgd"])
@pytest.mark.parametrize("scale, weight", [(1e150, 1e90), (1e150, 1.0), (1e-150, 1.0)])
def test_rows_and_steps_beyond_float64_raise_no_warnings_of_numpy(solver, scale, weight):
    X, y = scale * np.array([[1.0, 2.0], [-1.0, 0.5], [0.3, -2.0], [-0.2, 1.0]]), np.array([0, 1, 0, 1])
    model = cf.LogisticRegression(alpha=1.0, solver=solver)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        for _ in range(3):
            model.partial_fit(X, y, sample_weight=np.full(4, weight), classes=[0, 1])
    assert np.isfinite(model.coef_).all()
    assert not model.certificate_.holds
