"""How much single columns matter to a model: by shuffling them, or by the log-odds of naive Bayes.

Shuffled: how much worse the model predicts when one column is shuffled.

    importance_j = mean over rows and shuffles of  loss(y_i, f(x_i with another row's x_j)) - loss(y_i, f(x_i))

loss: 1 for a wrong class and 0 else, or the squared error. The interval is the normal one of a mean over rows: the
differences of a row are averaged over the shuffles first. It is about new rows, not about new fits; on the rows of the
fit it flatters columns that the model learned by heart.

Log-odds: how much one occurrence of a column (a word) speaks for a class of a naive Bayes model.

log odds   log p_jk - log p_j(rest): of column j for class k; rest: the other classes, in their shares
evidence   what the column brings in a row of class k on average, n_jk / n_k times the log odds
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from scipy import special
from scipy.special import ndtri
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from certifit.data.columns import Array
from certifit.data.source import Source
from certifit.data.user_input import UserRows, UserTarget, UserWeights, n_samples
from certifit.evaluation.metrics.intervals import check_level, check_seed, generator
from certifit.models.adapter import learner_of, sections_of


@dataclass(frozen=True)
class Importance:
    """names: of the columns. values, low, high: mean increase of the loss, and its interval, a number per column."""

    names: tuple[str, ...]
    values: Array
    low: Array
    high: Array
    level: float
    loss: float
    what: str

    def __str__(self) -> str:
        order = np.argsort(-self.values, kind="stable")
        width = max(map(len, self.names))
        lines = [
            f"{self.names[j]:>{width}}  {self.values[j]:.4g}  ({self.low[j]:.4g} to {self.high[j]:.4g})" for j in order
        ]
        head = (
            f"Increase of the {self.what}, {self.loss:.4g}, when a column is shuffled, and {self.level:.0%} intervals:"
        )
        return "\n".join([head, *lines])


def permutation_importance(
    model: Any,
    X: UserRows,
    y: UserTarget,
    *,
    sample_weight: UserWeights = None,
    n_repeats: int = 10,
    level: float = 0.95,
    random_state: int = 0,
) -> Importance:
    """The increase of a fitted model's loss when each column in turn is shuffled, with intervals.

    Parameters
    ----------
    model : a fitted classifier (share of wrong classes) or regressor (mean squared error), ours or of any library
    X, y : rows that the fit did not see, as arrays or a frame, and their targets
    sample_weight : how often each row counts; None is once
    n_repeats : int >= 2, default 10
        Shuffles of every column.
    level : float between 0 and 1, default 0.95
    random_state : int >= 0, default 0

    Columns that carry the same information stand in for each other: shuffling one of them costs little.

    >>> import numpy as np
    >>> import certifit as cf
    >>> X = np.random.default_rng(0).normal(size=(400, 2))
    >>> model = cf.DecisionTreeRegressor(max_depth=4).fit(X[:200], X[:200, 0])
    >>> result = cf.permutation_importance(model, X[200:], X[200:, 0])
    >>> bool(result.low[0] > 1), bool(result.low[1] <= 0 <= result.high[1])
    (True, True)
    """
    check_is_fitted(model)
    if isinstance(X, Source):
        raise TypeError("permutation_importance shuffles rows in memory. Got a scan: give an array or a frame.")
    if not isinstance(n_repeats, Integral) or isinstance(n_repeats, bool) or n_repeats < 2:
        raise ValueError(f"n_repeats must be a whole number >= 2. Got {n_repeats!r}.")
    level = check_level(level)
    check_seed(random_state)
    rows = X if hasattr(X, "iloc") else np.asarray(X)
    n = n_samples(rows)
    y = np.asarray(y)
    if len(y) != n or n < 2:
        raise ValueError(f"X has {n} rows and y has {len(y)}. Both must have the same number, 2 or more.")
    weight = np.ones(n) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    if weight.shape != (n,) or not (np.isfinite(weight).all() and (weight >= 0).all() and weight.any()):
        raise ValueError(f"sample_weight must have {n} finite numbers >= 0, not all 0.")
    losses = _losses(model, rows, y)
    extra = [_extra(model, rows, y, losses, j, int(n_repeats), random_state) for j in range(rows.shape[1])]
    names = [str(name) for name in rows.columns] if hasattr(rows, "columns") else [f"x{j}" for j in range(len(extra))]
    ends = np.array([_interval(one, weight, level) for one in extra])
    what = "share of wrong classes" if is_classifier(model) else "mean squared error"
    return Importance(tuple(names), *ends.T, level, float(weight @ losses / weight.sum()), what)


def _losses(model: Any, X: Any, y: Array) -> Array:
    predictions = np.asarray(model.predict(X))
    if is_classifier(model):
        return np.asarray(predictions != y, dtype=np.float64)
    return np.square(predictions.astype(np.float64) - y.astype(np.float64))


def _extra(model: Any, X: Any, y: Array, losses: Array, j: int, n_repeats: int, seed: int) -> Array:
    """How much every row's loss grows on average over the shuffles of column j."""
    total = np.zeros(len(y))
    for repeat in range(n_repeats):
        order = generator(seed, repeat).permutation(len(y))
        shuffled = X.copy()
        if hasattr(X, "iloc"):
            shuffled[X.columns[j]] = X.iloc[order, j].to_numpy()
        else:
            shuffled[:, j] = X[order, j]
        total += _losses(model, shuffled, y) - losses
    return total / n_repeats


def _interval(extra: Array, weight: Array, level: float) -> tuple[float, float, float]:
    shares = weight / weight.sum()
    n = float(weight.sum() / weight.max())
    mean = float(shares @ extra)
    half = float(ndtri(0.5 + level / 2)) * float(np.sqrt(shares @ np.square(extra - mean) / max(n - 1, 1)))
    return mean, mean - half, mean + half


@dataclass(frozen=True)
class Word:
    """A column that speaks for a class: its log odds, what it brings on average, and how often the class has it."""

    name: str
    log_odds: float
    evidence: float
    count: float


def word_log_odds(log_p: Array, shares: Array) -> Array:
    """log p_jk - log p_j(rest), classes x columns."""
    with np.errstate(divide="ignore", invalid="ignore"):
        rest = [
            special.logsumexp(np.delete(log_p, k, 0), axis=0, b=np.delete(shares, k)[:, None] / (1 - shares[k]))
            for k in range(len(shares))
        ]
        return np.asarray(log_p - np.array(rest))


def word_evidence(log_odds: Array, counts: Array, class_counts: Array) -> Array:
    """n_jk / n_k times the log odds; 0 where the class never has the column."""
    rate = counts / np.where(class_counts > 0, class_counts, 1.0)[:, None]
    with np.errstate(invalid="ignore"):
        return np.where(rate > 0, rate * log_odds, 0.0)


def deciding_words(model: Any, names: Sequence[str] | None = None, *, most: int = 10) -> dict[Any, list[Word]]:
    """Per class, the columns that speak most for it in its rows, first the strongest.

    model : a fitted BernoulliNB or MultinomialNB
    names : of the columns, such as `TextBinarizer().get_feature_names_out()`; default x0, x1, ...

    >>> import certifit as cf
    >>> texts = ["free cash now", "claim free cash", "dinner at home", "home for dinner tonight"]
    >>> words = cf.TextBinarizer().fit(texts)
    >>> model = cf.BernoulliNB().fit(words.transform(texts), ["spam", "spam", "ham", "ham"])
    >>> [word.name for word in cf.deciding_words(model, words.get_feature_names_out())["spam"][:2]]
    ['cash', 'free']
    """
    check_is_fitted(model)
    if "words" not in sections_of(model):
        raise TypeError(f"Words decide in BernoulliNB and MultinomialNB. Got {learner_of(model).name}.")
    shares = model.class_count_ / model.class_count_.sum()
    log_odds = word_log_odds(model.feature_log_prob_, shares)
    evidence = word_evidence(log_odds, model.feature_count_, model.class_count_)
    n_columns = log_odds.shape[1]
    labels = [f"x{j}" for j in range(n_columns)] if names is None else [str(name) for name in names]
    if len(labels) != n_columns:
        raise ValueError(f"names must be {n_columns}, one per column. Got {len(labels)}.")
    result = {}
    for k, label in enumerate(model.classes_):
        order = np.argsort(-evidence[k], kind="stable")[:most]
        numbers = (log_odds[k], evidence[k], model.feature_count_[k])
        result[label] = [Word(labels[j], *(float(part[j]) for part in numbers)) for j in order if evidence[k, j] > 0]
    return result
