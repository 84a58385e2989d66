"""The coefficients as rows of a table, with what belongs together: the levels of a category."""

from typing import Any

import numpy as np
from scipy import linalg, special

from certifit.report.passes import Survey

Table = dict[str, Any]


def coefficients(model: Any, seen: Survey, level: float) -> Table:
    """Rows, and the groups of rows that are one category."""
    names = [str(name) for name in model.column_names_]
    rows: list[Table] = [
        {"name": name, "estimate": float(value)} for name, value in zip(names, model.coef_, strict=True)
    ]
    if getattr(model, "fit_intercept", True):
        rows.insert(0, {"name": "intercept", "estimate": float(model.intercept_)})
    reason, notes = None, []
    if getattr(model, "inference_", None) is not None:
        summary = model.summary(level=level).to_dict()
        notes = list(model.inference_.summary(type(model).__name__, model.target_name_, level).notes)
        for row, found in zip(rows, summary["coefficients"], strict=True):
            row |= {"error": found["standard_error"], "t": found["t"], "p": found["p"]}
            row |= {"low": found["lower"], "high": found["upper"]}
    else:
        reason = why_no_inference(model)
    digits = list(model.certificate_.digits) or [None] * len(rows)
    keys = ("error", "t", "p", "low", "high", "effect", "effect_low", "effect_high", "column", "level")
    rows = [dict.fromkeys(keys) | row | {"digits": digit} for row, digit in zip(rows, digits, strict=True)]
    own = rows[len(rows) - len(model.coef_) :]
    groups = []
    if getattr(model, "basis_", None) is None:
        _add_effects(own, seen)
        groups = _name_columns(model, own, seen)
    return {
        "level": level,
        "has_inference": reason is None,
        "reason": reason,
        "notes": notes,
        "rows": rows,
        "groups": groups,
    }


def why_no_inference(model: Any) -> str:
    """Why there are no p-values, and what to do."""
    if model.alpha_ > 0:
        return (
            "There are no p-values or intervals: the penalty pulls coefficients towards zero on purpose, "
            "so the usual standard errors would be wrong. Fit with --model linear to have them."
        )
    if model.rank_ < len(model.coef_):
        return (
            "There are no p-values or intervals: some columns repeat others, so their coefficients are not "
            "determined by the data. Leave out one column of each relation named above, then fit again."
        )
    return (
        "There are no p-values or intervals: there are no more rows than coefficients, so nothing is left to "
        "measure the noise with. Use more rows or fewer columns."
    )


def _add_effects(rows: list[Table], seen: Survey) -> None:
    """Coefficient times the sd of its column: what one usual step of the column does to the target."""
    for row, sd in zip(rows, seen.columns.sd, strict=True):
        for key, value in (("effect", "estimate"), ("effect_low", "low"), ("effect_high", "high")):
            row[key] = None if row[value] is None else row[value] * float(sd)


def _name_columns(model: Any, rows: list[Table], seen: Survey) -> list[Table]:
    """Give every row its column of the table, and its level; returns the categories."""
    encoder = getattr(model, "encoder_", None)
    if encoder is None:
        for row in rows:
            row["column"] = row["name"]
        return []
    groups = []
    first = 0
    for kind in encoder.columns_:
        made = kind.names_out("")
        own = rows[first : first + len(made)]
        for row in own:
            row["column"] = kind.name
        if kind.kind == "level" and own:
            for row, name in zip(own, made, strict=True):
                row["level"] = name.removeprefix("=") if name.startswith("=") else None
            groups.append(_group(model, kind, slice(first, first + len(made)), seen))
        first += len(made)
    return groups


def _group(model: Any, kind: Any, place: slice, seen: Survey) -> Table:
    """A category: its reference, how much it moves the prediction, and the test of all its levels together.

    effect is the sd over rows of its part of the prediction: sum_l p_l b_l^2 - (sum_l p_l b_l)^2, then the root.
    """
    b, share = model.coef_[place], seen.columns.mean[place]
    mean = float(share @ b)
    with np.errstate(over="ignore"):
        variance = float(share @ (b - mean) ** 2 + (1 - share.sum()) * mean**2)
    f, p = _joint_test(model.inference_, place) if getattr(model, "inference_", None) is not None else (None, None)
    return {
        "column": kind.name,
        "reference": kind.reference,
        "reference_rows": abs(round(float(seen.mass * (1 - share.sum())), 6)),
        "n_levels": len(b) + 1,
        "effect": float(np.sqrt(max(variance, 0.0))),
        "f": f,
        "p": p,
    }


def _joint_test(inference: Any, place: slice) -> tuple[float | None, float | None]:
    """F = b' A^-1 b / (k s^2) of k coefficients b with covariance s^2 A, and its p-value."""
    start = place.start + inference.has_intercept
    own = slice(start, place.stop + inference.has_intercept)
    b, A = np.ldexp(inference.estimate[own], -inference.exponent), inference.inverse[own, own]
    size = np.sqrt(np.diagonal(A))
    noise = inference.rss / inference.df_resid
    if not noise > 0:
        return None, None
    z = b / size
    try:
        solved = linalg.cho_solve(linalg.cho_factor(A / np.outer(size, size)), z)
    except linalg.LinAlgError:
        return None, None
    f = float(z @ solved) / (len(b) * noise)
    return f, float(special.fdtrc(len(b), inference.df_resid, f))
