"""AdaBoost of regression trees."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Literal

import numpy as np
from sklearn.base import clone
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from certifit.data.columns import Array
from certifit.data.source import Block, Source
from certifit.data.user_input import UserRows
from certifit.maps import UserEncoder
from certifit.minimise.problem import Run
from certifit.minimise.steps import timed
from certifit.models.adaboost_r2.certificate import MedianCertificate, certify
from certifit.models.adaboost_r2.solver import boost
from certifit.models.adaboost_r2.state import MedianTask, TreeMedian
from certifit.models.estimator import Regressor
from certifit.models.folds import Grid, Rounds, RowFolds
from certifit.models.trees.folds import StagedState, staged_folds
from certifit.models.trees.task import refuse_infinite
from certifit.statistics.cell_sums import Store

ROUNDS = (5, 10, 25, 50, 100)  # that folds choose from


class AdaBoostRegressor(Regressor[MedianTask, TreeMedian]):
    """The weighted median of regression trees, each grown with more weight on rows that the ones before fit badly (R2).

    round j:  f_j = the greedy tree of at most max_depth levels for the squared error, by the weights of the rows
              L_i = loss(|y_i - f_j(x_i)| / largest such residual):   linear u,   square u^2,   exponential 1 - e^-u
              error_j = sum_i weight_i L_i, of weights that add up to 1
              alpha_j = learning_rate log((1 - error_j) / error_j)
              weights are multiplied by e^(-alpha_j (1 - L_i))

    predicted:  the median of f_1(x), f_2(x), ... with weights alpha_1, alpha_2, ...: the smallest that reaches half

    certificate:  every round derived again from the rows; no bound on the error is known

    Rounds end early at an exact tree, whose weight is that of all before it, and before a tree with error_j >= 1/2. A
    first tree of either kind predicts alone. Trees use the weights themselves; scikit-learn draws rows by them, and its
    result changes with its random_state. Rows that are equal in every column and in y are one row with their weights
    added. Missing values (NaN) go to the side where they decrease more. All rows are held in memory.

    Parameters
    ----------
    n_estimators : int >= 1, default 50
        Most rounds.
    learning_rate : float > 0, default 1.0
        Multiplies every alpha.
    loss : "linear", "square" or "exponential", default "linear"
    max_depth, min_samples_leaf : int >= 1, default 3 and 1
        Of the trees.
    max_time : as for AdaBoostClassifier
    encoder : as for LinearRegression

    Attributes
    ----------
    median_ : the trees as arrays (certifit.models.adaboost_r2.state)
    estimator_weights_, estimator_errors_ : alpha and error of every round
    history_ : every round: leaves, error, alpha
    certificate_ : see above

    >>> import numpy as np
    >>> import certifit as cf
    >>> X = np.linspace(0, 6, 200)[:, None]
    >>> model = cf.AdaBoostRegressor(20).fit(X, np.sin(X[:, 0]))
    >>> model.certificate_.holds, model.score(X, np.sin(X[:, 0])) > 0.95
    (True, True)
    """

    certificate_: MedianCertificate
    median_: TreeMedian
    shares = ("n_estimators",)
    _edges: list[Array] | None = None

    def __init__(
        self,
        n_estimators: int = 50,
        *,
        learning_rate: float = 1.0,
        loss: Literal["linear", "square", "exponential"] = "linear",
        max_depth: int = 3,
        min_samples_leaf: int = 1,
        max_time: float | None = None,
        encoder: UserEncoder = None,
    ) -> None:
        self.n_estimators = n_estimators
        self.learning_rate = learning_rate
        self.loss = loss
        self.max_depth = max_depth
        self.min_samples_leaf = min_samples_leaf
        self.max_time = max_time
        self.encoder = encoder

    def folds(self, source: Source, rounds: Rounds, grid: Grid, shared: Store) -> RowFolds | None:
        """One boosting per training set for all numbers of rounds."""
        return staged_folds(self, source, rounds, grid)

    def shared_edges(self, source: Source) -> None:
        """All thresholds are tried: there are no bins."""

    def fold_states(self, source: Source, stages: Sequence[AdaBoostRegressor]) -> list[StagedState]:
        """What the stages, copies with other numbers of rounds, are after one boosting of these rows."""
        whole = clone(self).set_params(n_estimators=max(stage.n_estimators for stage in stages))
        state = boost(whole._task(whole.fit_maps(source))).state
        return [StagedState(partial(_medians, state.part(stage.n_estimators)), whole) for stage in stages]

    def candidates(self, source: Source) -> list[dict[str, int]]:
        """Numbers of rounds worth trying where the user names none."""
        return [{"n_estimators": n_rounds} for n_rounds in ROUNDS]

    @property
    def estimator_weights_(self) -> Array:
        """alpha of every round."""
        check_is_fitted(self)
        return self.median_.alpha

    @property
    def estimator_errors_(self) -> Array:
        """The mean loss of every round."""
        check_is_fitted(self)
        return self.median_.error

    def staged_predict(self, X: UserRows) -> Iterator[Array]:
        """The predictions after every round."""
        check_is_fitted(self)
        answers = np.concatenate(list(self._each(X, self._all_answers)))
        for n_rounds in range(1, self.median_.n_rounds + 1):
            yield self.median_.part(n_rounds).median(answers[:, :n_rounds])

    def scores(self, block: Block) -> Array:
        """The weighted median for the rows of a block of the source that the model was fitted to."""
        if block.X.shape[0] == 0:
            return np.zeros(0)
        columns = replace(block, X=self.columns_of(block), y=None, weight=None)
        predictions, is_finite = self.median_.predict(columns)
        if not is_finite:
            refuse_infinite(columns, self.column_names_)
        return predictions

    def _all_answers(self, block: Block) -> Array:
        columns = replace(block, X=self.columns_of(block), y=None, weight=None)
        answers, is_finite = self.median_.answers(columns)
        if not is_finite:
            refuse_infinite(columns, self.column_names_)
        return answers

    def _task(self, source: Source, is_fitted: bool = False) -> MedianTask:
        return MedianTask(
            source,
            int(self.n_estimators),
            float(self.learning_rate),
            self.loss,
            int(self.max_depth),
            int(self.min_samples_leaf),
        )

    def _solve(self, task: MedianTask) -> Run[TreeMedian]:
        return boost(task)

    def _keep(self, task: MedianTask, run: Run[TreeMedian]) -> None:
        self.median_ = run.state
        self.history_ = timed(run.state.history(), run.history)

    def _state(self) -> TreeMedian:
        return self.median_

    def _stated(self) -> dict[str, object]:
        return {"n_rounds": self.median_.n_rounds}

    def _certified(self, task: MedianTask, state: TreeMedian) -> MedianCertificate:
        return certify(task, state)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


def _medians(state: TreeMedian, columns: Block) -> Array:
    return state.predict(columns)[0]
