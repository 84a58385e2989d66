"""Logistic regression: two classes by the logistic loss, more by softmax.

Softmax regression as part of LogisticRegression: what more than two classes need beside what two have.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from certifit.data.cells import ByLabel, Splits
from certifit.data.columns import Array
from certifit.data.labels import one_type, read_labels
from certifit.data.source import Block, Source
from certifit.data.user_input import OutPath, Predictions, UserLabels, UserRows, UserTarget, UserWeights
from certifit.inference.glm import GlmInference, Multinomial, score_names
from certifit.maps import Basis, UserEncoder
from certifit.mathematics.families.responses import Bernoulli, Response
from certifit.mathematics.losses.scores import Logistic, ScoreLoss
from certifit.minimise.problem import Solver
from certifit.models.certificate import Certificate
from certifit.models.classifier import Classifier, ClassWeight, WeightedClasses
from certifit.models.discriminant.folds import present, trained_classes
from certifit.models.folds import ClassState, EachRow, FoldStates, FoldWeights, Grid, Rounds
from certifit.models.gathered import is_wide
from certifit.models.glm.folds import default_alphas, ridge_alphas, score_folds, sparse_alphas
from certifit.models.glm.information import infer_classes
from certifit.models.glm.scores import GlmModel, learn, learns_by_rows
from certifit.models.glm.softmax_folds import softmax_folds
from certifit.models.glm.softmax_task import GlmOrSoftmaxTask, GlmState, SoftmaxTask, SoftmaxWeights
from certifit.models.glm.sparse_folds import sparse_folds
from certifit.models.lasso.solver import LassoPath
from certifit.models.learner import Told
from certifit.models.least_squares.normal_equations import Weights
from certifit.models.linear import Bounds, PenaltyFactors
from certifit.models.start import Start
from certifit.runtime import core, n_threads
from certifit.statistics.cell_sums import Store
from certifit.statistics.loss_sums import cell_targets
from certifit.statistics.moments import target_sums


def class_scores(columns: Block, coef: Array, intercept: Array) -> Array:
    """b_k + x'w_k of mapped rows, a column per class."""
    parts = [
        core.scores(columns.rows, np.ascontiguousarray(w), float(b), n_threads())
        for w, b in zip(coef, intercept, strict=True)
    ]
    return np.column_stack(parts)


class LogisticRegression(GlmModel, WeightedClasses[GlmOrSoftmaxTask, GlmState], Classifier[GlmOrSoftmaxTask, GlmState]):
    """p(second class | x) = 1 / (1 + e^-z), z = offset + b + x'w; for more classes softmax.

    minimise over w, b:   sum_i weight_i [ log(1 + e^z_i) - y_i z_i ] / sum_i weight_i
                          + alpha sum_j f_j ( l1_ratio |w_j| + (1 - l1_ratio)/2 w_j^2 ),   y_i 0 or 1

    certificate:  self-concordance, relative to the objective; with an L1 penalty or bounds the duality gap

    Parameters
    ----------
    alpha : float >= 0 or None, default None
        Strength of the penalty; None is 1 / sum of weights, scikit-learn's C=1. 0 is maximum likelihood, which has
        standard errors and p-values (`summary`), of more than two classes too.
    l1_ratio : float from 0 to 1, default 0.0
        Share of the L1 penalty: 0 is ridge, 1 the lasso.
    class_weight : dict {label: weight}, "balanced" or None, default None
        Factors of the rows' weights by class; "balanced" gives every class the same sum.
    fit_intercept, penalty_factors, bounds, standardize, solver, start, basis, encoder, tol, step_tol, max_iter,
    max_time :
        as for PoissonRegressor; an array `start` has a row per class where there are more than two. Penalty and
        bounds are those of the weights of every class

    Attributes
    ----------
    classes_ : the labels, sorted
    coef_, intercept_ : of shape (1, columns) and (1,) for two classes, (classes, columns) and (classes,) for more
    alpha_, certificate_, history_, n_iter_, rank_, condition_ : as for Ridge
    weights_ : as for PoissonRegressor; of more than two classes, steps x classes x (columns, then the intercept)

    >>> import numpy as np
    >>> import certifit as cf
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> model = cf.LogisticRegression().fit(X, ["no", "no", "yes", "yes"])
    >>> model.predict([[0.5], [2.5]])
    array(['no', 'yes'], dtype='<U3')
    """

    def __init__(
        self,
        alpha: float | None = None,
        l1_ratio: float = 0.0,
        *,
        fit_intercept: bool = True,
        penalty_factors: PenaltyFactors = None,
        bounds: Bounds = None,
        standardize: bool = False,
        class_weight: ClassWeight = None,
        solver: Solver | str = "auto",
        start: Start = None,
        basis: Basis | None = None,
        encoder: UserEncoder = None,
        tol: float | None = None,
        step_tol: float = 0.0,
        max_iter: int = 1000,
        max_time: float | None = None,
    ) -> None:
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.fit_intercept = fit_intercept
        self.penalty_factors = penalty_factors
        self.bounds = bounds
        self.standardize = standardize
        self.class_weight = class_weight
        self.solver = solver
        self.start = start
        self.basis = basis
        self.encoder = encoder
        self.tol = tol
        self.step_tol = step_tol
        self.max_iter = max_iter
        self.max_time = max_time

    def fit(
        self, X: UserRows, y: UserTarget = None, sample_weight: UserWeights = None, offset: UserWeights = None
    ) -> Self:
        """Fit to rows X and labels y of any type, or to a scan that carries its target.

        sample_weight: one number per row; weight 2 is the row twice. offset: one number per row, added to its score.
        """
        return self._fit(X, y, sample_weight=sample_weight, offset=offset)

    @available_if(learns_by_rows)
    def partial_fit(
        self,
        X: UserRows,
        y: UserTarget = None,
        classes: UserLabels = None,
        sample_weight: UserWeights = None,
        offset: UserWeights = None,
    ) -> Self:
        """One pass over more rows; it goes on from the weights so far. Nothing is certified: `certify` does.

        classes: all labels that there will be, in the first call.
        """
        return self._partial_fit(X, y, classes=classes, sample_weight=sample_weight, offset=offset)

    def predict(self, X: UserRows, out: OutPath = None, *, offset: UserWeights = None) -> Predictions:
        """The most probable class of every row of an array, a frame or a scan. offset: one number per row; none is 0.

        out: a .parquet or .csv file to write them to, in constant memory for a scan; then nothing is returned.
        """
        return self._predict(X, out, offset=offset)

    def predict_proba(self, X: UserRows, *, offset: UserWeights = None) -> Array:
        """p(k | x): rows x classes, in the order of classes_."""
        return np.exp(self.predict_log_proba(X, offset=offset))

    def predict_log_proba(self, X: UserRows, *, offset: UserWeights = None) -> Array:
        """log p(k | x)."""
        return self._whole(X, self._log_posterior, offset=offset)

    def decision_function(self, X: UserRows, *, offset: UserWeights = None) -> Array:
        """The score z of the second class for every row; for more than two classes, of every class."""
        check_is_fitted(self)
        if len(self.classes_) > 2:
            return self._whole(X, self.scores, offset=offset)
        return np.concatenate([*self._each(X, self._row_scores, offset=offset), np.zeros(0)])

    def certify(
        self, X: UserRows, y: UserTarget = None, sample_weight: UserWeights = None, offset: UserWeights = None
    ) -> Certificate:
        """The certificate of this model recomputed on data; no solver takes part."""
        return self._certify(X, y, sample_weight=sample_weight, offset=offset)

    def score(
        self, X: UserRows, y: UserTarget = None, sample_weight: UserWeights = None, offset: UserWeights = None
    ) -> float:
        """The share of rows that are predicted right; of a scan with its own target too."""
        if offset is None:
            return super().score(X, y, sample_weight)
        is_right = self.predict(X, offset=offset) == one_type(np.asarray(read_labels(y)))
        return float(np.average(is_right, weights=None if sample_weight is None else np.asarray(sample_weight)))

    def path(
        self,
        X: UserRows,
        y: UserTarget = None,
        sample_weight: UserWeights = None,
        offset: UserWeights = None,
        *,
        alphas: ArrayLike | None = None,
        n_alphas: int = 100,
    ) -> LassoPath:
        """Solutions along alphas: coef, intercept and the number of columns with a weight of each.

        coef is alphas x columns, intercept one number an alpha; of more than two classes alphas x classes x columns,
        and alphas x classes.

        alphas: by default `n_alphas` of them, evenly spaced on a logarithmic scale, from the least that gives no weight
        down to 1e-3 of it.
        """
        return self._path(X, y, alphas, n_alphas, sample_weight=sample_weight, offset=offset)

    def _add(self, source: Source) -> None:
        if self.class_weight == "balanced":
            raise ValueError("class_weight='balanced' needs all rows at once. Give the weights: {label: weight}.")
        learn(self, source)

    def relative_to(self, label: Hashable) -> tuple[Array, Array]:
        """Weights and intercepts that predict the same with 0 for one class: logarithms of odds against it.

        Adding one vector to the weights of all classes changes no prediction, so k classes have k - 1 rows of weights.
        """
        check_is_fitted(self)
        labels = self.classes_.tolist()
        if label not in labels:
            raise ValueError(f"There is no class {label!r}. The classes are {labels}.")
        coef, intercept = self.coef_, self.intercept_
        if len(labels) == 2:
            coef, intercept = np.vstack([np.zeros_like(coef), coef]), np.append(0.0, intercept)
        place = labels.index(label)
        return coef - coef[place], intercept - intercept[place]

    is_of_classes = True

    def folds(self, source: Source, rounds: Rounds, grid: Grid, shared: Store) -> FoldStates | None:
        """Fits of all candidates to the training rows of all splits, a path for all of them at once.

        None where each is to be fitted by itself, as `softmax_folds` (more than two classes, or more columns than
        rows), `score_folds` and `sparse_folds` (columns too many for a Hessian) say.
        """
        if isinstance(rounds, EachRow) or grid.classes is None:
            return None
        for splits in rounds:
            for split, sums in enumerate(trained_classes(source, len(grid.classes), splits)):
                present(sums, grid.classes, split)
        probe = clone(self)
        probe.classes_ = grid.classes
        if len(grid.classes) > 2:
            return softmax_folds(probe, source, rounds, grid)
        of_rows = softmax_folds(probe, source, rounds, grid) if is_wide(source) else None
        of_columns = score_folds(probe, source, rounds, grid) if of_rows is None else of_rows
        return sparse_folds(probe, source, rounds, grid) if of_columns is None else of_columns

    def shares_folds(self, source: Source, n_classes: int) -> bool:
        """Whether all candidates together cost less than refits of some."""
        return n_classes > 2 or super().shares_folds(source, n_classes) or is_wide(source)

    def fold_state(self, weights: FoldWeights) -> ClassState:
        """The fit to one training set."""
        return ClassState(weights, np.arange(2), 2)

    def training_splits(self, source: Source, splits: Splits) -> Splits:
        """The splits with cells by class, each counted as often as the class's weight on the training set says."""
        if self.class_weight is None:
            return splits
        cells = ByLabel(2, splits.cells)
        sums = splits.train @ cell_targets(source, cells).weight.reshape(-1, 2)
        factors = np.array([self._factors_of(weights) for weights in sums])
        train = splits.train[:, :, None] * factors[:, None, :]
        return Splits(cells, train.reshape(splits.n_splits, -1), np.repeat(splits.validation, 2, axis=1))

    def candidates(self, source: Source) -> list[dict[str, Any]]:
        """Fifty values of alpha where the user names none, of a ridge penalty on many cells fifteen."""
        targets = target_sums(source)
        n_classes = int(targets.high) + 1
        if n_classes <= 2:
            return default_alphas(self, source)
        probe = clone(self)
        probe._check_parameters()
        if float(probe.l1_ratio) > 0:
            probe.classes_ = np.arange(n_classes)
            return sparse_alphas(probe.class_task(probe.fit_maps(source), 1.0))
        # 1/4 is the most that a score of softmax curves
        return ridge_alphas(probe.fit_maps(source).first_block(), 0.25, bool(probe.standardize), targets.n_rows)

    def _loss(self) -> ScoreLoss:
        return Logistic()

    def _told(self) -> Told:
        return replace(super()._told(), n_classes=len(getattr(self, "classes_", (0, 1))))

    def _family(self) -> tuple[Response | Multinomial, str] | None:
        if self.class_weight_ is not None:
            return None
        return (Bernoulli() if len(self.classes_) == 2 else Multinomial()), "logit"

    def _infer(self, task: GlmOrSoftmaxTask, state: GlmState) -> GlmInference | None:
        if not isinstance(task, SoftmaxTask):
            return super()._infer(task, state)
        assert isinstance(state, SoftmaxWeights)
        names = ["intercept"] * int(task.fit_intercept) + list(task.source.names)
        return infer_classes(task, state, self._score_names(names))

    def _score_names(self, names: Sequence[str]) -> list[str]:
        return score_names(self.classes_, names)

    def _ends(self, block: Block, columns: Array, fit: GlmInference, level: float) -> Array:
        if len(self.classes_) == 2:
            return super()._ends(block, columns, fit, level)
        return fit.chance_intervals(columns, np.exp(self._log_posterior(block)), level)

    def _why_no_inference(self) -> str:
        if self.alpha_ == 0 and self.class_weight_ is not None:
            return "class_weight changes what is estimated, so that it is no maximum likelihood. Fit without it."
        return super()._why_no_inference()

    def class_task(self, source: Source, alpha: float | None) -> SoftmaxTask:
        """What is minimised on mapped rows of more than two classes; alpha None is 1 / sum of weights."""
        free = self._strengths(source.names, 0.0)
        task = SoftmaxTask(source, len(self.classes_), free, bool(self.fit_intercept), bool(self.standardize))
        strength = 1.0 / float(task.labels[0].sum()) if alpha is None else float(alpha)
        task.penalise(self._strengths(source.names, strength))
        return task

    def _task_of(self, source: Source, alpha: float | None) -> GlmOrSoftmaxTask:
        return super()._task_of(source, alpha) if len(self.classes_) == 2 else self.class_task(source, alpha)

    def _keep_weights(self, state: GlmState) -> None:
        self.coef_, self.intercept_ = np.atleast_2d(state.coef), np.atleast_1d(state.intercept)

    def _state_of(self, coef: Array, intercept: Array) -> GlmState:
        return super()._state_of(coef, intercept) if len(self.classes_) == 2 else SoftmaxWeights(coef, intercept)

    def _state(self) -> GlmState:
        return self._state_of(self.coef_, self.intercept_)

    def mapped_scores(self, columns: Block) -> Array:
        """log p(k | x) of mapped rows, but for what is equal for all classes of a row."""
        if len(self.classes_) > 2:
            return class_scores(columns, self.coef_, self.intercept_)
        z = self._column_scores(columns)
        return np.column_stack([np.zeros(len(z)), z])

    def _summary_notes(self) -> tuple[str, ...]:
        against, *labels = self.classes_.tolist()
        of = f"{self.target_name_} = {labels[0]!r}" if len(labels) == 1 else f"each class of {self.target_name_}"
        return (f"Coefficients are of the log-odds of {of} against {against!r}.",)

    def _weights(self) -> Weights:
        return Weights(np.ravel(self.coef_), float(np.ravel(self.intercept_)[0]))
