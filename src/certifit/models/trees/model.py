"""Decision trees of classes and of numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Literal

import numpy as np
import scipy.sparse as sp
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from certifit.data.columns import Array
from certifit.data.source import Block, Source
from certifit.data.user_input import UserRows, UserTarget, UserWeights
from certifit.maps import UserEncoder
from certifit.minimise.problem import Run
from certifit.models.classifier import Classifier
from certifit.models.estimator import Regressor, TaskEstimator
from certifit.models.folds import Grid, Rounds, RowFolds
from certifit.models.trees.certificate import TreeCertificate, certify
from certifit.models.trees.columns import Categories, Directions, categories_of, column_rules
from certifit.models.trees.contributions import Contributions, WeightedTrees, contributions_of
from certifit.models.trees.folds import StagedState, staged_folds
from certifit.models.trees.optimal import DEEPEST, SearchGrid
from certifit.models.trees.pruning import PruningPath, pruning_path
from certifit.models.trees.solver import UNLIMITED, full_tree, grow, stopped
from certifit.models.trees.state import SplitHistory, TreeState
from certifit.models.trees.task import Splitting, Stops, TreeTask, refuse_infinite
from certifit.models.trees.words import path_in_words, rules
from certifit.statistics.cell_sums import Store

# Parameters that only a greedy search has, and their defaults.
GREEDY: dict[str, float | None] = {"min_samples_split": 2, "min_impurity_decrease": 0.0, "ccp_alpha": 0.0}
GREEDY |= dict.fromkeys(("max_leaf_nodes", "max_bins", "monotonic_cst", "categorical_features"))
DEPTHS = (1, 2, 3, 4, 5, 6, 8, 10, 13, 17)  # that folds choose from


class TreeModel(TaskEstimator[TreeTask, TreeState]):
    """What trees of classes and of numbers share."""

    criterion: str
    max_depth: int | None
    min_samples_split: int
    min_samples_leaf: int
    min_impurity_decrease: float
    max_leaf_nodes: int | None
    ccp_alpha: float
    search: str
    n_thresholds: int
    max_nodes: int
    max_bins: int | None
    monotonic_cst: Directions
    categorical_features: Categories
    certificate_: TreeCertificate
    tree_: TreeState
    shares = ("max_depth", "max_leaf_nodes", "ccp_alpha")
    _edges: list[Array] | None = None  # of bins that folds share

    @property
    def _takes_levels(self) -> bool:
        return self.search == "greedy"  # the grid of the best tree asks for one level against the rest

    def folds(self, source: Source, rounds: Rounds, grid: Grid, shared: Store) -> RowFolds | None:
        """One tree per training set for all depths, numbers of leaves and strengths of pruning.

        Bins are cut once, at quantiles of all rows, and shared by the training sets; through an encoder, whose columns
        differ between them, each has its own.
        """
        return None if self.search == "optimal" else staged_folds(self, source, rounds, grid)

    def shared_edges(self, source: Source) -> list[Array] | None:
        """The edges of bins that the training sets of folds share."""
        if self.max_bins is None or self.encoder is not None or source.is_table:
            return None
        return self._task(self.fit_maps(source)).edges

    def fold_states(self, source: Source, stages: Sequence[TreeModel]) -> list[StagedState]:
        """What the stages, copies with other stops, are after one tree is grown to these rows."""
        task = self._task(self.fit_maps(source))
        depths = [stage.max_depth for stage in stages if stage.max_depth is not None]
        tree = full_tree(task, max(depths) if len(depths) == len(stages) else UNLIMITED)
        answer = log_shares if task.n_classes else means
        return [StagedState(partial(answer, stopped(tree, stage._stops())), self) for stage in stages]

    def candidates(self, source: Source) -> list[dict[str, int | None]]:
        """Depths worth trying where the user names none."""
        return [{"max_depth": depth} for depth in (DEPTHS[:3] if self.search == "optimal" else DEPTHS)]

    @property
    def feature_importances_(self) -> Array:
        """The share of all decreases of the impurity that each column brought; zeros of a tree without splits."""
        check_is_fitted(self)
        inner = self.tree_.left > 0
        gains = np.bincount(
            self.tree_.feature[inner], weights=self.tree_.decrease[inner], minlength=len(self.column_names_)
        )
        total = gains.sum()
        return np.asarray(gains / total) if total > 0 else np.zeros(len(gains))

    def get_depth(self) -> int:
        """The most splits between the root and a leaf."""
        check_is_fitted(self)
        return int(self.tree_.depths.max())

    def get_n_leaves(self) -> int:
        """The number of leaves."""
        check_is_fitted(self)
        return self.tree_.n_leaves

    def apply(self, X: UserRows) -> Array:
        """The number of the leaf of every row."""
        parts = list(self._each(X, self.leaves))
        return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)

    def decision_path(self, X: UserRows) -> sp.csr_array:
        """Rows x nodes, 1 for every node on the way of a row from the root to its leaf."""
        paths = [self.tree_.path_of(int(leaf)) for leaf in self.apply(X)]
        ends = np.cumsum([0, *map(len, paths)])
        nodes = np.concatenate([np.zeros(0, dtype=np.int64), *paths]).astype(np.int64)
        return sp.csr_array((np.ones(len(nodes)), nodes, ends), shape=(len(paths), self.tree_.n_nodes))

    def explain(self, X: UserRows) -> list[str]:
        """The way of every row to its leaf, in words."""
        names, labels = self._names(), self._answers()
        return [path_in_words(self.tree_, int(leaf), names, labels, self._codes()) for leaf in self.apply(X)]

    def contributions(self, X: UserRows) -> Contributions:
        """How much each column of a row moves its mean, or its shares of the classes, away from the root's: exact sums.

        Shapley values of columns in the path-dependent form (certifit.models.trees.contributions).
        """
        check_is_fitted(self)
        tree, is_of_classes = self.tree_, hasattr(self, "classes_")
        values = tree.values.reshape(tree.n_nodes, -1)
        values = values / values.sum(axis=1, keepdims=True) if is_of_classes else values
        sets = None if tree.n_levels is None else tree.sets
        trees = WeightedTrees(
            np.array([0, tree.n_nodes]), tree.feature, tree.left, tree.threshold, tree.is_missing_left, tree.n_levels,
            sets, tree.weight, np.ascontiguousarray(values), values.shape[1],
        )  # fmt: skip
        return contributions_of(self, trees, X, 0.0, "probability" if is_of_classes else "prediction")

    def rules(self, max_depth: int | None = None) -> str:
        """The tree as text, a line for each condition and each leaf. max_depth: levels that are shown."""
        check_is_fitted(self)
        return rules(self.tree_, self._names(), self._answers(), self._codes(), max_depth)

    def cost_complexity_pruning_path(
        self, X: UserRows, y: UserTarget = None, sample_weight: UserWeights = None
    ) -> PruningPath:
        """All alphas at which pruning takes another subtree of the tree that is grown to these rows."""
        if self.search == "optimal":
            raise ValueError("The best tree of a depth is not pruned. Use search='greedy' for a pruning path.")
        probe = self.reader() if hasattr(self, "column_names_") else self
        probe._check_parameters()
        source = probe._gate(X, y, sample_weight=sample_weight)
        probe._begin(source)
        task = probe._task(probe.fit_maps(source))
        tree = full_tree(task, UNLIMITED if task.stops.max_depth is None else task.stops.max_depth)
        most = task.stops.max_leaf_nodes
        return pruning_path(tree if most is None else tree.best_first(most))

    def leaves(self, block: Block) -> Array:
        """The leaf of every row of a block of the source that the model was fitted to."""
        if block.X.shape[0] == 0:
            return np.zeros(0, dtype=np.int64)
        columns = replace(block, X=self.columns_of(block), y=None, weight=None)
        walked = self.tree_.walk(columns)
        if not walked.is_finite:
            refuse_infinite(columns, self.column_names_)
        return walked.leaves

    def _names(self) -> list[str]:
        return self.column_names_

    def _codes(self) -> dict[str, list[str]]:
        """What the codes of categories stand for, of columns that an encoder coded."""
        return {} if self.encoder_ is None else self.encoder_.coded_

    def _answers(self) -> list[str]:
        """What each node would answer, in words."""
        raise NotImplementedError

    def _stops(self) -> Stops:
        return Stops(
            self.max_depth,
            self.min_samples_split,
            self.min_samples_leaf,
            self.min_impurity_decrease,
            self.max_leaf_nodes,
            self.ccp_alpha,
        )

    def _grid(self) -> SearchGrid | None:
        """Where the best tree is searched for; None: the search is greedy."""
        grid = SearchGrid(self.n_thresholds, self.max_nodes)
        if self.search == "greedy":
            return None
        if self.max_depth is None or self.max_depth > DEEPEST:
            raise ValueError(f"search='optimal' needs max_depth from 1 to {DEEPEST}. Got {self.max_depth}.")
        for name, default in GREEDY.items():
            asked = getattr(self, name)
            if asked is not default and (default is None or asked != default):
                raise ValueError(
                    f"{name} is of a greedy search; search='optimal' has none. Got {getattr(self, name)!r}. "
                    f"Leave it at {default!r}."
                )
        return grid

    def certify(
        self, X: UserRows, y: UserTarget = None, sample_weight: UserWeights = None, against: str | None = None
    ) -> TreeCertificate:
        """The certificate of this tree recomputed on data; its solver takes no part.

        against: "optimal" also states how small the loss of any tree of this depth can be; needs a depth of 1 to 4.
        """
        check_is_fitted(self)
        if against not in (None, "optimal"):
            raise ValueError(f"The parameter against must be 'optimal' or None. Got {against!r}.")
        task = self._task_on(X, y, sample_weight=sample_weight)
        if against == "optimal" and categories_of(self) is not None:
            raise ValueError("against='optimal' bounds trees of thresholds, and this one splits categories by sets.")
        if against == "optimal" and task.is_greedy:
            task.grid = SearchGrid(self.n_thresholds, self.max_nodes)
        return certify(task, self.tree_, against_best=against == "optimal")

    def _warnings(self, task: TreeTask, run: Run[TreeState]) -> list[str]:
        proof = self.certificate_
        if task.is_greedy or not proof.holds or proof.is_closed:
            return super()._warnings(task, run)
        advice = f"Raise max_nodes, now {self.max_nodes:,}."
        if (proof.n_searched or 0) < self.max_nodes:
            advice = "More search tells no more: weights or targets are so far apart that sums round coarsely."
        return [f"Not proven to be the best tree. {proof.sentences()[-1]} {advice}"]

    def _splitting(self, source: Source) -> Splitting:
        rules = column_rules(self.monotonic_cst, categories_of(self), list(source.names))
        return Splitting(self.max_bins, rules, self._edges)

    def _solve(self, task: TreeTask) -> Run[TreeState]:
        return grow(task)

    def _keep(self, task: TreeTask, run: Run[TreeState]) -> None:
        self.tree_ = run.state
        self.history_ = SplitHistory(run.state, tuple(self.column_names_))

    def _state(self) -> TreeState:
        return self.tree_

    def _certified(self, task: TreeTask, state: TreeState) -> TreeCertificate:
        return certify(task, state)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


class DecisionTreeClassifier(TreeModel, Classifier[TreeTask, TreeState]):
    """A tree of questions x_j <= t that ends in the shares of the classes.

    grown: every node takes the split (j, t) of the largest decrease of the weighted impurity of its two sides

        gini     1 - sum_k p_k^2          entropy   - sum_k p_k log2 p_k          p_k: shares of the classes in the node

    certificate:  values, impurities and decreases derived again from the rows; greedy, no claim about other trees

    All thresholds are tried, halfway between neighbouring values of the node's rows. Decreases that differ by less than
    1e-12 of the node's impurity are equal: the lowest column, then the lowest threshold is taken. An impure node is
    split even where nothing decreases, as the root of XOR. The class of a leaf is the one of most weight, the first of
    equal ones. Missing values (NaN) go to the side where they decrease more, the right one of equal sides; where a node
    saw none, to the side of more rows. All rows are held in memory; with max_bins, rows beyond the limit of `cf.memory`
    are read in passes. The tree does not depend on the order of the rows, and a monotone change of a column changes
    thresholds only.

    Parameters
    ----------
    criterion : "gini" or "entropy", default "gini"
        The entropy is in bits: its logarithm is that to the base 2.
    max_depth : int >= 1 or None, default None
        Most splits between the root and a leaf.
    min_samples_split, min_samples_leaf : int, default 2 and 1
        Fewest rows of a node that is split, and of a leaf. Rows that are equal in every column and in y count once,
        so that weight 2 is the row twice; scikit-learn counts them all.
    min_impurity_decrease : float >= 0, default 0.0
        Least decrease of a split, times the node's share of all weight.
    max_leaf_nodes : int >= 2 or None, default None
        Most leaves; the leaf of the largest decrease is split first.
    ccp_alpha : float >= 0, default 0.0
        Prune to the smallest subtree that minimises impurity + ccp_alpha x number of leaves.
    search : "greedy" or "optimal", default "greedy"
        "optimal" finds the tree of the least share of wrong rows among all trees of max_depth (1 to 4) on a grid of
        thresholds, and proves it; the criterion then only measures impurities and importances (docs/best_tree.md).
    n_thresholds : int from 1 to 254, default 32
        Thresholds of the grid in a column of more than 64 different values, at quantiles; other columns have all.
    max_nodes : int >= 1, default 5000
        Most subsets of the rows that a search of depth 3 or 4 looks at. Where they do not do, the certificate says how
        far from the best the tree can be.

    max_bins : int from 2 to 255 or None, default None
        Cut every column into so many bins at quantiles of up to 200,000 rows, and try thresholds between bins only: for
        large data. None tries all thresholds.
    monotonic_cst : one of -1, 0, 1 for each column, a dict of them by name, or None, default None
        1: no answer falls as the column grows; -1: none rises. Of two classes the answer is the share of the second.
        Splits that break it are not taken.
    categorical_features : names or numbers of columns, or None, default None
        Columns of codes 0 to 254 of levels without an order. A split sends a set of levels left: of numbers and of two
        classes the best set; of K classes the best of those that are ordered by the share of one class. A level that a
        node did not see goes where more of its rows go, one that the fit did not see where missing values go.
    encoder : as for LinearRegression

    Attributes
    ----------
    classes_ : the labels, sorted
    tree_ : the nodes as arrays (certifit.models.trees.state)
    feature_importances_ : the share of all decreases that each column brought
    history_ : every split with its decrease
    certificate_ : see above

    >>> import certifit as cf
    >>> X = [[0, 0], [0, 1], [1, 0], [1, 1]]
    >>> model = cf.DecisionTreeClassifier().fit(X, ["same", "other", "other", "same"])
    >>> print(model.rules())
    if x0 <= 0.5
      if x1 <= 0.5: same (1 of 1)
      else: other (1 of 1)
    else
      if x1 <= 0.5: other (1 of 1)
      else: same (1 of 1)
    """

    def __init__(
        self,
        *,
        criterion: Literal["gini", "entropy"] = "gini",
        max_depth: int | None = None,
        min_samples_split: int = 2,
        min_samples_leaf: int = 1,
        min_impurity_decrease: float = 0.0,
        max_leaf_nodes: int | None = None,
        ccp_alpha: float = 0.0,
        search: Literal["greedy", "optimal"] = "greedy",
        n_thresholds: int = 32,
        max_nodes: int = 5000,
        max_bins: int | None = None,
        monotonic_cst: Directions = None,
        categorical_features: Categories = None,
        encoder: UserEncoder = None,
    ) -> None:
        self.criterion = criterion
        self.max_depth = max_depth
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.min_impurity_decrease = min_impurity_decrease
        self.max_leaf_nodes = max_leaf_nodes
        self.ccp_alpha = ccp_alpha
        self.search = search
        self.n_thresholds = n_thresholds
        self.max_nodes = max_nodes
        self.max_bins = max_bins
        self.monotonic_cst = monotonic_cst
        self.categorical_features = categorical_features
        self.encoder = encoder

    def predict_proba(self, X: UserRows) -> Array:
        """The shares of the classes in the leaf of every row, in the order of classes_."""
        return self._whole(X, self._shares)

    def predict_log_proba(self, X: UserRows) -> Array:
        """log p(k | x); minus infinity of a class that the leaf has no row of."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def scores(self, block: Block) -> Array:
        """log p(k | x) for the rows of a block of the source that the model was fitted to."""
        with np.errstate(divide="ignore"):
            return np.log(self._shares(block))

    def _shares(self, block: Block) -> Array:
        tree = self.tree_
        leaves = self.leaves(block)
        return np.asarray(tree.values[leaves] / tree.weight[leaves, None])

    def mapped_scores(self, columns: Block) -> Array:
        """log p(k | x) of mapped rows, but for what is equal for all classes of a row."""
        return log_shares(self.tree_, columns)

    def _log_posterior(self, block: Block) -> Array:
        return self.scores(block)

    def _task(self, source: Source, is_fitted: bool = False) -> TreeTask:
        return TreeTask(
            source, self.criterion, self._stops(), len(self.classes_), self._grid(), self._splitting(source)
        )

    def _answers(self) -> list[str]:
        tree = self.tree_
        modes = tree.values.argmax(axis=1)
        pairs = zip(self.classes_[modes], tree.values.max(axis=1), tree.weight, strict=True)
        return [f"{label} ({most:.6g} of {total:.6g})" for label, most, total in pairs]


class DecisionTreeRegressor(TreeModel, Regressor[TreeTask, TreeState]):
    """A tree of questions x_j <= t that ends in the mean of the targets.

    grown: every node takes the split (j, t) of the largest decrease of the weighted impurity of its two sides

        squared_error   mean of (y - mean)^2            poisson   mean of y log(y / mean), for y >= 0

    certificate:  values, impurities and decreases derived again from the rows; greedy, no claim about other trees

    With poisson no leaf has mean 0. Everything else is as for DecisionTreeClassifier.

    Parameters
    ----------
    criterion : "squared_error" or "poisson", default "squared_error"
    max_depth, min_samples_split, min_samples_leaf, min_impurity_decrease, max_leaf_nodes, ccp_alpha, search,
    n_thresholds, max_nodes, max_bins, monotonic_cst, categorical_features, encoder :
        as for DecisionTreeClassifier; search="optimal" minimises the mean squared error

    Attributes
    ----------
    tree_, feature_importances_, history_, certificate_ : as for DecisionTreeClassifier

    >>> import certifit as cf
    >>> model = cf.DecisionTreeRegressor(max_depth=1).fit([[1], [2], [5], [6]], [3.0, 4.0, 10.0, 11.0])
    >>> print(model.rules())
    if x0 <= 3.5: 3.5 (of 2)
    else: 10.5 (of 2)
    """

    def __init__(
        self,
        *,
        criterion: Literal["squared_error", "poisson"] = "squared_error",
        max_depth: int | None = None,
        min_samples_split: int = 2,
        min_samples_leaf: int = 1,
        min_impurity_decrease: float = 0.0,
        max_leaf_nodes: int | None = None,
        ccp_alpha: float = 0.0,
        search: Literal["greedy", "optimal"] = "greedy",
        n_thresholds: int = 32,
        max_nodes: int = 5000,
        max_bins: int | None = None,
        monotonic_cst: Directions = None,
        categorical_features: Categories = None,
        encoder: UserEncoder = None,
    ) -> None:
        self.criterion = criterion
        self.max_depth = max_depth
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.min_impurity_decrease = min_impurity_decrease
        self.max_leaf_nodes = max_leaf_nodes
        self.ccp_alpha = ccp_alpha
        self.search = search
        self.n_thresholds = n_thresholds
        self.max_nodes = max_nodes
        self.max_bins = max_bins
        self.monotonic_cst = monotonic_cst
        self.categorical_features = categorical_features
        self.encoder = encoder

    def scores(self, block: Block) -> Array:
        """The mean of the leaf of every row of a block of the source that the model was fitted to."""
        return np.asarray(self.tree_.values[self.leaves(block)], dtype=np.float64)

    def _task(self, source: Source, is_fitted: bool = False) -> TreeTask:
        return TreeTask(source, self.criterion, self._stops(), 0, self._grid(), self._splitting(source))

    def _answers(self) -> list[str]:
        tree = self.tree_
        return [f"{mean:.6g} (of {total:.6g})" for mean, total in zip(tree.values, tree.weight, strict=True)]


def log_shares(tree: TreeState, columns: Block) -> Array:
    """log of the shares of the classes in the leaves of mapped rows."""
    leaves = tree.walk(columns).leaves
    with np.errstate(divide="ignore"):
        return np.log(tree.values[leaves] / tree.weight[leaves, None])


def means(tree: TreeState, columns: Block) -> Array:
    """The means of the leaves of mapped rows."""
    return np.asarray(tree.values[tree.walk(columns).leaves])
