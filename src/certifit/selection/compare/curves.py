"""Scores over folds: of one model, against the number of training rows, against a parameter.

For LinearRegression and Ridge all fits of a curve come from sums over one pass; other estimators are refitted.

What cross-validation and its curves give: scores by split, their means and standard errors. Higher is better.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from numbers import Integral

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, is_classifier, is_regressor

from certifit.data.cells import Splits
from certifit.data.columns import Array
from certifit.data.user_input import UserLabels, UserRows, UserTarget, UserWeights
from certifit.models.adapter import learner_of
from certifit.models.folds import Candidate, Candidates
from certifit.models.metric import Metric
from certifit.models.parameters import checked_range
from certifit.selection.compare.rules import choose
from certifit.selection.folds.engine import evaluate
from certifit.selection.folds.fold_scores import FoldScores
from certifit.selection.folds.metrics import Scoring, own_scoring, sufficient
from certifit.selection.folds.rows import Rows
from certifit.selection.folds.scorers import refuse_unknown_score
from certifit.selection.folds.splits import UserSplits, is_leave_one_out, rounds_of, row_count
from certifit.selection.folds.stages import Growth, growing

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


TRAIN_SIZES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)


def cross_validate(
    estimator: BaseEstimator,
    X: UserRows,
    y: UserTarget = None,
    *,
    cv: UserSplits = 10,
    scoring: Scoring = None,
    sample_weight: UserWeights = None,
    groups: UserLabels = None,
    offset: UserWeights = None,
    exposure: UserWeights = None,
    n_jobs: int | None = None,
) -> CrossValidationScores:
    """Scores of an estimator on rows that its fits have not seen, split by split.

    Parameters
    ----------
    estimator : a certifit or scikit-learn estimator
    X, y : arrays, sparse matrices or data frames; for LinearRegression and Ridge also a scan that carries its target
    cv : int, Folds, Bootstrap, a scikit-learn splitter or a list of (training, validation) rows, default 10
    scoring : None, a name or a callable, default None
        None is the estimator's own score. Sums suffice for None, "r2", "neg_mean_squared_error" and
        "neg_root_mean_squared_error" of LinearRegression and Ridge; others need refits.
    sample_weight : one number per row, in fits and in scores; weight 2 is the row twice
    groups : one label per row; rows of a group stay in one fold. A scan names its group itself.
    offset, exposure : one number per row, for an estimator whose fit takes them. A scan names their columns itself.
    n_jobs : int or None, default None
        Refits at the same time. Sums need none.

    >>> import numpy as np
    >>> import certifit as cf
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 3))
    >>> y = X @ [1.0, 2.0, 0.0] + rng.normal(size=200)
    >>> cross_validate(cf.LinearRegression(), X, y)
    CrossValidationScores(R2 0.774 +- 0.034 over 10 splits, statistics)
    """
    rows, rounds = _prepared(estimator, X, y, cv, scoring, sample_weight, groups, offset, exposure)
    scores = evaluate(estimator, rows, rounds, [{}], scoring, n_jobs=n_jobs, with_training=True)
    _refuse_lone_rows(estimator, rows, scoring, scores)
    name = score_name(estimator, scoring)
    return CrossValidationScores(scores.validation[0], scores.training[0], scores.weight, scores.route, name)


def validation_curve(
    estimator: BaseEstimator,
    X: UserRows,
    y: UserTarget = None,
    *,
    param_name: str,
    param_range: Iterable[object],
    cv: UserSplits = 10,
    scoring: Scoring = None,
    sample_weight: UserWeights = None,
    groups: UserLabels = None,
    offset: UserWeights = None,
    exposure: UserWeights = None,
    n_jobs: int | None = None,
) -> ValidationCurve:
    """Scores against the values of one parameter: training scores show the fit, validation scores what it is worth.

    param_name : a name of `estimator.get_params()`, such as "alpha" or "basis__degree"
    param_range : its values. Values of alpha share one pass over the rows, others take one each.
    The rest as for `cross_validate`.

    >>> import numpy as np
    >>> import certifit as cf
    >>> x = np.linspace(0, 1, 60)[:, None]
    >>> y = np.sin(5 * x[:, 0]) + 0.1 * np.random.default_rng(0).normal(size=60)
    >>> model = cf.LinearRegression(basis=cf.Polynomial(1))
    >>> validation_curve(model, x, y, param_name="basis__degree", param_range=range(1, 7))
    ValidationCurve(basis__degree best 5, within one standard error 4, R2 0.9833 +- 0.0025 over 10 splits, statistics)
    """
    values = checked_range(estimator, param_name, param_range)
    candidates = [{param_name: value} for value in values]
    rows, rounds = _prepared(estimator, X, y, cv, scoring, sample_weight, groups, offset, exposure)
    scores = evaluate(
        estimator, rows, rounds, candidates, scoring, n_jobs=n_jobs, label="validation curve", with_training=True
    )
    _refuse_lone_rows(estimator, rows, scoring, scores)
    name = score_name(estimator, scoring)
    return ValidationCurve(scores.training, scores.validation, scores.route, name, param_name, values)


def learning_curve(
    estimator: BaseEstimator,
    X: UserRows,
    y: UserTarget = None,
    *,
    train_sizes: ArrayLike = TRAIN_SIZES,
    cv: UserSplits = 10,
    scoring: Scoring = None,
    sample_weight: UserWeights = None,
    groups: UserLabels = None,
    offset: UserWeights = None,
    exposure: UserWeights = None,
    random_state: int = 0,
    n_jobs: int | None = None,
) -> LearningCurve:
    """Scores against the number of training rows: whether more rows would help.

    Within the training rows of every split, sets of growing size are drawn at random, each inside the next. Which
    rows follows from their numbers and `random_state`, so arrays, files and clusters give the same curve. All splits
    of a size validate on the same rows as those of all other sizes. For LinearRegression and Ridge all sizes and
    splits come from one pass over the rows (several where their sums would take more than 256 MB). Levels of a
    category are those of all rows, also where a small set does not hold them.

    train_sizes : increasing shares of the training rows in (0, 1], or numbers of rows, default 0.1, 0.2, ..., 1.0
        Numbers are met to within a row by Folds without groups, else on average. `sizes` are those drawn.
    random_state : int >= 0, default 0
    The rest as for `cross_validate`.

    >>> import numpy as np
    >>> import certifit as cf
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(1000, 3))
    >>> y = X @ [1.0, 2.0, 0.0] + rng.normal(size=1000)
    >>> learning_curve(cf.LinearRegression(), X, y, train_sizes=[0.01, 0.1, 1.0])
    LearningCurve(9 to 900 rows, R2 0.37 to 0.82, statistics)
    """
    if not isinstance(random_state, Integral) or isinstance(random_state, bool) or random_state < 0:
        raise ValueError(f"random_state must be a whole number >= 0. Got {random_state!r}.")
    wanted = _checked_sizes(train_sizes)
    rows, rounds = _prepared(estimator, X, y, cv, scoring, sample_weight, groups, offset, exposure)
    n_rows = row_count(rows.source)
    n_columns = _summed_columns(estimator, rows, scoring)
    growths = [_growths(splits, wanted, rows, n_rows, n_columns, int(random_state)) for splits in rounds]
    passes = [growth for of_split in growths for growth in of_split]
    counts = _joined(growths, [growth.n_rows(rows.source, n_rows).ravel() for growth in passes])
    _refuse_empty(wanted, counts)
    every = [growth.splits for growth in passes]
    scores = evaluate(estimator, rows, every, [{}], scoring, n_jobs=n_jobs, label="learning curve", with_training=True)
    _refuse_lone_rows(estimator, rows, scoring, scores)
    ends = np.cumsum([splits.n_splits for splits in every])[:-1]
    train, validation = (_joined(growths, np.split(part[0], ends)) for part in (scores.training, scores.validation))
    return LearningCurve(train, validation, scores.route, score_name(estimator, scoring), counts)


def score_name(estimator: BaseEstimator, scoring: Scoring) -> str:
    """What a score is called in a table or beside an axis."""
    scoring = own_scoring(estimator, scoring)
    if scoring is not None:
        if isinstance(scoring, Metric):
            return f"negative {scoring.name}"
        return scoring if isinstance(scoring, str) else str(getattr(scoring, "__name__", scoring))
    return "accuracy" if is_classifier(estimator) else "R2" if is_regressor(estimator) else "score"


def _prepared(
    estimator: BaseEstimator,
    X: UserRows,
    y: UserTarget,
    cv: UserSplits,
    scoring: Scoring,
    sample_weight: UserWeights,
    groups: UserLabels,
    offset: UserWeights,
    exposure: UserWeights,
) -> tuple[Rows, list[Splits]]:
    """Checked rows and their splits."""
    if not hasattr(estimator, "fit"):
        raise TypeError(f"estimator must have a method fit. Got {estimator!r}.")
    refuse_unknown_score(scoring)
    if is_leave_one_out(cv):
        raise ValueError(
            "Curves and scores by fold need more than one row per fold. For leave-one-out use CrossValidated."
        )
    rows = Rows.of(estimator, X, y, sample_weight, groups, offset, exposure)
    return rows, rounds_of(cv, rows.source, rows.labels, rows.groups)


def _refuse_lone_rows(estimator: BaseEstimator, rows: Rows, scoring: Scoring, scores: FoldScores) -> None:
    """R2 divides by the spread of the validation rows, which one row has not."""
    scoring = own_scoring(estimator, scoring)
    is_r2 = scoring == "r2" or (scoring is None and is_regressor(estimator))
    is_weighted = rows.weight is not None or rows.source.first_block().weight is not None
    if is_r2 and not is_weighted and (scores.weight < 2).any():
        split = int(np.flatnonzero(scores.weight < 2)[0])
        raise ValueError(
            f"Split {split + 1} has one validation row, and R2 needs two. Use fewer folds, or "
            "scoring='neg_mean_squared_error'."
        )


def _checked_sizes(train_sizes: ArrayLike) -> Array:
    """Increasing shares (float) or numbers of rows (int)."""
    sizes = np.asarray(train_sizes)
    if sizes.ndim != 1 or not len(sizes) or sizes.dtype.kind not in "fiu":
        raise ValueError(f"{_LEGAL_SIZES} Got {train_sizes!r}.")
    is_share = sizes.dtype.kind == "f"
    wrong = ~((sizes > 0) & (sizes <= 1)) if is_share else sizes < 1
    if wrong.any():
        raise ValueError(f"{_LEGAL_SIZES} Got {sizes[wrong][0]:g}.")
    if (np.diff(sizes.astype(np.float64)) <= 0).any():
        raise ValueError(f"train_sizes must increase. Got {train_sizes!r}.")
    return sizes


_LEGAL_SIZES = "train_sizes must be a list of shares in (0, 1], or of whole numbers >= 1."


def _growths(splits: Splits, sizes: Array, rows: Rows, n_rows: int, n_columns: int, seed: int) -> list[Growth]:
    """The splits of one round with training sets of all sizes."""
    shares = sizes
    if sizes.dtype.kind != "f":
        (whole,) = growing(splits, [1.0], n_rows, 1, seed)
        available = whole.n_rows(rows.source, n_rows)
        if sizes[-1] > available.min():
            raise ValueError(
                f"train_sizes has {sizes[-1]:,}, and the training rows of a split are only {available.min():,.10g}."
            )
        shares = sizes / available.mean()
    return growing(splits, [min(1.0, float(share)) for share in shares], n_rows, n_columns, seed)


def _summed_columns(estimator: BaseEstimator, rows: Rows, scoring: Scoring) -> int:
    """Columns whose products are summed: those of the encoded rows in their basis; 0 for refits."""
    if sufficient(scoring) is None or not learner_of(estimator).is_ours:
        return 0
    states = estimator.folds(rows.source, [], Candidates([{}], rows.classes), rows.shared)
    return 0 if states is None else states.n_summed


def _joined(growths: Sequence[Sequence[Growth]], parts: Sequence[Array]) -> Array:
    """Values of all passes, in their order, as sizes x splits."""
    left = iter(parts)
    columns = [
        np.concatenate([next(left).reshape(len(growth.sizes), growth.n_base) for growth in of_split])
        for of_split in growths
    ]
    return np.concatenate(columns, axis=1)


def _refuse_empty(sizes: Array, counts: Array) -> None:
    empty = np.argwhere(counts == 0)
    if len(empty):
        size, split = empty[0]
        raise ValueError(
            f"train_sizes has {sizes[size]:g}, which leaves split {split + 1} without a training row. Use larger sizes."
        )
