"""The numbers of a summary beside those of statsmodels."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import statsmodels.api as sm

from certifit.inference.glm import GlmInference


def peer(y: Any, X: Any, family: Any, cov_type: str = "nonrobust", **rows: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = sm.GLM(y, sm.add_constant(X), family=family, **rows)
        return model.fit(tol=1e-12, tol_criterion="params", maxiter=300, cov_type=cov_type)


def numbers(fit: GlmInference) -> dict[str, Any]:
    return {
        "coef": fit.estimate, "std err": fit.standard_errors, "z": fit.t_values, "interval": fit.confidence_interval(),
        "deviance": fit.deviance, "null deviance": fit.null_deviance, "pearson": fit.pearson,
        "log-likelihood": fit.log_likelihood, "aic": fit.aic, "bic": fit.bic, "dispersion": fit.dispersion,
        "n": fit.n_obs, "df": fit.df_resid, "df model": fit.df_model,
    }  # fmt: skip


def peer_numbers(result: Any) -> dict[str, Any]:
    return {
        "coef": result.params, "std err": result.bse, "z": result.tvalues, "interval": result.conf_int(),
        "deviance": result.deviance, "null deviance": result.null_deviance, "pearson": result.pearson_chi2,
        "log-likelihood": result.llf, "aic": result.aic, "bic": result.bic_llf, "dispersion": result.scale,
        "n": result.df_resid + len(result.params), "df": result.df_resid, "df model": result.df_model,
    }  # fmt: skip


def assert_same_table(fit: GlmInference, result: Any, rtol: float = 1e-8) -> None:
    ours, theirs = numbers(fit), peer_numbers(result)
    for name in ours:
        size = np.abs(fit.estimate[:, None]) + np.asarray(fit.standard_errors)[:, None]
        slack = rtol * size if name == "interval" else rtol * np.abs(theirs[name])
        slack = rtol * size[:, 0] if name == "coef" else slack
        slack = rtol * (1 + np.abs(theirs[name])) if name == "z" else slack
        assert np.all(np.abs(ours[name] - theirs[name]) <= slack), (name, ours[name], theirs[name])
    assert np.allclose(fit.p_values, result.pvalues, rtol=1e-7, atol=1e-8)
