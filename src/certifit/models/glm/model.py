"""Generalised linear models of a quantity: Poisson, Gamma, and any family with any link."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import Tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from certifit.data.columns import Array
from certifit.data.source import Block, Source
from certifit.data.user_input import OutPath, Predictions, UserRows, UserTarget, UserWeights
from certifit.maps import Basis, UserEncoder
from certifit.mathematics.families.responses import Gamma, Poisson, Response, family_of
from certifit.mathematics.losses.families import loss_of
from certifit.mathematics.losses.poisson_gamma_tweedie import GammaLog, PoissonLog
from certifit.mathematics.losses.scores import ScoreLoss
from certifit.mathematics.losses.user import Loss
from certifit.mathematics.penalties import Penalty
from certifit.minimise.minimum import check_needs, solver_of
from certifit.minimise.problem import Run, Solver
from certifit.models.certificate import Certificate
from certifit.models.estimator import Regressor
from certifit.models.folds import FoldStates, Grid, Rounds
from certifit.models.glm.certificate import GlmCertificate
from certifit.models.glm.scores import GlmModel, learn, learns_by_rows
from certifit.models.glm.softmax_task import GlmOrSoftmaxTask, GlmState
from certifit.models.glm.task import GlmTask
from certifit.models.glm.user_penalty import user_penalty
from certifit.models.glm.user_penalty_certificate import certify as certify_user_penalty
from certifit.models.lasso.solver import LassoPath
from certifit.models.learner import Told
from certifit.models.least_squares.normal_equations import Weights
from certifit.models.linear import Bounds, PenaltyFactors
from certifit.models.start import Start
from certifit.runtime import one_blas_thread
from certifit.statistics.cell_sums import Store
from certifit.statistics.glm_sums import null_score
from certifit.statistics.gram import counted
from certifit.statistics.moments import target_sums

DEVIANCES: dict[type[ScoreLoss], str] = {
    PoissonLog: "neg_mean_poisson_deviance",
    GammaLog: "neg_mean_gamma_deviance",
}  # what a model is scored by where the user names nothing


class GlmRegressor(GlmModel, Regressor[GlmOrSoftmaxTask, GlmState]):
    """E y = mean(z), z = offset + b + x'w."""

    @property
    def default_scoring(self) -> str | None:
        """What the model is scored by where the user names nothing; None is its own score."""
        return DEVIANCES.get(type(self._loss()))

    def fit(
        self,
        X: UserRows,
        y: UserTarget = None,
        sample_weight: UserWeights = None,
        offset: UserWeights = None,
        exposure: UserWeights = None,
    ) -> Self:
        """Fit to rows X and target y (arrays, sparse matrices, data frames), or to a scan that carries its target.

        sample_weight: one number per row; weight 2 is the row twice.
        offset: one number per row, added to its score. exposure: one number > 0 per row, whose log is added to the
        offset; y stays a count.
        """
        return self._fit(X, y, sample_weight=sample_weight, offset=offset, exposure=exposure)

    @available_if(learns_by_rows)
    def partial_fit(
        self,
        X: UserRows,
        y: UserTarget = None,
        sample_weight: UserWeights = None,
        offset: UserWeights = None,
        exposure: UserWeights = None,
    ) -> Self:
        """One pass over more rows; it goes on from the weights so far. Nothing is certified: `certify` does."""
        return self._partial_fit(X, y, sample_weight=sample_weight, offset=offset, exposure=exposure)

    def predict(
        self, X: UserRows, out: OutPath = None, *, offset: UserWeights = None, exposure: UserWeights = None
    ) -> Predictions:
        """E y for every row of an array, a frame or a scan. Without an offset or exposure they are 0 and 1: a rate.

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
        roles = {"sample_weight": sample_weight, "offset": offset, "exposure": exposure}
        return self._certify(X, y, **roles)

    @one_blas_thread
    def score(
        self,
        X: UserRows,
        y: UserTarget = None,
        sample_weight: UserWeights = None,
        offset: UserWeights = None,
        exposure: UserWeights = None,
    ) -> float:
        """The share of the deviance that is explained: 1 - deviance / deviance of the best constant (D2).

        With an offset the constant is added to it. Of a scan that carries its target too.
        """
        check_is_fitted(self)
        source = self._gate_again(X, y, sample_weight=sample_weight, offset=offset, exposure=exposure)
        loss = self._loss()
        with np.errstate(divide="ignore", invalid="ignore"):  # no event at all: the score of the mean 0
            targets = target_sums(source)
            start = float(loss.score(targets.mean)) - targets.mean_offset
            null = null_score(source, loss, start) if source.view.has_offset else start
            deviance, other = source.reduce(partial(self._half_deviances, null=null))
        return float(1 - deviance / other) if other > 0 else float(deviance == 0)

    def _half_deviances(self, block: Block, null: float) -> Array:
        """Of the model, and of the constant `null` in its place."""
        weight = np.ones(block.n_rows) if block.weight is None else block.weight
        constant = np.full(block.n_rows, null) if block.offset is None else null + block.offset
        loss, y = self._loss(), np.asarray(block.y)
        return np.array([weight @ loss.value(y, z) for z in (self._row_scores(block), constant)])

    def path(
        self,
        X: UserRows,
        y: UserTarget = None,
        sample_weight: UserWeights = None,
        offset: UserWeights = None,
        exposure: UserWeights = None,
        *,
        alphas: ArrayLike | None = None,
        n_alphas: int = 100,
    ) -> LassoPath:
        """Solutions along alphas: coef, intercept and the number of weights of each.

        alphas: by default `n_alphas` of them, evenly spaced on a logarithmic scale, from the least that gives no weight
        down to 1e-3 of it.
        """
        roles = {"sample_weight": sample_weight, "offset": offset, "exposure": exposure}
        return self._path(X, y, alphas, n_alphas, **roles)

    def scores(self, block: Block) -> Array:
        """E y of the rows of a block of the source that the model was fitted to."""
        return self.means(block)

    def means(self, block: Block) -> Array:
        """E y of the rows of a block of the source that the model was fitted to."""
        return self._loss().mean(self._row_scores(block))

    @abstractmethod
    def _loss(self) -> ScoreLoss:
        """The loss of a score."""

    def _add(self, source: Source) -> None:
        learn(self, source)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = not bool(self._loss().is_legal(np.array([-1.0]))[0])
        return tags


class PoissonRegressor(GlmRegressor):
    """Counts: E y = exp(offset + b + x'w), y of Poisson's law.

    minimise over w, b:   sum_i weight_i [ e^z_i - y_i z_i + y_i log y_i - y_i ] / sum_i weight_i
                          + alpha sum_j f_j ( l1_ratio |w_j| + (1 - l1_ratio)/2 w_j^2 )

    certificate:  self-concordance, relative to the objective; with an L1 penalty or bounds the duality gap

    Parameters
    ----------
    alpha : float >= 0, default 1.0
        Strength of the penalty. For p-values use GLM("poisson"), which has none.
    l1_ratio : float from 0 to 1, default 0.0
        Share of the L1 penalty: 0 is ridge, 1 the lasso.
    fit_intercept : bool, default True
        The intercept is never penalised.
    penalty_factors, bounds : as for Lasso
    standardize : bool, default False
        Penalise s_j w_j instead of w_j, s_j the standard deviation of a column (without an intercept, the root mean
        square): the fit of standardised columns, told in the units of the columns. Another unit then changes nothing.
    solver : "auto", the name of a solver, or an instance such as SGD(step=0.01)
    start : None, "zero", a whole number >= 0 or an array, default None
        Where the steps begin. None: no weights, and the intercept that suits the mean of y. "zero": the intercept is 0
        too. A whole number is the seed of standard normal numbers. An array has a number per column of the fit, then
        the intercept. With a start solver="auto" is Newton's method, and lbfgs above 3000 columns.
    basis, encoder : as for LinearRegression
    tol : float >= 0 or None, default None
        Largest relative excess of the objective that counts as converged; None is 1e-8, or 1e-3 for a solver that
        learns row by row.
    step_tol : float >= 0, default 0
        Stop also where a step is shorter than this.
    max_iter : int >= 1, default 1000
    max_time : float > 0 or None, default None
        Seconds after which no further step and no proof begins: what is reached is kept, and `certify` proves it.

    Attributes
    ----------
    coef_, intercept_, alpha_, certificate_, history_, n_iter_, rank_, condition_ : as for Ridge
    weights_ : of a solver with record="weights", a row per step, the start first: weights, then the intercept

    >>> import numpy as np
    >>> import certifit as cf
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> model = cf.PoissonRegressor(alpha=0.0).fit(X, [1.0, 2.0, 4.0, 8.0])
    >>> np.exp(model.coef_).round(8)
    array([2.])
    """

    def __init__(
        self,
        alpha: float = 1.0,
        l1_ratio: float = 0.0,
        *,
        fit_intercept: bool = True,
        penalty_factors: PenaltyFactors = None,
        bounds: Bounds = None,
        standardize: bool = False,
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
        self.solver = solver
        self.start = start
        self.basis = basis
        self.encoder = encoder
        self.tol = tol
        self.step_tol = step_tol
        self.max_iter = max_iter
        self.max_time = max_time

    def _loss(self) -> ScoreLoss:
        return PoissonLog()

    def _family(self) -> tuple[Response, str] | None:
        return Poisson(), "log"


class GammaRegressor(PoissonRegressor):
    """Positive quantities whose spread grows with their mean: E y = exp(offset + b + x'w), y of a Gamma law.

    minimise over w, b:   sum_i weight_i [ y_i e^-z_i + z_i - log y_i - 1 ] / sum_i weight_i
                          + alpha sum_j f_j ( l1_ratio |w_j| + (1 - l1_ratio)/2 w_j^2 )

    certificate:  self-concordance, relative to the objective; with an L1 penalty or bounds the duality gap

    Parameters and attributes are those of PoissonRegressor.

    >>> import numpy as np
    >>> import certifit as cf
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> model = cf.GammaRegressor(alpha=0.0).fit(X, [1.0, 2.0, 4.0, 8.0])
    >>> np.exp(model.coef_).round(8)
    array([2.])
    """

    def _loss(self) -> ScoreLoss:
        return GammaLog()

    def _family(self) -> tuple[Response, str] | None:
        return Gamma(), "log"


class GLM(GlmRegressor):
    """Any family of targets with any link, without a penalty unless one is asked for: the model of statisticians.

    E y = h(z), z = offset + b + x'w, Var y = phi V(E y) / weight

    minimise over w, b:   sum_i weight_i d(y_i, h(z_i)) / 2 / sum_i weight_i  (d: the family's deviance)
                          + alpha sum_j f_j ( l1_ratio |w_j| + (1 - l1_ratio)/2 w_j^2 )

    certificate:  self-concordance where the family and link have it; else the Newton decrement, a local estimate

    Parameters
    ----------
    family : name, Response or Loss, default "gaussian"
        "gaussian", "bernoulli" (y 0 or 1), "binomial" (y a share, weights the trials), "poisson", "gamma",
        "exponential", "inverse-gaussian", "tweedie", "negative-binomial"; the last two with other parameters as
        objects: cf.families.Tweedie(power=1.6), cf.families.NegativeBinomial(alpha=0.5). Or a loss of your own,
        cf.Loss(value, slope, ...), whose derivatives are checked on the data; it has its own mean and takes no link.
    link : name, Link or None, default None
        None is the family's first: identity, logit, log. Others: "probit", "cloglog", "sqrt", "inverse", ...
    alpha : float >= 0, default 0.0
        Strength of the penalty. `summary` needs 0.
    penalty : Penalty or None, default None
        A penalty of your own, cf.Penalty(value, prox=... or gradient=..., conjugate=...): alpha C(w) in place of the
        one above, so alpha must be above 0 and l1_ratio, penalty_factors, bounds and standardize are not to be given.
    l1_ratio, fit_intercept, penalty_factors, bounds, standardize, solver, start, basis, encoder, tol, step_tol,
    max_iter, max_time : as for PoissonRegressor

    Attributes
    ----------
    coef_, intercept_, alpha_, certificate_, history_, n_iter_, rank_, condition_ : as for Ridge
    inference_ : what `summary` prints; None under a penalty

    >>> import numpy as np
    >>> import certifit as cf
    >>> counts = [18.0, 17.0, 15.0, 20.0, 10.0, 20.0, 25.0, 13.0, 12.0]  # Dobson (1990), the example of R's ?glm
    >>> outcome, treatment = np.tile([1, 2, 3], 3), np.repeat([1, 2, 3], 3)
    >>> X = np.column_stack([outcome == 2, outcome == 3, treatment == 2, treatment == 3]).astype(float)
    >>> fit = cf.GLM("poisson").fit(X, counts).summary().inference
    >>> round(fit.deviance, 4), round(fit.null_deviance, 4), round(fit.aic, 2)
    (5.1291, 10.5814, 56.76)
    """

    def __init__(
        self,
        family: Any = "gaussian",
        link: Any = None,
        alpha: float = 0.0,
        l1_ratio: float = 0.0,
        *,
        penalty: Penalty | None = None,
        fit_intercept: bool = True,
        penalty_factors: PenaltyFactors = None,
        bounds: Bounds = None,
        standardize: bool = False,
        solver: Solver | str = "auto",
        start: Start = None,
        basis: Basis | None = None,
        encoder: UserEncoder = None,
        tol: float | None = None,
        step_tol: float = 0.0,
        max_iter: int = 1000,
        max_time: float | None = None,
    ) -> None:
        self.family = family
        self.penalty = penalty
        self.link = link
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.fit_intercept = fit_intercept
        self.penalty_factors = penalty_factors
        self.bounds = bounds
        self.standardize = standardize
        self.solver = solver
        self.start = start
        self.basis = basis
        self.encoder = encoder
        self.tol = tol
        self.step_tol = step_tol
        self.max_iter = max_iter
        self.max_time = max_time

    def candidates(self, source: Source) -> list[dict[str, Any]]:
        """Nothing to choose: the model has no penalty unless one is asked for."""
        return [{}]

    def means(self, block: Block) -> Array:
        """E y of the rows of a block of the source that the model was fitted to."""
        z = self._row_scores(block)
        with np.errstate(all="ignore"):
            mu = self._loss().mean(z)
        bad = np.flatnonzero(np.isnan(mu))
        if len(bad):
            row = int(bad[0])
            raise ValueError(
                f"Row {row + block.first_row} of X has the score {z[row]:.6g}, to which the link gives no mean. "
                "Use a link that takes any score, as link='log'."
            )
        return mu

    def _told(self) -> Told:
        law, told = self._family(), super()._told()
        if self.penalty is not None:
            told = replace(told, penalty=self.penalty.name)
        if law is None:
            return replace(told, loss=self._loss().name)
        return replace(told, law=(law[0].name, law[1]))

    def _loss(self) -> ScoreLoss:
        if not isinstance(self.family, ScoreLoss):
            return loss_of(self.family, self.link)
        if self.link is not None:
            raise ValueError(f"A loss of your own takes no link: it has its own mean. Got link={self.link!r}.")
        return self.family

    def _family(self) -> tuple[Response, str] | None:
        if isinstance(self.family, ScoreLoss):
            return None
        family = family_of(self.family)
        return family, family.link(self.link).name

    def _score_task(self, source: Source, alpha: float | None) -> GlmTask:
        task = super()._score_task(source, alpha if self.penalty is None else 0.0)
        if isinstance(task.loss, Loss):
            task.loss = task.loss.checked(np.asarray(counted(source.first_block()).y))
        if self.penalty is not None:
            task.user_penalty = user_penalty(task, self.penalty, 0.0 if alpha is None else alpha)
        return task

    def _keep(self, task: GlmOrSoftmaxTask, run: Run[GlmState]) -> None:
        super()._keep(task, run)
        if isinstance(task, GlmTask) and task.user_penalty is not None:
            self.alpha_ = task.user_penalty.alpha

    def _certified(self, task: GlmOrSoftmaxTask, state: GlmState) -> GlmCertificate:
        if isinstance(task, GlmTask) and task.user_penalty is not None:
            assert isinstance(state, Weights)
            return certify_user_penalty(task, state, self._tolerance())
        return super()._certified(task, state)

    def folds(self, source: Source, rounds: Rounds, grid: Grid, shared: Store) -> FoldStates | None:
        """As of every model of scores; with a penalty of your own each training set is refitted."""
        return None if self.penalty is not None else super().folds(source, rounds, grid, shared)

    def _path_of(self, source: Source, alphas: Array | None, n_alphas: int) -> LassoPath:
        if self.penalty is not None:
            raise ValueError(f"There is no path with {self.penalty.name}. Fit a model per alpha.")
        return super()._path_of(source, alphas, n_alphas)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        self._loss()
        if self.penalty is not None:
            self._check_penalty(self.penalty)

    def _check_penalty(self, penalty: Penalty) -> None:
        if not isinstance(penalty, Penalty):
            raise TypeError(f"penalty must be None or cf.Penalty(value, prox=... or gradient=...). Got {penalty!r}.")
        beside = {
            "l1_ratio": self.l1_ratio != 0,
            "penalty_factors": self.penalty_factors is not None,
            "bounds": self.bounds is not None,
            "standardize": bool(self.standardize),
        }
        for name in (name for name, is_given in beside.items() if is_given):
            raise ValueError(f"{penalty.name} takes the place of {name}. Leave {name} out, or write it into value.")
        if self.alpha is None or not float(self.alpha) > 0:
            raise ValueError(f"{penalty.name} needs its strength: alpha > 0. Got alpha={self.alpha!r}.")
        if isinstance(self.solver, str) and self.solver == "auto":
            return
        if penalty.has_prox:
            raise ValueError(f"{penalty.name} has a prox, which only solver='auto' takes. Got {self.solver!r}.")
        check_needs(solver_of(self.solver), {"gradient"}, "a penalty of your own")
