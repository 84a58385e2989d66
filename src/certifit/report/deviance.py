"""How good a generalised linear model is on its own rows: deviances, dispersion, observed rates by predicted ones."""

import numpy as np

from certifit.report import passes, text
from certifit.report.facts import Fit, Table
from certifit.report.lift import lift_groups
from certifit.selection.row_metrics import ROW_ERRORS

# Pearson's sum over its degrees of freedom, where it should be 1, that is worth a warning.
SPREADS_MORE = 1.5
OF_INFERENCE = ("pearson", "df_resid", "df_null", "log_likelihood", "aic", "bic")


def deviance_facts(fit: Fit) -> Table | None:
    """Deviances, and the groups of the lift picture; None for a model without a deviance of its own."""
    inference = fit.inference if hasattr(fit.inference, "null_deviance") else None
    if fit.means is None and inference is None:
        return None
    found: Table = dict.fromkeys(("family", "link", "deviance", "null_deviance", "dispersion", "ratio", "ratio_p"))
    found |= dict.fromkeys((*OF_INFERENCE, "ratio_df", "is_estimated", "spread"))
    if inference is not None:
        test = inference.likelihood_ratio
        found |= {"family": inference.family.name, "link": inference.link}
        found |= {key: getattr(inference, key) for key in ("deviance", "null_deviance", "dispersion", *OF_INFERENCE)}
        found |= {"ratio": test.statistic, "ratio_df": test.df, "ratio_p": test.p_value}
        found |= {"is_estimated": bool(inference.is_estimated), "explained": inference.deviance_explained}
        if not inference.is_estimated and inference.df_resid > 0 and fit.by_class is None:
            found["spread"] = inference.pearson / inference.df_resid
    else:
        found |= _of_rows(fit)
    lift = None
    if fit.means is not None:
        groups = lift_groups(fit.means, fit.printed.rule)
        lift = {"groups": groups, "is_rate": fit.means.has_exposure and fit.source.view.has_offset}
    return found | {"lift": lift, "sentences": _sentences(found, fit)}


def _of_rows(fit: Fit) -> Table:
    """Deviances under a penalty: 1 - explained = deviance / null deviance."""
    explained = float(fit.model.score(fit.source))
    errors = ROW_ERRORS.get(fit.model.default_scoring)
    if errors is None:
        return {"explained": explained}
    total = 0.0
    for block, mean, weight in passes.predicted(fit.model, fit.source):
        total += float(weight @ errors(np.asarray(block.y, dtype=np.float64), mean))
    return {
        "explained": explained,
        "deviance": total,
        "null_deviance": total / (1 - explained) if explained < 1 else None,
    }


def _sentences(found: Table, fit: Fit) -> list[str]:
    target = text.visible(fit.model.target_name_, 60)
    if found["explained"] is None or not np.isfinite(found["explained"]):
        return []
    return [f"It explains {text.percent(found['explained'])} of the deviance of {target}."]
