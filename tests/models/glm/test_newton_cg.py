"""Claims about Newton's method by conjugate gradients, for models of very many columns."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression

import certifit as cf
from certifit.data.columns import Codes, Columns, Csr, Dense
from certifit.data.source import Memory
from certifit.mathematics.losses.poisson_gamma_tweedie import GammaLog, PoissonLog
from certifit.mathematics.losses.scores import Logistic
from certifit.models.gathered import GatheredRows
from certifit.models.glm import newton
from certifit.models.glm.certificate import certify
from certifit.models.glm.newton import WideProblem
from certifit.models.glm.softmax_solver import WideSoftmax
from certifit.models.glm.softmax_task import SoftmaxTask
from certifit.models.glm.task import GlmTask
from certifit.models.lasso.task import Strengths
from certifit.runtime import threads
from certifit.statistics.gram import Scaling
from certifit.statistics.row_curvature import row_reach


def strengths(alpha, d):
    return Strengths(alpha, 0.0, np.ones(d), np.full(d, -np.inf), np.full(d, np.inf))


def text(rng, n, d):
    """Rows of few entries, of columns that are less and less frequent."""
    share = np.minimum(1.0, 20.0 / np.arange(1, d + 1))
    return sp.csr_array(rng.random((n, d)) * (rng.random((n, d)) < share))


def targets(loss, z, rng):
    mu = np.exp(z / 2)
    drawn = {
        "Logistic": lambda: (rng.random(len(z)) < 1 / (1 + np.exp(-z))).astype(float),
        "PoissonLog": lambda: rng.poisson(mu).astype(float),
        "GammaLog": lambda: rng.gamma(2.0, mu / 2) + 1e-3,
    }
    return drawn[type(loss).__name__]()


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("is_sparse", [True, False], ids=["sparse", "dense"])
@pytest.mark.parametrize("loss", [Logistic(), PoissonLog(), GammaLog()], ids=lambda loss: type(loss).__name__)
def test_it_ends_where_newtons_method_with_a_hessian_does(rng, loss, is_sparse, fit_intercept):
    X = text(rng, 400, 60)
    y = targets(loss, X @ rng.normal(size=60), rng)
    weight, X = rng.integers(0, 3, 400).astype(float), X if is_sparse else X.toarray()
    task = GlmTask(Memory(X, y, weight), loss, strengths(0.01, 60), fit_intercept)
    state, other = newton.solve_by_products(task, 1e-12, 100).state, newton.solve(task, 100).state
    np.testing.assert_allclose(state.coef, other.coef, rtol=1e-4, atol=1e-6)
    assert certify(task, state, 1e-8).holds


def test_products_and_diagonal_are_those_of_the_hessian(rng):
    X, y = text(rng, 300, 50), rng.integers(0, 2, 300).astype(float)
    for rows in (X, X.toarray()):
        task = GlmTask(Memory(rows, y), Logistic(), strengths(0.01, 50), True)
        problem, point = WideProblem(task), rng.normal(size=51) / 5
        at, whole = problem.evaluate(point), task.evaluate(point, hessian=True)
        way = rng.normal(size=51)
        np.testing.assert_allclose(at.value, whole.value, rtol=1e-12)
        np.testing.assert_allclose(at.gradient, whole.gradient, rtol=1e-10, atol=1e-13)
        np.testing.assert_allclose(problem.product(at, way), whole.hessian @ way, rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(problem.diagonal(at), np.diagonal(whole.hessian), rtol=1e-11)


def test_wide_sparse_rows_are_certified_and_agree_with_scikit_learn(rng):
    X = text(rng, 1500, 4000)
    y = targets(Logistic(), X @ rng.normal(size=4000), rng)
    task = GlmTask(Memory(X, y), Logistic(), strengths(0.01, 4000), True)
    state = newton.solve_by_products(task, 1e-8, 100).state
    assert certify(task, state, 1e-8).holds
    theirs = LogisticRegression(C=1 / (0.01 * 1500), tol=1e-9, max_iter=5000).fit(sp.csr_matrix(X), y)
    np.testing.assert_allclose(state.coef, theirs.coef_[0], rtol=1e-3, atol=1e-5)


def test_threads_and_runs_do_not_change_a_bit(rng):
    X, y = text(rng, 40_000, 40), rng.integers(0, 2, 40_000).astype(float)
    found = set()
    for n, stretch_rows in ((1, None), (2, None), (2, 16384)):
        source = Memory(X, y)
        source.stretch_rows = stretch_rows
        with threads(n):
            task = GlmTask(source, Logistic(), strengths(0.1, 40), True)
            state = newton.solve_by_products(task, 1e-8, 50).state
        found.add((state.coef.tobytes(), state.intercept))
    assert len(found) == 1


def test_a_rows_reach_bounds_its_scores_whatever_the_signs(rng):
    X, y, weight = text(rng, 200, 50), np.zeros(200), np.ones(200)
    weight[3] = 0.0
    X.data[X.indptr[3] : X.indptr[4]] = 1e9  # of a row that does not count
    source, w = Memory(X, y, weight), rng.normal(size=50)
    task = GlmTask(source, Logistic(), strengths(0.1, 50), True)
    reach = row_reach(source, task.scaling, w)
    sizes = np.abs(X.toarray() * task.scaling.scale) @ np.abs(w)
    np.testing.assert_allclose(reach.size, sizes[weight > 0].max(), rtol=1e-12)
    assert reach.n_entries == np.diff(X.indptr).max()
    assert row_reach(Memory(X.toarray(), y), task.scaling, w).size == np.inf


def test_words_of_a_table_are_certified_and_nudged_ones_are_not(rng):
    words = np.array([f"w{k}" for k in range(4000)])
    texts = [" ".join(rng.choice(words, size=12)) for _ in range(1500)]
    frame = pd.DataFrame({"text": texts, "kind": rng.choice(["a", "b", "c"], size=1500)})
    y = np.array([("w1" in text) ^ (rng.random() < 0.3) for text in texts])
    encoder = cf.TableEncoder(texts=cf.TextBinarizer())
    model = cf.LogisticRegression(alpha=0.01, standardize=True, encoder=encoder).fit(frame, y)
    assert model.certificate_.holds and model.coef_.shape[1] > 3000
    model.coef_ = model.coef_ * (1 + 1e-3)
    assert not model.certify(frame, y).holds


def test_reach_of_rows_of_a_table(rng):
    X = text(rng, 5000, 40)
    codes = Codes(rng.integers(0, 3, size=5000), np.array([0, 1, 2], np.int32), 3)
    table = Columns([Dense(rng.normal(size=(5000, 2))), Csr(X), codes], 5000)
    weights, scale = rng.normal(size=45), rng.uniform(1, 2, size=45)
    shift = np.append([3.0, -2.0], np.zeros(43))
    reach = row_reach(Memory(table, np.zeros(5000)), Scaling(scale, shift, 1.0, 0.0, 1.0), weights)
    sizes = np.abs(table.toarray() * scale) @ np.abs(weights) + np.abs(shift) @ np.abs(weights)
    assert np.isclose(reach.size, sizes.max(), rtol=1e-12)
    assert reach.n_entries >= 2 * 2 + np.diff(X.indptr).max() + 1


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_products_of_several_classes_are_those_of_the_hessian(rng, fit_intercept):
    X, y = text(rng, 300, 20), rng.integers(0, 4, 300).astype(float)
    task = SoftmaxTask(Memory(X, y), 4, 0.01, fit_intercept)
    problem, point = WideSoftmax(task), rng.normal(size=84) / 5
    at, way = problem.evaluate(point), rng.normal(size=(21, 4))
    way -= way.mean(axis=1, keepdims=True)  # a Hessian curves along what classes have in common too, by its own rule
    way[-1] *= fit_intercept
    whole = task.curvature(point).reshape(84, 84) @ way.ravel()
    whole[-4:] *= fit_intercept
    np.testing.assert_allclose(problem.product(at, way.ravel()), whole, rtol=1e-10, atol=1e-12)


def test_several_classes_of_more_words_than_texts_are_fitted_as_they_are_stored(rng, monkeypatch):
    """Rows of words were expanded, and a factor of all their columns was made: minutes and gigabytes."""
    X = text(rng, 400, 4000)
    y = (X @ rng.normal(size=(4000, 3)) + rng.normal(size=(400, 3))).argmax(axis=1)
    monkeypatch.setattr("certifit.models.glm.softmax_solver.GatheredRows.of", lambda source: pytest.fail("expanded"))
    model = cf.LogisticRegression(alpha=0.01).fit(X, y)
    assert model.certificate_.holds
    theirs = LogisticRegression(C=1 / (0.01 * 400), tol=1e-9, max_iter=5000).fit(sp.csr_matrix(X), y)
    np.testing.assert_allclose(model.coef_ - model.coef_.mean(axis=0), theirs.coef_, rtol=1e-3, atol=1e-4)


def test_rows_that_would_be_too_many_numbers_are_not_expanded(rng, monkeypatch):
    X, y = text(rng, 100, 500), rng.integers(0, 3, 100).astype(float)
    assert GatheredRows.of(Memory(X, y)) is not None
    monkeypatch.setattr("certifit.models.gathered.MOST_BYTES", 8 * 100 * 500 - 1)
    assert GatheredRows.of(Memory(X, y)) is None
