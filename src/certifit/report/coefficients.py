"""The coefficients as rows of a table, with what belongs together: the levels of a category."""

from typing import Any

import numpy as np
from scipy import linalg, special

from certifit.report import text
from certifit.report.facts import Fit, Table
from certifit.report.passes import Seen

# Standard errors that hold for noise of unequal size too, with the best record in small samples.
ROBUST = "HC3"
NUMBERS = {"error": "standard_error", "t": "t", "p": "p", "low": "lower", "high": "upper"}
ROBUST_NUMBERS = {"robust_error": "standard_error", "robust_p": "p", "robust_low": "lower", "robust_high": "upper"}
EFFECTS = ("effect", "effect_low", "effect_high")


def coefficient_facts(fit: Fit) -> Table | None:
    """Rows, and the groups of rows that are one category; None for a model of classes."""
    if fit.errors is None:
        return None
    model, level = fit.model, fit.level
    names = [str(name) for name in model.column_names_]
    rows: list[Table] = [
        {"name": name, "estimate": float(value)} for name, value in zip(names, model.coef_, strict=True)
    ]
    if fit.has_intercept:
        rows.insert(0, {"name": "intercept", "estimate": float(model.intercept_)})
    keys = (*NUMBERS, *ROBUST_NUMBERS, *EFFECTS, "column", "level")
    digits = list(model.certificate_.digits) or [None] * len(rows)
    rows = [dict.fromkeys(keys) | row | {"digits": digit} for row, digit in zip(rows, digits, strict=True)]
    notes: list[str] = []
    robust = None
    if fit.inference is not None:
        _fill(rows, model.summary(level=level).to_dict(), NUMBERS)
        notes = list(model.inference_.summary(type(model).__name__, model.target_name_, level).notes)
        robust = _add_robust(fit, rows)
    own = rows[len(rows) - len(model.coef_) :]
    groups = []
    if getattr(model, "basis_", None) is None:
        _add_effects(own, fit.seen)
        groups = _name_columns(model, own, fit.seen)
    return {
        "level": level,
        "has_inference": fit.inference is not None,
        "reason": None if fit.inference is not None else why_no_inference(fit),
        "notes": notes,
        "robust": robust,
        "chosen": _chosen(own) if fit.kind.is_sparse else None,
        "rows": rows,
        "groups": groups,
    }


def _fill(rows: list[Table], summary: Table, keys: dict[str, str]) -> None:
    for row, found in zip(rows, summary["coefficients"], strict=True):
        row |= {key: found[name] for key, name in keys.items()}


def _add_robust(fit: Fit, rows: list[Table]) -> Table:
    """Robust standard errors beside the usual ones, and what changes with them."""
    try:
        summary = fit.model.summary(fit.source, level=fit.level, covariance=ROBUST)
    except ValueError as error:
        return {"kind": ROBUST, "holds": False, "sentences": [f"No robust standard errors: {error}"]}
    _fill(rows, summary.to_dict(), ROBUST_NUMBERS)
    changed = [row["name"] for row in rows if _is_clear(row["p"]) != _is_clear(row["robust_p"])]
    ratios = [row["robust_error"] / row["error"] for row in rows if row["error"] and row["robust_error"] is not None]
    words = [f"Robust errors ({ROBUST}) stay right where the noise is not equally large everywhere."]
    if ratios:
        words.append(
            f"Here they are {text.number(min(ratios), 2)} to {text.number(max(ratios), 2)} times the usual ones."
        )
    words.append(
        f"With them, {text.joined(changed, 8)} cross{'es' if len(changed) == 1 else ''} the 5 % mark."
        if changed
        else "With them, no coefficient crosses the 5 % mark."
    )
    return {"kind": ROBUST, "holds": True, "sentences": words}


def _is_clear(p: float | None) -> bool | None:
    return None if p is None else p <= 0.05


def _chosen(rows: list[Table]) -> Table:
    """Columns of the data that kept a coefficient, and those that lost all of them."""
    columns = dict.fromkeys(row["column"] or row["name"] for row in rows)
    kept = {row["column"] or row["name"] for row in rows if row["estimate"] != 0}
    return {
        "n_nonzero": sum(row["estimate"] != 0 for row in rows),
        "kept": [name for name in columns if name in kept],
        "dropped": [name for name in columns if name not in kept],
    }


def why_no_inference(fit: Fit) -> str:
    """Why there are no p-values, and what to do."""
    if fit.kind.why_no_inference is not None:
        return fit.kind.why_no_inference
    if fit.model.rank_ < len(fit.model.coef_):
        return (
            "There are no p-values or intervals: some columns repeat others, so their coefficients are not "
            "determined by the data. Leave out one column of each relation named above, then fit again."
        )
    return (
        "There are no p-values or intervals: there are no more rows than coefficients, so nothing is left to "
        "measure the noise with. Use more rows or fewer columns."
    )


def _add_effects(rows: list[Table], seen: Seen) -> None:
    """Coefficient times the sd of its column: what one usual step of the column does to the target."""
    for row, sd in zip(rows, seen.columns.sd, strict=True):
        for key, value in zip(EFFECTS, ("estimate", "low", "high"), strict=True):
            row[key] = None if row[value] is None else row[value] * float(sd)


def _name_columns(model: Any, rows: list[Table], seen: Seen) -> list[Table]:
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


def _group(model: Any, kind: Any, place: slice, seen: Seen) -> Table:
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
