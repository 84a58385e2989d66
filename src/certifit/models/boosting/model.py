"""Gradient boosting of classes and of numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Literal

import numpy as np
from scipy.special import log_expit, log_softmax
from sklearn.base import clone, is_classifier
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from certifit.data.columns import Array
from certifit.data.source import Block, Source
from certifit.data.user_input import OutPath, Predictions, UserRows, UserTarget, UserWeights
from certifit.maps import UserEncoder
from certifit.minimise.problem import Run
from certifit.minimise.steps import timed
from certifit.models.boosting.about import rounds_tried
from certifit.models.boosting.certificate import GradientBoostingCertificate, certify
from certifit.models.boosting.losses import FAMILIES
from certifit.models.boosting.solver import boost
from certifit.models.boosting.state import BoostingState
from certifit.models.boosting.task import (
    BoostingSettings,
    BoostingTask,
    Directions,
    directions_of,
)
from certifit.models.certificate import Certificate
from certifit.models.classifier import Classifier
from certifit.models.estimator import Regressor, TaskEstimator
from certifit.models.folds import Grid, Rounds, RowFolds
from certifit.models.trees.columns import Categories, categories_of, column_rules
from certifit.models.trees.contributions import Contributions, contributions_of
from certifit.models.trees.folds import StagedState, staged_folds
from certifit.models.trees.task import refuse_infinite
from certifit.statistics.cell_sums import Store
from certifit.statistics.moments import target_sums

DEVIANCES = {"poisson": "neg_mean_poisson_deviance", "gamma": "neg_mean_gamma_deviance"}


class BoostingModel(TaskEstimator[BoostingTask, BoostingState]):
    """What boosting of classes and of numbers shares."""

    n_estimators: int
    learning_rate: float
    growth: str
    max_depth: int | None
    max_leaf_nodes: int | None
    min_samples_leaf: int
    l2: float
    max_bins: int
    subsample: float
    max_features: float
    monotonic_cst: Directions
    categorical_features: Categories
    early_stopping: bool
    validation_fraction: float
    n_iter_no_change: int
    warm_start: bool
    random_state: int
    certificate_: GradientBoostingCertificate
    boosting_: BoostingState
    _edges: list[Array] | None = None
    shares = ("n_estimators",)

    @property
    def _takes_levels(self) -> bool:
        return True

    def folds(self, source: Source, rounds: Rounds, grid: Grid, shared: Store) -> RowFolds | None:
        """One fit per training set for all numbers of rounds."""
        return None if self.early_stopping else staged_folds(self, source, rounds, grid)

    def fold_states(self, source: Source, stages: Sequence[BoostingModel]) -> list[StagedState]:
        """What the stages, copies with other numbers of rounds, are after one boosting of these rows."""
        whole = clone(self).set_params(n_estimators=max(stage.n_estimators for stage in stages))
        if hasattr(self, "classes_"):
            whole.classes_ = self.classes_
        mapped = whole.fit_maps(source)
        whole.column_names_ = list(mapped.names)
        state = boost(whole._task(mapped)).state
        return [StagedState(partial(whole._answers_of, state.part(stage.n_estimators)), whole) for stage in stages]

    def shared_edges(self, source: Source) -> None:
        """Every training set makes its own bins."""

    def candidates(self, source: Source) -> list[dict[str, int]]:
        """Numbers of rounds worth trying where the user names none."""
        n_classes = int(target_sums(source).high) + 1 if is_classifier(self) else 0
        tried = rounds_tried(getattr(source, "n_rows", None), source.n_features, n_classes if n_classes > 2 else 1)
        return [{"n_estimators": n_rounds} for n_rounds in tried]

    @property
    def feature_importances_(self) -> Array:
        """The share of all gains that each column's splits brought; zeros without splits."""
        check_is_fitted(self)
        return self.boosting_.importances(len(self.column_names_))

    @property
    def n_iter_(self) -> int:
        """Rounds that are kept."""
        check_is_fitted(self)
        return self.boosting_.n_rounds

    def contributions(self, X: UserRows) -> Contributions:
        """How much each column of a row moves its score z away from the mean score: base + sum over columns is z.

        Shapley values of columns in the path-dependent form (certifit.models.trees.contributions). An offset or the log
        of an exposure is no part of them.
        """
        check_is_fitted(self)
        return contributions_of(self, self.boosting_.weighted_trees(), X, self.boosting_.start, "score")

    def _answers_of(self, state: BoostingState, columns: Block) -> Array:
        """E y, or log p(k | x), of mapped rows by some of the rounds."""
        raise NotImplementedError

    def _raw(self, block: Block) -> Array:
        """Scores of the rows of a block of the source that the model was fitted to, rows x width."""
        if block.X.shape[0] == 0:
            return np.zeros((0, self.boosting_.width))
        return self._finite_scores(replace(block, X=self.columns_of(block), y=None, weight=None))

    def _finite_scores(self, columns: Block) -> Array:
        scores, is_finite = self.boosting_.scores(columns)
        if not is_finite:
            refuse_infinite(columns, self.column_names_)
        return scores if columns.offset is None else scores + np.asarray(columns.offset)[:, None]

    def _staged_columns(self, X: UserRows) -> Iterator[Array]:
        """Scores after every round."""
        check_is_fitted(self)
        state = self.boosting_
        scores = None
        for k in range(state.n_rounds):
            added = np.concatenate(list(self._each(X, partial(self._of_round, k=k))))
            scores = added if scores is None else scores + added
            yield scores

    def _of_round(self, block: Block, k: int) -> Array:
        columns = replace(block, X=self.columns_of(block), y=None, weight=None)
        scores, is_finite = self.boosting_.scores(columns, k, k + 1)
        if not is_finite:
            refuse_infinite(columns, self.column_names_)
        return scores

    def _settings(self, names: list[str]) -> BoostingSettings:
        directions = directions_of(self.monotonic_cst, names)
        return BoostingSettings(
            int(self.n_estimators), float(self.learning_rate), self.growth, self.max_depth, self.max_leaf_nodes,
            int(self.min_samples_leaf), float(self.l2), int(self.max_bins), float(self.subsample),
            float(self.max_features), directions, column_rules(directions, categories_of(self), names).n_levels,
            bool(self.early_stopping), float(self.validation_fraction), int(self.n_iter_no_change),
            int(self.random_state),
        )  # fmt: skip

    def _solve(self, task: BoostingTask) -> Run[BoostingState]:
        before = getattr(self, "boosting_", None) if self.warm_start else None
        if before is not None and (before.width != task.width or before.n_rounds > self.n_estimators):
            raise ValueError(
                f"warm_start goes on from {before.n_rounds} rounds of the same classes. Got n_estimators="
                f"{self.n_estimators}. Raise it, or set warm_start=False."
            )
        return boost(task, before)

    def _keep(self, task: BoostingTask, run: Run[BoostingState]) -> None:
        self.boosting_ = run.state
        self.history_ = timed(run.state.history, run.history)

    def _state(self) -> BoostingState:
        return self.boosting_

    def _stated(self) -> dict[str, object]:
        return {"n_trees": len(self.boosting_.ends) - 1, "loss": float(self.boosting_.loss[-1])}

    def _certified(self, task: BoostingTask, state: BoostingState) -> GradientBoostingCertificate:
        return certify(task, state)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


class GradientBoostingClassifier(BoostingModel, Classifier[BoostingTask, BoostingState]):
    """Trees added round by round, each a Newton step on the log loss.

    z(x) = start + learning_rate sum_t tree_t(x)        p(1 | x) = 1 / (1 + e^-z), of more classes softmax(z)

    leaf of a tree:  -G / (H + l2),  G and H: sums of slopes and curvatures of the loss over its rows
    certificate:     every leaf and every round's loss derived again from the rows; greedy, no claim about other trees

    Columns are cut into at most max_bins bins. A split takes most from the second-order model of the loss. Rows that
    are equal in every column and in y are one row with their weights added, in the order of a hash: neither the order
    of rows nor copies instead of weights change a fit. Missing values (NaN) go to the better side. Rows beyond the
    limit of `cf.memory` are read in passes.

    Parameters
    ----------
    n_estimators : int >= 1, default 100
        Most rounds; a round has one tree, or one per class of more than two.
    learning_rate : float > 0, default 0.1
        Shrinks every step.
    growth : "leaf" or "depth", default "leaf"
        Split the leaf of the largest gain next, or level by level.
    max_depth : int >= 1 or None, default None
    max_leaf_nodes : int >= 2 or None, default 31
    min_samples_leaf : int >= 1, default 20
        Fewest rows of a leaf; equal rows count once.
    l2 : float >= 0, default 0.0
        Added to the curvature of a leaf: shrinks its step.
    max_bins : int from 2 to 255, default 255
    subsample, max_features : float in (0, 1], default 1.0
        Share of the rows that a round is grown on, and of the columns that it tries.
    monotonic_cst : sequence or dict by name of 1, -1, 0, or None
        Columns in which the score never falls (1) or never rises (-1); two classes only.
    categorical_features : names or numbers of columns, or None, default None
        Columns that hold codes of levels, whole numbers from 0 to 254: split into sets of levels, in the order of the
        levels' own steps. A level that a node has not seen goes where more of its rows went.
    early_stopping : bool, default False
        Hold out validation_fraction of the rows, stop after n_iter_no_change rounds that do not lower their loss, and
        keep the rounds up to the lowest.
    validation_fraction, n_iter_no_change : default 0.1 and 10
    warm_start : bool, default False
        A further fit goes on from the rounds of the last one.
    random_state : int >= 0, default 0
    max_time : float > 0 or None, default None
        Seconds after which no further round begins. The rounds made are kept and not certified as a whole.
    encoder : as for LinearRegression

    Attributes
    ----------
    classes_ : the labels, sorted
    boosting_ : the nodes of all trees as arrays (certifit.models.boosting.state)
    n_iter_ : rounds that are kept
    feature_importances_ : the share of all gains that each column's splits brought
    history_ : every round with its loss, that of the rows held out, and its leaves
    certificate_ : see above

    >>> import numpy as np
    >>> import certifit as cf
    >>> X = np.random.default_rng(0).normal(size=(500, 2))
    >>> model = cf.GradientBoostingClassifier(20).fit(X, X[:, 0] * X[:, 1] > 0)
    >>> model.certificate_.holds, model.score(X, X[:, 0] * X[:, 1] > 0) > 0.95
    (True, True)
    """

    def __init__(
        self,
        n_estimators: int = 100,
        *,
        learning_rate: float = 0.1,
        growth: Literal["leaf", "depth"] = "leaf",
        max_depth: int | None = None,
        max_leaf_nodes: int | None = 31,
        min_samples_leaf: int = 20,
        l2: float = 0.0,
        max_bins: int = 255,
        subsample: float = 1.0,
        max_features: float = 1.0,
        monotonic_cst: Directions = None,
        categorical_features: Categories = None,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 10,
        warm_start: bool = False,
        random_state: int = 0,
        max_time: float | None = None,
        encoder: UserEncoder = None,
    ) -> None:
        self.n_estimators = n_estimators
        self.learning_rate = learning_rate
        self.growth = growth
        self.max_depth = max_depth
        self.max_leaf_nodes = max_leaf_nodes
        self.min_samples_leaf = min_samples_leaf
        self.l2 = l2
        self.max_bins = max_bins
        self.subsample = subsample
        self.max_features = max_features
        self.monotonic_cst = monotonic_cst
        self.categorical_features = categorical_features
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.warm_start = warm_start
        self.random_state = random_state
        self.max_time = max_time
        self.encoder = encoder

    def decision_function(self, X: UserRows) -> Array:
        """z of every row, of two classes; rows x classes of more."""
        scores = np.concatenate(list(self._each(X, self._raw)))
        return scores[:, 0] if self.boosting_.width == 1 else scores

    def staged_predict(self, X: UserRows) -> Iterator[Array]:
        """The prediction after every round."""
        for scores in self._staged_columns(X):
            yield np.asarray(self.classes_[_by_class(scores).argmax(axis=1)])

    def staged_predict_proba(self, X: UserRows) -> Iterator[Array]:
        """p(k | x) after every round."""
        for scores in self._staged_columns(X):
            yield np.exp(_log_chances(scores))

    def mapped_scores(self, columns: Block) -> Array:
        """log p(k | x) of mapped rows, but for what is equal for all classes of a row.

        No more is made of z: one of 1e-17 means the second class, and both chances of it round to 1/2.
        """
        return _by_class(self._finite_scores(columns))

    def _log_posterior(self, block: Block) -> Array:
        return _log_chances(self.scores(block))

    def _answers_of(self, state: BoostingState, columns: Block) -> Array:
        return _log_chances(state.scores(columns)[0])

    def _task(self, source: Source, is_fitted: bool = False) -> BoostingTask:
        settings, n_classes = self._settings(source.names), len(self.classes_)
        if settings.directions is not None and n_classes > 2:
            raise ValueError(f"monotonic_cst needs two classes. Got {n_classes}.")
        return BoostingTask(source, settings, "classes", (0.5, 1.35, 1.5), n_classes)


class GradientBoostingRegressor(BoostingModel, Regressor[BoostingTask, BoostingState]):
    """Trees added round by round, each a Newton step on the loss of a family.

    z(x) = offset + start + learning_rate sum_t tree_t(x)

        gaussian   z is the mean, squared error            poisson, gamma, tweedie   e^z is the mean, half deviances
        huber      squared up to delta, linear beyond      quantile                  z is the quantile, pinball loss

    leaf of a tree:  -G / (H + l2),  G and H: sums of slopes and curvatures of the loss over its rows
    certificate:     every leaf and every round's loss derived again from the rows; greedy, no claim about other trees

    Huber's loss and the pinball loss take 1 for their curvature, and leaves of the latter are quantiles of the
    residuals of their rows. Everything else is as for GradientBoostingClassifier.

    Parameters
    ----------
    n_estimators : int >= 1, default 100
    family : "gaussian", "poisson", "gamma", "tweedie", "huber" or "quantile", default "gaussian"
    quantile : float in (0, 1), default 0.5
        Of family="quantile".
    delta : float > 0, default 1.35
        Of family="huber", in units of the median absolute deviation of y, times 1.4826.
    power : float in (1, 2), default 1.5
        Of family="tweedie": Var y is the mean to this power.
    learning_rate, growth, max_depth, max_leaf_nodes, min_samples_leaf, l2, max_bins, subsample, max_features,
    monotonic_cst, categorical_features, early_stopping, validation_fraction, n_iter_no_change, warm_start,
    random_state, max_time, encoder :
        as for GradientBoostingClassifier

    Attributes
    ----------
    boosting_, n_iter_, feature_importances_, history_, certificate_ : as for GradientBoostingClassifier

    >>> import numpy as np
    >>> import certifit as cf
    >>> X = np.random.default_rng(0).normal(size=(500, 2))
    >>> model = cf.GradientBoostingRegressor(50).fit(X, np.sin(X[:, 0]) + X[:, 1])
    >>> model.certificate_.holds, model.score(X, np.sin(X[:, 0]) + X[:, 1]) > 0.95
    (True, True)
    """

    def __init__(
        self,
        n_estimators: int = 100,
        *,
        family: Literal["gaussian", "poisson", "gamma", "tweedie", "huber", "quantile"] = "gaussian",
        quantile: float = 0.5,
        delta: float = 1.35,
        power: float = 1.5,
        learning_rate: float = 0.1,
        growth: Literal["leaf", "depth"] = "leaf",
        max_depth: int | None = None,
        max_leaf_nodes: int | None = 31,
        min_samples_leaf: int = 20,
        l2: float = 0.0,
        max_bins: int = 255,
        subsample: float = 1.0,
        max_features: float = 1.0,
        monotonic_cst: Directions = None,
        categorical_features: Categories = None,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 10,
        warm_start: bool = False,
        random_state: int = 0,
        max_time: float | None = None,
        encoder: UserEncoder = None,
    ) -> None:
        self.n_estimators = n_estimators
        self.family = family
        self.quantile = quantile
        self.delta = delta
        self.power = power
        self.learning_rate = learning_rate
        self.growth = growth
        self.max_depth = max_depth
        self.max_leaf_nodes = max_leaf_nodes
        self.min_samples_leaf = min_samples_leaf
        self.l2 = l2
        self.max_bins = max_bins
        self.subsample = subsample
        self.max_features = max_features
        self.monotonic_cst = monotonic_cst
        self.categorical_features = categorical_features
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.warm_start = warm_start
        self.random_state = random_state
        self.max_time = max_time
        self.encoder = encoder

    @property
    def default_scoring(self) -> str | None:
        """What the model is scored by where the user names nothing; None is its own score."""
        return DEVIANCES.get(self.family)

    def fit(
        self,
        X: UserRows,
        y: UserTarget = None,
        sample_weight: UserWeights = None,
        offset: UserWeights = None,
        exposure: UserWeights = None,
    ) -> GradientBoostingRegressor:
        """Fit to rows X and target y (arrays, sparse matrices, data frames), or to a scan that carries its target.

        sample_weight: one number per row; weight 2 is the row twice.
        offset: one number per row, added to its score. exposure: one number > 0 per row, whose log is added to the
        offset; y stays a count.
        """
        return self._fit(X, y, sample_weight=sample_weight, offset=offset, exposure=exposure)

    def predict(
        self, X: UserRows, out: OutPath = None, *, offset: UserWeights = None, exposure: UserWeights = None
    ) -> Predictions:
        """E y, or the quantile, for every row. Without an offset or exposure they are 0 and 1: a rate.

        out: a .parquet or .csv file to write them to, in constant memory for a scan; then nothing is returned.
        """
        return self._predict(X, out, offset=offset, exposure=exposure)

    def certify(
        self,
        X: UserRows,
        y: UserTarget = None,
        sample_weight: UserWeights = None,
        offset: UserWeights = None,
        exposure: UserWeights = None,
    ) -> Certificate:
        """The certificate of this model recomputed on data; no solver takes part."""
        return self._certify(X, y, sample_weight=sample_weight, offset=offset, exposure=exposure)

    def staged_predict(self, X: UserRows) -> Iterator[Array]:
        """The prediction after every round."""
        for scores in self._staged_columns(X):
            yield self._mean(scores[:, 0])

    def scores(self, block: Block) -> Array:
        """Predictions of the rows of a block of the source that the model was fitted to."""
        return self._mean(self._raw(block)[:, 0])

    def _mean(self, z: Array) -> Array:
        with np.errstate(over="ignore"):
            return np.exp(z) if FAMILIES[self.family].is_log else np.asarray(z)

    def _answers_of(self, state: BoostingState, columns: Block) -> Array:
        scores = state.scores(columns)[0][:, 0]
        return self._mean(scores if columns.offset is None else scores + np.asarray(columns.offset))

    def _task(self, source: Source, is_fitted: bool = False) -> BoostingTask:
        parameters = (float(self.quantile), float(self.delta), float(self.power))
        return BoostingTask(source, self._settings(source.names), self.family, parameters, 0)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = FAMILIES[self.family].is_log
        return tags


def _by_class(scores: Array) -> Array:
    """A column for every class; z of two classes is that of the second, and 0 of the first."""
    return scores if scores.shape[1] > 1 else np.column_stack([np.zeros(len(scores)), scores])


def _log_chances(scores: Array) -> Array:
    if scores.shape[1] > 2:
        return np.asarray(log_softmax(scores, axis=1))
    return np.column_stack([log_expit(-scores[:, -1]), log_expit(scores[:, -1])])
