"""Random forests of classes and of numbers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from certifit.data.columns import Array
from certifit.data.source import Block, Source
from certifit.data.user_input import UserRows
from certifit.maps import UserEncoder
from certifit.minimise.problem import Run
from certifit.minimise.steps import timed
from certifit.models.classifier import Classifier
from certifit.models.estimator import Regressor, TaskEstimator
from certifit.models.forest.certificate import ForestCertificate, certify
from certifit.models.forest.solver import grow
from certifit.models.forest.state import ForestSettings, ForestState, ForestTask
from certifit.models.trees.columns import Categories, categories_of, column_rules
from certifit.models.trees.task import Stops, refuse_infinite


class ForestModel(TaskEstimator[ForestTask, ForestState]):
    """What forests of classes and of numbers share."""

    _piece_rows = 1 << 20  # the core makes its trees ready once per piece

    n_estimators: int
    max_features: str | float | int | None
    max_depth: int | None
    min_samples_split: int
    min_samples_leaf: int
    max_bins: int
    random_state: int
    categorical_features: Categories
    certificate_: ForestCertificate
    forest_: ForestState

    @property
    def _takes_levels(self) -> bool:
        return True

    @property
    def feature_importances_(self) -> Array:
        """The mean over trees of the share of all decreases of the impurity that each column brought."""
        check_is_fitted(self)
        return self.forest_.importances()

    @property
    def oob_error_(self) -> float | None:
        """The error on rows that at least 10 trees did not draw: the share of wrong classes, or the mean square."""
        check_is_fitted(self)
        return self.certificate_.out_of_bag

    @property
    def oob_interval_(self) -> tuple[float | None, float | None]:
        """A 95 % interval for the out-of-bag error."""
        check_is_fitted(self)
        return self.certificate_.low, self.certificate_.high

    def _means(self, block: Block) -> Array:
        """The mean over trees for the rows of a block of the source that the model was fitted to."""
        width = self.forest_.values.shape[1]
        if block.X.shape[0] == 0:
            return np.zeros((0, width))
        columns = replace(block, X=self.columns_of(block), y=None, weight=None)
        means, is_finite = self.forest_.means(columns)
        if not is_finite:
            refuse_infinite(columns, self.column_names_)
        return means

    def _settings(self, names: list[str]) -> ForestSettings:
        columns = column_rules(None, categories_of(self), names)
        stops = Stops(self.max_depth, int(self.min_samples_split), int(self.min_samples_leaf))
        return ForestSettings(
            int(self.n_estimators), self.max_features, int(self.max_bins), int(self.random_state), stops,
            columns,
        )  # fmt: skip

    def _solve(self, task: ForestTask) -> Run[ForestState]:
        return grow(task)

    def _keep(self, task: ForestTask, run: Run[ForestState]) -> None:
        self.forest_ = run.state
        self.history_ = timed(run.state.history(), run.history)

    def _state(self) -> ForestState:
        return self.forest_

    def _stated(self) -> dict[str, object]:
        return {"n_trees": self.forest_.n_trees}

    def _certified(self, task: ForestTask, state: ForestState) -> ForestCertificate:
        return certify(task, state)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


class RandomForestClassifier(ForestModel, Classifier[ForestTask, ForestState]):
    """The mean of trees, each grown on its own draws of the rows, every node trying some of the columns.

    p(k | x) = mean over trees of the share of class k in the leaf of x; the class of the largest mean is predicted

    certificate:  the draws of every tree made again, its leaves derived from them; the out-of-bag error with its
    interval. No claim about other forests

    Columns are cut into at most max_bins bins at quantiles of up to 200,000 rows; splits are of the largest decrease of
    the Gini impurity between bins. Rows that are equal in every column and in y are one row with their weights added,
    and rows are numbered by a hash of their values: neither the order of rows nor copies instead of weights change a
    forest. A tree makes as many draws as there are such rows, each with a chance in proportion to the weight: whatever
    the unit of the weights.
    Missing values (NaN) go to the side where they decrease more. Rows beyond the limit of `cf.memory` are read in
    passes.

    Parameters
    ----------
    n_estimators : int >= 1, default 100
        Number of trees.
    max_features : "sqrt", "log2", int >= 1, float in (0, 1] or None, default "sqrt"
        Columns that a node tries: a number, or a share of all; None is all. Those that are constant in the node do not
        count.
    max_depth, min_samples_split, min_samples_leaf : as for DecisionTreeClassifier
    max_bins : int from 2 to 255, default 255
    random_state : int >= 0, default 0
    categorical_features : names or numbers of columns, or None, default None
        Columns of codes 0, 1, ..., at most 254, whose order means nothing: a split sends a set of levels left.
    max_time : float > 0 or None, default None
        Seconds after which no further tree begins. The trees grown are kept and not certified as a whole.
    encoder : as for LinearRegression

    Attributes
    ----------
    classes_ : the labels, sorted
    forest_ : the nodes of all trees as arrays (certifit.models.forest.state)
    feature_importances_ : the mean share of a tree's decreases that each column brought
    oob_error_, oob_interval_ : the share of wrong classes on rows that at least 10 trees did not draw, and a 95 %
        interval for it; None where such rows hold less than 95 % of the weight
    history_ : every tree with its leaves
    certificate_ : see above

    >>> import numpy as np
    >>> import certifit as cf
    >>> X = np.random.default_rng(0).normal(size=(500, 2))
    >>> model = cf.RandomForestClassifier(50).fit(X, X[:, 0] * X[:, 1] > 0)
    >>> model.certificate_.holds, model.oob_error_ < 0.1
    (True, True)
    """

    def __init__(
        self,
        n_estimators: int = 100,
        *,
        max_features: str | float | int | None = "sqrt",
        max_depth: int | None = None,
        min_samples_split: int = 2,
        min_samples_leaf: int = 1,
        max_bins: int = 255,
        random_state: int = 0,
        categorical_features: Categories = None,
        max_time: float | None = None,
        encoder: UserEncoder = None,
    ) -> None:
        self.n_estimators = n_estimators
        self.max_features = max_features
        self.max_depth = max_depth
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.max_bins = max_bins
        self.random_state = random_state
        self.categorical_features = categorical_features
        self.max_time = max_time
        self.encoder = encoder

    def predict_proba(self, X: UserRows) -> Array:
        """The mean over trees of the shares of the classes, in the order of classes_."""
        return self._whole(X, self._means)

    def predict_log_proba(self, X: UserRows) -> Array:
        """log p(k | x); minus infinity of a class that no tree's leaf has a row of."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def scores(self, block: Block) -> Array:
        """log p(k | x) for the rows of a block of the source that the model was fitted to."""
        with np.errstate(divide="ignore"):
            return np.log(self._means(block))

    def mapped_scores(self, columns: Block) -> Array:
        """log p(k | x) of mapped rows, but for what is equal for all classes of a row."""
        with np.errstate(divide="ignore"):
            return np.log(self.forest_.means(columns)[0])

    def _log_posterior(self, block: Block) -> Array:
        return self.scores(block)

    def _task(self, source: Source, is_fitted: bool = False) -> ForestTask:
        return ForestTask(source, self._settings(list(source.names)), len(self.classes_))


class RandomForestRegressor(ForestModel, Regressor[ForestTask, ForestState]):
    """The mean of regression trees, each grown on its own draws of the rows.

    prediction = mean over trees of the mean of y in the leaf of x; splits lower the squared error

    Everything else is as for RandomForestClassifier, but that a node tries all columns by default.

    Parameters
    ----------
    n_estimators, max_features, max_depth, min_samples_split, min_samples_leaf, max_bins, random_state,
    categorical_features, max_time, encoder :
        as for RandomForestClassifier; max_features is 1.0 by default, all columns

    Attributes
    ----------
    forest_, feature_importances_, certificate_ : as for RandomForestClassifier
    oob_error_, oob_interval_ : the mean squared error on the same rows, and a 95 % interval for it

    >>> import numpy as np
    >>> import certifit as cf
    >>> X = np.random.default_rng(0).normal(size=(500, 2))
    >>> model = cf.RandomForestRegressor(50).fit(X, np.sin(X[:, 0]) + X[:, 1])
    >>> model.certificate_.holds, model.oob_error_ < 0.1
    (True, True)
    """

    def __init__(
        self,
        n_estimators: int = 100,
        *,
        max_features: str | float | int | None = 1.0,
        max_depth: int | None = None,
        min_samples_split: int = 2,
        min_samples_leaf: int = 1,
        max_bins: int = 255,
        random_state: int = 0,
        categorical_features: Categories = None,
        max_time: float | None = None,
        encoder: UserEncoder = None,
    ) -> None:
        self.n_estimators = n_estimators
        self.max_features = max_features
        self.max_depth = max_depth
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.max_bins = max_bins
        self.random_state = random_state
        self.categorical_features = categorical_features
        self.max_time = max_time
        self.encoder = encoder

    def scores(self, block: Block) -> Array:
        """The mean over trees for the rows of a block of the source that the model was fitted to."""
        return np.ascontiguousarray(self._means(block)[:, 0])

    def _task(self, source: Source, is_fitted: bool = False) -> ForestTask:
        return ForestTask(source, self._settings(list(source.names)))
