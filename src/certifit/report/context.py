"""One plain dictionary with everything the report shows. JSON types only; None where there is no value.

format        "certifit report"; version 1; certifit: version of the package
files         data, paths, scan, bad_rows: what was read and how; model, report, coefficients: names as a reader
              types them; weight: its column or None
model         kind, words, objective, target, intercept, alpha, basis, n_features, n_columns, monomials
data          named (columns came with names), is_table, n_rows, mass (sum of weights), weighted,
              skipped (bad rows) and checksummed (None when not a file), notes, file_notes: sentences,
              target {name, mean, sd, low, high}, columns [{name, kind: number | flag | levels | date | set aside,
              type, missing, distinct, mean, sd, low, high, first, last (dates), levels [[level, share of rows]],
              reference, reason (why set aside), alone (share of the variance it explains by itself)}]
checks        [{name, level: ok | note | warn, text, details}]
quality       r2, adjusted_r2, centered, sigma, rmse, mean_error, df, f, f_p, exact,
              outside95 (share of residuals beyond 1.96 sigma), largest (in sigma),
              spread_ratio (widest over narrowest middle half along the predictions),
              quartiles (of the residuals: low, 25, 50, 75 %, high)
coefficients  level, has_inference, reason, notes, rows [{name, estimate, error, t, p, low, high, digits, column,
              level, effect, effect_low, effect_high}]; effect = coefficient times the spread (sd) of its column;
              groups, one a category [{column, reference, reference_rows, n_levels, effect, f, p}], f and p of the test
              of all its levels together
certificate   holds, value, tolerance, rounding, rank, n_columns, condition, dependent, claim,
              theorem, sentences
validation    None, or the errors on rows that the fits did not see: n_splits, group (column that stays in one fold),
              rule, best, chosen, rows [{name, is_baseline, is_best, is_chosen, error (root mean squared),
              standard_error, train_error, r2, difference (to the best), difference_error, params, route, folds}],
              sentences, notes, caution, curve None or {model, parameter, values, validation, validation_error, train,
              train_error, best, chosen}, decomposition None or {values, error, variance, bias_and_noise, n_draws}
              of squared errors; no rows where it was not possible: sentences say why
selection     None, or direction, wanted, fixed, features, chosen (place of its step), redundant: sentences,
              steps [{n_features, change, added (to the step before with fewer), features, error, standard_error,
              train_error, folds}]
warnings      [{level: bad | warn | note, title, text, action}], worst first
pictures      fit, spread: grids; bands; histogram; quantiles; curve or None
"""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy import special

from certifit.data.source import Source
from certifit.report import passes
from certifit.report.checks import find_checks
from certifit.report.coefficients import coefficients
from certifit.report.columns import column_facts
from certifit.report.notices import find_notices
from certifit.report.passes import Shapes, Survey
from certifit.runtime import one_blas_thread

Table = dict[str, Any]

# Two-sided 5 % point of the normal law.
NORMAL_95 = 1.959963984540054


@one_blas_thread
def build(
    model: Any,
    source: Source,
    files: Mapping[str, Any],
    level: float = 0.95,
    validation: Table | None = None,
    selection: Table | None = None,
) -> Table:
    """The dictionary, from a fitted model and the data it was fitted on; two passes over the data.

    validation, selection: from `report.validation`.
    """
    has_intercept = bool(getattr(model, "fit_intercept", True))
    sd, mean = float(model.data_["target_sd"]), float(model.data_["target_mean"])
    scale = sd if sd > 0 else max(abs(mean), 1.0)
    seen = passes.survey(model, source, scale, mean if has_intercept else 0.0)
    shapes = passes.shapes(model, source, seen)
    context: Table = {
        "format": "certifit report",
        "version": 1,
        "certifit": _version(),
        "files": dict(files),
        "model": _model(model, source, has_intercept),
        "data": _data(model, source, seen),
        "quality": _quality(model, seen, shapes, has_intercept),
        "certificate": _certificate(model.certificate_),
        "coefficients": coefficients(model, seen, level),
        "validation": validation,
        "selection": selection,
    }
    context = _plain(context)
    context["checks"] = find_checks(context)
    context["warnings"] = find_notices(context)
    context["pictures"] = _pictures(model, source, (seen, shapes), context["quality"]["sigma"], level)
    plain = _plain(context)
    assert isinstance(plain, dict)
    return plain


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("certifit")
    except PackageNotFoundError:
        return "unknown"


def _model(model: Any, source: Source, has_intercept: bool) -> Table:
    alpha = float(model.alpha_)
    basis = getattr(model, "basis_", None)
    return {
        "kind": type(model).__name__,
        "words": "least squares" if alpha == 0 else f"ridge regression (alpha = {alpha:.6g})",
        "objective": str(model.objective),
        "target": str(model.target_name_),
        "intercept": has_intercept,
        "alpha": alpha,
        "basis": None if basis is None else _basis_words(model, source),
        "n_features": int(model.n_features_in_),
        "n_columns": len(model.coef_),
        "monomials": _monomials(model, basis),
    }


def _basis_words(model: Any, source: Source) -> str:
    degree = getattr(model.basis, "degree", None)
    if degree is None:
        return f"sum of {len(model.coef_)} functions of {source.n_features} columns"
    what = "one column" if source.n_features == 1 else f"{source.n_features} columns"
    return f"polynomial of degree {degree} in {what}"


def _monomials(model: Any, basis: Any) -> dict[str, float] | None:
    if basis is None or not hasattr(model.basis, "degree"):
        return None
    try:
        return {str(name): float(value) for name, value in model.monomials().items()}
    except (AttributeError, ValueError):
        return None


def _data(model: Any, source: Source, seen: Survey) -> Table:
    return {
        "named": source.named,
        "is_table": source.is_table,
        "skipped": getattr(source, "skipped", None),
        "checksummed": getattr(source, "checksummed", None),
        "notes": list(getattr(getattr(model, "encoder_", None), "notes_", [])),
        "file_notes": list(getattr(source, "notes", [])),
        "n_rows": seen.n_rows,
        "mass": seen.mass,
        "weighted": seen.mass != seen.n_rows,
        "target": {
            "name": str(model.target_name_),
            "mean": float(model.data_["target_mean"]),
            "sd": float(model.data_["target_sd"]),
            "low": seen.target.low,
            "high": seen.target.high,
        },
        "columns": column_facts(model, source, seen),
    }


def _quality(model: Any, seen: Survey, shapes: Shapes, has_intercept: bool) -> Table:
    inference = getattr(model, "inference_", None)
    rss, tss = seen.squares, seen.total
    df = seen.mass - int(model.rank_) - has_intercept if model.alpha_ == 0 else 0.0
    rmse = math.sqrt(rss / seen.mass) * seen.scale
    quality: Table = {
        "r2": 1 - rss / tss if tss > 0 else None,
        "adjusted_r2": 1 - rss / df / (tss / (seen.mass - has_intercept)) if df > 0 and tss > 0 else None,
        "centered": has_intercept,
        "sigma": math.sqrt(rss / df) * seen.scale if df > 0 else rmse,
        "rmse": rmse,
        "mean_error": seen.absolute / seen.mass * seen.scale,
        "df": df if df > 0 else None,
        "f": None,
        "f_p": None,
        "exact": rss <= (64 * np.finfo(float).eps) ** 2 * max(tss, seen.mass * (seen.center / seen.scale) ** 2),
    }
    if inference is not None:
        quality |= {
            "r2": inference.r_squared,
            "adjusted_r2": inference.adjusted_r_squared,
            "sigma": inference.sigma,
            "df": inference.df_resid,
            "f": inference.f_statistic,
            "f_p": inference.f_pvalue,
            "exact": bool(inference.is_exact),
        }
    return quality | _residual_facts(seen, shapes, quality["sigma"])


def _residual_facts(seen: Survey, shapes: Shapes, sigma: float) -> Table:
    levels = np.arange(1, 2000) / 2000
    far = np.abs(seen.residual.quantile(levels)) > NORMAL_95 * sigma
    bands = shapes.bands.to_dict()
    widths = [q[3] - q[1] for q, mass in zip(bands["quantiles"], bands["mass"], strict=True) if mass >= 50]
    widths = [width for width in widths if width > 0]
    return {
        "outside95": float(far.mean()) if sigma > 0 else None,
        "largest": max(abs(seen.residual.low), abs(seen.residual.high)) / sigma if sigma > 0 else None,
        "quartiles": seen.residual.quantile(np.arange(5) / 4),
        "spread_ratio": max(widths) / min(widths) if len(widths) >= 5 else None,
    }


def _certificate(certificate: Any) -> Table:
    return {
        "holds": bool(certificate.holds),
        "value": float(certificate.value),
        "tolerance": float(certificate.tolerance),
        "rounding": float(certificate.rounding),
        "rank": int(certificate.rank),
        "n_columns": int(certificate.n_columns),
        "condition": float(certificate.condition),
        "dependent": [str(text) for text in certificate.dependent],
        "claim": str(certificate.claim),
        "theorem": str(certificate.theorem),
        "sentences": [str(text) for text in certificate.sentences()],
    }


def _pictures(model: Any, source: Source, found: tuple[Survey, Shapes], sigma: float, level: float) -> Table:
    seen, shapes = found
    return {
        "fit": shapes.fit.to_dict(),
        "spread": shapes.spread.to_dict(),
        "bands": shapes.bands.to_dict(),
        "histogram": {
            "edges": shapes.histogram_edges.tolist(),
            "counts": shapes.histogram.tolist(),
            "mass": seen.mass,
            "sigma": sigma,
        },
        "quantiles": _quantiles(seen, sigma),
        "curve": None if shapes.curve is None else _curve(model, source, shapes, level),
    }


def _quantiles(seen: Survey, sigma: float) -> Table:
    """Residual quantiles in units of sigma against those of the normal law, with a 95 % band.

    The k-th of m values has level p = (k - 1/2) / m; a quantile has error sqrt(p (1 - p) / m) / density.
    """
    m = max(int(seen.mass), 1)
    # All of few values; of many, an even choice in the middle and ever finer steps towards both ends.
    ends = np.round(np.geomspace(1, max(0.02 * m, 1), 24)).astype(int) - 1
    middle = np.round(np.linspace(0, m - 1, 81)).astype(int)
    ranks = np.unique(np.concatenate([ends, middle, m - 1 - ends]))
    levels = (ranks + 0.5) / m
    normal = special.ndtri(levels)
    error = np.sqrt(levels * (1 - levels) / m) / (np.exp(-(normal**2) / 2) / math.sqrt(2 * math.pi))
    found = seen.residual.quantile(levels) / sigma if sigma > 0 else np.zeros_like(normal)
    return {
        "normal": normal.tolist(),
        "found": found.tolist(),
        "low": (normal - NORMAL_95 * error).tolist(),
        "high": (normal + NORMAL_95 * error).tolist(),
    }


def _curve(model: Any, source: Source, shapes: Shapes, level: float) -> Table:
    assert shapes.curve is not None
    x = np.linspace(*shapes.curve.x, 161)
    curve: Table = {"grid": shapes.curve.to_dict(), "name": source.names[0], "level": level, "x": x.tolist()}
    curve["y"] = passes.predict_block(model, source, x[:, None]).tolist()
    for kind in ("confidence", "prediction"):
        curve[kind] = None
        if getattr(model, "inference_", None) is not None:
            curve[kind] = model.predict_interval(passes.named(source, x[:, None]), level, kind).tolist()
    return curve


def _plain(value: Any) -> Any:
    """JSON types: numbers of NumPy become Python's, numbers that are not finite become None."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [_plain(item) for item in value]
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    if isinstance(value, (int, np.integer)):
        return int(value)
    if isinstance(value, (float, np.floating)):
        return float(value) if math.isfinite(value) else None
    return value if value is None else str(value)
