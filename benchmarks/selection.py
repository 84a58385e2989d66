"""Cross-validation and feature selection against refitting peers: the same folds, the same numbers, the ratio of times.

    python -m benchmarks.selection                    # all, some ten minutes: the peers refit
    python -m benchmarks.selection forward ridge      # some
    python -m benchmarks.selection --quick            # small sizes: does everything run?
    python -m benchmarks.selection --out FILE.jsonl   # result lines too

Ours is the minimum of several runs with the fit to all rows included; a peer that takes more than 10 s runs once.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np

LONG = 10.0  # seconds


@dataclass(frozen=True)
class Line:
    """One comparison: seconds of both, and how far their answers differ."""

    task: str
    size: str
    rival: str
    ours: float
    theirs: float
    difference: float
    agrees: str
    load: float

    @property
    def ratio(self) -> float:
        return self.theirs / self.ours


def regression(n_rows: int, n_columns: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Correlated columns, a third of them without an effect."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, n_columns))
    X[:, 1:] += 0.5 * X[:, :-1]
    effects = rng.standard_normal(n_columns) * (rng.random(n_columns) > 0.33)
    return X, X @ effects + 5.0 * rng.standard_normal(n_rows)


def forward(quick: bool) -> Iterator[Line]:
    """10 of 40 features, 10 folds, against scikit-learn's and mlxtend's sequential selection."""
    import mlxtend.feature_selection as mlxtend
    from sklearn.feature_selection import SequentialFeatureSelector
    from sklearn.linear_model import LinearRegression
    from sklearn.model_selection import KFold

    import certifit as cf

    n_rows, d, k = (2000, 12, 4) if quick else (100_000, 40, 10)
    X, y = regression(n_rows, d)
    folds = KFold(10)
    ours, model = best_of(lambda: cf.ForwardSelection(cf.LinearRegression(), k, cv=folds).fit(X, y))
    chosen = set(np.flatnonzero(model.get_support()))
    score = model.steps_[-1].mean_score
    size = f"{k} of {d}, 10 folds, {n_rows:,} rows"

    def peer() -> Any:
        return SequentialFeatureSelector(LinearRegression(), n_features_to_select=k, cv=folds).fit(X, y)

    theirs, other = best_of(peer)
    same = "same subset" if set(np.flatnonzero(other.get_support())) == chosen else "OTHER SUBSET"
    yield line("forward selection", size, "scikit-learn", ours, theirs, np.nan, same)

    def mlx() -> Any:
        return mlxtend.SequentialFeatureSelector(LinearRegression(), k, cv=folds, scoring="r2").fit(X, y)

    theirs, other = best_of(mlx)
    same = "same subset" if set(other.k_feature_idx_) == chosen else "OTHER SUBSET"
    yield line("forward selection", size, "mlxtend", ours, theirs, abs(other.k_score_ - score), same)


def long_forward(quick: bool) -> Iterator[Line]:
    """75 of 150 features against ONE fit of all columns."""
    from sklearn.linear_model import LinearRegression

    import certifit as cf

    n_rows, d, k = (2000, 20, 10) if quick else (50_000, 150, 75)
    X, y = regression(n_rows, d)
    ours, _ = best_of(lambda: cf.ForwardSelection(cf.LinearRegression(), k, cv=10).fit(X, y))
    theirs, _ = best_of(lambda: LinearRegression().fit(X, y))
    yield line("forward selection", f"{k} of {d}, 10 folds, {n_rows:,} rows", "ONE LinearRegression.fit", ours, theirs)


def ridge(quick: bool) -> Iterator[Line]:
    """50 penalties, 10 folds, against GridSearchCV, of small data too; exact leave-one-out against RidgeCV."""
    from sklearn.linear_model import RidgeCV

    import certifit as cf

    yield from ridge_searches(2000, 10 if quick else 100)
    n_rows, d = (2000, 10) if quick else (200_000, 100)
    if not quick:
        yield from ridge_searches(n_rows, d)
    X, y = regression(n_rows, d)
    alphas = np.geomspace(1e-6, 10.0, 50)
    grid = {"alpha": alphas}
    ours, model = best_of(
        lambda: cf.CrossValidated(cf.Ridge(), grid, cv="loo", scoring="neg_mean_squared_error").fit(X, y)
    )
    theirs, peer = best_of(lambda: RidgeCV(alphas * (n_rows - 1), store_cv_results=False).fit(X, y))
    best = -model.best_score_
    yield line("ridge, leave-one-out", f"50 values, {n_rows:,} x {d}", "RidgeCV", ours, theirs,
               abs(best + peer.best_score_) / best)  # fmt: skip


def ridge_searches(n_rows: int, d: int) -> Iterator[Line]:
    """50 penalties by 10 folds."""
    from sklearn.linear_model import Ridge
    from sklearn.model_selection import GridSearchCV, KFold

    import certifit as cf

    X, y = regression(n_rows, d)
    alphas, folds = np.geomspace(1e-6, 10.0, 50), KFold(10)
    ours, model = best_of(lambda: cf.CrossValidated(cf.Ridge(), {"alpha": alphas}, cv=folds).fit(X, y))
    penalties = {"alpha": alphas * n_rows * 0.9}  # scikit-learn's alpha is ours times the rows of a training set
    searches = {"scikit-learn GridSearchCV": (Ridge(), 2)}
    if (patched := intelex("Ridge")) is not None:
        searches["scikit-learn-intelex GridSearchCV"] = (patched(), 1)
    for name, (estimator, n_jobs) in searches.items():
        search = GridSearchCV(estimator, penalties, cv=folds, n_jobs=n_jobs)
        theirs, peer = best_of(partial(search.fit, X, y))
        difference = np.abs(model.cv_results_["mean_test_score"] - peer.cv_results_["mean_test_score"]).max()
        yield line("ridge, cross-validated", f"50 values x 10 folds, {n_rows:,} x {d}", name, ours, theirs, difference)


def cost(quick: bool) -> Iterator[Line]:
    """Three sizes: seconds of 10 folds x 50 penalties against seconds of one fit. About one pass, not ten."""
    import certifit as cf

    grid = {"alpha": np.geomspace(1e-6, 10.0, 50)}
    for n_rows in (2000, 4000) if quick else (100_000, 300_000, 900_000):
        X, y = regression(n_rows, 50)
        one, _ = best_of(lambda X=X, y=y: cf.Ridge(1e-3).fit(X, y))
        all_, _ = best_of(lambda X=X, y=y: cf.CrossValidated(cf.Ridge(), grid, cv=10).fit(X, y))
        yield line("500 fits in place of one", f"{n_rows:,} x 50", "one certifit Ridge.fit", all_, one)


def intelex(name: str) -> Any:
    """A model of scikit-learn-intelex, where it is installed."""
    try:
        import sklearnex.linear_model as models
    except ImportError:
        return None
    return getattr(models, name, None)


def best_of(f: Callable[[], Any], repeats: int = 7) -> tuple[float, Any]:
    """Seconds of the fastest run, and what it gave. Long ones run once."""
    times, result = [], None
    for _ in range(repeats):
        started = time.perf_counter()
        result = f()
        times.append(time.perf_counter() - started)
        if times[-1] > LONG:
            break
    return min(times), result


def line(
    task: str, size: str, rival: str, ours: float, theirs: float, difference: float = np.nan, agrees: str = ""
) -> Line:
    return Line(task, size, rival, ours, theirs, float(difference), agrees, round(os.getloadavg()[0], 2))


TASKS = {"forward": forward, "long_forward": long_forward, "ridge": ridge, "cost": cost}


def run(description: str | None, tasks: dict[str, Callable[[bool], Iterator[Line]]]) -> None:
    """The command line of a file of comparisons."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tasks", nargs="*", default=[], metavar="TASK", help=f"some of {', '.join(tasks)}")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--out")
    given = parser.parse_args()
    if unknown := set(given.tasks) - set(tasks):
        parser.error(f"unknown {sorted(unknown)}. Tasks are {', '.join(tasks)}.")
    for task in given.tasks or tasks:
        for one in tasks[task](given.quick):
            extra = f"  differ by {one.difference:.1e}" if np.isfinite(one.difference) else ""
            print(
                f"{one.task:26} {one.size:36} ours {one.ours:8.4f} s  {one.rival} {one.theirs:8.3f} s  "
                f"{one.ratio:8.1f}x{extra}  {one.agrees}",
                flush=True,
            )
            if given.out:
                with open(given.out, "a") as file:
                    file.write(json.dumps(asdict(one) | {"ratio": one.ratio}) + "\n")


if __name__ == "__main__":
    run(__doc__, TASKS)
