"""What a fitted generalised linear model says beyond its coefficients: the summary and intervals of means.

A fitted model holds no rows. What needs them takes them again, and refuses rows that are not those of the fit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, Literal, get_args

import numpy as np
from sklearn.utils.validation import check_is_fitted

from certifit.data.columns import Array
from certifit.data.source import Block, Source
from certifit.data.user_input import UserRows, UserTarget, UserWeights, predict_rows, predict_source
from certifit.inference.glm import Dispersion, GlmInference, GlmSummary, Multinomial, Rules
from certifit.inference.least_squares import WEIGHTS, Convention
from certifit.inference.summary import Dropped
from certifit.mathematics.families.responses import Response
from certifit.mathematics.losses.scores import ScoreLoss
from certifit.minimise.problem import Run, Solver
from certifit.models.estimator import TaskEstimator
from certifit.models.glm.certificate import GlmCertificate, certify
from certifit.models.glm.information import infer, n_scores, robust, with_likelihood
from certifit.models.glm.limiting_model import ENDS, ends, of_all_rows, staying_rows
from certifit.models.glm.separation_certificate import NO_MAXIMUM, Separation
from certifit.models.glm.softmax_task import GlmOrSoftmaxTask, GlmState
from certifit.models.glm.solver import solve
from certifit.models.glm.task import GlmTask, ScoreTask
from certifit.models.least_squares.certificate import determined
from certifit.models.least_squares.inference import (
    NEEDS_ROWS,
    REDUNDANT,
    KeptColumns,
    Redundant,
    listed_relations,
    refuse_other_facts,
)
from certifit.models.least_squares.normal_equations import Weights
from certifit.models.linear import Bounds
from certifit.models.parameters import check_choice
from certifit.runtime import one_blas_thread

Covariance = Literal["nonrobust", "HC0", "HC1"]
# rows of a table without figures: those left out, those not determined, and of these the infinite ones
Marks = tuple[tuple[Dropped, ...], tuple[int, ...], dict[int, float]]
UNMARKED: Marks = ((), (), {})
SAME_ROWS = 1e-6  # relative: beyond it the coefficients are not the best ones for the rows


class GlmInferenceMethods(TaskEstimator[GlmOrSoftmaxTask, GlmState]):
    """Methods of a generalised linear model that explain its fit."""

    fit_intercept: bool
    bounds: Bounds
    alpha_: float
    target_name_: str
    data_: dict[str, float]
    certificate_: GlmCertificate
    inference_: GlmInference | None

    def summary(
        self,
        X: UserRows | None = None,
        y: UserTarget = None,
        sample_weight: UserWeights = None,
        *,
        offset: UserWeights = None,
        exposure: UserWeights = None,
        level: float = 0.95,
        weights: Convention = "frequency",
        convention: Rules = "R",
        dispersion: Dispersion = None,
        covariance: Covariance = "nonrobust",
        redundant: Redundant = "mark",
    ) -> GlmSummary:
        """Coefficients with standard errors, tests, p-values and confidence intervals, deviances and AIC.

        Parameters
        ----------
        X, y, sample_weight, offset, exposure : the rows of the fit, as given to `fit` (or the scan)
            Needed for a robust covariance, where columns are redundant or rows are separated, and for the
            log-likelihood, AIC and BIC of a Tweedie family and of weights="variance" with an estimated dispersion (by
            R's convention of a Gaussian one alone).
        level : of the confidence intervals
        weights : "frequency" or "variance"
            "frequency": weight 2 is the row twice, N is the sum of weights (statsmodels' freq_weights). "variance": N
            is the number of rows (its var_weights, R's weights).
        convention : "R" or "statsmodels"
            Where the dispersion is estimated (Gaussian, Gamma, inverse Gaussian, Tweedie): R tests with Student's t and
            counts the dispersion in AIC, statsmodels tests with z and does not. With weights="variance" the likelihood
            of Gamma and inverse Gaussian targets is w log p(phi) in R, log p(phi / w) in statsmodels. Elsewhere they
            agree.
        dispersion : None, "pearson", "deviance" or a number > 0
            None: 1 for Bernoulli, binomial, Poisson and negative binomial targets, else "pearson": Pearson's sum over
            the residual degrees of freedom. For counts that spread more than Poisson's use "pearson" (quasi-Poisson).
        covariance : "nonrobust", "HC0" or "HC1"
            HC0 and HC1 hold whatever the variance of the targets, given their means; they test with z. HC1 is
            N / (N - p) HC0; what statsmodels calls HC1 of a GLM is HC0.
        redundant : "mark", "drop" or "refuse"
            What to do where columns are combinations of others, so that their coefficients are not determined. "mark"
            says so in their rows; all other coefficients have their one value and its standard error. "drop" leaves the
            last column of each relation out, as R does: the table names it, and the others are those of a fit without
            it. "refuse" raises.

        Where a direction separates rows, so that the likelihood has no maximum, the table is that of the limiting
        model: the rows that the direction moves are fitted perfectly, the others have a finite optimum. Coefficients
        that those determine have their lines; the others are +inf, -inf or not determined.
        """
        check_is_fitted(self)
        check_choice("weights", weights, tuple(WEIGHTS))
        check_choice("convention", convention, get_args(Rules))
        check_choice("covariance", covariance, get_args(Covariance))
        check_choice("redundant", redundant, get_args(Redundant))
        _check_dispersion(dispersion)
        rules = (weights, convention, dispersion)
        said, marks = self.certificate_.sentences(), UNMARKED
        if X is None:
            passed = [name for name, value in _named(y, sample_weight, offset, exposure) if value is not None]
            fit = self._stored_fit(passed, covariance, redundant).with_options(*rules)
        else:
            seen = self._fit_on(X, y, sample_weight, offset, exposure, redundant)
            said, marks = seen.said, seen.marks
            fit = with_likelihood(seen.task, seen.state, seen.fit.with_options(*rules))
            if covariance != "nonrobust":
                fit = robust(seen.task, seen.state, fit, covariance)
        if fit.is_estimated and not fit.df_resid > 0:
            raise ValueError(
                f"No summary: {fit.n_obs:g} observations leave no residual degree of freedom to estimate the "
                f"dispersion beside {len(fit.names)} coefficients. Use more rows or fewer columns, or dispersion=1."
            )
        return fit.summary(type(self).__name__, self.target_name_, level, (*self._summary_notes(), *said), *marks)

    def predict_interval(
        self,
        X: UserRows,
        level: float = 0.95,
        *,
        offset: UserWeights = None,
        exposure: UserWeights = None,
        convention: Rules = "R",
    ) -> Array:
        """Lower and upper end of E y for every row: the interval of its score, through the link.

        Of more than two classes of every chance, rows x classes x 2. convention: as for `summary`.
        """
        check_is_fitted(self)
        check_choice("convention", convention, get_args(Rules))
        if self.inference_ is None:
            raise ValueError(f"No intervals: {self._why_no_inference()}")
        fit = self.inference_.with_options("frequency", convention, None)
        if isinstance(X, Source):
            parts = [
                self._interval(stretch, fit, level) for stretch in predict_source(self, X, offset, exposure).stretches()
            ]
            return np.concatenate(parts) if parts else np.zeros((0, 2))
        return self._interval(predict_rows(self, X, offset, exposure), fit, level)

    def _inferred(self, task: GlmOrSoftmaxTask, state: GlmState) -> GlmInference | None:
        """What is kept at a fit; None where single coefficients are not determined, or pulled by a penalty."""
        if self._family() is None or not self._is_free() or self.certificate_.dependent or self._is_faulty():
            return None
        return self._infer(task, state)

    def _infer(self, task: GlmOrSoftmaxTask, state: GlmState) -> GlmInference | None:
        """The inference of a fit without a penalty."""
        family = self._family()
        assert isinstance(task, GlmTask) and isinstance(state, Weights) and family is not None
        law, link = family
        assert isinstance(law, Response)
        return infer(task, state, law, link)

    def _stored_fit(self, passed: list[str], covariance: str, redundant: str) -> GlmInference:
        """The inference that needs no rows."""
        if passed:
            raise ValueError(f"{passed[0]} comes with X: summary(X, y, {passed[-1]}=...).")
        if self._has_limit():
            raise ValueError(_SEPARATED)
        if redundant != "refuse" and self._is_free() and self.certificate_.dependent:
            raise ValueError(NEEDS_ROWS.format(listed_relations(self.certificate_.dependent)))
        if self.inference_ is None:
            raise ValueError(f"No summary: {self._why_no_inference()}")
        if covariance != "nonrobust":
            raise ValueError(
                f"covariance={covariance!r} needs the rows, and a fitted model holds none. Pass the rows of the fit: "
                f"summary(X, y, covariance={covariance!r}), or the scan."
            )
        return self.inference_

    @one_blas_thread
    def _fit_on(
        self,
        X: UserRows,
        y: UserTarget,
        sample_weight: UserWeights,
        offset: UserWeights,
        exposure: UserWeights,
        redundant: Redundant,
    ) -> _SeenFit:
        """The fit on rows that are its own, and its inference."""
        may_drop = redundant != "refuse" and self._is_free() and bool(self.certificate_.dependent)
        if (self.inference_ is None and not may_drop and not self._has_limit()) or self._family() is None:
            raise ValueError(f"No summary: {self._why_no_inference()}")
        roles = {"sample_weight": sample_weight, "offset": offset, "exposure": exposure}
        task, state, tolerance = self._task_on(X, y, **roles), self._state(), self.certificate_.tolerance
        refuse_other_facts(task.facts(), self.data_)
        certificate = certify(task, state, tolerance)
        if not certificate.value <= max(SAME_ROWS, 2 * self.certificate_.value):
            raise ValueError(
                "These rows are not those of the fit: the coefficients are not the best ones for them (relative excess "
                f"{certificate.value:.1e}). Pass the rows, target, weights and offset that were given to fit."
            )
        if certificate.is_separated and isinstance(task, GlmTask):
            assert certificate.separation is not None
            return self._limit_on(task, certificate.separation, tolerance, redundant)
        marks = UNMARKED
        if may_drop:
            is_known = np.tile(determined(task.columns), n_scores(task)) | (redundant == "drop")
            marks = (self._dropped(task), tuple(np.flatnonzero(~is_known).tolist()), {})
            task = _without(task)
            state = solved(task, "auto", tolerance, MOST_STEPS).state
            certificate = certify(task, state, tolerance)
        fit = self._infer(task, state)
        if fit is None:
            raise ValueError(f"No summary: {self._why_no_inference()}")
        said = (self.certificate_ if redundant == "mark" else certificate).sentences()
        return _SeenFit(task, state, fit, said, marks)

    def _limit_on(self, task: GlmTask, separated: Separation, tolerance: float, redundant: Redundant) -> _SeenFit:
        """The limiting model of a separated fit, and its inference."""
        if task.columns.factor.dependent.size and redundant != "mark":
            raise ValueError(
                f"No summary with redundant={redundant!r}: columns repeat others and rows are separated besides. Leave "
                "the redundant columns out and fit again, or use redundant='mark'."
            )
        limit = staying_rows(task, separated)
        kept = _without(limit)
        state = solved(kept, "auto", tolerance, MOST_STEPS).state
        certificate = certify(kept, state, tolerance)
        fit = self._infer(kept, state) if certificate.holds else None
        if fit is None:
            raise ValueError(f"No summary: the limiting model is not proven. {certificate.sentences()[0]}")
        names = ["intercept"] * int(task.fit_intercept) + list(task.source.names)
        dropped = tuple(Dropped(int(place), names[place], "") for place in limit.columns.factor.dependent)
        fit, limits = of_all_rows(fit, limit, task), ends(limit, task)
        infinite = {place: end for place, end in limits.items() if np.isinf(end)}
        marks = (dropped, tuple(limits), infinite)
        return _SeenFit(kept, state, fit, [separated.claim(), ENDS, *certificate.sentences()], marks)

    def _has_limit(self) -> bool:
        """Whether rows are separated, so that there is a limiting model of one score."""
        return self.certificate_.fault.startswith(NO_MAXIMUM) and isinstance(self._state(), Weights)

    def _dropped(self, task: GlmOrSoftmaxTask) -> tuple[Dropped, ...]:
        """The redundant columns of a task: their places in its table, names and relations."""
        names = ["intercept"] * int(self.fit_intercept) + list(task.source.names)
        places = task.columns.factor.dependent.tolist()
        relations = dict(zip(places, self.certificate_.dependent, strict=False))
        rows = self._score_names(names)
        every = [place + first for first in range(0, len(rows), len(names)) for place in places]
        why = [relations.get(at % len(names), f"{names[at % len(names)]} is redundant") for at in every]
        return tuple(Dropped(at, rows[at], reason) for at, reason in zip(every, why, strict=True))

    def _score_names(self, names: Sequence[str]) -> list[str]:
        """Of the rows of the table: one score after the other."""
        return list(names)

    def _interval(self, block: Block, fit: GlmInference, level: float) -> Array:
        columns = self.columns_of(block)
        columns = np.asarray(columns.toarray() if hasattr(columns, "toarray") else columns, dtype=np.float64)
        if self.fit_intercept:
            columns = np.column_stack([np.ones(len(columns)), columns])
        return self._ends(block, columns, fit, level)

    def _ends(self, block: Block, columns: Array, fit: GlmInference, level: float) -> Array:
        """Of the means of the rows of a block; columns lead with 1."""
        ends = self._loss().mean(fit.interval(columns, self._row_scores(block), level))
        return np.sort(ends, axis=1)  # a link may fall

    def _is_free(self) -> bool:
        """Whether the estimates are those of maximum likelihood."""
        return self.alpha_ == 0 and self.bounds is None

    def _is_faulty(self) -> bool:
        """Whether there is no maximum of the likelihood that standard errors could be of, or none is proven."""
        return bool(self.certificate_.fault) or not np.isfinite(self.certificate_.value)

    def _why_no_inference(self) -> str:
        """The reason, and the way out."""
        if self.alpha_ > 0:
            return _PENALISED.format(self._unpenalised())
        if self.bounds is not None:
            return _BOUNDED
        if self._family() is None:
            return _NO_FAMILY
        if self.certificate_.dependent:
            return REDUNDANT.format(listed_relations(self.certificate_.dependent))
        if self._is_faulty():
            return f"a maximum of the likelihood is not proven. {self.certificate_.sentences()[0]}"
        return (
            "the information matrix cannot be inverted in float64: columns are nearly combinations of others, or their "
            "scales are extreme. Rescale or drop columns."
        )

    def _summary_notes(self) -> tuple[str, ...]:
        """What a reader of the table has to know about this model."""
        return ()

    def _unpenalised(self) -> str:
        """How to fit the same model without a penalty."""
        return f"{type(self).__name__}(alpha=0)"

    def _family(self) -> tuple[Response | Multinomial, str] | None:
        """The family of the targets and the name of the link; None where the loss is not of a family."""
        raise NotImplementedError

    def _loss(self) -> ScoreLoss:
        raise NotImplementedError

    def _row_scores(self, block: Block) -> Array:
        raise NotImplementedError


@dataclass(frozen=True)
class _SeenFit:
    """A fit beside its rows: of all columns, or without the redundant ones."""

    task: GlmOrSoftmaxTask
    state: GlmState
    fit: GlmInference
    said: list[str]
    marks: Marks


MOST_STEPS = 1000


def _without(task: GlmOrSoftmaxTask) -> GlmOrSoftmaxTask:
    """The task on the columns that the factor of its Gram matrix keeps, without a penalty."""
    first = int(task.fit_intercept)
    places = tuple(int(place) - first for place in task.columns.factor.kept if place >= first)
    kept = KeptColumns(tuple(task.source.names[place] for place in places), places)
    return task.without_penalty(task.source.through(kept))


def solved(
    task: GlmOrSoftmaxTask,
    solver: Solver | str,
    tol: float,
    max_iter: int,
    step_tol: float = 0.0,
    start: GlmState | None = None,
) -> Run[GlmState]:
    """The minimiser by a solver, or by the one that suits the task."""
    of_any: ScoreTask[Any] = task
    return solve(of_any, solver, tol, max_iter, step_tol, start)


def _named(
    y: UserTarget, sample_weight: UserWeights, offset: UserWeights, exposure: UserWeights
) -> list[tuple[str, UserTarget]]:
    return [("y", y), ("sample_weight", sample_weight), ("offset", offset), ("exposure", exposure)]


def _check_dispersion(dispersion: object) -> None:
    if dispersion is None or (isinstance(dispersion, str) and dispersion in ("pearson", "deviance")):
        return
    if isinstance(dispersion, Real) and not isinstance(dispersion, bool) and 0 < float(dispersion) < np.inf:
        return
    raise ValueError(f"dispersion must be None, 'pearson', 'deviance' or a number > 0. Got {dispersion!r}.")


_SEPARATED = (
    "No summary without rows: a direction separates rows, so that the likelihood has no maximum, and a fitted model "
    "holds no rows to fit its limiting model to. Pass the rows of the fit: summary(X, y), or the scan."
)
_PENALISED = (
    "standard errors and p-values do not hold under a penalty: it pulls the estimates towards 0 on purpose, so they "
    "are not centred on the truth. Use {0} for p-values, refits on Bootstrap rows for the spread of the weights."
)
_BOUNDED = "this model may hold weights at bounds, where standard errors do not exist. Fit without bounds."
_NO_FAMILY = (
    "a loss of your own has no likelihood, so there is neither a dispersion nor a test. Use a family, or refits on "
    "Bootstrap rows for the spread of the weights."
)
