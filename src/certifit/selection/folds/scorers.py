"""Scorers of models that are refitted, by name: those that `certifit fit` asks for, and all of scikit-learn's.

Importing sklearn.metrics takes half a second, which is a fifth of what `certifit fit` takes for a small table. So it is
imported where its scorer is needed, and root mean squares of plain arrays, the usual case, are computed here.
"""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches

import numpy as np
from sklearn.base import BaseEstimator

from certifit.data.columns import Array
from certifit.data.user_input import UserRows, UserTarget
from certifit.models.metric import Metric
from certifit.selection.folds.metrics import CLASS_SCORES, SUFFICIENT, Scorer, Scoring

ROOT, MEAN = "neg_root_mean_squared_error", "neg_mean_squared_error"
_KNOWN = {name for name in (*SUFFICIENT, *CLASS_SCORES) if name is not None}


def refuse_unknown_score(scoring: object) -> None:
    """Raise where `scoring` names no score. Names that are known here ask scikit-learn nothing."""
    if scoring is None or callable(scoring) or isinstance(scoring, Metric):
        return
    if not isinstance(scoring, str):
        raise TypeError(f"scoring must be None, the name of one score or a callable. Got {scoring!r}.")
    if scoring in _KNOWN:
        return
    from sklearn.metrics import get_scorer_names

    names = get_scorer_names()
    if scoring in names:
        return
    near = [name for name in names if _is_meant(scoring, name)] or get_close_matches(scoring, names)
    guess = f" Did you mean {' or '.join(map(repr, near[:3]))}?" if near else ""
    raise ValueError(
        f"scoring must be the name of a score, a callable or None. Got {scoring!r}.{guess} Of a quantity: 'r2', "
        "'neg_root_mean_squared_error', 'neg_mean_absolute_error'. Of classes: 'neg_log_loss', 'accuracy', "
        "'balanced_accuracy', of two classes 'roc_auc', 'f1'. All others: sklearn.metrics.get_scorer_names()."
    )


def _is_meant(asked: str, name: str) -> bool:
    """Whether a name of scikit-learn is spelt out what was asked for: rmse, logloss, auc."""
    parts = name.removeprefix("neg_").split("_")
    asked = "".join(letter for letter in asked.lower() if letter.isalnum())
    return len(asked) > 2 and ("".join(part[0] for part in parts) == asked or "".join(parts).endswith(asked))


def scorer_of(estimator: BaseEstimator, scoring: Scoring) -> Scorer:
    """What scores a fitted estimator: `check_scoring` of scikit-learn; by name it is `NamedScorer`."""
    if isinstance(scoring, str) and scoring in _KNOWN:
        return NamedScorer(scoring)
    from sklearn.metrics import check_scoring

    scorer: Scorer = check_scoring(estimator, scoring)
    return NamedScorer(scoring) if isinstance(scoring, str) else scorer


@dataclass(frozen=True)
class NamedScorer:
    """A scorer of scikit-learn, the same bits. Can be sent to a worker.

    Of two classes the positive one is the second of classes_, whatever the labels are. scikit-learn's is the label 1,
    so it has no `f1` of texts, and that of the labels 1 and 2 is of the first.
    """

    name: str

    def __call__(
        self, estimator: BaseEstimator, X: UserRows, y: UserTarget, *, sample_weight: Array | None = None
    ) -> float:
        """Of the rows; higher is better."""
        if self.name in (ROOT, MEAN):
            predicted = estimator.predict(X)
            if _are_plain(y, predicted, sample_weight):
                mean = np.average(np.square(y - predicted)[:, None], axis=0, weights=sample_weight)[0]
                return -float(np.sqrt(mean) if self.name == ROOT else mean)
        from sklearn.metrics import get_scorer

        classes, labels = getattr(estimator, "classes_", np.zeros(0)), np.asarray(y)
        if len(classes) == 2 and labels.ndim == 1 and np.isin(labels, classes).all():
            of_codes = type(type(estimator).__name__, (_OfCodes,), {})  # errors name the model
            estimator, y = of_codes(estimator), np.asarray(labels == classes[1], dtype=np.int64)
        options = {} if sample_weight is None else {"sample_weight": sample_weight}
        return float(get_scorer(self.name)(estimator, X, y, **options))


class _OfCodes:
    """A fitted classifier of two classes whose labels are 0 and 1."""

    classes_ = np.arange(2)

    def __init__(self, model: BaseEstimator) -> None:
        self._model = model

    def __getattr__(self, name: str) -> object:
        return getattr(self._model, name)

    def predict(self, X: UserRows) -> Array:
        """The place of the class."""
        return np.asarray(np.asarray(self._model.predict(X)) == self._model.classes_[1], dtype=np.int64)


def _are_plain(y: object, predicted: object, weight: object) -> bool:
    """Whether these are finite vectors of one length and some weight. Others scikit-learn converts, or refuses."""
    vectors = [
        a
        for a in (y, predicted, weight)
        if isinstance(a, np.ndarray) and a.dtype == np.float64 and a.ndim == 1 and np.isfinite(a).all()
    ]
    if len(vectors) < (2 if weight is None else 3) or len({len(a) for a in vectors}) > 1 or not len(vectors[0]):
        return False
    return weight is None or bool(vectors[2].min() >= 0 and vectors[2].sum() > 0)
