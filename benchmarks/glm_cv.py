"""Paths x folds of generalised linear models, and forward selection, against the best peers.

    python -m benchmarks.glm_cv                 # all, many minutes
    python -m benchmarks.glm_cv logistic        # some
    python -m benchmarks.glm_cv --quick         # small sizes: does everything run?
    python -m benchmarks.glm_cv --out benchmarks/results/glm_cv.jsonl

Runs take turns and the minimum counts. Ours ends every fit at a decrement of 1e-18 of the objective; rivals stop at
their own defaults. "differ by" is the largest relative difference of the mean scores of the candidates, or 0 and 1 for
equal and other subsets. Rivals that are not installed are left out, and named.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

import certifit as cf
from benchmarks.glm import installed, scores, targets
from benchmarks.turns import Compared, compare, run

N_FOLDS, N_ALPHAS = 10, 10
SIZES = ((20_000, 40), (200_000, 50))
QUICK = ((3000, 10),)


def folds(n_rows: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """The splits that everyone is given."""
    return list(cf.Folds(N_FOLDS).split(np.zeros((n_rows, 1))))


def ours(model: Any, X: np.ndarray, y: np.ndarray, alphas: np.ndarray, scoring: str) -> np.ndarray:
    """Mean scores of the candidates."""
    search = cf.CrossValidated(model, {"alpha": alphas.tolist()}, cv=cf.Folds(N_FOLDS), scoring=scoring).fit(X, y)
    return np.asarray(search.cv_results_["mean_test_score"])


def scikit_learn(X: np.ndarray, y: np.ndarray, alphas: np.ndarray, solver: str) -> np.ndarray:
    """LogisticRegressionCV at equal penalties, up to the sizes of training sets."""
    from sklearn.linear_model import LogisticRegressionCV

    splits = folds(len(y))
    strengths = 1 / (alphas * len(splits[0][0]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = LogisticRegressionCV(Cs=strengths, cv=splits, scoring="neg_log_loss", solver=solver, max_iter=500)
        model.fit(X, y)
    return np.asarray(next(iter(model.scores_.values()))).reshape(N_FOLDS, -1).mean(axis=0)


def glum(kind: str, X: np.ndarray, y: np.ndarray, alphas: np.ndarray) -> np.ndarray:
    """glum's cross-validation; its losses are deviances."""
    from glum import GeneralizedLinearRegressorCV

    family, link = ("binomial", "logit") if kind == "logistic" else (kind, "log")
    model = GeneralizedLinearRegressorCV(
        family=family, link=link, alphas=-np.sort(-alphas), l1_ratio=0.0, cv=folds(len(y)), n_jobs=1
    )
    deviance = np.asarray(model.fit(X, y.astype(np.float64)).deviance_path_).reshape(N_FOLDS, -1).mean(axis=0)
    ordered = deviance[np.argsort(np.argsort(-alphas))]
    return -ordered / 2 if kind == "logistic" else -ordered


def far(own: Any, other: Any) -> float:
    """The largest relative difference of mean scores."""
    return float(np.abs(np.asarray(other) / np.asarray(own) - 1).max())


def logistic(quick: bool) -> Iterator[Compared]:
    """Ten alphas x ten folds, by log loss."""
    for n, d in QUICK if quick else SIZES:
        X, z = scores(n, d)
        y = targets("logistic", z)
        alphas = 1 / (0.9 * n * np.logspace(-4, 4, N_ALPHAS))
        rivals = {
            "glum": ("glum", partial(glum, "logistic", X, y, alphas)),
            "LogisticRegressionCV, newton-cholesky": (
                "sklearn",
                partial(scikit_learn, X, y, alphas, "newton-cholesky"),
            ),
            "LogisticRegressionCV, lbfgs": ("sklearn", partial(scikit_learn, X, y, alphas, "lbfgs")),
        }
        mine = partial(ours, cf.LogisticRegression(), X, y, alphas, "neg_log_loss")
        yield from compare("logistic, 10 alphas x 10 folds", f"{n:,} x {d}", mine, installed(rivals), far, rounds=3)


def counts(quick: bool) -> Iterator[Compared]:
    """The same for counts and positive quantities, by deviance."""
    for kind, model in (("poisson", cf.PoissonRegressor()), ("gamma", cf.GammaRegressor())):
        for n, d in QUICK if quick else SIZES:
            X, z = scores(n, d)
            y = targets(kind, z)
            alphas = np.geomspace(1.0, 1e-6, N_ALPHAS)
            rivals = {"glum": ("glum", partial(glum, kind, X, y, alphas))}
            mine = partial(ours, model, X, y, alphas, f"neg_mean_{kind}_deviance")
            yield from compare(f"{kind}, 10 alphas x 10 folds", f"{n:,} x {d}", mine, installed(rivals), far, rounds=3)


def forward(quick: bool) -> Iterator[Compared]:
    """Forward selection by log loss on five folds, against scikit-learn, and against one of our own fits."""
    n, d, wanted = (500, 6, 2) if quick else (5000, 20, 6)
    X, z = scores(n, d)
    y = targets("logistic", z)
    splits = list(cf.Folds(5, stratify=True).split(X, y))
    alpha = 1 / len(splits[0][0])

    def theirs() -> Any:
        from sklearn.feature_selection import SequentialFeatureSelector
        from sklearn.linear_model import LogisticRegression

        chosen = SequentialFeatureSelector(
            LogisticRegression(), n_features_to_select=wanted, cv=splits, scoring="neg_log_loss"
        ).fit(X, y)
        return chosen.get_support()

    def mine() -> Any:
        model = cf.ForwardSelection(cf.LogisticRegression(alpha=alpha), wanted, cv=splits, scoring="neg_log_loss")
        return model.fit(X, y).support_

    def one_fit() -> Any:
        return cf.LogisticRegression(alpha=alpha).fit(X, y)

    def other(own: Any, found: Any) -> float:
        return float("nan") if not isinstance(found, np.ndarray) else float((own != found).any())

    rivals = {"SequentialFeatureSelector": theirs, "one of our fits": one_fit}
    yield from compare(f"forward selection, {wanted} of {d}", f"{n:,} x {d}", mine, rivals, other, rounds=2)


TASKS: dict[str, Callable[[bool], Iterator[Compared]]] = {"logistic": logistic, "counts": counts, "forward": forward}

if __name__ == "__main__":
    run(__doc__, TASKS)
