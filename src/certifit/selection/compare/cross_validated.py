"""One meta-estimator for choosing parameters: candidates are scored on every split, the winner fitted to all rows."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import partial
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone, is_classifier
from sklearn.exceptions import FitFailedWarning
from sklearn.utils import Tags, get_tags
from sklearn.utils.validation import check_is_fitted

from certifit.data.cells import Splits
from certifit.data.columns import Array
from certifit.data.user_input import Predictions, UserLabels, UserRows, UserTarget, UserWeights, unchanged_on_error
from certifit.evaluation.metrics.intervals import Estimate
from certifit.models.adapter import learner_of, where_inner_has
from certifit.models.certificate import Certificate
from certifit.models.folds import EACH_ROW, Candidate, Candidates, EachRow, Rounds
from certifit.models.least_squares.fold_path import safe_unit
from certifit.selection.compare.intervals import FoldIntervals, fold_intervals
from certifit.selection.compare.nested import nested_choice
from certifit.selection.compare.rules import (
    RULES,
    TOO_MANY,
    Choosing,
    choose,
    corrected,
    evidence_of,
    row_scores_are_few,
)
from certifit.selection.folds.engine import evaluate, refuse_units
from certifit.selection.folds.fold_scores import FoldScores
from certifit.selection.folds.metrics import Scoring, UserGrid, own_scoring, sufficient
from certifit.selection.folds.rows import Rows, given, with_offset
from certifit.selection.folds.scorers import scorer_of
from certifit.selection.folds.splits import UserSplits, is_leave_one_out, rounds_of, row_count

_where_winner_has = partial(where_inner_has, "best_estimator_")


class CrossValidated(MetaEstimatorMixin, BaseEstimator):
    """The parameters that predict held-out rows best, and the fit to all rows with them.

    Where a model's errors follow from sums over rows (LinearRegression, Ridge, Lasso, ElasticNet), one pass gives every
    candidate on every fold, the fills of missing values included: the cost is about one fit. Discriminants and naive
    Bayes take one pass for the sums of all folds and one for the scores. Generalised linear models with a ridge penalty
    (LogisticRegression of two classes, PoissonRegressor, GammaRegressor, GLM) take some three passes for every alpha,
    shared by all folds. Other estimators are refitted.

    Parameters
    ----------
    estimator : a certifit or scikit-learn estimator
    param_grid : dict {parameter: values} or list of such, default None
        None lets the model choose: fifty values of alpha for Ridge and generalised linear models (fifteen of a ridge
        penalty of these beyond 1e7 cells), a hundred for Lasso and ElasticNet, nothing to choose for LinearRegression.
    cv : int, Folds, Bootstrap, HoldOut, "loo", a scikit-learn splitter or a list of (training,
        validation) rows, default 10
        "loo" is exact leave-one-out, all rows in one or two passes. Scans that name a `group` keep groups together.
    rule : {"min", "1se"}, default "min"
        The candidate with the best mean score, or the simplest one within one standard error of it.
    scoring : None, a name or a callable, as in scikit-learn, default None (R2; the estimator's own score;
        the negative mean deviance of PoissonRegressor and GammaRegressor)
        R2, neg_mean_squared_error and neg_root_mean_squared_error need no refits.
    intervals : bool, default False
        Keep what `predict_interval` needs: a model per fold and the sizes of the errors on the rows it did not see.
    corrected : bool, default False
        Correct the winner's score for the choice among all candidates: `corrected_score_`. Costs a pass over the rows.
    nested : bool, default False
        Repeat the choice on the training rows of every fold: `nested_score_`. Costs k - 1 times the folds' fits.
    n_jobs : int or None, default None
        Processes that refit. Not used where sums suffice.

    Attributes
    ----------
    cv_results_ : dict of arrays as in scikit-learn's GridSearchCV, with standard_error; training scores where they cost
        nothing. A candidate without a fit on the training rows of a split has NaN there
    best_index_, best_params_, best_score_, best_estimator_
    corrected_score_, nested_score_ : estimates with an interval or a sentence; None where they were not asked for
    route_ : "statistics", "refits" or "leave-one-out"
    n_splits_ : int
    alone_ : numbers of rows that only their own presence determines; leave-one-out leaves them out

    >>> import numpy as np
    >>> import certifit as cf
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 3))
    >>> y = X @ [1.0, 2.0, 0.0] + rng.normal(size=100)
    >>> model = cf.CrossValidated(cf.Ridge(), {"alpha": [0.01, 0.1, 10.0]}).fit(X, y)
    >>> model.best_params_, model.route_
    ({'alpha': 0.01}, 'statistics')
    """

    def __init__(
        self,
        estimator: BaseEstimator,
        param_grid: UserGrid = None,
        *,
        cv: UserSplits = 10,
        rule: str = "min",
        scoring: Scoring = None,
        intervals: bool = False,
        corrected: bool = False,
        nested: bool = False,
        n_jobs: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.param_grid = param_grid
        self.cv = cv
        self.rule = rule
        self.scoring = scoring
        self.intervals = intervals
        self.corrected = corrected
        self.nested = nested
        self.n_jobs = n_jobs

    def fit(
        self,
        X: UserRows,
        y: UserTarget = None,
        sample_weight: UserWeights = None,
        groups: UserLabels = None,
        offset: UserWeights = None,
        exposure: UserWeights = None,
    ) -> Self:
        """Score all candidates on all splits of the rows, then fit the winner to all of them.

        groups: one label per row; rows of a group stay in one fold. offset, exposure: one number per row, for an
        estimator that takes them.
        """
        if self.rule not in RULES:
            raise ValueError(f"rule must be one of {', '.join(map(repr, RULES))}. Got {self.rule!r}.")
        if not hasattr(self.estimator, "fit"):
            raise TypeError(f"estimator must have a method fit. Got {self.estimator!r}.")
        if self.intervals and is_classifier(self.estimator):
            raise ValueError("intervals=True is for numbers. predict_proba says how sure a classifier is.")
        with unchanged_on_error(self):
            rows = Rows.of(self.estimator, X, y, sample_weight, groups, offset, exposure)
            is_each_row = is_leave_one_out(self.cv)
            rounds = EACH_ROW if is_each_row else rounds_of(self.cv, rows.source, rows.labels, rows.groups)
            candidates = self._candidates(rows, rounds)
            self.corrected_score_: Estimate | None = None
            self.nested_score_: Estimate | None = None
            if isinstance(rounds, EachRow):
                mean, error = self._leave_one_out(rows, candidates)
            else:
                mean, error = self._folds(rows, rounds, candidates)
            self.best_index_ = choose(mean, error, candidates, self.rule)
            self.best_params_ = dict(candidates[self.best_index_])
            self.best_score_ = float(mean[self.best_index_])
            self.best_estimator_ = clone(self.estimator).set_params(**self.best_params_)
            self.best_estimator_.fit(X, y, **given(sample_weight=sample_weight, offset=offset, exposure=exposure))
        return self

    @_where_winner_has("predict")
    def predict(
        self, X: UserRows, offset: UserWeights = None, exposure: UserWeights = None, **options: Any
    ) -> Predictions:
        """Predictions of the winner; options go to its predict."""
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_.predict(X, **given(offset=offset, exposure=exposure), **options)

    @_where_winner_has("predict_proba")
    def predict_proba(self, X: UserRows, offset: UserWeights = None, exposure: UserWeights = None) -> Predictions:
        """Probabilities by the winner."""
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_.predict_proba(X, **given(offset=offset, exposure=exposure))

    @_where_winner_has("predict_log_proba")
    def predict_log_proba(self, X: UserRows, offset: UserWeights = None, exposure: UserWeights = None) -> Predictions:
        """Logarithms of probabilities by the winner."""
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_.predict_log_proba(X, **given(offset=offset, exposure=exposure))

    @_where_winner_has("decision_function")
    def decision_function(self, X: UserRows, offset: UserWeights = None, exposure: UserWeights = None) -> Predictions:
        """Scores by the winner."""
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_.decision_function(X, **given(offset=offset, exposure=exposure))

    @_where_winner_has("transform")
    def transform(self, X: UserRows) -> Predictions:
        """Rows transformed by the winner."""
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_.transform(X)

    @_where_winner_has("summary")
    def summary(self, **options: Any) -> Any:
        """The summary table of the winner."""
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_.summary(**options)

    def score(
        self,
        X: UserRows,
        y: UserTarget = None,
        sample_weight: UserWeights = None,
        offset: UserWeights = None,
        exposure: UserWeights = None,
    ) -> float:
        """The score that chose the winner, on these rows."""
        check_is_fitted(self, "best_estimator_")
        scorer = scorer_of(self.best_estimator_, own_scoring(self.best_estimator_, self.scoring))
        model = with_offset(self.best_estimator_, X, offset, exposure)
        return float(scorer(model, X, y, **given(sample_weight=sample_weight)))

    def predict_interval(
        self, X: UserRows, level: float = 0.9, offset: UserWeights = None, exposure: UserWeights = None
    ) -> Array:
        """Lower and upper end for every row (CV+): a new y lies between them with a probability of about `level`.

        Holds for rows drawn like the training rows, whatever the model: at least 2 level - 1 for sure, near `level` in
        practice. Needs intervals=True.
        """
        check_is_fitted(self, "best_estimator_")
        if self.intervals_ is None:
            raise ValueError("No intervals were kept. Use CrossValidated(..., intervals=True).")
        return self.intervals_.at(X, level, **given(offset=offset, exposure=exposure))

    @property
    def certificate_(self) -> Certificate:
        """The certificate of the winner."""
        certificate: Certificate = self._winner().certificate_
        return certificate

    @property
    def history_(self) -> Any:
        """The trace of the winner's fit."""
        return self._winner().history_

    @property
    def objective(self) -> str:
        """What the winner minimises."""
        return str(self._winner().objective)

    @property
    def n_features_in_(self) -> int:
        """Number of features of the fit."""
        return int(self._winner().n_features_in_)

    @property
    def feature_names_in_(self) -> Array:
        """Names of the features of the fit, where they had any."""
        return np.asarray(self._winner().feature_names_in_)

    @property
    def classes_(self) -> Array:
        """Classes of a classifier."""
        return np.asarray(self._winner().classes_)

    def _winner(self) -> BaseEstimator:
        if not hasattr(self, "best_estimator_"):
            raise AttributeError(f"This {type(self).__name__} is not fitted.")
        return self.best_estimator_

    def _candidates(self, rows: Rows, rounds: Rounds) -> Sequence[Candidate]:
        if self.param_grid is None:
            is_ours = learner_of(self.estimator).is_ours
            return list(self.estimator.fold_candidates(rows.source, rounds, rows.shared)) if is_ours else [{}]
        from sklearn.model_selection import ParameterGrid

        candidates = list(ParameterGrid(self.param_grid))
        legal = self.estimator.get_params()
        for name in {name for candidate in candidates for name in candidate}:
            if name not in legal:
                raise ValueError(
                    f"{type(self.estimator).__name__} has no parameter {name!r}. It has {', '.join(sorted(legal))}."
                )
        if not candidates:
            raise ValueError("param_grid holds no candidate.")
        return candidates

    def _folds(self, rows: Rows, rounds: Sequence[Splits], candidates: Sequence[Candidate]) -> tuple[Array, Array]:
        is_kept = self.corrected and row_scores_are_few(rounds, row_count(rows.source), len(candidates))
        how: dict[str, Any] = {"n_jobs": self.n_jobs, "with_rows": is_kept}
        scores = evaluate(self.estimator, rows, rounds, candidates, self.scoring, **how)
        self.route_, self.n_splits_, self.alone_ = scores.route, scores.validation.shape[1], ()
        self.fold_weight_ = scores.weight
        self.cv_results_ = results_table(candidates, scores.validation, scores.train)
        for at, fault in scores.faults.items():
            warnings.warn(f"{candidates[at]} has no score. {fault}", FitFailedWarning, stacklevel=3)
        mean, error = self.cv_results_["mean_test_score"], self.cv_results_["standard_error"]
        best = candidates[choose(mean, error, candidates, self.rule)]
        self.intervals_: FoldIntervals | None = None
        if self.intervals:
            self.intervals_ = fold_intervals(clone(self.estimator).set_params(**best), rows, rounds)
        if self.corrected or self.nested:
            self._account(rows, rounds, candidates, scores, "" if is_kept else TOO_MANY)
        return mean, error

    def _account(
        self, rows: Rows, rounds: Sequence[Splits], candidates: Sequence[Candidate], scores: FoldScores, why_not: str
    ) -> None:
        """The score of the winner with the choice accounted for."""
        scoring = own_scoring(self.estimator, self.scoring)
        choosing = Choosing.of([""], [candidates], [self.rule])
        evidence = evidence_of(choosing, scoring, [scores], rows.source, why_not)
        if self.corrected:
            table = self.cv_results_
            best = choose(table["mean_test_score"], table["standard_error"], candidates, self.rule)
            correction = corrected(evidence, best)
            self.corrected_score_ = None if correction is None else correction.score
        if self.nested:

            def scored(inner: Sequence[Splits]) -> FoldScores:
                return evaluate(self.estimator, rows, inner, candidates, self.scoring, n_jobs=self.n_jobs)

            self.nested_score_ = nested_choice(evidence, rounds, [scored]).score

    def _leave_one_out(self, rows: Rows, candidates: Sequence[Candidate]) -> tuple[Array, Array]:
        if self.corrected or self.nested:
            raise ValueError("corrected=True and nested=True need folds, not leave-one-out. Use cv=10.")
        n_rows = row_count(rows.source)
        if n_rows < 2:
            raise ValueError(f"Leave-one-out needs at least 2 rows. Got n_samples = {n_rows}.")
        score = sufficient(self.scoring)
        left = None
        if score is not None and learner_of(self.estimator).is_ours:
            states = self.estimator.folds(rows.source, EACH_ROW, Candidates(candidates), rows.shared)
            left = None if states is None else states.left_out()
        if left is None or score is None:
            if own_scoring(self.estimator, self.scoring) in (None, "r2") and not is_classifier(self.estimator):
                raise ValueError(
                    f"{type(self.estimator).__name__} is refitted for every row here, and the R2 of one row has no "
                    "meaning. Use scoring='neg_mean_squared_error', or folds: cv=10."
                )
            return self._refitted_rows(rows, candidates)
        if self.intervals:
            raise ValueError("intervals=True needs folds. For leave-one-out use cf.jackknife_plus.")
        unit, in_units = safe_unit(float(np.float64(left.y_scale) ** -2.0))
        refuse_units(in_units, self.scoring)
        squares, total = left.squares * unit, np.full(len(candidates), left.total * unit)
        mean = score(squares, total, left.weight)
        mse = left.squares / left.weight
        of_mse = np.sqrt(np.maximum(left.fourths / left.weight - mse**2, 0.0) / left.n_rows)
        # To first order a score moves with the mean squared error by its slope there.
        slope = score(squares * (1 + 1e-6), total, left.weight) - mean
        error = np.abs(np.divide(slope, 1e-6 * mse, out=np.zeros_like(mse), where=mse > 0)) * of_mse
        self.route_, self.n_splits_, self.alone_ = "leave-one-out", left.n_rows, left.alone
        self.intervals_, self.fold_weight_ = None, left.weight
        self.cv_results_ = _parameter_columns(candidates) | _summary_columns(mean, error)
        return mean, error

    def _refitted_rows(self, rows: Rows, candidates: Sequence[Candidate]) -> tuple[Array, Array]:
        from sklearn.model_selection import LeaveOneOut

        rounds = rounds_of(LeaveOneOut(), rows.source, rows.labels, rows.groups)
        scores = evaluate(self.estimator, rows, rounds, candidates, self.scoring, n_jobs=self.n_jobs)
        self.route_, self.n_splits_, self.alone_ = scores.route, scores.validation.shape[1], ()
        self.intervals_, self.fold_weight_ = None, scores.weight
        mean = np.average(scores.validation, axis=1, weights=scores.weight)
        error = scores.validation.std(axis=1, ddof=1) / np.sqrt(self.n_splits_)
        self.cv_results_ = _parameter_columns(candidates) | _summary_columns(mean, error)
        return mean, error

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        tags.estimator_type = inner.estimator_type
        tags.classifier_tags, tags.regressor_tags = inner.classifier_tags, inner.regressor_tags
        tags.target_tags, tags.input_tags = inner.target_tags, inner.input_tags
        return tags


def results_table(candidates: Sequence[Candidate], validation: Array, train: Array | None) -> dict[str, Any]:
    """The table of scikit-learn's GridSearchCV, and the standard error of every mean. train None: without them."""
    splits: dict[str, Any] = {}
    for name, scores in (("test", validation), ("train", train)):
        if scores is not None:
            splits |= {f"split{k}_{name}_score": scores[:, k] for k in range(scores.shape[1])}
    n_splits = validation.shape[1]
    mean = validation.mean(axis=1)
    spread = validation.std(axis=1, ddof=1) if n_splits > 1 else np.full(len(validation), np.nan)
    table = _parameter_columns(candidates) | splits | _summary_columns(mean, spread / np.sqrt(n_splits))
    table["std_test_score"] = validation.std(axis=1)
    if train is not None:
        table["mean_train_score"], table["std_train_score"] = train.mean(axis=1), train.std(axis=1)
    return table


def _parameter_columns(candidates: Sequence[Candidate]) -> dict[str, Any]:
    table: dict[str, Any] = {"params": [dict(candidate) for candidate in candidates]}
    for name in sorted({name for candidate in candidates for name in candidate}):
        values = np.empty(len(candidates), dtype=object)
        for i, candidate in enumerate(candidates):
            values[i] = candidate.get(name)
        table[f"param_{name}"] = np.ma.MaskedArray(values, mask=[name not in candidate for candidate in candidates])
    return table


def _summary_columns(mean: Array, error: Array) -> dict[str, Any]:
    order = np.where(np.isnan(mean), -np.inf, mean)  # a candidate without a fit is the last
    n_better = len(order) - np.searchsorted(np.sort(order), order, side="right")
    ranks = (1 + n_better).astype(np.int32)
    return {"mean_test_score": mean, "standard_error": error, "rank_test_score": ranks}
