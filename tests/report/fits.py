"""Fits for the tests of the report: (model, source) by name."""

import numpy as np

import certifit as cf
from certifit.data.source import Memory

FILES = {
    "data": "data.csv",
    "paths": ["data.csv"],
    "scan": "scan_csv",
    "bad_rows": 0,
    "weight": None,
    "model": "model.certifit",
    "report": "report.html",
    "coefficients": "coefficients.csv",
}


def rows(n_rows=300, n_columns=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_columns))
    return X, X @ np.arange(1.0, n_columns + 1) + rng.normal(size=n_rows)


def _plain():
    X, y = rows()
    return cf.LinearRegression(), Memory(X, y, names=["a", "b", "c"])


def _one_column():
    X, y = rows(60, 1)
    return cf.LinearRegression(), Memory(X, y, names=["x"])


def _polynomial():
    x = np.linspace(-2, 2, 200)[:, None]
    return cf.LinearRegression(basis=cf.Polynomial(5)), Memory(x, np.sin(3 * x[:, 0]), names=["x"])


def _weighted_without_intercept():
    X, y = rows()
    return cf.LinearRegression(fit_intercept=False), Memory(
        X, y, np.random.default_rng(1).uniform(0, 2, 300), ["a", "b", "c"]
    )


def _ridge():
    X, y = rows()
    return cf.Ridge(alpha=0.1), Memory(X, y, names=["a", "b", "c"])


def _lasso():
    X, y = rows(300, 8)
    return cf.Lasso(alpha=2.0), Memory(X, y, names=list("abcdefgh"))


def _lasso_without_weights():
    X, y = rows()
    return cf.Lasso(alpha=1e6), Memory(X, y, names=["a", "b", "c"])


def _lasso_of_weak_penalty():
    X, y = rows()
    return cf.Lasso(alpha=1e-6), Memory(X, y, names=["a", "b", "c"])


def _wide_lasso():
    X, y = rows(40, 90)
    return cf.Lasso(alpha=60.0), Memory(X, y, names=[f"x{j}" for j in range(90)])


def _elastic_net():
    X, y = rows(300, 8)
    return cf.ElasticNet(alpha=2.0, l1_ratio=0.9, bounds={"a": "increasing"}), Memory(X, y, names=list("abcdefgh"))


def _huber():
    X, y = rows()
    y[::20] += 50
    return cf.HuberRegressor(), Memory(X, y, names=["a", "b", "c"])


def _huber_weighted():
    X, y = rows()
    y[::20] += 50
    weight = np.random.default_rng(1).integers(0, 3, 300).astype(float)
    return cf.HuberRegressor(scale="mad", alpha=0.01), Memory(X, y, weight, ["a", "b", "c"])


def _dependent():
    X, y = rows()
    return cf.LinearRegression(), Memory(np.column_stack([X, X[:, 0] + 2 * X[:, 1]]), y, names=["a", "b", "c", "d"])


def _exact():
    X, _ = rows()
    return cf.LinearRegression(), Memory(X, X[:, 0] * 3 + 1, names=["a", "b", "c"])


def _two_rows():
    return cf.LinearRegression(), Memory(np.array([[0.0], [1.0]]), np.array([1.0, 3.0]), names=["x"])


def _huge_numbers():
    X, y = rows(5000)
    return cf.LinearRegression(), Memory(X * 1e150, y * 1e299, names=["a", "b", "c"])


def _small_numbers():
    X, y = rows(5000)
    return cf.LinearRegression(), Memory(X * 1e-150, y * 1e-290, names=["a", "b", "c"])


def _heavy_tails():
    X, y = rows(5000)
    return cf.LinearRegression(), Memory(X, y + np.random.default_rng(2).standard_cauchy(5000), names=["a", "b", "c"])


def _unnamed():
    X, y = rows()
    return cf.LinearRegression(), Memory(X, y)


def _not_certified():
    X, y = rows()
    return cf.LinearRegression(tol=0.0), Memory(X, y, names=["a", "b", "c"])


MAKERS = {name[1:]: maker for name, maker in list(globals().items()) if name.startswith("_") and callable(maker)}


def fitted(name):
    model, source = MAKERS[name]()
    return model.fit(source), source
