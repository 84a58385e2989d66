"""What a fitted linear model says beyond its coefficients: the summary, intervals, inflation, influence of rows.

A fitted model holds no rows. What needs them takes them again, and refuses rows that are not those of the fit.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Literal, TypeVar, get_args

import numpy as np
from sklearn.utils.validation import check_is_fitted

from certifit.data.columns import Array, Columns
from certifit.data.source import Block, Source
from certifit.data.user_input import UserRows, UserTarget, UserWeights, predict_rows, predict_source
from certifit.inference.least_squares import WEIGHTS, Convention, Inference
from certifit.inference.summary import Dropped, Summary
from certifit.models.certificate import Certificate
from certifit.models.estimator import Regressor, TaskT
from certifit.models.least_squares.certificate import SAFETY, certify, determined, infer, variance_inflation
from certifit.models.least_squares.influence import Influence, influence_iter
from certifit.models.least_squares.normal_equations import Weights
from certifit.models.least_squares.robust_covariance import Covariance, RobustLaw, RowFacts, robust, row_facts
from certifit.models.least_squares.solver import solve
from certifit.models.least_squares.task import LeastSquares
from certifit.models.parameters import check_choice
from certifit.runtime import one_blas_thread

SAME_ROWS = 1e-6  # relative: beyond it sums over rows are not those of the fit in another order
WeightsT = TypeVar("WeightsT", bound=Weights)
Redundant = Literal["mark", "drop", "refuse"]


class InferenceMethods(Regressor[TaskT, WeightsT]):
    """Methods of a linear model that explain its fit."""

    fit_intercept: bool
    coef_: Array
    intercept_: float
    alpha_: float
    target_name_: str
    data_: dict[str, float]
    certificate_: Certificate
    inference_: Inference | None

    def summary(
        self,
        X: UserRows | None = None,
        y: UserTarget = None,
        sample_weight: UserWeights = None,
        *,
        level: float = 0.95,
        weights: Convention = "frequency",
        covariance: Covariance = "nonrobust",
        law: RobustLaw = "t",
        redundant: Redundant = "mark",
    ) -> Summary:
        """Coefficients with standard errors, tests, p-values and confidence intervals, and the quality of the fit.

        Parameters
        ----------
        X, y, sample_weight : the rows of the fit, as given to `fit` (or the scan)
            Needed for a robust covariance and where columns are redundant; with weights="variance" for the
            log-likelihood, AIC and BIC.
        level : of the confidence intervals
        weights : "frequency" or "variance"
            "frequency": weight 2 is the row twice, N is the sum of weights. "variance": weights are inverse variances
            up to a factor, N is the number of rows, those of weight 0 left out where the rows are given (statsmodels'
            WLS).
        covariance : "nonrobust", "HC0", "HC1", "HC2" or "HC3"
            "nonrobust" assumes noise of equal variance and tests with Student's t. HC0 to HC3 hold for noise of unequal
            variance; with few rows use HC3.
        law : "t" or "z"
            Of a coefficient over its robust standard error. "t": Student's with degrees of freedom of its own, which
            covers with few rows too. "z": the normal law, as statsmodels has it. "nonrobust" is always Student's with
            N - p. All coefficients together are tested with F.
        redundant : "mark", "drop" or "refuse"
            What to do where columns are combinations of others, so that their coefficients are not determined. "mark"
            says so in their rows; all other coefficients have the one value that every best fit shares, with its
            standard error. "drop" leaves the last column of each relation out, as R does: the table names it, and the
            others are those of a fit without it. "refuse" raises.
        """
        check_is_fitted(self)
        check_choice("weights", weights, tuple(WEIGHTS))
        check_choice("covariance", covariance, get_args(Covariance))
        check_choice("law", law, get_args(RobustLaw))
        if law == "z" and covariance == "nonrobust":
            raise ValueError("law='z' is for the robust covariances HC0 to HC3. Plain tests are Student's (law='t').")
        check_choice("redundant", redundant, get_args(Redundant))
        dropped: tuple[Dropped, ...] = ()
        undetermined: tuple[int, ...] = ()
        certificate = self.certificate_
        if X is None:
            fit = self._stored_fit(y, sample_weight, weights, covariance, redundant)
        else:
            seen = self._fit_on("summary", X, y, sample_weight, weights, redundant)
            fit, dropped = seen.fit, seen.dropped
            if covariance != "nonrobust":
                fit = robust(seen.task, seen.state, fit, covariance, law)
            if dropped and redundant == "drop":  # the columns of the table are those of another fit
                certificate = certify(seen.task, seen.state, certificate.tolerance)
            undetermined = seen.undetermined if redundant == "mark" else ()
        notes = [self.objective, *certificate.sentences()]
        return fit.summary(type(self).__name__, self.target_name_, level, notes, dropped, undetermined)

    def predict_interval(
        self, X: UserRows, level: float = 0.95, kind: Literal["prediction", "confidence"] = "prediction"
    ) -> Array:
        """Lower and upper end for every row: where a new y ("prediction") or its mean ("confidence") lies."""
        check_is_fitted(self)
        if self.inference_ is None:
            raise ValueError(f"No intervals: {self._why_no_inference()}")
        if isinstance(X, Source):
            parts = [self._interval(stretch, level, kind) for stretch in predict_source(self, X).stretches()]
            return np.concatenate(parts) if parts else np.zeros((0, 2))
        return self._interval(predict_rows(self, X), level, kind)

    def variance_inflation(
        self, X: UserRows | None = None, y: UserTarget = None, sample_weight: UserWeights = None
    ) -> dict[str, float]:
        """How many times as large every coefficient's variance is as without the other columns: {column: factor}.

        1 / (1 - R^2) of the column regressed on the others: 1 is uncorrelated; beyond 10 is a lot.
        X, y, sample_weight : the rows of the fit; needed only for factors beyond some 1e9.
        """
        check_is_fitted(self)
        if X is not None:
            return variance_inflation(self._fit_on("variance inflation", X, y, sample_weight, "frequency").task)
        if y is not None or sample_weight is not None:
            raise ValueError("y and sample_weight come with X: variance_inflation(X, y, sample_weight=...).")
        if self.inference_ is None:
            raise ValueError(f"No variance inflation: {self._why_no_inference()}")
        try:
            return self.inference_.variance_inflation()
        except ValueError as error:
            raise ValueError(f"{error} Or pass the rows of the fit: variance_inflation(X, y).") from None

    def influence(
        self,
        X: UserRows,
        y: UserTarget = None,
        sample_weight: UserWeights = None,
        *,
        weights: Convention = "frequency",
        most: int | None = None,
    ) -> Influence:
        """Leverage, standardised and studentised residuals, Cook's distance and DFFITS of the rows of the fit.

        X, y, sample_weight : the rows, as given to `fit` (or the scan).
        weights : as for `summary`. "frequency": the numbers of one of the `weight` equal rows.
            Redundant columns do no harm: the numbers are those without them.
        most : keep only so many rows, those of largest Cook's distance, largest first. The rest is never held.
        """
        if most is not None and most < 1:
            raise ValueError(f"most must be None or at least 1. Got {most}.")
        parts = self.influence_iter(X, y, sample_weight, weights=weights)
        if most is None:
            return Influence.joined(list(parts))
        best = next(parts).most(most)
        for part in parts:
            best = Influence.joined([best, part]).most(most)
        return best

    def influence_iter(
        self, X: UserRows, y: UserTarget = None, sample_weight: UserWeights = None, *, weights: Convention = "frequency"
    ) -> Iterator[Influence]:
        """`influence` stretch by stretch, in the order of the rows: constant memory for a scan."""
        check_is_fitted(self)
        check_choice("weights", weights, tuple(WEIGHTS))
        seen = self._fit_on("influence", X, y, sample_weight, weights, "drop")
        return influence_iter(seen.task, seen.state, seen.fit)

    def _stored_fit(
        self,
        y: UserTarget,
        sample_weight: UserWeights,
        weights: Convention,
        covariance: Covariance,
        redundant: Redundant,
    ) -> Inference:
        """The inference that needs no rows."""
        if y is not None or sample_weight is not None:
            raise ValueError("y and sample_weight come with X: summary(X, y, sample_weight=...).")
        if redundant != "refuse" and self._is_determined() and self.certificate_.dependent:
            raise ValueError(NEEDS_ROWS.format(listed_relations(self.certificate_.dependent)))
        if self.inference_ is None:
            raise ValueError(f"No summary: {self._why_no_inference()}")
        if covariance != "nonrobust":
            raise ValueError(
                f"covariance={covariance!r} needs the rows, and a fitted model holds none. Pass the rows of the fit: "
                f"summary(X, y, sample_weight=..., covariance={covariance!r}), or the scan."
            )
        if weights == "frequency":
            return self.inference_
        return self.inference_.with_variance_weights(self.data_["n_rows"])

    @one_blas_thread
    def _fit_on(
        self,
        what: str,
        X: UserRows,
        y: UserTarget,
        sample_weight: UserWeights,
        weights: Convention,
        redundant: Redundant = "refuse",
    ) -> _SeenFit:
        """The fit on rows that are its own, and its inference; inside `seen_once` one that was made before."""
        known = _SEEN.get()
        if known is None or not isinstance(X, Source) or y is not None or sample_weight is not None:
            return self._seen(what, X, y, sample_weight, weights, redundant)
        key = (id(self), id(X), weights, redundant == "refuse")
        if key not in known:
            known[key] = (self, X, self._seen(what, X, y, sample_weight, weights, redundant))
        return known[key][-1]

    def _seen(
        self,
        what: str,
        X: UserRows,
        y: UserTarget,
        sample_weight: UserWeights,
        weights: Convention,
        redundant: Redundant,
    ) -> _SeenFit:
        is_variance, may_drop = weights == "variance", redundant != "refuse" and bool(self.certificate_.dependent)
        if self.inference_ is None and not ((is_variance or may_drop) and self._is_determined()):
            raise ValueError(f"No {what}: {self._why_no_inference()}")
        state: Weights = self._state()
        task_on_rows = self._task_on(X, y, sample_weight=sample_weight)
        if not isinstance(task_on_rows, LeastSquares):
            raise ValueError(f"No {what}: {self._why_no_inference()}")
        task: LeastSquares = task_on_rows
        self._refuse_other_rows(task)
        dropped: tuple[Dropped, ...] = ()
        undetermined: tuple[int, ...] = ()
        if may_drop:
            dropped, undetermined = self._dropped(task), tuple(np.flatnonzero(~determined(task)).tolist())
            task = _without(task)
            state = solve(task).state
        facts = row_facts(task.source) if is_variance else None
        fit = infer(task, state, *(() if facts is None else (float(facts.n_rows), facts.log_weight)))
        if fit is None:
            raise ValueError(f"No {what}: {self._why_no_inference(facts)}")
        return _SeenFit(task, state, fit, dropped, undetermined)

    def _dropped(self, task: LeastSquares) -> tuple[Dropped, ...]:
        """The redundant columns of a task: their places in its table, names and relations."""
        names = ["intercept"] * int(self.fit_intercept) + task.source.names
        relations = dict(zip(task.factor.dependent.tolist(), self.certificate_.dependent, strict=False))
        return tuple(
            Dropped(place, names[place], relations.get(place, f"{names[place]} is redundant"))
            for place in task.factor.dependent.tolist()
        )

    def _refuse_other_rows(self, task: LeastSquares) -> None:
        """Refuse rows that the model was not fitted to: their number, weights and target, and the optimum, tell."""
        refuse_other_facts(task.facts(), self.data_)
        excess = certify(task, self._state(), SAME_ROWS).value
        if not excess <= max(SAME_ROWS, 2 * self.certificate_.value):
            raise ValueError(
                "These rows are not those of the fit: the coefficients are not the best ones for them (relative excess "
                f"{excess:.1e}). Pass the rows, target and weights that were given to fit."
            )

    def _is_determined(self) -> bool:
        """Whether inference on these rows is that of least squares."""
        return self.alpha_ == 0

    def _interval(self, block: Block, level: float, kind: Literal["prediction", "confidence"]) -> Array:
        assert self.inference_ is not None
        columns = self.columns_of(block)
        columns = np.asarray(columns.toarray() if hasattr(columns, "toarray") else columns, dtype=np.float64)
        if self.fit_intercept:
            columns = np.column_stack([np.ones(len(columns)), columns])
        return self.inference_.interval(columns, self.scores(block), level, kind)

    def _why_no_inference(self, facts: RowFacts | None = None) -> str:
        """The reason, and the way out."""
        if hasattr(self, "penalty_factors"):
            return _CHOSEN if self.alpha_ > 0 else _BOUNDED
        if self.alpha_ > 0:
            return _PENALISED
        if self.certificate_.fault:
            return self.certificate_.fault
        n_obs = self.data_["sum_weight"] if facts is None else facts.n_rows
        rank = (self.certificate_.rank or 0) + int(self.fit_intercept)
        if self.certificate_.dependent and n_obs > rank:
            return REDUNDANT.format(listed_relations(self.certificate_.dependent))
        if n_obs > (len(self.coef_) + int(self.fit_intercept)) * (1 + SAFETY):
            return BEYOND
        return (
            f"{n_obs:g} observations leave no residual degree of freedom for "
            f"{len(self.coef_) + int(self.fit_intercept)} coefficients. Use more rows or fewer columns."
        )


def refuse_other_facts(facts: dict[str, float], known: dict[str, float]) -> None:
    """Refuse rows whose number, weights or target are not those of the fit."""
    size = abs(known["target_mean"]) + known["target_sd"]
    slack = {"n_rows": 0.0, "sum_weight": SAME_ROWS * known["sum_weight"]}
    for name in ("n_rows", "sum_weight", "target_mean", "target_sd"):
        if not abs(facts[name] - known[name]) <= slack.get(name, SAME_ROWS * size):
            raise ValueError(
                f"These rows are not those of the fit: {name.replace('_', ' ')} is {facts[name]:.6g}, "
                f"the fit had {known[name]:.6g}. Pass the rows, target and weights that were given to fit."
            )


@dataclass(frozen=True)
class _SeenFit:
    """A fit with its rows: of all columns, or without the redundant ones."""

    task: LeastSquares
    state: Weights
    fit: Inference
    dropped: tuple[Dropped, ...]
    undetermined: tuple[int, ...]  # rows of the table of all columns


# by the identities of model and source, which are kept beside, so that no others take them
_SEEN: ContextVar[dict[tuple[int, int, str, bool], tuple[object, Source, _SeenFit]] | None]
_SEEN = ContextVar("seen", default=None)


@contextmanager
def seen_once() -> Iterator[None]:
    """Inside, a fit is seen on a scan once: for a report, which asks for its errors and for its influence.

    For those who change neither the model nor the rows meanwhile.
    """
    token = _SEEN.set({})
    try:
        yield
    finally:
        _SEEN.reset(token)


@dataclass(frozen=True)
class KeptColumns:
    """A map of rows to those of their columns that no others determine."""

    names: tuple[str, ...]
    places: tuple[int, ...]

    def apply(self, X: Any) -> Any:
        """Only these columns."""
        rows = X.toarray() if isinstance(X, Columns) else X
        return rows[:, list(self.places)]

    def get_feature_names_out(self, input_features: Any = None) -> Any:
        """Their names."""
        return np.array(self.names, dtype=object)


def _without(task: LeastSquares) -> LeastSquares:
    """The task on the columns that its factor keeps."""
    first = int(task.fit_intercept)
    places = tuple(int(place) - first for place in task.factor.kept if place >= first)
    kept = KeptColumns(tuple(task.source.names[place] for place in places), places)
    return LeastSquares(task.source.through(kept), 0.0, bool(task.fit_intercept))


def listed_relations(relations: tuple[str, ...]) -> str:
    """The first five, and how many more."""
    more = f"; and {len(relations) - 5} more" if len(relations) > 5 else ""
    return f"{'; '.join(relations[:5])}{more}"


REDUNDANT = (
    "the columns are redundant, so single coefficients are not determined: {}. Drop a column of each relation; "
    "summary(X, y) has the coefficients that are determined, summary(X, y, redundant='drop') those of a fit without "
    "the last column of each relation."
)
NEEDS_ROWS = (
    "No summary without rows: columns are redundant ({}), and a fitted model holds no rows to find out which "
    "coefficients are determined. Pass the rows of the fit: summary(X, y), or the scan."
)
BEYOND = (
    "the numbers are so large or so small that variances of coefficients leave the range of float64. Give columns, "
    "target and weights in other units."
)
_PENALISED = (
    "standard errors and p-values do not hold under a penalty: it pulls the estimates towards 0 on purpose, so they "
    "are not centred on the truth. Use LinearRegression for p-values, refits on Bootstrap rows for the spread of the "
    "weights, CrossValidated(model, intervals=True) for intervals of predictions."
)
_CHOSEN = (
    "standard errors and p-values do not hold under a penalty: it pulls the estimates towards 0, and these rows chose "
    "the columns, so a test on them finds too much. Use LinearRegression on the columns with a weight, fitted to OTHER "
    "rows than these; or refits on Bootstrap rows to see how often a column is chosen; "
    "CrossValidated(model, intervals=True) for intervals of predictions."
)
_BOUNDED = (
    "this model may hold weights at bounds, where standard errors do not exist. Use LinearRegression: without a "
    "penalty and bounds it is the same fit."
)
