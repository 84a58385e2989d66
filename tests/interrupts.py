"""Ctrl-C inside every long fit: how long until KeyboardInterrupt arrives, and is the estimator as it was before?

    python tests/interrupts.py [--only "Lasso, wide" softmax] [--moments 0.3 1 3] [--json PATH]

Every case is a fit of a minute or more in a forked child. The child is sent SIGINT at some moments (seconds into the
fit, a new child for each), and says when it is out of the fit. Times are seconds of the processor that the child used
from the signal on, with one thread: a busy machine does not change them. The exit code is 1 where a child was not
interrupted, took longer than --longest, or left another estimator behind than it found.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import pickle
import shutil
import signal
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_variable, "1")

import numpy as np  # noqa: E402
from learners import LEARNERS as ROWS  # noqa: E402
from sklearn.base import clone  # noqa: E402

import certifit as cf  # noqa: E402

STUCK = 300  # seconds until a child that does not answer is given up
Work = tuple[Any, Callable[[], object]]  # an estimator that has been fitted before (or None), and the long call
CASES: dict[str, Callable[[np.random.Generator], Work]] = {}


def case(name: str, *args: Any) -> Callable[[Callable[..., Work]], Callable[..., Work]]:
    def register(make: Callable[..., Work]) -> Callable[..., Work]:
        CASES[name] = lambda rng: make(rng, *args)
        return make

    return register


def cases(table: dict[str, tuple[Any, ...]]) -> Callable[[Callable[..., Work]], Callable[..., Work]]:
    def register(make: Callable[..., Work]) -> Callable[..., Work]:
        for name, args in table.items():
            case(name, *args)(make)
        return make

    return register


def fit(model: Any, X: Any, y: Any = None, n: int = 60) -> Work:
    """A fit of few rows is there before; the long one is of all."""
    patience = {name: value for name, value in model.get_params(deep=False).items() if name == "max_iter"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.set_params(**dict.fromkeys(patience, 3)).fit(X[:n], y if y is None else y[:n])
    model.set_params(**patience)
    return model, lambda: model.fit(X, y)


def fits(model: Any, X: Any, y: Any) -> Work:
    """For quick models: the same fit again and again, and it is there before."""
    model.fit(X, y)
    return model, lambda: [model.fit(X, y) for _ in range(10_000)]


def quantity(rng: np.random.Generator, n: int, d: int) -> tuple[Any, Any]:
    X = rng.standard_normal((n, d), dtype=np.float32).astype(float)
    return X, X[:, :5].sum(axis=1) + rng.normal(size=n)


def labels(rng: np.random.Generator, n: int, d: int, k: int = 2) -> tuple[Any, Any]:
    X, z = quantity(rng, n, d)
    y = np.clip((z * 2).astype(int) + k // 2, 0, k - 1)
    y[:60] = np.arange(60) % k
    return X, y


def counts(rng: np.random.Generator, n: int, d: int) -> tuple[Any, Any]:
    X, z = quantity(rng, n, d)
    return X, rng.poisson(np.exp(np.clip(z / 4, -3, 3))).astype(float)


# Least squares and the lasso.

cases(
    {
        "LinearRegression, tall": (cf.LinearRegression(), 300_000, 300),
        "LinearRegression, 4,000 columns": (cf.LinearRegression(), 6_000, 4_000),
        "LinearRegression, wide": (cf.LinearRegression(), 3_000, 20_000),
        "Ridge, tall": (cf.Ridge(), 300_000, 300),
        "Ridge, 4,000 columns": (cf.Ridge(), 6_000, 4_000),
        "Ridge, wide": (cf.Ridge(), 3_000, 20_000),
        "Lasso, tall": (cf.Lasso(1e-4), 300_000, 300),
        "Lasso, 3,000 columns": (cf.Lasso(1e-5), 6_000, 3_000),
        "Lasso, wide": (cf.Lasso(1e-4), 1_500, 20_000),
        "ElasticNet, wide": (cf.ElasticNet(1e-4, 0.1), 1_500, 20_000),
        "ElasticNet, tiny L1": (cf.ElasticNet(1e-6, 1e-6), 3_000, 2_000),
        "Lasso, bounds": (cf.Lasso(1e-4, bounds=(0.0, np.inf)), 6_000, 2_000),
        "Lasso, standardize": (cf.Lasso(1e-4, standardize=True), 300_000, 300),
        "HuberRegressor(joint)": (cf.HuberRegressor(), 200_000, 200),
        "HuberRegressor(mad)": (cf.HuberRegressor(scale="mad"), 200_000, 100),
        "HuberRegressor(scale=1)": (cf.HuberRegressor(scale=1.0, alpha=1e-4), 100_000, 300),
        "PCA, tall": (cf.PCA(), 300_000, 300),
        "PCA, 3,000 columns": (cf.PCA(), 5_000, 3_000),
        "PCA, wide": (cf.PCA(), 3_000, 20_000),
        "PCA(randomized)": (cf.PCA(20, solver="randomized"), 20_000, 3_000),
        "PCA(randomized), wide": (cf.PCA(20, solver="randomized"), 2_000, 50_000),
        "Polynomial(3)": (cf.Polynomial(3), 100_000, 30),
        "LinearRegression, polynomial": (cf.LinearRegression(basis=cf.Polynomial(3)), 100_000, 12),
        "MutualInformationFilter": (cf.MutualInformationFilter(2, target="continuous"), 100_000, 30),
    }
)(lambda rng, model, n, d: fit(model, *quantity(rng, n, d)))

# Generalised linear models: every solver.

SOLVERS = ("gradient-descent", "conjugate-gradient", "bfgs", "lbfgs", "newton", "sgd", "mini-batch", "averaged-sgd")
SLOW = {"tol": 1e-15, "max_iter": 100_000}

cases({f"LogisticRegression({solver})": (cf.LogisticRegression(1e-6, solver=solver, **SLOW),) for solver in SOLVERS})(
    lambda rng, model: fit(model, *labels(rng, 150_000, 150))
)
cases(
    {
        "LogisticRegression, 3,000 columns": (cf.LogisticRegression(1e-6), 6_000, 3_000, 2),
        "LogisticRegression, wide": (cf.LogisticRegression(1e-6), 1_500, 20_000, 2),
        "LogisticRegression(alpha=0)": (cf.LogisticRegression(0.0), 60_000, 400, 2),
        "LogisticRegression(alpha=0), 1,500 columns": (cf.LogisticRegression(0.0), 20_000, 1_500, 2),
        "LogisticRegression(L1)": (cf.LogisticRegression(1e-5, 1.0), 60_000, 400, 2),
        "LogisticRegression(L1), wide": (cf.LogisticRegression(1e-4, 1.0), 1_500, 20_000, 2),
        "LogisticRegression(L1 + L2), wide": (cf.LogisticRegression(1e-4, 0.1), 1_500, 10_000, 2),
        "softmax": (cf.LogisticRegression(1e-6), 60_000, 80, 8),
        "softmax, many columns": (cf.LogisticRegression(1e-6), 3_000, 2_000, 8),
        "softmax, many classes": (cf.LogisticRegression(1e-6), 20_000, 50, 60),
        "softmax(alpha=0)": (cf.LogisticRegression(0.0), 60_000, 80, 8),
        "OneVsRestClassifier": (cf.OneVsRestClassifier(cf.LogisticRegression(1e-6)), 60_000, 80, 8),
        "Perceptron": (cf.Perceptron(max_iter=100_000), 100_000, 100, 2),
        "Perceptron(shuffled)": (cf.Perceptron(order="shuffled", max_iter=100_000), 100_000, 100, 2),
        "GaussianDiscriminant": (cf.GaussianDiscriminant(), 200_000, 200, 2),
        "GaussianDiscriminant, 2,000 columns": (cf.GaussianDiscriminant(shrinkage=0.1), 5_000, 2_000, 3),
        "GaussianDiscriminant(class)": (cf.GaussianDiscriminant("class", shrinkage=0.1), 200_000, 100, 12),
        "CrossValidated(classes)": (
            cf.CrossValidated(cf.GaussianDiscriminant(), {"shrinkage": [0.1 * k for k in range(10)]}, cv=5),
            100_000,
            100,
            3,
        ),
        "CrossValidated(logistic)": (cf.CrossValidated(cf.LogisticRegression(), cv=5), 40_000, 60, 2),
        "CrossValidated(logistic L1)": (cf.CrossValidated(cf.LogisticRegression(l1_ratio=1.0), cv=5), 20_000, 100, 2),
        "ForwardSelection(logistic)": (
            cf.ForwardSelection(cf.LogisticRegression(0.01), cv=5), 20_000, 30, 2,
        ),
        "MutualInformationFilter(classes)": (cf.MutualInformationFilter(2), 1_000_000, 60, 2),
    }
)(lambda rng, model, n, d, k: fit(model, *labels(rng, n, d, k)))  # fmt: skip
cases(
    {
        "GaussianDiscriminant(diagonal)": (cf.GaussianDiscriminant("diagonal"),),
        "GaussianNB": (cf.GaussianNB(),),
        "BernoulliNB": (cf.BernoulliNB(),),
        "MultinomialNB": (cf.MultinomialNB(),),
    }
)(lambda rng, model: fits(model, *_counts_of_classes(rng, 200_000, 100, 4)))
cases(
    {
        "PoissonRegressor": (cf.PoissonRegressor(1e-6, **SLOW), 200_000, 150),
        "PoissonRegressor(alpha=0)": (cf.PoissonRegressor(0.0), 60_000, 400),
        "PoissonRegressor(L1)": (cf.PoissonRegressor(1e-5, 1.0), 60_000, 300),
        "GLM(negative-binomial)": (cf.GLM("negative-binomial", alpha=1e-3), 400_000, 300),
        "GLM(poisson, sqrt)": (cf.GLM("poisson", "sqrt"), 100_000, 100),
    }
)(lambda rng, model, n, d: fit(model, *counts(rng, n, d)))


def _counts_of_classes(rng: np.random.Generator, n: int, d: int, k: int) -> tuple[Any, Any]:
    X, y = labels(rng, n, d, k)
    return np.abs(np.floor(X)), y


# Cross-validation, selection, resampling.

cases(
    {
        "CrossValidated(ridge)": (cf.CrossValidated(cf.Ridge(), cv=10), 200_000, 200),
        "CrossValidated(ridge), 1,000 columns": (cf.CrossValidated(cf.Ridge(), cv=10), 5_000, 1_000),
        "CrossValidated(ridge, loo)": (cf.CrossValidated(cf.Ridge(), cv="loo"), 100_000, 300),
        "CrossValidated(ridge), wide": (cf.CrossValidated(cf.Ridge(), cv=5), 1_500, 8_000),
        "CrossValidated(lasso)": (cf.CrossValidated(cf.Lasso(), cv=10), 6_000, 800),
        "CrossValidated(lasso), wide": (cf.CrossValidated(cf.Lasso(), cv=10), 600, 10_000),
        "CrossValidated(huber)": (cf.CrossValidated(cf.HuberRegressor(), {"delta": [1.1, 1.3, 1.5]}, cv=5), 40_000, 40),
        "ForwardSelection(ridge)": (cf.ForwardSelection(cf.Ridge(), cv=10), 4_000, 300),
        "BackwardSelection(ridge)": (cf.BackwardSelection(cf.Ridge(), cv=10), 4_000, 200),
        "ForwardSelection(lasso)": (cf.ForwardSelection(cf.Lasso(0.01), cv=5), 200_000, 12),
    }
)(lambda rng, model, n, d: fit(model, *quantity(rng, n, d), n=400))


@case("bootstrap_interval, any statistic")
def _(rng: np.random.Generator) -> Work:
    values = rng.normal(size=300_000)
    return None, lambda: cf.bootstrap_interval(lambda x: float(np.median(x)), values, n_resamples=100_000)


@case("bootstrap of an AUC")
def _(rng: np.random.Generator) -> Work:
    truth, scores = rng.integers(0, 2, size=500_000), rng.normal(size=500_000)
    return None, lambda: cf.bootstrap_interval(cf.roc_auc_score, truth, scores, n_resamples=100_000)


@case("compare_auc")
def _(rng: np.random.Generator) -> Work:
    truth, a, b = rng.integers(0, 2, size=30_000_000), rng.normal(size=30_000_000), rng.normal(size=30_000_000)
    return None, lambda: cf.compare_auc(truth, a, b)


@case("roc_auc_score")
def _(rng: np.random.Generator) -> Work:
    truth, scores = rng.integers(0, 2, size=60_000_000), rng.normal(size=60_000_000)
    return None, lambda: cf.roc_auc_score(truth, scores)


@case("bias_variance")
def _(rng: np.random.Generator) -> Work:
    X, y = quantity(rng, 20_000, 100)
    return None, lambda: cf.bias_variance(
        cf.Ridge(), X, y, X[:2000], y_test=y[:2000], param_name="alpha", param_range=[0.01, 0.1, 1.0], n_resamples=1000
    )


@case("jackknife_plus")
def _(rng: np.random.Generator) -> Work:
    X, y = quantity(rng, 20_000, 300)
    return None, lambda: cf.jackknife_plus(cf.Ridge(), X, y, X[:2000])


@case("leaderboard")
def _(rng: np.random.Generator) -> Work:
    X, y = quantity(rng, 30_000, 150)
    models = {"ridge": cf.Ridge(), "lasso": cf.Lasso(), "huber": cf.HuberRegressor()}
    return None, lambda: cf.leaderboard(models, X, y, cv=10)


@case("learning_curve")
def _(rng: np.random.Generator) -> Work:
    X, y = labels(rng, 60_000, 60)
    return None, lambda: cf.learning_curve(cf.LogisticRegression(), X, y, cv=10)


@case("validation_curve")
def _(rng: np.random.Generator) -> Work:
    X, y = labels(rng, 60_000, 60)
    alphas = [10.0**-k for k in range(8)]
    return None, lambda: cf.validation_curve(
        cf.LogisticRegression(), X, y, param_name="alpha", param_range=alphas, cv=10
    )


# Kernels, margins, trees, votes, networks.


def apart(rng: np.random.Generator, n: int, d: int) -> tuple[Any, Any]:
    """Two classes with a gap between them."""
    X, z = quantity(rng, n, d)
    X[:, 0] += np.where(z > 0, 6.0, -6.0)
    return X, (z > 0).astype(int)


cases(
    {
        "KernelRidge": (cf.KernelRidge(1e-8), 8_000, 20),
        "KernelLMS": (cf.KernelLMS(max_iter=1_000_000), 4_000, 10),
        "KernelPCA": (cf.KernelPCA(), 5_000, 10),
        "KernelPCA(10)": (cf.KernelPCA(10), 10_000, 10),
        "LocallyWeightedRegression": (cf.LocallyWeightedRegression(), 30_000, 5),
        "SVR": (cf.SVR(1e-7, epsilon=0.01), 20_000, 10),
        "DecisionTreeRegressor": (cf.DecisionTreeRegressor(), 300_000, 100),
        "DecisionTreeRegressor(optimal)": (cf.DecisionTreeRegressor(search="optimal", max_depth=4), 20_000, 30),
        "AdaBoostRegressor": (cf.AdaBoostRegressor(2_000), 50_000, 30),
        "RandomForestRegressor": (cf.RandomForestRegressor(2_000), 50_000, 30),
        "GradientBoostingRegressor": (cf.GradientBoostingRegressor(20_000), 50_000, 30),
        "BaggingRegressor": (cf.BaggingRegressor(cf.Ridge(0.1), 2_000), 50_000, 60),
        "MLPRegressor": (cf.MLPRegressor((100,), max_iter=1_000), 100_000, 50),
        "QuantileRegressor": (cf.QuantileRegressor(), 200_000, 100),
    }
)(lambda rng, model, n, d: fit(model, *quantity(rng, n, d)))
cases(
    {
        "SVC": (cf.SVC(1e-7), 30_000, 10),
        "SVC(smo)": (cf.SVC(1e-6, solver="smo", tol=1e-9), 2_000, 10),
        "LinearSVC": (cf.LinearSVC(1e-9, loss="hinge", tol=1e-12, max_iter=100_000), 200_000, 100),
        "DecisionTreeClassifier": (cf.DecisionTreeClassifier(), 300_000, 100),
        "DecisionTreeClassifier(max_bins)": (cf.DecisionTreeClassifier(max_bins=255), 400_000, 150),
        "DecisionTreeClassifier(optimal)": (cf.DecisionTreeClassifier(search="optimal", max_depth=4), 20_000, 30),
        "AdaBoostClassifier": (cf.AdaBoostClassifier(100_000), 50_000, 30),
        "RandomForestClassifier": (cf.RandomForestClassifier(2_000), 50_000, 30),
        "GradientBoostingClassifier": (cf.GradientBoostingClassifier(20_000), 50_000, 30),
        "BaggingClassifier": (cf.BaggingClassifier(cf.DecisionTreeClassifier(), 2_000), 20_000, 30),
        "Calibrated": (cf.Calibrated(cf.LogisticRegression(1e-6), cv=10), 200_000, 150),
        "MLPClassifier": (cf.MLPClassifier((100,), max_iter=1_000), 100_000, 50),
    }
)(lambda rng, model, n, d: fit(model, *labels(rng, n, d)))
cases({"KernelRidge(landmarks)": (cf.KernelRidge(1e-8, n_landmarks=1_500), 60_000, 20)})(
    lambda rng, model, n, d: fit(model, *quantity(rng, n, d), n=2_000)
)
cases({"HardMarginSVC": (cf.HardMarginSVC(cf.kernels.Gaussian(2.0), tol=1e-9), 20_000, 10)})(
    lambda rng, model, n, d: fit(model, *apart(rng, n, d))
)

# Models of the table without a case above.

for _key, _row in ROWS.items():
    if type(_row.model).__name__ not in {_name.partition("(")[0].partition(",")[0] for _name in CASES}:
        case(_key, _row)(lambda rng, row: fit(clone(row.model), *row.rows(200_000, 100)))

# Texts, tables, files, Dask.


@case("TextBinarizer")
def _(rng: np.random.Generator) -> Work:
    texts = [" ".join(f"w{k}" for k in rng.integers(0, 50_000, size=400)) for _ in range(3_000)] * 20
    return fit(cf.TextBinarizer(ngram_range=(1, 2)), texts)


@case("TableEncoder")
def _(rng: np.random.Generator) -> Work:
    import pandas as pd

    frame = pd.DataFrame({f"c{j}": rng.integers(0, 500, size=400_000).astype(str) for j in range(12)})
    return fits(cf.TableEncoder(), frame, None)


@case("fit of a table of categories")
def _(rng: np.random.Generator) -> Work:
    import pandas as pd

    frame = pd.DataFrame({f"c{j}": rng.integers(0, 300, size=200_000).astype(str) for j in range(8)})
    y = rng.normal(size=200_000)
    return fit(cf.LinearRegression(encoder=cf.TableEncoder()), frame, y, n=4_000)


@case("fit of sparse words")
def _(rng: np.random.Generator) -> Work:
    from scipy import sparse

    n, n_words, d = 200_000, 50, 50_000
    words = np.sort(rng.integers(0, d, size=(n, n_words)), axis=1).astype(np.int32)
    X = sparse.csr_array((np.ones(n * n_words), words.ravel(), n_words * np.arange(n + 1)), shape=(n, d))
    X.sum_duplicates()
    return fit(cf.LogisticRegression(1e-5, 1.0), X, rng.integers(0, 2, size=200_000))


FOLDER = Path(tempfile.gettempdir()) / f"certifit-interrupts-{os.getpid()}"  # of files that the children read


def _scan(rng: np.random.Generator, kind: str) -> Any:
    import pandas as pd

    n, d = 400_000, 30
    frame = pd.DataFrame(rng.integers(-999, 999, size=(n, d)) / 8, columns=[f"x{j}" for j in range(d)])
    frame["y"] = frame["x0"] + rng.normal(size=n).round(3)
    FOLDER.mkdir(exist_ok=True)
    path = FOLDER / f"rows.{kind}"
    if kind == "csv":
        frame.to_csv(path, index=False)
        return cf.scan_csv([path] * 4, target="y")
    frame.to_parquet(path)
    return cf.scan_parquet([path] * 4, target="y")


@cases({"rows of a CSV file": ("csv",), "rows of a Parquet file": ("parquet",)})
def _(rng: np.random.Generator, kind: str) -> Work:
    model = cf.HuberRegressor()
    model.fit(*quantity(rng, 60, 30))
    scan = _scan(rng, kind)
    return model, lambda: model.fit(scan)


@case("rows of Dask, threads")
def _(rng: np.random.Generator) -> Work:
    import dask.array as da

    X, y = quantity(rng, 400_000, 100)
    rows = cf.from_dask(da.from_array(X, chunks=(20_000, 100)), da.from_array(y, chunks=20_000))
    model = cf.HuberRegressor()
    model.fit(X[:200], y[:200])
    return model, lambda: model.fit(rows)


# Proofs.


@cases(
    {
        "verify": (cf.LogisticRegression(1e-3), 400_000, 200, False),
        "verify exact": (cf.LogisticRegression(1e-3), 20_000, 40, True),
        "verify exact, least squares": (cf.LinearRegression(), 20_000, 40, True),
        "verify exact, discriminant": (cf.GaussianDiscriminant("class"), 20_000, 30, True),
    }
)
def _(rng: np.random.Generator, model: Any, n: int, d: int, exact: bool) -> Work:
    X, y = labels(rng, n, d)
    model.fit(X, y if hasattr(model, "predict_proba") else y.astype(float))
    return model, lambda: cf.verify(model, X, y, exact=exact, most_minutes=1e6)


@case("summary with robust errors")
def _(rng: np.random.Generator) -> Work:
    X, y = counts(rng, 300_000, 100)
    model = cf.GLM("poisson").fit(X, y)
    return model, lambda: [model.summary(X, y, covariance="HC3") for _ in range(1000)]


@case("predict")
def _(rng: np.random.Generator) -> Work:
    X, y = labels(rng, 200_000, 100, 30)
    model = cf.GaussianDiscriminant("class", shrinkage=0.5).fit(X[:30_000], y[:30_000])
    return model, lambda: model.predict_proba(X)


# Running.


def _state(model: Any) -> bytes:
    return pickle.dumps(None if model is None else {name: vars(model)[name] for name in sorted(vars(model))})


def _in_child(make: Callable[[np.random.Generator], Work], connection: Connection) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    warnings.simplefilter("ignore")
    try:
        model, call = make(np.random.default_rng(0))
        before = _state(model)
        connection.send("begins")
        outcome = "ended before the signal"
        try:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            call()
        except KeyboardInterrupt:
            used = time.process_time()
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            outcome = "interrupted" if _state(model) == before else "left a changed estimator"
            connection.send((outcome, used))
        else:
            connection.send((outcome, 0.0))
    except BaseException as error:
        connection.send((f"{type(error).__name__}: {error}"[:300], 0.0))
    finally:
        os._exit(0)


def processor_seconds(process: int) -> float:
    with open(f"/proc/{process}/stat") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def interrupted(make: Callable[[np.random.Generator], Work], moment: float) -> tuple[str, float]:
    """How the fit ended, and seconds of the processor from the signal to its end."""
    reader, writer = Pipe(duplex=False)
    child = os.fork()
    if child == 0:
        reader.close()
        _in_child(make, writer)
    writer.close()
    try:
        with reader:
            if not reader.poll(STUCK):
                return "hangs before the fit", STUCK
            first = reader.recv()
            if first != "begins":
                return first
            reader.poll(moment)
            begun = processor_seconds(child)
            os.kill(child, signal.SIGINT)
            if not reader.poll(STUCK):
                return "hangs", STUCK
            outcome, used = reader.recv()
            return outcome, used - begun
    except EOFError:
        return "the process died", 0.0
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", default=list(CASES), help="names of cases")
    parser.add_argument("--part", default="1/1", help="such as 2/3: every third case from the second on")
    parser.add_argument("--moments", type=float, nargs="*", default=[0.3, 1.5, 5.0], help="seconds into the fit")
    parser.add_argument("--longest", type=float, default=1.0, help="seconds of the processor until the answer")
    parser.add_argument("--json", type=Path)
    chosen = parser.parse_args()
    results: dict[str, list[tuple[float, str, float]]] = {}
    n_bad = 0
    part, n_parts = map(int, chosen.part.split("/"))
    for name in chosen.only[part - 1 :: n_parts]:
        results[name] = [(moment, *interrupted(CASES[name], moment)) for moment in chosen.moments]
        bad = [run for run in results[name] if run[1] != "interrupted" or run[2] > chosen.longest]
        n_bad += bool(bad)
        shown = ", ".join(f"{seconds:.2f} s" if how == "interrupted" else how for _, how, seconds in results[name])
        print(f"{'FAIL' if bad else 'ok  '} {name}: {shown}", flush=True)
        if chosen.json:
            chosen.json.write_text(json.dumps(results, indent=1))
    shutil.rmtree(FOLDER, ignore_errors=True)
    print(f"{len(results)} fits, {n_bad} not as they must be")
    return int(n_bad > 0)


if __name__ == "__main__":
    sys.exit(main())
