"""Fits of classes for the tests of the report: model, source and whether it is cross-validated, by name."""

import warnings

import numpy as np
import pyarrow as pa
from fits import FILES as OF_A_QUANTITY

import certifit as cf
from certifit.data.arrow import ArrowSource
from certifit.data.source import Memory
from certifit.report.context import build
from certifit.report.validation import validation_facts
from certifit.selection.compare.leaderboard import leaderboard

FILES = OF_A_QUANTITY | {"coefficients": None, "deciding": "deciding.csv", "selection": None}
WORDS = {
    "ham": ["lunch", "later", "home", "sorry", "ok", "see", "you"],
    "spam": ["prize", "claim", "free", "call", "now", "you", "win"],
}


def table_source(columns, target="y", weight=None):
    table = pa.table(columns)
    return ArrowSource(lambda: table.to_batches(100), table.schema, target, weight, n_rows=table.num_rows)


def clouds(n_rows=300, n_classes=2, n_columns=3, seed=0):
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, n_classes, n_rows)
    centres = 1.5 * rng.normal(size=(n_classes, n_columns))
    return centres[codes] + rng.normal(size=(n_rows, n_columns)), codes


def _two():
    X, codes = clouds()
    return cf.GaussianDiscriminant(), Memory(X, codes.astype(float), names=["a", "b", "c"])


def _tuned():
    X, codes = clouds()
    return cf.CrossValidated(cf.GaussianDiscriminant()), Memory(X, codes.astype(float), names=["a", "b", "c"])


def _quadratic():
    X, codes = clouds(400, 3)
    X[codes == 1] *= 2
    return cf.GaussianDiscriminant("class"), Memory(X, codes.astype(float), names=["a", "b", "c"])


def _three_shared():
    X, codes = clouds(400, 3)
    return cf.GaussianDiscriminant(), Memory(X, codes.astype(float), names=["a", "b", "c"])


def _weighted():
    X, codes = clouds()
    weight = np.random.default_rng(1).integers(0, 3, len(codes)).astype(float)
    return cf.GaussianNB(), Memory(X, codes.astype(float), weight, ["a", "b", "c"])


def _polynomial():
    X, codes = clouds(300, 2, 2)
    return cf.GaussianDiscriminant(basis=cf.Polynomial(2)), Memory(X, codes.astype(float), names=["a", "b"])


def _counts():
    rng = np.random.default_rng(3)
    codes = rng.integers(0, 4, 300)
    X = rng.poisson(np.exp(rng.normal(size=(4, 9)))[codes]).astype(float)
    return cf.MultinomialNB(), Memory(X, codes.astype(float))


def _texts():
    rng = np.random.default_rng(4)
    labels = rng.choice(["ham", "spam"], 400, p=[0.8, 0.2])
    texts = [" ".join(rng.choice(WORDS[label], 8)) for label in labels]
    source = table_source({"text": texts, "y": labels})
    return cf.CrossValidated(cf.BernoulliNB(encoder=cf.TableEncoder(texts=cf.TextBinarizer()))), source


def table(n_rows=500, seed=5):
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 2, n_rows)
    x = [None if k % 40 == 3 else value for k, value in enumerate((codes + rng.normal(size=n_rows)).tolist())]
    city = np.where(rng.random(n_rows) < 0.3 + 0.3 * codes, "Oslo", rng.choice(["Bern", "Ulm"], n_rows))
    flag = rng.random(n_rows) < 0.2 + 0.4 * codes
    day = np.datetime64("2020-01-01") + rng.integers(0, 500, n_rows)
    columns = {"x": x, "city": city, "flag": flag, "day": day.astype("datetime64[D]"), "same": np.full(n_rows, 7)}
    return columns | {"y": np.array(["no", "yes"])[codes]}


def _table():
    return cf.GaussianDiscriminant(), table_source(table())


def _many_classes():
    X, codes = clouds(1000, 25, 5)
    return cf.GaussianNB(), Memory(X, codes.astype(float))


def _separated():
    X, codes = clouds(80)
    X[:, 0] += 100 * codes
    return cf.GaussianDiscriminant(), Memory(X, codes.astype(float), names=["a", "b", "c"])


def _no_signal():
    rng = np.random.default_rng(6)
    return cf.GaussianDiscriminant(), Memory(rng.normal(size=(200, 2)), (np.arange(200) % 10 == 0).astype(float))


def _without_a_proof():
    X, codes = clouds(60)
    X[:, 2] = X[:, 0] + 5e-15 * X[:, 2]  # no copy, and too near one
    return cf.GaussianDiscriminant(), Memory(X, codes.astype(float), names=["a", "b", "c"])


def _redundant():
    X, codes = clouds()
    return cf.GaussianDiscriminant(), Memory(np.column_stack([X, X[:, 0] - X[:, 1]]), codes.astype(float))


MAKERS = {name[1:]: maker for name, maker in list(globals().items()) if name.startswith("_") and callable(maker)}


def class_context(name_or_pair, folds=5, **options):
    """(fitted model, source, context); folds 0: judged on its own rows."""
    given, source = MAKERS[name_or_pair]() if isinstance(name_or_pair, str) else name_or_pair
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        board = leaderboard({"this": given}, source, cv=folds) if folds else None
        model = (getattr(given, "estimator", given) if board is None else board.chosen.model).fit(source)
        facts = None if board is None else validation_facts(board)
        return model, source, build(model, source, FILES, validation=facts, **options)
