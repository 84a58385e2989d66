"""Linear support vector machines beside liblinear (scikit-learn's LinearSVC) and snapml: seconds at an equal gap.

    OMP_NUM_THREADS=2 python -m benchmarks.linear_svm ROW ...

    squared     squared hinge, 500,000 x 50           hinge     hinge, 500,000 x 50, alpha n from 0.01 to 1000
    sparse      hinge and squared hinge, a9a and w8a
    N           both losses, N x 50                   FILE.svm.gz     both losses, sparse rows of a file

Without an intercept, which the peers penalise: the same objective for all. Runs in turn, the least of each; the
certificate is part of certifit's fit. `above` is how far the objective is above the lower bound that certifit proved,
relative. A peer is run at its default tolerance and at smaller ones, until it is no further above than certifit or has
taken its most passes: 40 of liblinear and 600 of snapml over 500,000 x 50, some twenty seconds, where its last line
says how far above it then is; 100,000 over the others. `benchmarks.linear_svm hinge` takes less than three minutes.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Sequence

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_svmlight_file
from sklearn.svm import LinearSVC as TheirLinearSVC

import certifit as cf
from benchmarks.svm import DATA, Seconds, timed, told
from certifit.models.linear_svm import model as linear_svm

COLUMNS, ROUNDS = 50, 2
POWER = {"squared_hinge": 2, "hinge": 1}
TOLERANCES = (1.0, 1e-2, 1e-4, 1e-6)  # times a peer's default
MANY = 100_000  # passes that no fit of few rows takes
DENSE = {"liblinear": 40, "snapml": 600}  # most passes over many rows


def problem(n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Columns that are correlated with their neighbours, and labels of a noisy score."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_rows, COLUMNS))
    X[:, 1:] += 0.5 * X[:, :-1]
    score = X @ rng.standard_normal(COLUMNS)
    return X, np.where(score / score.std() + rng.standard_normal(n_rows) > 0, 1, -1)


def sparse_rows(path: str) -> tuple[sp.csr_matrix, np.ndarray]:
    """Rows of a file, with the 32-bit places that liblinear wants."""
    X, y = load_svmlight_file(path)
    X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    return X, y


def by_liblinear(X: object, y: np.ndarray, loss: str, C: float, share: float, passes: int) -> tuple[np.ndarray, int]:
    is_primal = loss == "squared_hinge" and X.shape[0] > X.shape[1]
    how = {"dual": not is_primal, "tol": 1e-4 * share, "max_iter": passes, "random_state": 0}
    model = TheirLinearSVC(C=C, loss=loss, fit_intercept=False, **how).fit(X, y)
    return np.ravel(model.coef_), int(model.n_iter_)


def by_snapml(X: object, y: np.ndarray, loss: str, C: float, share: float, passes: int) -> tuple[np.ndarray, int]:
    from snapml import SupportVectorMachine

    how = {"n_jobs": 2, "max_iter": passes, "tol": 1e-3 * share}
    model = SupportVectorMachine(loss=loss, regularizer=1 / C, fit_intercept=False, **how)
    model.fit(X.astype(np.float32), y)
    return np.ravel(model.coef_), int(model.n_iter_)


def peers(loss: str) -> dict[str, Callable[..., tuple[np.ndarray, int]]]:
    """What is installed and has the loss: weights and passes of a fit."""
    found: dict[str, Callable[..., tuple[np.ndarray, int]]] = {"liblinear": by_liblinear}
    try:
        import snapml  # noqa: F401
    except ImportError:
        return found
    return found | ({"snapml": by_snapml} if loss == "hinge" else {})


def race(
    name: str, X: object, y: np.ndarray, loss: str, C: float, most: dict[str, int] | None = None, rounds: int = ROUNDS
) -> None:
    """Fits of the same problem; most: passes that a peer may take."""

    def value(w: np.ndarray) -> float:
        return float(w @ w) / 2 + C * float((np.maximum(0, 1 - y * (X @ w)) ** POWER[loss]).sum())

    ours = {"certifit": lambda: cf.LinearSVC(1 / (C * len(y)), loss, fit_intercept=False).fit(X, y)}
    seconds, models = timed(ours, rounds, ((linear_svm, "certify"),))
    model = models["certifit"]
    objective = value(model.coef_[0])
    lower = objective * (1 - model.certificate_.value)  # proven: no weights are below it
    label = f"{name} {loss} C={C:g}"
    told(label, "certifit", seconds, f"above {objective / lower - 1:.1e} at most")
    for peer, fit in peers(loss).items():
        passes = (most or {}).get(peer, MANY)
        for share in TOLERANCES:
            run = {peer: lambda fit=fit, share=share, passes=passes: fit(X, y, loss, C, share, passes)}
            times, results = timed(run, rounds)
            weights, taken = results[peer]
            its = value(weights)
            both: dict[str, Seconds] = {**seconds, **times}
            told(label, peer, both, f"above {its / lower - 1:.1e} at most, tolerance x {share:g}, {taken:,} passes")
            if its <= objective or taken >= passes:
                break


def both_losses(name: str, X: object, y: np.ndarray, losses: Sequence[str] = tuple(POWER)) -> None:
    for loss in losses:
        for C in (0.001, 1.0):
            race(name, X, np.where(y > 0, 1, -1), loss, C)


def squared() -> None:
    X, y = problem(500_000)
    race("500,000 x 50", X, y, "squared_hinge", 1.0)


def hinge() -> None:
    X, y = problem(500_000)
    for of_alpha in (0.01, 1.0, 10.0, 100.0, 1000.0):  # alpha n = 1 / C
        race("500,000 x 50", X, y, "hinge", 1 / of_alpha, DENSE, rounds=1)


def sparse() -> None:
    for name in ("a9a", "w8a"):
        both_losses(name, *sparse_rows(str(DATA / name / f"{name}.svm.gz")))


ROWS: dict[str, Callable[[], None]] = {"squared": squared, "hinge": hinge, "sparse": sparse}


def main(arguments: list[str]) -> None:
    warnings.simplefilter("ignore")
    for argument in arguments or list(ROWS):
        if argument in ROWS:
            ROWS[argument]()
        elif argument.isdigit():
            both_losses(f"{int(argument):,} x {COLUMNS}", *problem(int(argument)))
        else:
            both_losses(argument, *sparse_rows(argument))


if __name__ == "__main__":
    main(sys.argv[1:])
