"""A classifier that is fitted step by step, written against the base alone: all that takes a classifier takes it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from sklearn.linear_model import LogisticRegression

import certifit as cf
from certifit.data.source import Source
from certifit.minimise.problem import Run
from certifit.models.certificate import Certificate
from certifit.models.classifier import Classifier, codes_of
from certifit.report.context import build
from certifit.report.page import render
from certifit.report.validation import validation_facts
from certifit.selection.compare.leaderboard import leaderboard

FILES = {"data": "d.csv", "paths": ["d.csv"], "scan": "scan_csv", "bad_rows": 0, "weight": None, "model": "m.certifit"}
FILES |= {"report": "r.html", "card": "c.md", "coefficients": None, "deciding": "deciding.csv", "selection": None}


class Softmax(Classifier):
    """Softmax regression by gradient steps: minimises sum_i -log p(y_i | x_i) / n + alpha / 2 |W|^2."""

    def __init__(self, alpha=0.1, *, basis=None, encoder=None, tol=1e-6):
        self.alpha, self.basis, self.encoder, self.tol = alpha, basis, encoder, tol

    objective = "minimised: log loss and a penalty"
    report_sections = ("odds",)

    def _solve(self, task: Any) -> Run[Any]:
        W, b = np.zeros((len(self.classes_), task.X.shape[1])), np.zeros(len(self.classes_))
        for _ in range(3000):
            slope_w, slope_b = task(W, b)
            W, b = W - 0.3 * slope_w, b - 0.3 * slope_b
        return Run((W, b))

    def _keep(self, task: Any, run: Run[Any]) -> None:
        self.coef_, self.intercept_ = run.state
        self.alpha_ = float(self.alpha)

    def candidates(self, source: Source) -> list[dict[str, Any]]:
        return [{"alpha": alpha} for alpha in (0.01, 0.1, 1.0)]

    def _task(self, source: Source, is_fitted: bool = False) -> Any:
        return _Slopes(source, float(self.alpha), len(self.classes_))

    def _state(self) -> Any:
        return self.coef_, self.intercept_

    def _certified(self, task: Any, state: Any) -> Certificate:
        value = max(float(np.abs(slope).max()) for slope in task(*state))
        d = self.coef_.shape[1]
        return Certificate("largest slope", "convex", value, float(self.tol), 1e-12, d, d, 1.0)

    def mapped_scores(self, columns: Any) -> Any:
        X = columns.X.toarray() if hasattr(columns.X, "toarray") else np.asarray(columns.X)
        return X @ self.coef_.T + self.intercept_


class _Slopes:
    def __init__(self, source: Source, alpha: float, n_classes: int) -> None:
        self.alpha = alpha
        runs = [
            (
                run.X.toarray() if hasattr(run.X, "toarray") else np.asarray(run.X, dtype=float),
                codes_of(run),
                np.ones(run.n_rows) if run.weight is None else run.weight,
            )
            for run in source.stretches()
        ]
        X, codes, weight = (np.concatenate(part) for part in zip(*runs, strict=True))
        seen = (codes >= 0) & (weight > 0)
        self.X, self.truth, self.w = X[seen], np.eye(n_classes)[codes[seen]], weight[seen]
        self.n_rows, self.weight = int(seen.sum()), float(self.w.sum())

    def facts(self):
        return {"n_rows": self.n_rows, "sum_weight": self.weight}

    def __call__(self, W, b):
        scores = self.X @ W.T + b
        p = np.exp(scores - scores.max(axis=1, keepdims=True))
        off = (p / p.sum(axis=1, keepdims=True) - self.truth) * self.w[:, None] / self.weight
        return off.T @ self.X + self.alpha * W, off.sum(axis=0)


@pytest.fixture
def rows(seed):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, 120)
    return rng.normal(size=(120, 2)) + 1.2 * np.eye(3)[y][:, :2], np.array(["a", "b", "c"])[y]


def test_it_predicts_as_scikit_learn_does(rows):
    X, y = rows
    model = Softmax(alpha=1 / len(X)).fit(X, y)
    peer = LogisticRegression(C=1.0, tol=1e-10, max_iter=1000).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X), peer.predict_proba(X), atol=1e-3)
    assert model.certificate_.holds is model.certify(X, y).holds
    assert model.score(X, y) == pytest.approx(np.mean(model.predict(X) == y))


@pytest.mark.parametrize("scoring", [None, "neg_log_loss", "roc_auc_ovr", "f1_macro"])
@pytest.mark.slow
def test_folds_refit_it(rows, scoring):
    X, y = rows
    found = cf.CrossValidated(Softmax(), cv=3, scoring=scoring).fit(X, y)
    assert found.best_estimator_.classes_.tolist() == ["a", "b", "c"]
    assert np.isfinite(found.cv_results_["mean_test_score"]).all()


def test_it_stands_in_a_leaderboard(rows):
    X, y = rows
    board = leaderboard({"softmax": Softmax(), "discriminant": cf.GaussianDiscriminant()}, X, y, cv=3)
    assert {entry.name for entry in board.entries} == {"softmax", "discriminant", "class shares"}
    assert board["softmax"].route == "refits"
    assert board["softmax"].metrics["accuracy"] > board["class shares"].metrics["accuracy"]


@pytest.mark.slow
def test_a_report_speaks_of_it(rows):
    X, y = rows
    source = cf.from_arrow(pa.table({"u": X[:, 0], "v": X[:, 1], "y": y}), target="y")
    board = leaderboard({"softmax": cf.CrossValidated(Softmax())}, source, cv=3)
    model = board.chosen.model.fit(source)
    context = build(model, source, FILES, validation=validation_facts(board))
    assert context["certificate"]["goal"]["better"] == "smaller"
    assert context["deciding"]["what"] == "odds"
    assert context["model"]["alpha"] == model.alpha
    assert context["validation"]["curve"]["label"] == "penalty alpha"
    assert context["classes"]["metrics"]["accuracy"]["value"] > 0.5
    assert render(context).startswith("<!DOCTYPE html>")
