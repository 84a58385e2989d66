"""Forward and backward selection of features by cross-validation, as scikit-learn selectors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from copy import deepcopy
from functools import partial
from inspect import Parameter, signature
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin, is_classifier
from sklearn.feature_selection import SelectorMixin
from sklearn.utils import Tags, get_tags
from sklearn.utils.validation import check_is_fitted, has_fit_parameter, validate_data

from certifit.data.arrow import is_frame
from certifit.data.columns import Array
from certifit.data.source import Source
from certifit.data.user_input import (
    Predictions,
    UserLabels,
    UserRows,
    UserTarget,
    UserWeights,
    class_source,
    fit_source,
    predict_source,
    unchanged_on_error,
)
from certifit.models.adapter import where_inner_has
from certifit.models.certificate import Certificate
from certifit.models.glm.subset_fits import Unsettled
from certifit.runtime import one_blas_thread
from certifit.selection.features.features import Feature, Step, Wish, features_of, fixed_of, frame_of
from certifit.selection.features.score_search import score_search
from certifit.selection.features.search import (
    RefitSearch,
    Search,
    StatisticsSearch,
    backward_path,
    fold_estimator,
    forward_path,
    row_numbers,
    score_scan,
    score_subset,
    with_columns,
)
from certifit.selection.features.sweeps import FoldSystems, fold_systems
from certifit.selection.folds.engine import Bar
from certifit.selection.folds.metrics import Score, Scoring, own_scoring, sufficient
from certifit.selection.folds.rows import Rows, checked_array, checked_rows, given, refuse_gaps, take_columns
from certifit.selection.folds.scorers import refuse_unknown_score, scorer_of
from certifit.selection.folds.splits import UserSplits, rounds_of

if TYPE_CHECKING:
    from pandas import DataFrame

_where_estimator_has = partial(where_inner_has, "estimator_")


class _Selection(SelectorMixin, MetaEstimatorMixin, BaseEstimator):
    """What both directions share: the contract, and `fit` in one place."""

    change: ClassVar[str]  # what a step does to a feature

    def __init__(
        self,
        estimator: BaseEstimator,
        n_features_to_select: Any = "best",
        *,
        cv: UserSplits = 10,
        scoring: Scoring = None,
        fixed: Any = (),
        groups: UserLabels = None,
        n_jobs: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.n_features_to_select = n_features_to_select
        self.cv = cv
        self.scoring = scoring
        self.fixed = fixed
        self.groups = groups
        self.n_jobs = n_jobs

    def fit(
        self,
        X: UserRows,
        y: UserTarget = None,
        sample_weight: UserWeights = None,
        offset: UserWeights = None,
        exposure: UserWeights = None,
    ) -> Self:
        """Choose features of X (an array, a sparse array, a frame), or of a scan that carries its target.

        sample_weight: one number per row, in fits and in scores; weight 2 is the row twice.
        offset, exposure: one number per row, for an estimator that takes them.
        """
        if not hasattr(self.estimator, "fit"):
            raise TypeError(f"estimator must have a method fit. Got {self.estimator!r}.")
        beside = {"offset": offset, "exposure": exposure}
        with unchanged_on_error(self):
            if isinstance(X, Source):
                (class_source if is_classifier(self.estimator) else fit_source)(
                    self, X, y, sample_weight, offset=offset, exposure=exposure
                )
            else:
                X, y = checked_rows(self, X, y)
            features = features_of(self._names(), self.groups)
            self._select(Rows.of(self.estimator, X, y, sample_weight, **beside), features)
            chosen = take_columns(X, np.flatnonzero(self.support_).tolist())
            estimator = with_columns(self.estimator, np.array(self._names(), dtype=object)[self.support_])
            options = given(sample_weight=sample_weight, **beside)
            self.estimator_ = estimator.fit(chosen, **({} if isinstance(X, Source) else {"y": y}), **options)
        return self

    @_where_estimator_has("predict")
    def predict(
        self, X: UserRows, offset: UserWeights = None, exposure: UserWeights = None, **options: Any
    ) -> Predictions:
        """Predictions of `estimator_`. X has all the columns of the fit; options go to its predict."""
        chosen = self._chosen(X)
        return self.estimator_.predict(chosen, **given(offset=offset, exposure=exposure), **options)

    @_where_estimator_has("predict_proba")
    def predict_proba(self, X: UserRows, offset: UserWeights = None, exposure: UserWeights = None) -> Predictions:
        """Probabilities of the classes by `estimator_`."""
        chosen = self._chosen(X)
        return self.estimator_.predict_proba(chosen, **given(offset=offset, exposure=exposure))

    @_where_estimator_has("decision_function")
    def decision_function(self, X: UserRows, offset: UserWeights = None, exposure: UserWeights = None) -> Predictions:
        """Scores of the classes by `estimator_`."""
        chosen = self._chosen(X)
        return self.estimator_.decision_function(chosen, **given(offset=offset, exposure=exposure))

    @_where_estimator_has("score")
    def score(
        self,
        X: UserRows,
        y: UserTarget = None,
        sample_weight: UserWeights = None,
        offset: UserWeights = None,
        exposure: UserWeights = None,
    ) -> float:
        """The score of `estimator_` on rows with all the columns of the fit."""
        chosen = self._chosen(X)
        options = given(sample_weight=sample_weight, offset=offset, exposure=exposure)
        return float(self.estimator_.score(chosen, y, **options))

    def transform(self, X: UserRows) -> Predictions:
        """X reduced to the selected columns; of a scan, a scan."""
        return self._chosen(X) if isinstance(X, Source) else super().transform(X)

    def steps_frame(self) -> DataFrame:
        """`steps_` as a pandas frame, one row per step."""
        check_is_fitted(self)
        return frame_of(self.steps_, self.change)

    @property
    def certificate_(self) -> Certificate:
        """The certificate of `estimator_`."""
        certificate: Certificate = self.estimator_.certificate_
        return certificate

    @property
    def classes_(self) -> Array:
        """The classes of `estimator_`."""
        return np.asarray(self.estimator_.classes_)

    def _path(self, search: Search, fixed: Sequence[int], wish: Wish) -> list[Step]:
        raise NotImplementedError

    def _n_subsets(self, n_features: int, n_fixed: int, wish: Wish) -> int:
        """Subsets that a path scores by refits."""
        raise NotImplementedError

    @property
    def _scoring(self) -> Scoring:
        return own_scoring(self.estimator, self.scoring)

    def _select(self, rows: Rows, features: list[Feature]) -> None:
        if isinstance(self.cv, str):
            raise TypeError(f"cv must be a number of folds, a splitter or a list of pairs of rows. Got {self.cv!r}.")
        cv = self.cv if hasattr(self.cv, "split") or not isinstance(self.cv, Iterable) else list(self.cv)
        score = sufficient(self._scoring)
        systems = None if score is None else fold_systems(self.estimator, rows, cv)
        if systems is None or score is None or not self._is_told_by(systems):
            steps, notes, wish = self._by_refits(rows, cv, features)
        else:
            steps, notes, wish = self._by_sums(systems, score, features)
        best = set(wish.choose(steps).features)
        chosen = [feature for feature in features if feature.name in best]
        self.support_ = np.zeros(self.n_features_in_, dtype=bool)
        self.support_[[column for feature in chosen for column in feature.columns]] = True
        self.steps_, self.redundant_ = steps, notes
        self.selected_features_, self.n_features_ = [feature.name for feature in chosen], len(chosen)

    def _is_told_by(self, systems: FoldSystems) -> bool:
        """Whether sums go by columns of X (a basis mixes them) and, for an error in units of y, hold those units."""
        known = set(self._names()).issuperset(name for name, _ in systems.features)
        return known and (systems.in_units or self._scoring in (None, "r2"))

    @one_blas_thread
    def _by_sums(
        self, systems: FoldSystems, score: Score, features: list[Feature]
    ) -> tuple[list[Step], list[str], Wish]:
        """The path by sweeps. A column that the encoder set aside has no sums and cannot be chosen."""
        names, made = self._names(), dict(systems.features)
        usable = [feature for feature in features if any(names[column] in made for column in feature.columns)]
        fixed = self._fixed(features, usable)
        wish = Wish.of(self.n_features_to_select, len(usable), len(fixed))
        blocks = [[at for column in feature.columns for at in made.get(names[column], [])] for feature in usable]
        _refuse_few_folds(len(systems.train_yy))
        if not (systems.train_total > 0).any():
            raise ValueError("y is constant in the training rows of every fold. No feature can explain it.")
        search = StatisticsSearch(systems, [feature.name for feature in usable], blocks, score)
        return self._path(search, fixed, wish), search.notes, wish

    def _by_refits(self, rows: Rows, cv: UserSplits, features: list[Feature]) -> tuple[list[Step], list[str], Wish]:
        estimator, made = fold_estimator(self.estimator, rows.source, self._names())
        usable = [feature for feature in features if made.intersection(feature.columns)]
        fixed = self._fixed(features, usable)
        wish = Wish.of(self.n_features_to_select, len(usable), len(fixed))
        rounds = rounds_of(cv, rows.source, rows.labels, rows.groups)
        _refuse_few_folds(sum(splits.n_splits for splits in rounds))
        offered = score_search(estimator, rows, rounds, self._scoring, usable, self._names())
        if offered is not None:
            with suppress(Unsettled):
                return self._path(offered, fixed, wish), offered.notes, wish
        if rows.X is None:
            work = partial(score_scan, estimator, rows, rounds, self._scoring, self.n_jobs)
        else:
            refuse_gaps(self, rows.X, self._names())
            scorer = self._scorer(rows.weight is not None)
            pairs = row_numbers(rounds, rows.source, rows.weight)
            work = partial(score_subset, estimator, rows, pairs, scorer)
        n_jobs = 1 if rows.X is None else self.n_jobs
        with Bar(f"{type(self).__name__}, refits", self._n_subsets(len(usable), len(fixed), wish)) as bar:
            search = RefitSearch(usable, work, n_jobs, bar)
            return self._path(search, fixed, wish), search.notes, wish

    def _fixed(self, features: Sequence[Feature], usable: Sequence[Feature]) -> list[int]:
        fixed = [features[at] for at in fixed_of(features, self._names(), self.fixed)]
        if lost := [feature.name for feature in fixed if feature not in usable]:
            raise ValueError(f"fixed names {lost}, which the encoder sets aside: see the notes_ of TableEncoder.")
        return [usable.index(feature) for feature in fixed]

    def _scorer(self, is_weighted: bool) -> Callable[..., float]:
        """The scorer; with weights, both it and the estimator must take them."""
        if is_weighted and not has_fit_parameter(self.estimator, "sample_weight"):
            raise ValueError(f"{type(self.estimator).__name__} takes no sample_weight. Leave the weights out.")
        refuse_unknown_score(self._scoring)
        called = self.estimator.score if self._scoring is None else self._scoring
        if is_weighted and callable(called) and not _takes_weight(called):
            raise ValueError("scoring takes no sample_weight, so weighted rows have no score. Leave the weights out.")
        return scorer_of(self.estimator, self._scoring)

    def _chosen(self, X: UserRows) -> Any:
        """The selected columns of rows that have all the columns of the fit."""
        check_is_fitted(self)
        if isinstance(X, Source):
            X = predict_source(self, X)
        elif is_frame(X):
            validate_data(self, X, reset=False, skip_check_array=True)
        else:
            X = checked_array(self, X, reset=False)
            refuse_gaps(self, X, self._names())
        return take_columns(X, np.flatnonzero(self.support_).tolist())

    def _names(self) -> list[str]:
        names = getattr(self, "feature_names_in_", None)
        return [f"x{j}" for j in range(self.n_features_in_)] if names is None else [str(name) for name in names]

    def _get_support_mask(self) -> Array:
        check_is_fitted(self)
        return self.support_

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        tags.estimator_type = inner.estimator_type
        tags.classifier_tags, tags.regressor_tags = deepcopy(inner.classifier_tags), deepcopy(inner.regressor_tags)
        for kind in (tags.classifier_tags, tags.regressor_tags):
            if kind is not None:
                kind.poor_score = True  # few features may be asked for
        tags.target_tags, tags.input_tags = deepcopy(inner.target_tags), deepcopy(inner.input_tags)
        tags.input_tags.allow_nan |= self.estimator.get_params(deep=False).get("encoder") is not None
        return tags


class ForwardSelection(_Selection):
    """Add the feature that raises the cross-validated score most, again and again.

    For LinearRegression and Ridge the whole path costs about one fit: one pass sums a Gram matrix per fold, sweeps over
    those choose, and every subset in `steps_` has the scores of refits. For LogisticRegression of two classes,
    PoissonRegressor, GammaRegressor and GLM a step predicts the loss on validation rows for every candidate by one
    step of Newton, and fits the best five at most on all folds at once; `steps_` has the scores of refits. Any other
    estimator is refitted.

    Parameters
    ----------
    estimator : the model
    n_features_to_select : int, (fewest, most), "best" or "parsimonious", default "best"
        "best" is the subset of the best score of all in `steps_`, whatever its size; a number the one of that size; a
        pair the best in its range; "parsimonious" the fewest within one standard error of the best. A group is one.
    cv : int, splitter or list of (training rows, validation rows), default 10
    scoring : None, name or callable, default None
        None is the estimator's own score, of counts and positive quantities the negative mean deviance. Sums suffice
        for None, "r2", "neg_mean_squared_error" and "neg_root_mean_squared_error"; of generalised linear models for
        deviances, "accuracy" and "neg_log_loss" too; others need refits.
    fixed : names or places of columns (or names of groups) that are always in, default none
    groups : dict {name: columns} or list of lists of columns that go together, default none
        The columns that an encoder makes of one column of a table go together anyway.
    n_jobs : int or None, default None
        Refits at the same time. Sums need none.

    Attributes
    ----------
    support_ : mask of the selected columns
    selected_features_ : names of the selected features, in the order of X
    n_features_ : their number
    steps_ : list of Step, one per subset visited: n_features, change, features, mean_score, standard_error,
        fold_scores, train_score; `steps_frame()` as a pandas frame
    redundant_ : sentences on features that others make up
    estimator_ : the model fitted to the selected columns of all rows; `certificate_` is its certificate

    >>> import numpy as np
    >>> import certifit as cf
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 6))
    >>> y = 3 * X[:, 4] - X[:, 1] + rng.normal(size=100)
    >>> ForwardSelection(cf.LinearRegression(), 2).fit(X, y).selected_features_
    ['x1', 'x4']
    """

    change = "added"

    def _path(self, search: Search, fixed: Sequence[int], wish: Wish) -> list[Step]:
        return forward_path(search, fixed, wish.most)

    def _n_subsets(self, n_features: int, n_fixed: int, wish: Wish) -> int:
        return sum(n_features - n for n in range(n_fixed, wish.most)) + int(n_fixed > 0)


class BackwardSelection(_Selection):
    """Start with all features and drop the one that is missed least, again and again.

    Features that are combinations of others go first, at no loss. Parameters and attributes are those of
    ForwardSelection.

    >>> import numpy as np
    >>> import certifit as cf
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 6))
    >>> y = 3 * X[:, 4] - X[:, 1] + rng.normal(size=100)
    >>> BackwardSelection(cf.LinearRegression(), 2).fit(X, y).selected_features_
    ['x1', 'x4']
    """

    change = "dropped"

    def _path(self, search: Search, fixed: Sequence[int], wish: Wish) -> list[Step]:
        return backward_path(search, fixed, wish.fewest)

    def _n_subsets(self, n_features: int, n_fixed: int, wish: Wish) -> int:
        return sum(n - n_fixed for n in range(wish.fewest + 1, n_features + 1)) + 1


def _refuse_few_folds(n_splits: int) -> None:
    if n_splits < 2:
        raise ValueError(f"Selection compares means over folds and needs at least 2. cv gives {n_splits}.")


def _takes_weight(function: Callable[..., Any]) -> bool:
    parameters = signature(function).parameters
    return "sample_weight" in parameters or any(one.kind is Parameter.VAR_KEYWORD for one in parameters.values())
