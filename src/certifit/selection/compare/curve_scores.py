"""What cross-validation and its curves give: scores by split, their means and standard errors. Higher is better."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from certifit.data.columns import Array
from certifit.models.folds import Candidate
from certifit.selection.compare.rules import choose

CAUTION = (
    "The standard error over folds is no confidence interval. The folds share training rows, so it is too small for a "
    "test between models."
)
MEANT = 1e-8  # relative: scores of folds are computed to about this, so a smaller standard error is that of rounding
MOST_DECIMALS = 8


@dataclass(frozen=True, repr=False)
class CrossValidationScores:
    """Scores of every split on its validation and on its training rows; higher is better.

    weight: sums of the weights of the validation rows. route: "statistics" or "refits".
    mean, standard_error: of the validation scores, sd / sqrt(splits). sentence: what the standard error is not.
    """

    validation: Array
    train: Array
    weight: Array
    route: str
    score_name: str
    sentence: str = CAUTION

    @property
    def mean(self) -> float:
        """Mean of the validation scores."""
        return float(self.validation.mean())

    @property
    def standard_error(self) -> float:
        """Standard error of `mean`; NaN for one split."""
        return float(standard_errors(self.validation[None, :])[0])

    def __repr__(self) -> str:
        score = _plus_minus(self.mean, self.standard_error)
        return f"CrossValidationScores({self.score_name} {score} over {_splits(len(self.validation))}, {self.route})"


@dataclass(frozen=True, repr=False)
class _Curve:
    """Scores of a curve, points x splits; higher is better."""

    train: Array
    validation: Array
    route: str
    score_name: str

    @property
    def n_splits(self) -> int:
        """Number of splits."""
        return int(self.validation.shape[1])

    @property
    def train_mean(self) -> Array:
        """Means over the splits of the training scores."""
        return np.asarray(self.train.mean(axis=1))

    @property
    def validation_mean(self) -> Array:
        """Means over the splits of the validation scores."""
        return np.asarray(self.validation.mean(axis=1))

    @property
    def train_standard_error(self) -> Array:
        """Standard errors of `train_mean`; NaN for one split."""
        return standard_errors(self.train)

    @property
    def validation_standard_error(self) -> Array:
        """Standard errors of `validation_mean`; NaN for one split."""
        return standard_errors(self.validation)


@dataclass(frozen=True, repr=False)
class LearningCurve(_Curve):
    """Scores against the number of training rows.

    train, validation: sizes x splits. n_rows: training rows of every fit, sizes x splits. sizes: their means.
    train_mean, train_standard_error, validation_mean, validation_standard_error: over the splits.
    route: "statistics" or "refits". sentence: what the standard errors are not.
    """

    n_rows: Array
    sentence: str = CAUTION

    @property
    def sizes(self) -> Array:
        """Mean number of training rows of every size."""
        return np.asarray(self.n_rows.mean(axis=1))

    def __repr__(self) -> str:
        sizes, scores = self.sizes, self.validation_mean
        what = f"{self.score_name} {scores[0]:.2g} to {scores[-1]:.2g}"
        return f"LearningCurve({sizes[0]:,.10g} to {sizes[-1]:,.10g} rows, {what}, {self.route})"


@dataclass(frozen=True, repr=False)
class ValidationCurve(_Curve):
    """Scores against the values of a parameter.

    train, validation: values x splits. param_range: the values.
    train_mean, train_standard_error, validation_mean, validation_standard_error: over the splits.
    best_index: place of the best mean validation score. one_standard_error_index: place of the simplest model within
    one standard error of it; None where it is not known which values are simpler, or there is only one split.
    route: "statistics" or "refits". sentence: what the standard errors are not.
    """

    param_name: str
    param_range: list[object]
    sentence: str = CAUTION

    @property
    def best_index(self) -> int:
        """Place of the best mean validation score."""
        return choose(self.validation_mean, self.validation_standard_error, self._candidates(), "min")

    @property
    def one_standard_error_index(self) -> int | None:
        """Place of the simplest model whose mean is within one standard error of the best."""
        errors = self.validation_standard_error
        if not np.isfinite(errors[self.best_index]):
            return None
        try:
            return choose(self.validation_mean, errors, self._candidates(), "1se")
        except ValueError:  # values that no rule orders
            return None

    def _candidates(self) -> Sequence[Candidate]:
        return [{self.param_name: value} for value in self.param_range]

    def __repr__(self) -> str:
        best, simplest = self.best_index, self.one_standard_error_index
        within = "" if simplest is None else f"within one standard error {_short(self.param_range[simplest])}, "
        score = _plus_minus(self.validation_mean[best], self.validation_standard_error[best])
        return (
            f"ValidationCurve({self.param_name} best {_short(self.param_range[best])}, {within}"
            f"{self.score_name} {score} over {_splits(self.n_splits)}, {self.route})"
        )


def standard_errors(scores: Array) -> Array:
    """sd / sqrt(splits) of every row of scores; NaN for one split."""
    n_splits = scores.shape[1]
    if n_splits < 2:
        return np.full(len(scores), np.nan)
    return np.asarray(scores.std(axis=1, ddof=1) / np.sqrt(n_splits))


def _plus_minus(value: float, error: float) -> str:
    """Both to the second digit of the error; four digits of the value where its error is below MEANT of it."""
    if not np.isfinite(error):
        return f"{value:.4g}"
    if not error > MEANT * abs(value):
        return f"{value:.4g} +- {error:.1g}"
    digits = max(0, 1 - int(np.floor(np.log10(error))))
    return f"{value:.{digits}f} +- {error:.{digits}f}" if digits <= MOST_DECIMALS else f"{value:.4g} +- {error:.2g}"


def _splits(n_splits: int) -> str:
    return "1 split" if n_splits == 1 else f"{n_splits} splits"


def _short(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
