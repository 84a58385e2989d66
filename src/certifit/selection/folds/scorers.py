"""Scorers of models that are refitted, by name: those that `certifit fit` asks for, and all of scikit-learn's.

Importing sklearn.metrics takes half a second, which is a fifth of what `certifit fit` takes for a small table. So it is
imported where its scorer is needed, and root mean squares of plain arrays, the usual case, are computed here.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.base import BaseEstimator

from certifit.data.columns import Array
from certifit.data.user_input import UserRows, UserTarget
from certifit.selection.folds.metrics import CLASS_SCORES, SUFFICIENT, Scorer, Scoring

ROOT, MEAN = "neg_root_mean_squared_error", "neg_mean_squared_error"
_KNOWN = {name for name in (*SUFFICIENT, *CLASS_SCORES) if name is not None}


def scorer_of(estimator: BaseEstimator, scoring: Scoring) -> Scorer:
    """What scores a fitted estimator: `check_scoring` of scikit-learn."""
    if isinstance(scoring, str) and scoring in _KNOWN:
        return NamedScorer(scoring)
    from sklearn.metrics import check_scoring

    scorer: Scorer = check_scoring(estimator, scoring)
    return scorer


@dataclass(frozen=True)
class NamedScorer:
    """A scorer of scikit-learn, the same bits. Can be sent to a worker."""

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

        options = {} if sample_weight is None else {"sample_weight": sample_weight}
        return float(get_scorer(self.name)(estimator, X, y, **options))


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
