"""The words that decide: how much one occurrence of a column speaks for a class of a naive Bayes model.

log odds   log p_jk - log p_j(rest): of column j for class k; rest: the other classes, in their shares
evidence   what the column brings in a row of class k on average, n_jk / n_k times the log odds
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special
from sklearn.utils.validation import check_is_fitted

from certifit.data.columns import Array
from certifit.models.adapter import learner_of, sections_of


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
