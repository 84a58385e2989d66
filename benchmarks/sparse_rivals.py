"""Rivals of the sparse benchmark, each in its own process:

    python -m benchmarks.sparse_rivals RIVAL KIND TOL FOLDER

FOLDER holds the data. A line on stdin is a run; the answer is wall and CPU seconds, and the weights in a file.
A rival is a class with VERSION (its package), `cv` and `path`; both give alphas x columns weights, `cv` with the number
of the alpha chosen. "cv" is what a user calls, with the fit to all rows. Centring is inside the clock where a library
leaves it to its caller.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from .sparse_problems import Array, Data
from .worker import private_stdout

N_FOLDS = 10
THREADS = int(os.environ.get("OMP_NUM_THREADS", "2"))
Chosen = tuple[Array, int]


def folds() -> Any:
    from sklearn.model_selection import KFold

    return KFold(N_FOLDS)


def by_folds(data: Data, path: Any) -> Chosen:
    """The loop over folds that a user writes where a library has none: errors of all alphas, then all rows."""
    errors = np.zeros(len(data.alphas))
    for train, test in folds().split(data.X):
        X, y = data.X[train], data.y[train]
        means, level = X.mean(axis=0), y.mean()
        weights = path(np.asfortranarray(X - means), y - level, data.alphas)
        rest = (data.y[test] - level)[:, None] - (data.X[test] - means) @ weights.T
        errors += (rest**2).sum(axis=0)
    return path(*centred(data), data.alphas), int(np.argmin(errors))


def one_row(coef: Array, data: Data, alpha: float) -> Chosen:
    """The weights of the chosen alpha alone."""
    return np.asarray(coef)[None], int(np.argmin(np.abs(data.alphas - alpha)))


class Certifit:
    VERSION = "certifit"

    def __init__(self, tol: float) -> None:
        import certifit as cf

        self.cf, self.tol = cf, tol

    def cv(self, data: Data) -> Chosen:
        """Its own alphas are the same hundred."""
        found = self.cf.CrossValidated(self.cf.Lasso(tol=self.tol), cv=folds()).fit(data.X, data.y)
        return one_row(found.best_estimator_.coef_, data, found.best_params_["alpha"])

    def path(self, data: Data) -> Array:
        if len(data.alphas) == 1:
            return self.cf.Lasso(alpha=data.alphas[0], tol=self.tol).fit(data.X, data.y).coef_[None]
        return self.cf.Lasso(tol=self.tol).path(data.X, data.y, alphas=data.alphas).coef


class ScikitLearn:
    VERSION = "scikit-learn"

    def __init__(self, tol: float) -> None:
        self.options: dict[str, Any] = {"tol": tol, "max_iter": 100_000}

    def cv(self, data: Data) -> Chosen:
        from sklearn.linear_model import LassoCV

        found = LassoCV(alphas=data.alphas, cv=folds(), n_jobs=THREADS, **self.options).fit(data.X, data.y)
        return one_row(found.coef_, data, found.alpha_)

    def path(self, data: Data) -> Array:
        from sklearn.linear_model import Lasso, lasso_path

        if data.is_sparse:  # lasso_path does not centre
            return np.array([Lasso(alpha, **self.options).fit(data.X, data.y).coef_ for alpha in data.alphas])
        X, y = centred(data)
        precompute = X.shape[0] > X.shape[1]
        return lasso_path(X, y, alphas=data.alphas, precompute=precompute, **self.options)[1].T


class Celer:
    VERSION = "celer"

    def __init__(self, tol: float) -> None:
        self.options: dict[str, Any] = {"tol": tol, "max_iter": 100, "max_epochs": 100_000}

    def cv(self, data: Data) -> Chosen:
        """celer's own LassoCV does not run with recent scikit-learn."""
        return by_folds(data, self.by_path)

    def by_path(self, X: Array, y: Array, alphas: Array) -> Array:
        from celer import celer_path

        return celer_path(X, y, pb="lasso", alphas=alphas, **self.options)[1].T

    def path(self, data: Data) -> Array:
        from celer import Lasso

        if data.is_sparse:  # celer_path does not centre; each alpha starts from the one before it
            model = Lasso(warm_start=True, **self.options)
            return np.array([model.set_params(alpha=alpha).fit(data.X, data.y).coef_.copy() for alpha in data.alphas])
        return self.by_path(*centred(data), data.alphas)


class Skglm:
    VERSION = "skglm"

    def __init__(self, tol: float) -> None:
        self.tol = tol

    def cv(self, data: Data) -> Chosen:
        return by_folds(data, self.by_gram)

    def path(self, data: Data) -> Array:
        if data.X.shape[0] > data.X.shape[1] and not data.is_sparse:
            return self.by_gram(*centred(data), data.alphas)
        from skglm import Lasso
        from skglm.datafits import Quadratic
        from skglm.solvers import AndersonCD

        if data.is_sparse:
            model = Lasso(tol=self.tol, max_iter=200, max_epochs=100_000, warm_start=True)
            return np.array([model.set_params(alpha=alpha).fit(data.X, data.y).coef_.copy() for alpha in data.alphas])
        solver = AndersonCD(max_iter=200, max_epochs=100_000, tol=self.tol, fit_intercept=False, warm_start=True)
        return self.by(solver, Quadratic(), *centred(data), data.alphas)

    def by_gram(self, X: Array, y: Array, alphas: Array) -> Array:
        from skglm.solvers import GramCD

        solver = GramCD(max_iter=100_000, tol=self.tol, greedy_cd=False, use_acc=True, warm_start=True)
        return self.by(solver, None, X, y, alphas)

    @staticmethod
    def by(solver: Any, datafit: Any, X: Array, y: Array, alphas: Array) -> Array:
        from skglm.penalties import L1

        weights, out = np.zeros(X.shape[1]), []
        for alpha in alphas:
            weights = solver.solve(X, y, datafit, L1(alpha), weights.copy(), X @ weights)[0]
            out.append(weights)
        return np.array(out)


class Glmnet:
    VERSION = "python-glmnet"

    def __init__(self, tol: float) -> None:
        self.tol = tol

    def model(self, data: Data, n_splits: int) -> Any:
        from glmnet import ElasticNet

        options: dict[str, Any] = {"standardize": False, "cut_point": 0.0, "max_iter": 10_000_000, "tol": self.tol}
        found = ElasticNet(lambda_path=data.alphas, n_splits=n_splits, n_jobs=THREADS, random_state=0, **options)
        return found.fit(data.X, data.y)

    def cv(self, data: Data) -> Chosen:
        found = self.model(data, N_FOLDS)
        return found.coef_path_.T, int(np.argmax(found.cv_mean_score_))

    def path(self, data: Data) -> Array:
        if len(data.alphas) > 1:
            return self.model(data, 0).coef_path_.T
        # A path that begins far from alpha_max is slow: ten alphas lead to the one wanted.
        alphas = float(np.abs(data.slopes(data.y)).max()) * np.geomspace(1, 1e-9, 10)
        way = np.append(alphas[alphas > data.alphas[0]], data.alphas)
        return self.model(Data(data.X, data.y, way), 0).coef_path_.T[-1:]


class Adelie:
    VERSION = "adelie"

    def __init__(self, tol: float) -> None:
        self.options: dict[str, Any] = {"tol": tol, "progress_bar": False, "adev_tol": 1.0}

    def cv(self, data: Data) -> Chosen:
        import adelie as ad

        X, target = np.asfortranarray(data.X), ad.glm.gaussian(data.y)
        ratio, size = data.alphas[-1] / data.alphas[0], len(data.alphas)
        steps = {"min_ratio": ratio, "lmda_path_size": size}
        found = ad.cv.cv_grpnet(X, target, n_folds=N_FOLDS, n_threads=THREADS, **steps, **self.options)
        fitted = found.fit(X, target, n_threads=THREADS, **self.options)
        return fitted.betas.toarray()[-1:], int(np.argmin(np.abs(data.alphas - fitted.lmdas[-1])))

    def path(self, data: Data) -> Array:
        import adelie as ad

        X = ad.matrix.sparse(data.X, n_threads=THREADS) if data.is_sparse else np.asfortranarray(data.X)
        found = ad.grpnet(
            X, ad.glm.gaussian(data.y), lmda_path=data.alphas, n_threads=THREADS, early_exit=False, **self.options
        )
        return found.betas.toarray()


RIVALS = {
    "certifit": Certifit,
    "scikit-learn": ScikitLearn,
    "celer": Celer,
    "skglm": Skglm,
    "python-glmnet": Glmnet,
    "adelie": Adelie,
}


def centred(data: Data) -> tuple[Array, Array]:
    return np.asfortranarray(data.X - data.X.mean(axis=0)), data.y - data.y.mean()


def main() -> None:
    answers = private_stdout()
    warnings.simplefilter("ignore")  # the gap tells what a warning would
    name, kind, tol, folder = sys.argv[1:]
    try:
        version = importlib.metadata.version(RIVALS[name].VERSION)
        rival = RIVALS[name](float(tol))
        data = Data.load(Path(folder))
        run = rival.cv if kind == "cv" else rival.path
        run(data.head(200, 20))  # imports and just-in-time compilers do not count
        rival.path(data.head(200, 20))
    except Exception as error:  # a failure of a rival is a result
        print(json.dumps({"error": f"{type(error).__name__}: {error}"}), file=answers, flush=True)
        return
    print(json.dumps({"version": version, "numpy": np.__version__}), file=answers, flush=True)
    for line in sys.stdin:
        wall, cpu = time.perf_counter(), time.process_time()
        found = run(data) if line.strip() == "time" else rival.path(data)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        weights, chosen = found if isinstance(found, tuple) else (found, -1)
        np.save(Path(folder) / f"{name}.weights.npy", np.asarray(weights, dtype=np.float64))
        print(json.dumps({"wall": wall, "cpu": cpu, "chosen": chosen}), file=answers, flush=True)


if __name__ == "__main__":
    main()
