"""Fits that could fall off a cliff: what each costs beside a limit that it keeps.

    OMP_NUM_THREADS=1 python -m benchmarks.cliffs [NAME ...] [--turns 3]

The minimum of the CPU seconds of some turns counts, after one that warms up. "of" is what the cost is compared with:
seconds, one of our own fits (a refit), or scikit-learn's fit. German credit is looked for in shared/data beside the
project folder.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

import certifit as cf

EQUAL = 1e-8  # of an objective: fits that are this near count as equally good
DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


@dataclass(frozen=True)
class Cliff:
    """A fit, what it is compared with (None: a second), and the most that it may cost of that.

    is_count: the fit returns its cost, a number. note: what the other fit reaches, where that is not the same.
    """

    fit: Callable[[], Any]
    other: Callable[[], Any] | None
    unit: str
    most: float
    is_count: bool = False
    note: Callable[[], str] = str


def german_credit() -> tuple[np.ndarray, np.ndarray]:
    """1,000 x 48, standardised, and whether a credit was bad."""
    import pyarrow.parquet as pq

    from certifit.maps import TableEncoder

    table = pq.read_table(DATA / "german_credit" / "german_credit.parquet")
    target = table.column_names[-1]
    X = TableEncoder().fit_transform(table.drop_columns([target])).toarray().astype(np.float64)
    label = table.column(target).to_numpy()
    return (X - X.mean(axis=0)) / np.where(X.std(axis=0) > 0, X.std(axis=0), 1), (label == label[0]).astype(int)


def logistic_lasso() -> Cliff:
    """50 penalties x 10 folds of an L1 penalty on German credit."""
    X, y = german_credit()
    search = cf.CrossValidated(cf.LogisticRegression(l1_ratio=1.0), cv=cf.Folds(10, stratify=True))
    return Cliff(lambda: search.fit(X, y), None, "seconds", 3.0)


def forward_selection(is_count: bool) -> Cliff:
    """12 of 40 columns of a Poisson GLM by five folds: fits of the estimator, or time in refits of all columns.

    A refit by time is five fits, one to every training set.
    """
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20_000, 40))
    y = rng.poisson(np.exp(0.5 + 0.3 * X[:, :12] @ np.linspace(1, 0.2, 12) / 2)).astype(float)
    model = cf.PoissonRegressor(alpha=1e-3)
    splits = list(cf.Folds(5).split(X))
    chosen = cf.ForwardSelection(model, 12, cv=splits)
    if is_count:
        return Cliff(lambda: n_solved(lambda: chosen.fit(X, y)), None, "fits", 10, is_count)
    return Cliff(
        lambda: chosen.fit(X, y),
        lambda: [model.fit(X[train], y[train]) for train, _ in splits],
        "refits of five folds",
        10.0,
    )


def n_solved(fit: Callable[[], Any]) -> int:
    """How often a Poisson regression is solved in a fit."""
    solve, n_solves = cf.PoissonRegressor._solve, [0]

    def counted(model: Any, task: Any) -> Any:
        n_solves[0] += 1
        return solve(model, task)

    with mock.patch.object(cf.PoissonRegressor, "_solve", counted):
        fit()
    return n_solves[0]


def wide_huber(alpha: float, most: float) -> Cliff:
    """200 x 1,000, a ridge penalty; scikit-learn's fit ends at its default tolerance, ours with a proof.

    The rows can be met exactly: under a weak penalty the joint scale is best at 0, where scikit-learn's steps end early
    at any tolerance. The note says how far above our objective, and what it takes to come within EQUAL of it.
    """
    from sklearn.linear_model import HuberRegressor

    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 1000))
    y = X[:, :5].sum(axis=1) + rng.standard_t(2, size=200)
    ours = cf.HuberRegressor(alpha=alpha)
    others = [HuberRegressor(alpha=alpha * len(y), max_iter=100_000, tol=tol) for tol in (1e-5, 1e-7, 1e-9, 1e-12)]

    def objective(model: Any) -> float:
        scale = model.scale_
        z = np.abs(y - model.predict(X)) / scale
        huber = np.where(z <= 1.35, z * z, 2 * 1.35 * z - 1.35**2)
        return float(len(y) * scale + scale * huber.sum() + alpha * len(y) * model.coef_ @ model.coef_)

    def note() -> str:
        least = objective(ours.fit(X, y))
        excess = [objective(other.fit(X, y)) / least - 1 for other in others]
        near = next((other for other, far in zip(others, excess, strict=True) if far <= EQUAL), None)
        said = f"scikit-learn's objective is {excess[0]:.1e} above ours"
        if near is None:
            return f"{said}, and {min(excess):.1e} at any tolerance to {others[-1].tol:g}"
        ours_takes, takes = seconds([lambda: ours.fit(X, y), lambda: near.fit(X, y)], 3)
        return f"{said}; at tolerance {near.tol:g} it is within {EQUAL:g}: {ours_takes / takes:.2f} of that fit"

    return Cliff(lambda: ours.fit(X, y), lambda: others[0].fit(X, y), "of scikit-learn", most, note=note)


def wide_ridge(order: str) -> Cliff:
    """500 x 20,000, row by row or column by column."""
    from sklearn.linear_model import Ridge

    rng = np.random.default_rng(0)
    X = np.array(rng.standard_normal((500, 20_000)), order=order)  # type: ignore[call-overload]
    y = X[:, :10].sum(axis=1) + rng.standard_normal(500)
    return Cliff(lambda: cf.Ridge().fit(X, y), lambda: Ridge().fit(X, y), "of scikit-learn", 1.0)


CLIFFS: dict[str, Callable[[], Cliff]] = {
    "logistic-lasso": logistic_lasso,
    "forward-selection": lambda: forward_selection(is_count=False),
    "forward-selection-fits": lambda: forward_selection(is_count=True),
    "wide-huber": lambda: wide_huber(1e-4, 1.0),
    "wide-huber-strong": lambda: wide_huber(10.0, 3.0),
    "wide-ridge-rows": lambda: wide_ridge("C"),
    "wide-ridge-columns": lambda: wide_ridge("F"),
}


def seconds(runs: list[Callable[[], Any]], turns: int) -> list[float]:
    """The least CPU seconds of each, in turns."""
    best = [np.inf] * len(runs)
    for turn in range(turns + 1):
        for k, run in enumerate(runs):
            begin = time.process_time()
            run()
            if turn:
                best[k] = min(best[k], time.process_time() - begin)
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(CLIFFS))
    parser.add_argument("--turns", type=int, default=3)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    print("| fit | CPU seconds | cost | limit | note |\n| --- | --- | --- | --- | --- |")
    for name in options.names or CLIFFS:
        cliff = CLIFFS[name]()
        ours, *other = seconds([cliff.fit, *([] if cliff.other is None else [cliff.other])], options.turns)
        cost = cliff.fit() if cliff.is_count else ours / other[0] if other else ours
        print(f"| {name} | {ours:.3f} | {cost:.2f} {cliff.unit} | {cliff.most:g} | {cliff.note()} |", flush=True)


if __name__ == "__main__":
    main()
