"""Inference for generalised linear models by maximum likelihood: standard errors, tests, intervals, deviances.

    cov(estimate) = phi A,   A = (sum_i w_i W_i (1, x_i)(1, x_i)')^-1,   W = h'^2 / V  (Fisher's, expected information)

phi is the dispersion: 1 for Bernoulli, binomial, Poisson and negative binomial targets, else estimated as Pearson's
sum / (N - p). Where it is estimated, R and statsmodels differ, and `convention` says whose numbers these are:

    "R"            Student's t with N - p degrees of freedom; AIC and BIC count phi as a parameter; the log-likelihood
                   has phi = deviance / N
    "statsmodels"  the normal law (z); the log-likelihood has the phi of the table (RSS / N for the Gaussian family with
                   the identity link), and AIC and BIC do not count it; BIC is its bic_llf

Elsewhere both agree. Frequency weights count rows: N is the sum of weights. With variance weights (statsmodels'
var_weights, R's weights) N is the number of rows; so it is for the binomial family, whose weights are trials. There the
log-likelihood is sum log p(y_i; mu_i, phi / w_i), but R's of Gamma and inverse Gaussian targets is that of frequencies,
sum w_i log p(y_i; mu_i, phi) with phi = deviance / sum of weights, while BIC has the logarithm of the number of rows.
The null model has the intercept and the offset alone; without an intercept the offset alone, as in R.

Of K classes there are K - 1 scores, logarithms of the odds against the first class: the information of two of them, k
and l, is sum_i w_i p_ik ([k = l] - p_il) (1, x_i)(1, x_i)'. N rows have K - 1 degrees of freedom each.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np
from scipy import special

from certifit.data.columns import Array
from certifit.inference.least_squares import WEIGHTS, Convention, centred_factor, leverage_of
from certifit.inference.summary import Dropped, Summary, count_text, cut, format_number, left_out, plain_text
from certifit.mathematics.families.responses import Binomial, Gamma, InverseGaussian, Response, Tweedie

Rules = Literal["R", "statsmodels"]
Dispersion = Literal["pearson", "deviance"] | float | None
Kind = Literal["HC0", "HC1"]


@dataclass(frozen=True)
class Multinomial:
    """One of more than two classes per row."""

    name: ClassVar[str] = "multinomial"
    dispersion: ClassVar[float | None] = 1.0


def score_names(labels: Array, names: Sequence[str]) -> list[str]:
    """Of all coefficients: those of one score, or of every class but the first, "label: name"."""
    if len(labels) == 2:
        return list(names)
    return [f"{label}: {name}" for label in labels.tolist()[1:] for name in names]


@dataclass(frozen=True, eq=False)
class LikelihoodRatio:
    """Deviances of two nested models, the smaller one first: (D_0 - D_1) / phi, of chi-squared's law; F where phi is
    estimated, over the difference of their sizes.
    """

    statistic: float
    df: float
    df_resid: float | None  # of F's law; None: chi-squared's

    @property
    def p_value(self) -> float:
        """Chance of a larger statistic where the smaller model is right; nan where there is nothing to test."""
        if not self.df > 0:
            return math.nan
        if self.df_resid is None:
            return float(special.chdtrc(self.df, self.statistic))
        return float(special.fdtrc(self.df, self.df_resid, self.statistic))


@dataclass(frozen=True, eq=False)
class GlmInference:
    """All that a summary and an interval need; no rows. The columns must be independent."""

    names: tuple[str, ...]  # p names, "intercept" first when there is one; of several scores, one score after the other
    estimate: Array  # (p,)
    inverse: Array  # (p, p): A
    family: Response | Multinomial
    link: str
    deviance: float
    null_deviance: float
    pearson: float
    saturated: float  # log-likelihood of means equal to the targets at phi = 1; nan where rows are needed
    n_rows: float
    sum_weight: float
    mean_information: float  # sum of w W; of several scores, that of the first
    has_intercept: bool
    n_scores: int = 1
    weights: Convention = "frequency"
    convention: Rules = "R"
    given_dispersion: Dispersion = None
    given_likelihood: float = math.nan  # from the rows, where sums do not tell it
    robust: Array | None = None  # covariance of kind HC0 or HC1
    kind: str = "nonrobust"
    moved: tuple[float, float] = (0.0, 0.0)  # rows that a limiting model fits perfectly, and their weight
    n_lost: int = 0  # coefficients that only these determine

    def __post_init__(self) -> None:
        p = len(self.names)
        if self.estimate.shape != (p,) or self.inverse.shape != (p, p):
            shapes = f"{self.estimate.shape} and {self.inverse.shape}"
            raise ValueError(f"{p} names need shapes ({p},) and ({p}, {p}). Got {shapes}.")
        if not (np.isfinite(self.inverse).all() and np.all(np.diagonal(self.inverse) > 0)):
            raise ValueError("the inverse must be finite, its diagonal positive. Rescale or drop columns.")

    @property
    def law(self) -> str:
        """The law that coefficients are tested with: "t" (Student's) or "z" (normal)."""
        return "t" if self.convention == "R" and self.is_estimated and self.robust is None else "z"

    @property
    def covariance_type(self) -> str:
        """ "nonrobust", or the name of a robust covariance."""
        return self.kind

    @property
    def n_obs(self) -> float:
        """N."""
        return float(self.n_rows if self._counts_rows else self.sum_weight)

    @property
    def _counts_rows(self) -> bool:
        return self.weights == "variance" or isinstance(self.family, Binomial)

    @property
    def df_model(self) -> float:
        """Columns besides the intercept, of all scores; of a limiting model those of all rows."""
        return float(len(self.names) + self.n_lost - self.n_scores * self.has_intercept)

    @property
    def df_resid(self) -> float:
        """N - p; of several scores N times their number, less p; of a limiting model of the rows that stay."""
        staying = self.n_obs - self.moved[not self._counts_rows]
        return float(self.n_scores * staying - len(self.names))

    @property
    def df_null(self) -> float:
        """N less 1 for the intercept, of every score."""
        return float(self.n_scores * (self.n_obs - self.has_intercept))

    @property
    def is_estimated(self) -> bool:
        """Whether the dispersion comes from the rows."""
        return isinstance(self.given_dispersion, str) or (
            self.given_dispersion is None and self.family.dispersion is None
        )

    @property
    def dispersion(self) -> float:
        """phi; nan where it is estimated and no degree of freedom is left."""
        choice = "pearson" if self.given_dispersion is None and self.is_estimated else self.given_dispersion
        if isinstance(choice, str):
            size = self.pearson if choice == "pearson" else self.deviance
            return size / self.df_resid if self.df_resid > 0 else math.nan
        return float(self.family.dispersion or 1.0) if choice is None else float(choice)

    @property
    def covariance(self) -> Array:
        """Covariance of the estimates, shape (p, p)."""
        return self.dispersion * self.inverse if self.robust is None else self.robust

    @property
    def standard_errors(self) -> Array:
        """Roots of the diagonal of the covariance, shape (p,)."""
        return np.asarray(np.sqrt(np.diagonal(self.covariance)))

    @property
    def t_values(self) -> Array:
        """estimate_j / standard error_j, shape (p,), whatever the law."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(self.estimate / self.standard_errors)

    @property
    def p_values(self) -> Array:
        """P(|T| > |t_j|) for T of Student's or the normal law, shape (p,)."""
        size = -np.abs(self.t_values)
        return np.asarray(2.0 * (special.ndtr(size) if self.law == "z" else special.stdtr(self.df_resid, size)))

    def confidence_interval(self, level: float = 0.95) -> Array:
        """estimate_j -+ quantile standard error_j, shape (p, 2)."""
        half = self._quantile(level) * self.standard_errors
        return np.column_stack([self.estimate - half, self.estimate + half])

    @property
    def deviance_explained(self) -> float:
        """1 - deviance / null deviance; nan where the null model is exact."""
        return 1 - self.deviance / self.null_deviance if self.null_deviance > 0 else math.nan

    @property
    def likelihood_dispersion(self) -> float:
        """The phi of the log-likelihood."""
        if self.family.dispersion is not None:
            return float(self.family.dispersion)
        is_profiled = self.family.name == "gaussian" and self.link == "identity"
        if not (self.convention == "R" or is_profiled):
            return self.dispersion
        return self.deviance / (self.sum_weight if self.likelihood_weights == "frequency" else self.n_rows)

    @property
    def likelihood_weights(self) -> Convention:
        """What the weights of the log-likelihood are: R's Gamma()$aic and inverse.gaussian()$aic count rows by them."""
        is_counted = self.convention == "R" and isinstance(self.family, Gamma | InverseGaussian)
        return "frequency" if is_counted else self.weights

    @property
    def needs_rows(self) -> bool:
        """Whether sums do not tell the log-likelihood."""
        if self.family.dispersion is not None:
            return False
        has_variances = self.likelihood_weights == "variance" and self.sum_weight != self.n_rows
        return isinstance(self.family, Tweedie) or has_variances

    @property
    def log_likelihood(self) -> float:
        """With all constants: saturated - deviance / (2 phi), and what phi adds to the constants."""
        if self.needs_rows:
            return self.given_likelihood
        if self.family.dispersion is not None:
            return self.saturated - self.deviance / 2
        assert isinstance(self.family, Response)  # the others have a dispersion
        phi, unit = self.likelihood_dispersion, np.ones(1)
        if not phi > 0:
            return math.inf
        constants = self.family.log_density(unit, unit, phi)[0] - self.family.log_density(unit, unit, 1.0)[0]
        return self.saturated + self.sum_weight * float(constants) - self.deviance / (2 * phi)

    @property
    def n_parameters(self) -> int:
        """p, and 1 for a dispersion that R counts."""
        return len(self.names) + self.n_lost + int(self.convention == "R" and self.family.dispersion is None)

    @property
    def aic(self) -> float:
        """2 parameters - 2 log-likelihood."""
        return 2 * self.n_parameters - 2 * self.log_likelihood

    @property
    def bic(self) -> float:
        """log(N) parameters - 2 log-likelihood."""
        return self.n_parameters * math.log(self.n_obs) - 2 * self.log_likelihood

    @property
    def likelihood_ratio(self) -> LikelihoodRatio:
        """The test against the null model."""
        return self._ratio(self.null_deviance, self.df_model)

    def compare(self, smaller: GlmInference) -> LikelihoodRatio:
        """The test against a model of some of these columns, fitted to the same rows: R's anova.

        That the rows are the same is seen from their number and the null deviance, that the columns are from names.
        """
        is_same = np.isclose(smaller.null_deviance, self.null_deviance, rtol=1e-6, atol=0)
        if smaller.n_obs != self.n_obs or not is_same or smaller.family != self.family or smaller.link != self.link:
            raise ValueError(
                "The models are of other rows, another family or another link: a likelihood ratio needs the same. Got "
                f"N = {smaller.n_obs:g}, null deviance {smaller.null_deviance:.6g} and N = {self.n_obs:g}, "
                f"{self.null_deviance:.6g}."
            )
        extra = sorted(set(smaller.names) - set(self.names))
        if extra:
            raise ValueError(f"The smaller model must have some of the columns of this one. It also has {extra[0]!r}.")
        return self._ratio(smaller.deviance, len(self.names) - len(smaller.names))

    def interval(self, rows: Array, scores: Array, level: float = 0.95) -> Array:
        """score -+ quantile sqrt(phi x'Ax): where the score of the mean lies, shape (n, 2). Rows lead with 1."""
        spread = math.sqrt(self.dispersion) if self.dispersion >= 0 else math.nan
        centre = leverage_of(rows, self._factor, self.has_intercept, self.mean_information)
        half = self._quantile(level) * spread * np.sqrt(centre)
        return np.column_stack([scores - half, scores + half])

    def chance_intervals(self, rows: Array, chances: Array, level: float = 0.95) -> Array:
        """Where the chances of all classes lie, shape (n, classes, 2). Rows lead with 1.

        logit p_k = z_k - log sum of e^(z_l) over the other classes has the slopes 1 by z_k and -p_l / (1 - p_k) by the
        others; its interval, through the logit. Of two classes that is the interval of their one score.
        """
        root = _factor_of(self.inverse) * math.sqrt(self.dispersion)
        ends = np.empty((*chances.shape, 2))
        for k in range(chances.shape[1]):
            others = np.delete(chances, k, axis=1)
            rest = others.sum(axis=1)  # 1 - p_k, without cancelling
            with np.errstate(divide="ignore", invalid="ignore"):  # a chance of 1 to rounding
                slopes = np.insert(-others / rest[:, None], k, 1.0, axis=1)[:, 1:]
                score = np.log(chances[:, k]) - np.log(rest)
                along = (slopes[:, :, None] * rows[:, None, :]).reshape(len(rows), -1) @ root
                half = self._quantile(level) * np.sqrt(np.einsum("ij,ij->i", along, along))
            ends[:, k] = special.expit(np.column_stack([score - half, score + half]))
        return np.where(np.isnan(ends), [0.0, 1.0], ends)

    def with_options(self, weights: Convention, convention: Rules, dispersion: Dispersion) -> GlmInference:
        """The same fit by other rules."""
        return replace(self, weights=weights, convention=convention, given_dispersion=dispersion)

    def summary(
        self,
        model: str,
        target: str,
        level: float = 0.95,
        notes: Sequence[str] = (),
        dropped: Sequence[Dropped] = (),
        undetermined: Sequence[int] = (),
        infinite: Mapping[int, float] | None = None,
    ) -> GlmSummary:
        """The table of the fit; `notes` are sentences printed after those of the table itself."""
        self._quantile(level)
        relations = [] if self.moved[0] else left_out(dropped, bool(undetermined))
        sentences: Any = (*relations, *self._sentences(), *notes)
        return GlmSummary(self, model, target, level, sentences, tuple(dropped), tuple(undetermined), infinite or {})

    @cached_property
    def _factor(self) -> tuple[Array, Array, Array]:
        return centred_factor(self.inverse, self.has_intercept)

    def _ratio(self, deviance: float, df: float) -> LikelihoodRatio:
        with np.errstate(divide="ignore", invalid="ignore"):
            statistic = float(np.float64(max(deviance - self.deviance, 0.0)) / self.dispersion)
        if not self.is_estimated:
            return LikelihoodRatio(statistic, df, None)
        return LikelihoodRatio(statistic / df if df > 0 else math.nan, df, self.df_resid)

    def _quantile(self, level: float) -> float:
        if not 0 < level < 1:
            raise ValueError(f"level must be between 0 and 1, such as 0.95. Got {level}.")
        tail = (1 - level) / 2
        return float(-special.ndtri(tail) if self.law == "z" else -special.stdtrit(self.df_resid, tail))

    def _sentences(self) -> Iterator[str]:
        """What a reader of the table must know."""
        if self.moved[0]:
            yield (
                f"The lines are those of the limiting model, the fit to the {self.n_rows - self.moved[0]:,.0f} rows "
                f"that stay: all others ({self.moved[0]:,.0f}) are fitted perfectly in the limit. Df Residuals counts "
                "rows that stay; deviances, log-likelihood, AIC and BIC are the limits, of all rows."
            )
        if self.robust is not None:
            yield f"Standard errors hold whatever the variance of independent targets, given their means ({self.kind})."
            yield "They are those of many rows: of few they are too small, and tests by them reject too often."
        else:
            yield f"Standard errors assume independent targets of the {self.family.name} family, given their means."
        yield WEIGHTS[self.weights]
        if self.is_estimated:
            by = "Pearson's sum" if self.given_dispersion in (None, "pearson") else "deviance"
            law = f"Student's law (t), as R does; statsmodels' is the normal law: convention={'statsmodels'!r}"
            tests = f"Tests use {law if self.law == 't' else 'the normal law (z)'}."
            yield f"The dispersion is estimated: {by} / {self.df_resid:g}. {tests}"
        if self.family.dispersion is None and self.likelihood_weights != self.weights:
            yield (
                "Log-likelihood, AIC and BIC count rows by their weights, as R's of this family do; statsmodels' have "
                "phi / w: convention='statsmodels'."
            )
        if self.needs_rows and math.isnan(self.given_likelihood):
            yield "Log-likelihood, AIC and BIC need the rows: summary(X, y, ...)."
        if not self.has_intercept:
            yield "The null model has no intercept either: its score is the offset, or 0."


def _factor_of(covariance: Array) -> Array:
    """L with LL' = covariance."""
    size = np.sqrt(np.diagonal(covariance))
    try:
        return np.asarray(np.linalg.cholesky(covariance / size / size[:, None]) * size[:, None])
    except np.linalg.LinAlgError:
        raise ValueError("the columns are too close to dependent to tell them apart in float64. Drop some.") from None


# ---- the table: that of least squares with another head --------------------------------------------------------------


@dataclass(frozen=True, eq=False, repr=False)
class GlmSummary(Summary):
    """The table of a fit: prints as text, shows as HTML in a notebook, converts to a dict or a frame."""

    inference: GlmInference  # type: ignore[assignment]

    title: ClassVar[str] = "Generalised Linear Model Regression Results"
    scalars: ClassVar[tuple[str, ...]] = (
        *("n_obs", "df_resid", "df_model", "df_null", "deviance", "null_deviance", "pearson", "dispersion"),
        *("deviance_explained", "log_likelihood", "aic", "bic"),
    )

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and text; None where a value is undefined."""
        fit, ratio = self.inference, self.inference.likelihood_ratio
        test = {"statistic": ratio.statistic, "df": ratio.df, "df_resid": ratio.df_resid, "p": ratio.p_value}
        of_glm = {"family": fit.family.name, "link": fit.link, "convention": fit.convention, "likelihood_ratio": test}
        return {**super().to_dict(), **of_glm}

    def _header(self) -> list[tuple[str, str, str, str]]:
        """Lines of label, value, label, value."""
        fit, ratio = self.inference, self.inference.likelihood_ratio
        likelihood, aic, bic = (format_number("%#.6g", v) for v in (fit.log_likelihood, fit.aic, fit.bic))
        test = "LR chi-squared" if ratio.df_resid is None else "F"
        return [
            ("Dep. Variable:", cut(plain_text(self.target), 22), "Log-Likelihood:", likelihood),
            ("Model:", cut(plain_text(self.model), 22), "AIC:", aic),
            ("Family:", fit.family.name, "BIC:", bic),
            ("Link:", fit.link, "Null deviance:", format_number("%#.6g", fit.null_deviance)),
            ("No. Observations:", count_text(fit.n_obs), "Deviance:", format_number("%#.6g", fit.deviance)),
            ("Df Residuals:", count_text(fit.df_resid), "Pearson chi2:", format_number("%#.6g", fit.pearson)),
            ("Df Model:", count_text(fit.df_model), f"{test}:", format_number("%#.4g", ratio.statistic)),
            ("Dispersion:", format_number("%#.5g", fit.dispersion), f"Prob ({test}):", _probability(ratio.p_value)),
            ("Covariance Type:", fit.covariance_type, "Deviance explained:", _share(fit.deviance_explained)),
        ]


def _probability(value: float) -> str:
    return format_number("%#.3g", value)


def _share(value: float) -> str:
    return format_number("%.4f", value)
