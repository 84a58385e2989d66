"""AdaBoost of stumps, of two classes and more."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from certifit.data.columns import Array
from certifit.data.source import Block, Source
from certifit.data.user_input import UserRows, UserTarget, UserWeights
from certifit.maps import UserEncoder
from certifit.minimise.problem import Run
from certifit.minimise.steps import timed
from certifit.models.adaboost.about import rounds_tried
from certifit.models.adaboost.certificate import BoostingCertificate, certify
from certifit.models.adaboost.polish import polished
from certifit.models.adaboost.solver import boost
from certifit.models.adaboost.state import BoostTask, StumpVote
from certifit.models.classifier import Classifier
from certifit.models.folds import Grid, Rounds, RowFolds, log_posterior
from certifit.models.trees.folds import StagedState, staged_folds
from certifit.statistics.cell_sums import Store


class AdaBoostClassifier(Classifier[BoostTask, StumpVote]):
    """A weighted vote of stumps, each of the least error on rows that weigh more where the vote is wrong.

    round j:  f_j = the stump (one column, one threshold, or none) of the least weighted 0-1 error over all of them
              error_j = that error, of weights that add up to 1
              alpha_j = learning_rate (log((1 - error_j) / error_j) + log(K - 1))
              weights of rows that f_j calls wrong are multiplied by e^alpha_j

    certificate:  two classes: training error <= prod_j 2 sqrt(error_j (1 - error_j)), and the margin game (see
    certificate_.sentences(); certify(X, y, polish=True) closes its gap)
                  more classes (SAMME): every round derived again

    Rounds end early at a stump without error, which votes alone with alpha = learning_rate, and where no stump is
    better than chance, error_j >= 1 - 1/K. Of equal errors (to 1e-12) the lowest column, then the lowest threshold is
    taken. A vote of 0 predicts the first class. p(k | x) is the softmax of the votes, for two classes the logistic
    function of their difference; it is not calibrated. scikit-learn's stumps minimise the Gini impurity, not the error.

    Parameters
    ----------
    n_estimators : int >= 1, default 50
        Most rounds.
    learning_rate : float > 0, default 1.0
        Multiplies every alpha.
    max_time : float > 0 or None, default None
        Seconds after which no further round begins. The rounds made are kept and not certified as a whole.
    encoder : as for LinearRegression

    Attributes
    ----------
    classes_ : the labels, sorted
    vote_ : the stumps as arrays (certifit.models.adaboost.state)
    estimator_weights_, estimator_errors_ : alpha and error of every round
    feature_importances_ : the share of all alphas that each column's stumps have
    history_ : every round: column, threshold, error, alpha, training error, and its bound
    certificate_ : see above

    >>> import certifit as cf
    >>> X = [[1.0], [2.0], [3.0], [4.0], [5.0], [6.0]]
    >>> model = cf.AdaBoostClassifier(n_estimators=3).fit(X, [0, 0, 1, 1, 0, 0])
    >>> model.score(X, [0, 0, 1, 1, 0, 0]), [round(float(error), 4) for error in model.estimator_errors_]
    (1.0, [0.3333, 0.25, 0.1667])
    """

    certificate_: BoostingCertificate
    vote_: StumpVote
    shares = ("n_estimators",)
    _edges: list[Array] | None = None

    def __init__(
        self,
        n_estimators: int = 50,
        *,
        learning_rate: float = 1.0,
        max_time: float | None = None,
        encoder: UserEncoder = None,
    ) -> None:
        self.n_estimators = n_estimators
        self.learning_rate = learning_rate
        self.max_time = max_time
        self.encoder = encoder

    def folds(self, source: Source, rounds: Rounds, grid: Grid, shared: Store) -> RowFolds | None:
        """One vote per training set for all numbers of rounds."""
        return staged_folds(self, source, rounds, grid)

    def fold_states(self, source: Source, stages: Sequence[AdaBoostClassifier]) -> list[StagedState]:
        """What the stages, copies with other numbers of rounds, are after one boosting of these rows."""
        whole = clone(self).set_params(n_estimators=max(stage.n_estimators for stage in stages))
        whole.classes_, n_classes = self.classes_, len(self.classes_)
        vote = boost(whole._task(whole.fit_maps(source))).state
        parts = [vote.part(0, stage.n_estimators) for stage in stages]
        return [StagedState(partial(log_chances, part, n_classes), whole) for part in parts]

    def shared_edges(self, source: Source) -> None:
        """Stumps are searched over all thresholds: there are no bins."""

    def candidates(self, source: Source) -> list[dict[str, int]]:
        """Numbers of rounds worth trying where the user names none."""
        return [{"n_estimators": n_rounds} for n_rounds in rounds_tried(getattr(source, "n_rows", None))]

    @property
    def estimator_weights_(self) -> Array:
        """alpha of every round."""
        check_is_fitted(self)
        return self.vote_.alpha

    @property
    def estimator_errors_(self) -> Array:
        """The weighted error of every round."""
        check_is_fitted(self)
        return self.vote_.error

    @property
    def feature_importances_(self) -> Array:
        """The share of all alphas that each column's stumps have; zeros where no stump asks for a column."""
        check_is_fitted(self)
        asks = np.isfinite(self.vote_.threshold)
        sums = np.bincount(self.vote_.feature[asks], weights=self.vote_.alpha[asks], minlength=len(self.column_names_))
        return np.asarray(sums / sums.sum()) if sums.sum() > 0 else np.zeros(len(sums))

    def decision_function(self, X: UserRows) -> Array:
        """The sum of alpha f of two classes, f = -1 or 1; the votes of every class, rows x classes, of more."""
        votes = self._whole(X, self._votes)
        return votes[:, 1] - votes[:, 0] if len(self.classes_) == 2 else votes

    def staged_predict(self, X: UserRows) -> Iterator[Array]:
        """The prediction after every round."""
        for votes in self._staged_votes(X):
            yield np.asarray(self.classes_[votes.argmax(axis=1)])

    def margins(self, X: UserRows, y: UserTarget) -> Array:
        """y sum_j alpha_j f_j(x) / sum_j alpha_j of every row, from -1 to 1; of more classes the lead of its class."""
        codes = self.labelled(X, y).gather().y
        votes = self._whole(X, self._votes)
        rows = np.arange(len(votes))
        of_label = votes[rows, np.asarray(codes, dtype=np.int64)]
        votes[rows, np.asarray(codes, dtype=np.int64)] = -np.inf
        return np.asarray((of_label - votes.max(axis=1)) / max(float(self.vote_.alpha.sum()), np.finfo(float).tiny))

    def _staged_votes(self, X: UserRows) -> Iterator[Array]:
        check_is_fitted(self)
        votes = np.zeros((0, len(self.classes_)))
        for j in range(self.vote_.n_rounds):
            of_round = self._whole(X, partial(self._votes, vote=self.vote_.part(j, j + 1)))
            votes = of_round if j == 0 else votes + of_round
            yield votes

    def _votes(self, block: Block, vote: StumpVote | None = None) -> Array:
        chosen = self.vote_ if vote is None else vote
        return self._finite(block, lambda columns: _finite_votes(chosen, columns, len(self.classes_)))

    def mapped_scores(self, columns: Block) -> Array:
        """log p(k | x) of mapped rows, but for what is equal for all classes of a row."""
        return _vote_scores(self.vote_, len(self.classes_), columns)

    def _task(self, source: Source, is_fitted: bool = False) -> BoostTask:
        return BoostTask(source, len(self.classes_), int(self.n_estimators), float(self.learning_rate))

    def _solve(self, task: BoostTask) -> Run[StumpVote]:
        return boost(task)

    def _keep(self, task: BoostTask, run: Run[StumpVote]) -> None:
        self.vote_ = run.state
        self.history_ = timed(run.state.history(self.column_names_, len(self.classes_)), run.history)

    def _state(self) -> StumpVote:
        return self.vote_

    def _stated(self) -> dict[str, object]:
        return {"n_rounds": self.vote_.n_rounds}

    def _certified(self, task: BoostTask, state: StumpVote) -> BoostingCertificate:
        return certify(task, state)

    def certify(
        self, X: UserRows, y: UserTarget = None, sample_weight: UserWeights = None, *, polish: bool = False
    ) -> BoostingCertificate:
        """The certificate of this model recomputed on data; no round takes part.

        polish: whether the best margin of any vote is narrowed from both sides by linear programming over the stumps,
        of two classes. `polished` of the certificate is the vote that has it, `polished_margin` its smallest margin.
        """
        check_is_fitted(self)
        if polish and len(self.classes_) > 2:
            raise ValueError(f"polish=True is for two classes; here are {len(self.classes_)}.")
        task = self._task_on(X, y, sample_weight=sample_weight)
        return certify(task, self.vote_, polished(task, self.vote_) if polish else None)


def log_chances(vote: StumpVote, n_classes: int, columns: Block) -> Array:
    """log p(k | x) of mapped rows."""
    return log_posterior(_vote_scores(vote, n_classes, columns))


def _vote_scores(vote: StumpVote, n_classes: int, columns: Block) -> Array:
    """Votes whose softmax are the chances: half the difference of two classes, 1 / (K - 1) of more."""
    votes = _finite_votes(vote, columns, n_classes)
    if n_classes == 2:
        half = (votes[:, 1] - votes[:, 0]) / 2
        return np.column_stack([-half, half])
    return votes / max(n_classes - 1, 1)


def _finite_votes(vote: StumpVote, columns: Block, n_classes: int) -> Array:
    """Votes; NaN where a value of the rows is not finite, which is then named."""
    votes, is_finite = vote.votes(columns, n_classes)
    return votes if is_finite else np.full_like(votes, np.nan)
