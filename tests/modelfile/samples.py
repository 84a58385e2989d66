"""One small fitted model of every kind that a file can hold, with its data."""

from __future__ import annotations

import inspect
import warnings
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
from learners import LEARNERS
from sklearn.base import clone

import certifit as cf
from certifit.data.arrow import ArrowSource
from certifit.maps import TableEncoder, TextBinarizer
from certifit.models.huber.model import HuberRegressor
from certifit.models.lasso.model import ElasticNet, Lasso

NASTY_NAMES = [
    "\x1b[31mred\x07",
    "<script>alert(1)</script>",
    "=cmd|' /C calc'!A0",
    "é漢😀 \u202e",
    "../../x",
    "",
]


NASTY_LEVELS = [
    "",
    "b\x00c",  # a level of NUL alone is the empty one to pandas 2
    "=cmd|' /C calc'!A0",
    "<img src=x onerror=alert(1)>",
    "\x1b]0;title\x07",
    "é漢😀\u202e",
    "nan",
]


class Sample(NamedTuple):
    model: Any
    X: Any
    y: Any = None
    sample_weight: Any = None


def table(n_rows: int = 40) -> pd.DataFrame:
    """Every kind of column: numbers and flags with gaps, levels, dates, a constant."""
    rng = np.random.default_rng(1)
    days = pd.date_range("2024-02-27 06:00", periods=n_rows, freq="31h")
    return pd.DataFrame(
        {
            "x": np.where(rng.random(n_rows) < 0.2, np.nan, rng.normal(size=n_rows)),
            "is_late": pd.array(rng.choice([True, False, None], n_rows), dtype="boolean"),
            "nasty": pd.Categorical([NASTY_LEVELS[i % len(NASTY_LEVELS)] for i in range(n_rows)]),
            "rare": [f"city {i % 4 if i % 5 else 100 + i}" for i in range(n_rows)],
            "store": rng.integers(8, 12, size=n_rows),
            "day": days,
            "span": pd.to_timedelta(rng.normal(size=n_rows), unit="D"),
            "\x1b[2J<b>": 2013,
        }
    )


def letters(n_rows: int = 40) -> pd.DataFrame:
    """Two columns of free text, one with gaps, and one of levels."""
    rng = np.random.default_rng(5)
    words = np.array(["free", "win", "é漢", "tonight", "call", "<b>", "now", "=cmd", "lunch", "ok"])
    texts = [" ".join(rng.choice(words, size=6)) for _ in range(2 * n_rows)]
    return pd.DataFrame(
        {
            "message": [text if i % 7 else None for i, text in enumerate(texts[:n_rows])],
            "subject": texts[n_rows:],
            "sender": rng.choice(["a", "b", "c"], size=n_rows),
        }
    )


def table_cases() -> dict[str, tuple[Any, ...]]:
    """Models of tables with their data."""
    frame = table()
    y = pd.Series(np.random.default_rng(2).normal(size=len(frame)).round(3), name="delay")
    given = TableEncoder(
        reference={"store": 10}, unseen="reference", min_count=3, missing="fill", categories=("store",)
    )
    scanned = pa.table({**{name: frame[name] for name in ("x", "rare", "day")}, "y": y, "w": np.arange(40) % 3 + 1.0})
    scan = ArrowSource(scanned.to_batches, scanned.schema, "y", "w", n_rows=40)
    weight = np.arange(40.0) % 4
    return {
        "table": (cf.LinearRegression(encoder=TableEncoder(reference="most frequent")), frame, y),
        "table filled": (cf.Ridge(alpha=0.5, encoder=given), frame, y, weight),
        "table scanned": (cf.LinearRegression(), scan),
        "table in powers": (cf.Ridge(basis=cf.Polynomial(2), encoder=TableEncoder()), frame[["x", "nasty"]], y),
    }


def sparse_cases() -> dict[str, tuple[Any, ...]]:
    """Lasso and elastic net, with factors and bounds in each form that the models take."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(30, 5))
    y = X @ [2.0, -1.5, 0.6, 0.0, 0.0] + 3.0 + 0.3 * rng.normal(size=30)
    weight = rng.integers(1, 4, size=30).astype(float)
    named = pd.DataFrame(X, columns=NASTY_NAMES[:5])
    frame = table()
    target = pd.Series(rng.normal(size=len(frame)).round(3), name="delay")
    ends = {NASTY_NAMES[0]: "increasing", NASTY_NAMES[1]: (-1.0, 0.5)}
    given = {"x": 0.0, "nasty": 2, "rare": 0.5}
    return {
        "lasso": (Lasso(alpha=0.2), X, y),
        "lasso without weights": (Lasso(alpha=100, max_iter=7), X, y),
        "lasso with factors": (Lasso(alpha=0.2, penalty_factors=[0, 1, 2.5, 1, 1], fit_intercept=False), X, y),
        "lasso with bounds": (Lasso(alpha=0.05, bounds=(0.0, [1.5, 9, 1, 1, 1])), X, y, weight),
        "lasso in powers": (Lasso(alpha=0.1, basis=cf.Polynomial(2)), X[:, :3], y),
        "lasso of a table": (
            Lasso(alpha=0.02, penalty_factors=given, bounds={"store": (-1, 0.5)}, encoder=TableEncoder()),
            frame,
            target,
        ),
        "lasso standardized": (Lasso(alpha=0.2, penalty_factors=[1, 1, 2, 1, 1], standardize=True), X * 3, y),
        "elastic net": (ElasticNet(alpha=0.2, l1_ratio=0.3), X, y, weight),
        "elastic net by name": (ElasticNet(0.1, 1, bounds=ends, penalty_factors={NASTY_NAMES[2]: 3}), named, y),
    }


def robust_cases() -> dict[str, tuple[Any, ...]]:
    """Huber regression with every kind of scale."""
    rng = np.random.default_rng(4)
    X = rng.normal(size=(30, 3))
    y = X @ [2.0, -1.5, 0.6] + 3.0 + 0.3 * rng.normal(size=30)
    y[:4] += 20
    weight = rng.integers(1, 4, size=30).astype(float)
    frame = table()
    target = pd.Series(rng.standard_t(2, size=len(frame)).round(3), name="delay")
    redundant = np.column_stack([X, X[:, 0] - X[:, 1]])
    return {
        "huber": (HuberRegressor(), X, y),
        "huber mad": (HuberRegressor(1.5, scale="mad", fit_intercept=False), X, y, weight),
        "huber fixed": (HuberRegressor(2, 0.1, scale=0.5, max_iter=50, tol=1e-7), X, y),
        "huber redundant": (HuberRegressor(scale=1), redundant, y),
        "huber in powers": (HuberRegressor(alpha=0.01, basis=cf.Polynomial(2)), X, y),
        "huber of a table": (HuberRegressor(alpha=0.1, scale="mad", encoder=TableEncoder()), frame, target),
    }


def class_cases() -> dict[str, tuple[Any, ...]]:
    """Classifiers of every kind, with labels of every type."""
    rng = np.random.default_rng(6)
    X = rng.normal(size=(40, 3))
    place = np.arange(40) % 3
    X[:, 0] += place
    redundant = np.column_stack([X, X[:, 0] - X[:, 1], np.ones(40)])
    weight = rng.integers(0, 4, size=40).astype(float)
    counts = rng.poisson(1.5, size=(40, 4)).astype(float)
    named = pd.DataFrame(rng.normal(size=(40, 6)), columns=NASTY_NAMES)
    mails, frame = letters(), table()
    kind = pd.Series(np.array(["ham", "spam"], dtype=object)[place % 2], name="<b>\x1b]0;title\x07")
    read = TableEncoder(texts=TextBinarizer(min_df=2, stop_words=["now"]))
    hashed = TableEncoder(texts=TextBinarizer(n_hash=8, binary=False, ngram_range=(1, 2)), unseen="reference")
    scanned = pa.table({**mails, "y": kind, "w": weight + 1})
    scan = ArrowSource(scanned.to_batches, scanned.schema, "y", "w", n_rows=40)
    return {
        "shared": (cf.GaussianDiscriminant(), X, np.array(["a", "bc", "\x1b[31m"])[place], weight),
        "shared of two": (cf.GaussianDiscriminant(priors=[0.25, 0.75]), X, place % 2 == 0),
        "per class": (
            cf.GaussianDiscriminant("class", shrinkage=0.2, standardize=True, priors=[0.2, 0.3, 0.5]),
            X,
            place - 1,
        ),
        "per class redundant": (cf.GaussianDiscriminant("class"), redundant, place.astype(np.float32)),
        "diagonal": (cf.GaussianDiscriminant("diagonal"), redundant, np.array(["", "é漢😀", "z"], dtype=object)[place]),
        "shared in powers": (cf.GaussianDiscriminant(basis=cf.Polynomial(2), shrinkage=1), X, place.astype(np.int8)),
        "shared of a table": (cf.GaussianDiscriminant(shrinkage=0.3, encoder=TableEncoder()), frame, kind),
        "gaussian naive": (cf.GaussianNB(), named, place.astype(np.uint64) + np.uint64(2**63)),
        "gaussian naive weighted": (
            cf.GaussianNB(priors=(0.5, 0.25, 0.25), var_smoothing=0.1),
            redundant,
            place,
            weight,
        ),
        "bernoulli": (cf.BernoulliNB(), X, np.array(["x", "yy", "z"], dtype="U9")[place], weight),
        "bernoulli of two": (cf.BernoulliNB(2, binarize=0.5, fit_prior=False), X, place % 2),
        "multinomial": (cf.MultinomialNB(0.5, class_prior=[0.0, 0.5, 0.5]), counts, place),
        "words": (cf.BernoulliNB(encoder=read), mails, kind),
        "words hashed": (cf.MultinomialNB(encoder=hashed), mails, kind, weight),
        "words scanned": (cf.MultinomialNB(encoder=read), scan),
    }


def component_cases() -> dict[str, tuple[Any, ...]]:
    """Principal components by every route."""
    rng = np.random.default_rng(7)
    X = rng.normal(size=(30, 5)) * [3, 2, 1, 1, 0.1]
    weight = rng.integers(0, 4, size=30).astype(float)
    return {
        "components": (cf.PCA(), np.column_stack([X, X[:, 0] + X[:, 1]]), None, weight),
        "components share": (cf.PCA(0.9, standardize=True, whiten=True), X, None),
        "components mle": (cf.PCA("mle"), pd.DataFrame(X, columns=NASTY_NAMES[:5]), None),
        "components by products": (cf.PCA(2, solver="randomized", ddof=0, random_state=3), X, None),
        "components of few rows": (cf.PCA(2), rng.normal(size=(4, 300)), None),
        "components without centre": (cf.PCA(np.int64(2), center=False), X, None),
        "components in powers": (cf.PCA(basis=cf.Polynomial(2)), X[:, :2], None),
        "components of a table": (cf.PCA(3, encoder=TableEncoder()), table(), None),
    }


def score_cases() -> dict[str, tuple[Any, ...]]:
    """Models of scores: two classes and more, counts and quantities, with what a scan carries beside its target."""
    rng = np.random.default_rng(8)
    X = rng.normal(size=(40, 3))
    z = X @ [0.6, -0.4, 0.2] + 0.3
    place, is_high = np.arange(40) % 3, z + rng.logistic(size=40) > 0
    counts = rng.poisson(np.exp(z)).astype(float)
    weight = rng.integers(0, 4, size=40).astype(float)
    amounts = pd.Series(np.exp(z) * rng.gamma(2.0, 0.5, size=40), name="<b>\x1b]0;title\x07")
    named = pd.DataFrame(X, columns=NASTY_NAMES[:3])
    kind = pd.Series(np.array(["ham", "spam"], dtype=object)[place % 2], name="kind")
    beside = {"y": counts, "w": weight + 1, "e": np.exp(X[:, 2]), "o": X[:, 1]}
    scanned = pa.table({"a": X[:, 0], "é": X[:, 1], **beside})
    exposed = ArrowSource(scanned.to_batches, scanned.schema, "y", "w", n_rows=40, offset="o", exposure="e")
    drawn = cf.LogisticRegression(0.05, 0.5, class_weight={1: 2.5}, bounds={NASTY_NAMES[0]: "increasing"})
    factors = {NASTY_NAMES[2]: 3}
    return {
        "logistic": (cf.LogisticRegression(), X, np.array(["a", "\x1b[31m"])[place % 2], weight),
        "logistic likelihood": (cf.LogisticRegression(0.0), named, is_high),
        "logistic drawn": (drawn.set_params(penalty_factors=factors), named, is_high.astype(np.int8)),
        "logistic in powers": (
            cf.LogisticRegression(class_weight="balanced", basis=cf.Polynomial(2), solver="lbfgs"), X, is_high),
        "logistic of a table": (cf.LogisticRegression(0.1, encoder=TableEncoder()), table(), kind),
        "softmax": (cf.LogisticRegression(class_weight="balanced"), X, np.array(["a", "bc", "é漢"])[place], weight),
        "softmax without intercept": (cf.LogisticRegression(0.2, fit_intercept=False), X, place - 1),
        "poisson": (cf.PoissonRegressor(0.1, solver="gradient-descent"), X, counts, weight),
        "poisson exposed": (cf.PoissonRegressor(0.01), exposed),
        "poisson lasso": (cf.PoissonRegressor(0.1, 1, bounds=(-1.0, [9, 9, 0.1])), X, counts),
        "gamma": (cf.GammaRegressor(0.0, step_tol=1e-12), named, amounts),
        "gamma in powers": (cf.GammaRegressor(1, penalty_factors=[1] * 8 + [0], basis=cf.Polynomial(2)), X, amounts),
        "glm exposed": (cf.GLM("poisson"), exposed),
        "glm tweedie": (cf.GLM(cf.families.Tweedie(power=1.6)), X, amounts),
        "glm negative binomial": (cf.GLM(cf.families.NegativeBinomial(0.5), "log", 0.1, tol=1e-6), X, counts),
        "glm probit": (cf.GLM("bernoulli", "probit"), X, is_high.astype(float), weight),
        "glm redundant": (cf.GLM("gamma"), np.column_stack([X, X[:, 0] - X[:, 1]]), amounts),
        "glm of a table": (cf.GLM("gaussian", alpha=0.1, encoder=TableEncoder()), table(), amounts),
    }  # fmt: skip


def perceptron_cases() -> dict[str, tuple[Any, ...]]:
    """Perceptrons of classes that can be separated."""
    rng = np.random.default_rng(9)
    X = rng.normal(size=(30, 3))
    z = X @ [1.0, -1.0, 0.5]
    X, z = X[np.abs(z) > 0.3], z[np.abs(z) > 0.3]
    order, named = [*range(len(z))][::-1], pd.DataFrame(X, columns=NASTY_NAMES[:3])
    return {
        "perceptron": (cf.Perceptron(), named, np.where(z > 0, "\x1b[31m", "a")),
        "perceptron in order": (
            cf.Perceptron(0.5, order=order, start=[0.5, 0.0, 1.0], fit_intercept=False), X, (z > 0) * 2 - 1),
        "perceptron shuffled": (cf.Perceptron(order="shuffled", random_state=3, basis=cf.Polynomial(2)), X, z > 0),
    }  # fmt: skip


def fit(model: Any, sample: Sample) -> Any:
    """The model fitted to the rows of a sample; some take no weights."""
    takes_weights = "sample_weight" in inspect.signature(model.fit).parameters
    return model.fit(*(sample[1:] if takes_weights else sample[1:3]))


@cache
def samples() -> dict[str, Sample]:
    """Fitted once; a test that changes a model works on a copy."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(24, 3))
    y = X @ [1.0, -2.0, 0.5] + 3.0 + rng.normal(size=24)
    wide = rng.normal(size=(4, 7))
    named = pd.DataFrame(rng.normal(size=(24, 6)), columns=NASTY_NAMES)
    target = pd.Series(y, name="<b>\x1b]0;title\x07")
    weight = rng.integers(1, 4, size=24).astype(float)
    cases = {
        "least squares": (cf.LinearRegression(), X, y),
        "no intercept": (cf.LinearRegression(fit_intercept=False), X, y),
        "weighted": (cf.LinearRegression(tol=1e-6), X, y, weight),
        "chebyshev": (cf.LinearRegression(basis=cf.Polynomial(2)), X, y),
        "powers": (cf.Ridge(alpha=1, basis=cf.Polynomial(2, form="powers")), X, y),
        "ridge": (cf.Ridge(), X, y),
        "ridge without penalty": (cf.Ridge(alpha=np.float64(0)), X, y),
        "redundant columns": (cf.LinearRegression(), np.column_stack([X, X[:, 0] - X[:, 1], np.ones(24)]), y),
        "fewer rows than columns": (cf.LinearRegression(), wide, y[:4]),
        "ridge on few rows": (cf.Ridge(alpha=0.1), wide, y[:4]),
        "exact": (cf.LinearRegression(), X, X @ [1.0, -2.0, 0.5] + 3.0),
        "named": (cf.LinearRegression(), named, target),
        "named chebyshev": (cf.LinearRegression(basis=cf.Polynomial(1)), named, target),
        **table_cases(),
        **sparse_cases(),
        **robust_cases(),
        **class_cases(),
        **component_cases(),
        **score_cases(),
        **perceptron_cases(),
        **nested_cases(),
    }
    has_case = {type(model) for model, *_ in cases.values()}
    for key, row in LEARNERS.items():  # a newcomer
        if type(row.model) not in has_case:
            cases[key] = (clone(row.model), *row.rows())
    return {name: Sample(model.fit(*data), *data) for name, (model, *data) in cases.items()}


def nested_cases() -> dict[str, tuple[Any, ...]]:
    """Models that are made of models, of columns and of a table."""
    rng = np.random.default_rng(8)
    X, place, frame = rng.normal(size=(40, 3)), np.arange(40) % 3, table()
    kind = pd.Series(np.array(["a", "bc", "é漢😀"], dtype=object)[place], name="kind")
    of_table = cf.LogisticRegression(0.1, encoder=TableEncoder())
    return {
        "one against the rest": (cf.OneVsRestClassifier(cf.LogisticRegression(0.1)), X, place - 1),
        "one against the rest of a table": (cf.OneVsRestClassifier(of_table, n_jobs=1), frame, kind),
    }


def few_rows(n_rows: int = 30) -> tuple[Any, Any, Any]:
    """Columns, counts and flags."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, 2))
    z = X @ [0.5, -0.5] + 0.5
    return X, rng.poisson(np.exp(z)).astype(float), z + rng.logistic(size=n_rows) > 0


def quietly(action: Any, *data: Any, **given: Any) -> Any:
    """A fit that says that it proves nothing."""
    with warnings.catch_warnings(action="ignore"):
        return action(*data, **given)


def endless() -> Any:
    """A perceptron of rows that no weights part; it goes round."""
    return quietly(cf.Perceptron().fit, [[0.0], [1.0], [2.0]], [0, 1, 0])


NESTED = list(nested_cases())
EVERY = [name for name in samples() if name not in NESTED]
CLASSES = list(class_cases())
COMPONENTS = list(component_cases())
SCORES = list(score_cases())
PERCEPTRONS = list(perceptron_cases())
NEWCOMERS = [name for name in EVERY if name in LEARNERS]
NAMES = [name for name in EVERY if name not in CLASSES + COMPONENTS + SCORES + PERCEPTRONS + NEWCOMERS]
TABLES = list(table_cases())
SPARSE = list(sparse_cases())
ROBUST = list(robust_cases())
