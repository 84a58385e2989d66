"""The table of a generalised linear model: that of least squares with another head."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from certifit.certificates.summary import Summary, count_text, cut, format_number, plain_text

if TYPE_CHECKING:
    from certifit.certificates.glm_inference import GlmInference


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
        own = {"family": fit.family.name, "link": fit.link, "convention": fit.convention, "likelihood_ratio": test}
        return {**super().to_dict(), **own}

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
