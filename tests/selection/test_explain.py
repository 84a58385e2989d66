"""Three questions after a fit: each answer follows from its numbers."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression as Peer

import certifit as cf


@pytest.fixture(scope="module")
def bent():
    rng = np.random.default_rng(5)
    X = rng.uniform(-2, 2, size=(160, 1))
    return X, X[:, 0] ** 2 + 0.1 * rng.normal(size=160)


def test_a_line_through_a_parabola_is_not_rich_enough_and_the_parabola_is(bent):
    X, y = bent
    line = cf.explain(cf.LinearRegression().fit(X, y), X, y)
    assert line.approximation.startswith("Rich enough? No") and line.differences["richer"].high < 0
    parabola = cf.explain(cf.LinearRegression(basis=cf.Polynomial(2)).fit(X, y), X, y)
    assert parabola.approximation.startswith("Rich enough? Yes") and "gains from its columns" in parabola.approximation
    assert set(parabola.errors) == {"model", "constant", "richer", "reference"}
    assert len(str(parabola).split("\n\n")) == 3


def test_errors_are_those_of_a_refit_without_the_rows_held_out(bent):
    X, y = bent
    answers = cf.explain(cf.Ridge(0.1).fit(X, y), X, y, test_size=0.3, random_state=2)
    training, held_out = next(iter(cf.HoldOut(0.3, random_state=2).split(X, y)))
    refit = cf.Ridge(0.1).fit(X[training], y[training])
    assert answers.errors["model"] == pytest.approx(np.mean((refit.predict(X[held_out]) - y[held_out]) ** 2))
    assert answers.training_error == pytest.approx(np.mean((refit.predict(X[training]) - y[training]) ** 2))
    assert (answers.n_training, answers.n_held_out) == (len(training), len(held_out))


def test_a_deep_tree_is_told_to_follow_the_noise():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(120, 2)), rng.integers(0, 2, 120)
    answers = cf.explain(cf.DecisionTreeClassifier().fit(X, y), X, y)
    assert answers.training_error == 0 and "noise" in answers.generalisation
    assert "not shown to gain anything" in answers.approximation
    assert answers.errors["model"].method == "Clopper-Pearson" and "richer" not in answers.errors


def test_a_fit_that_stopped_early_and_one_of_a_peer_say_so(bent):
    X, y = bent
    with pytest.warns(UserWarning, match="certified"):
        early = cf.Lasso(1e-3, max_iter=1, solver="coordinate-descent", basis=cf.Polynomial(3)).fit(X, y)
    assert "NOT certified" in cf.explain(early, X, y).optimisation
    assert "no certificate" in cf.explain(Peer().fit(X, y), X, y).optimisation


def test_too_few_rows_are_refused(bent):
    X, y = bent
    with pytest.raises(ValueError, match=r"20 rows or more\. Got 10"):
        cf.explain(cf.LinearRegression().fit(X, y), X[:10], y[:10])
