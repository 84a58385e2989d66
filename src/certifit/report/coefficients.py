"""The coefficients as rows of a table, with what belongs together: the levels of a category.

What the penalty does: every coefficient along its strength, for a model that has a path.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from scipy import linalg, special

from certifit.data.privacy import FEWEST
from certifit.maps.table.survey import has_rare_zero
from certifit.models.least_squares.inference import BEYOND
from certifit.report import text
from certifit.report.collinear import collinear_facts
from certifit.report.facts import Fit, pooled_words
from certifit.report.passes import Seen
from certifit.report.places import with_places
from certifit.report.text import Table

CHOSEN = (
    "on these rows. After a choice p-values are too small and intervals too narrow; rows that had no part in it give "
    "honest ones."
)
# link -> what e^coefficient is
RATIOS = {"log": "rate ratio", "logit": "odds ratio"}
NUMBERS = {"error": "standard_error", "t": "t", "p": "p", "low": "lower", "high": "upper"}
ROBUST_NUMBERS = {"robust_error": "standard_error", "robust_p": "p", "robust_low": "lower", "robust_high": "upper"}
EFFECTS = ("effect", "effect_low", "effect_high")
FACTORS = {"ratio": "estimate", "ratio_low": "low", "ratio_high": "high"}  # e to the power of these
STEP_FACTORS = {"step_ratio": "effect", "step_ratio_low": "effect_low", "step_ratio_high": "effect_high"}


def coefficient_facts(fit: Fit) -> Table | None:
    """Rows, and the groups of rows that are one category; None for a model without one coefficient per column."""
    model, level, weights = fit.model, fit.level, fit.weights
    if weights is None:
        return None
    names = fit.printed.columns
    rows: list[Table] = [{"name": name, "estimate": float(value)} for name, value in zip(names, weights, strict=True)]
    if fit.has_intercept:
        rows.insert(0, {"name": "intercept", "estimate": fit.intercept})
    keys = (*NUMBERS, *ROBUST_NUMBERS, *EFFECTS, *FACTORS, *STEP_FACTORS, "column", "level", "determined")
    digits = list(model.certificate_.digits) or [None] * len(rows)
    rows = [dict.fromkeys(keys) | row | {"digits": digit} for row, digit in zip(rows, digits, strict=True)]
    notes: list[str] = []
    robust = None
    summary = _summary(fit)
    if summary is not None:
        _fill(rows, summary.to_dict(), NUMBERS | {"t": summary.inference.law})
        places = {"dropped": summary.dropped, "undetermined": summary.undetermined}
        notes = list(summary.inference.summary(type(model).__name__, model.target_name_, level, **places).notes)
        robust = _add_robust(fit, rows)
        notes += _note_on_choice(fit)
    weight_rows = rows[len(rows) - len(weights) :]
    groups = []
    if model.basis_ is None:
        _add_effects(weight_rows, fit.seen)
        groups = _name_columns(fit, weight_rows)
    if fit.link in RATIOS:
        _add_factors(rows)
    hidden, pooled = _not_printed(fit, rows, groups)
    return {
        "level": level,
        "has_inference": summary is not None,
        "has_intervals": fit.inference is not None,
        "reason": why_no_inference(fit) if summary is None else _undetermined(summary, fit),
        "law": "t" if summary is None else summary.inference.law,
        "ratio": RATIOS.get(fit.link or ""),
        "notes": notes,
        "robust": robust,
        "chosen": _chosen(weight_rows) if fit.words.is_sparse else None,
        "rows": [row for row in rows if id(row) not in hidden],
        "groups": groups,
        "pooled": pooled,
        "collinear": collinear_facts(fit),
    }


def _not_printed(fit: Fit, rows: list[Table], groups: list[Table]) -> tuple[set[int], list[Table]]:
    """Rows of levels and words that too few rows hold, by id, and what stands for them, one entry per column.

    A flag or a number that is the same in nearly all rows is one more such column. Where the reference level is such a
    one, or few rows are 0, the intercept may be the target of a row.
    """
    column_rows = rows[len(rows) - len(fit.printed.columns) :]
    rare = [row for row, is_rare in zip(column_rows, fit.printed.is_rare, strict=True) if is_rare]
    names = {group["column"] for group in groups}
    is_named = [row["column"] in names or fit.is_text(row["column"]) for row in rare]
    counts = Counter(row["column"] for row, has_level in zip(rare, is_named, strict=True) if has_level)
    words = {column: pooled_words(n, _NOUNS[fit.is_text(column)]) for column, n in counts.items()}
    pooled = [{"column": column, "n": n, "words": words[column]} for column, n in counts.items()]
    numbers = [row for row, has_level in zip(rare, is_named, strict=True) if not has_level]
    pooled += [{"column": name, "n": n, "words": _FEW_APART} for name, n in Counter(r["name"] for r in numbers).items()]
    hidden = {id(row) for row in rare}
    why = why_no_intercept(fit)
    if why:
        hidden.add(id(rows[0]))
        pooled.insert(0, {"column": "intercept", "n": 1, "words": f"not shown: {why}"})
    return hidden, pooled


_FEW_APART = f"not shown: fewer than {FEWEST} rows decide it, for all others are alike"


def why_no_intercept(fit: Fit) -> str:
    """Empty where the intercept may be printed."""
    if fit.printed.rule.shows or not fit.has_intercept or fit.model.encoder_ is None:
        return ""
    encoder = fit.model.encoder_
    surveyed = [(kind, encoder.survey_.columns[kind.name]) for kind in encoder.columns_]
    compared = [
        kind.name for kind, column in surveyed if kind.kind == "level" and fit.printed.reference(kind, column)[1]
    ]
    if compared:
        why = f"fewer than {FEWEST} rows hold the reference level of {text.joined(compared, 3)}"
        return f"{why} (--reference most-frequent takes another)"
    if fit.model.basis_ is not None and fit.printed.n_rare:
        return f"fewer than {FEWEST} rows decide a term of the polynomial"
    ends = np.cumsum([len(kind.names_out("")) for kind, _ in surveyed])
    is_hidden = [part.any() for part in np.split(fit.printed.is_rare, ends[:-1])]
    zero = [
        kind.name
        for (kind, column), hides in zip(surveyed, is_hidden, strict=True)
        if hides and has_rare_zero(kind, column)
    ]
    return f"fewer than {FEWEST} rows are 0, false or present in {text.joined(zero, 3)}" if zero else ""


_NOUNS = {False: "level", True: "word"}


def _note_on_choice(fit: Fit) -> list[str]:
    """What a choice among models or columns on the same rows means for p-values."""
    choice = (fit.validation or {}).get("choice")
    n_candidates = 0 if choice is None else choice["n_candidates"]
    if n_candidates < 2 and fit.selection is None:
        return []
    among = (
        "its columns were chosen" if fit.selection is not None else f"it was chosen among {n_candidates:,} candidates"
    )
    return [f"These p-values and intervals take the model as given, but {among} {CHOSEN}"]


def _summary(fit: Fit) -> Any:
    """The table of the fit, of the coefficients that the data determine; None where there is none."""
    if fit.inference is not None:
        return fit.model.summary(level=fit.level)
    is_free = fit.words.why_no_inference is None and fit.model.alpha_ == 0
    if not is_free or not (fit.model.certificate_.dependent or getattr(fit.model.certificate_, "is_separated", False)):
        return None
    try:
        summary = fit.model.summary(fit.source, level=fit.level)
    except ValueError:  # no residual degree of freedom, or no proven maximum: `why_no_inference` says so
        return None
    return summary if len(summary.undetermined) < len(fit.model.certificate_.names) else None


def _fill(rows: list[Table], summary: Table, keys: dict[str, str]) -> None:
    for row, figures in zip(rows, summary["coefficients"], strict=True):
        row.update({key: figures[name] for key, name in keys.items()}, determined=figures.get("determined", True))


def _add_robust(fit: Fit, rows: list[Table]) -> Table:
    """Robust standard errors beside the usual ones, and what changes with them."""
    kind = fit.words.robust
    try:
        summary = fit.model.summary(fit.source, level=fit.level, covariance=kind)
    except ValueError as error:
        why = with_places(fit.source, str(error))
        return {"kind": kind, "holds": False, "sentences": [f"No robust standard errors: {why}"]}
    _fill(rows, summary.to_dict(), ROBUST_NUMBERS)
    changed = [row["name"] for row in rows if _is_clear(row["p"]) != _is_clear(row["robust_p"])]
    ratios = [row["robust_error"] / row["error"] for row in rows if row["error"] and row["robust_error"] is not None]
    words = [f"Robust errors ({kind}) stay right {ROBUST_WHERE[fit.errors is not None]}."]
    if ratios:
        words.append(
            f"Here they are {text.number(min(ratios), 2)} to {text.number(max(ratios), 2)} times the usual ones."
        )
    words.append(
        f"With them, {text.joined(changed, 8)} cross{'es' if len(changed) == 1 else ''} the 5 % mark."
        if changed
        else "With them, no coefficient crosses the 5 % mark."
    )
    return {"kind": kind, "holds": True, "sentences": words}


# whether residuals have one spread
ROBUST_WHERE = {
    True: "where the noise is not equally large everywhere",
    False: "where the target spreads more or less than its family says",
}


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


def _undetermined(summary: Any, fit: Fit) -> str | None:
    """Which coefficients have no p-values, where others have them."""
    names = [row["name"] for row in summary.to_dict()["coefficients"] if not row.get("determined", True)]
    if not names:
        return None
    names = list(dict.fromkeys(map(fit.printed.mask, names)))
    if getattr(fit.model.certificate_, "is_separated", False):
        return (
            f"There is no best fit, see the warning above. No best coefficient exists for {text.joined(names, 8)}: "
            "what stands there is where the solver stopped, without p-values. All other coefficients tend to limits, "
            "and have the p-values of these."
        )
    return (
        f"The data do not determine the coefficients of {text.joined(names, 8)}: these columns repeat each other, so "
        "what stands there is one choice among many, without p-values. All other coefficients have theirs. To have "
        "all, leave out one column of each relation that the warning names."
    )


def why_no_inference(fit: Fit) -> str:
    """Why there are no p-values, and what to do."""
    if (fit.validation or {}).get("separated") is not None:
        return (
            "There are no p-values or intervals: the penalty pulls coefficients towards zero on purpose, and without a "
            "penalty there is no best fit. See the warning above."
        )
    if fit.words.why_no_inference is not None:
        return fit.words.why_no_inference
    if fit.model.certificate_.fault:
        return "There are no p-values or intervals: there is no best fit that they could be of. See the warning above."
    if fit.model.rank_ < len(fit.model.column_names_) and fit.seen.mass > fit.model.rank_ + fit.has_intercept:
        return (
            "There are no p-values or intervals: columns repeat others, so no coefficient is determined by the data. "
            "Leave out one column of each relation named above, then fit again."
        )
    if fit.model.rank_ == len(fit.model.column_names_) and fit.seen.mass > fit.model.rank_ + fit.has_intercept:
        return f"There are no p-values or intervals: {BEYOND}"
    return (
        "There are no p-values or intervals: there are no more rows than coefficients, so nothing is left to "
        "measure the noise with. Use more rows or fewer columns."
    )


def _add_effects(rows: list[Table], seen: Seen) -> None:
    """Coefficient times the sd of its column: what one usual step of the column does to the target."""
    for row, sd in zip(rows, seen.columns.sd, strict=True):
        for key, value in zip(EFFECTS, ("estimate", "low", "high"), strict=True):
            row[key] = None if row[value] is None else row[value] * float(sd)


def _add_factors(rows: list[Table]) -> None:
    """e^coefficient, what one more unit of a column multiplies the rate or the odds by; e^effect, of one more sd."""
    with np.errstate(over="ignore"):
        for row in rows:
            factors = FACTORS if row["level"] is not None else FACTORS | STEP_FACTORS  # a level is there or not
            row |= {key: None if row[of] is None else float(np.exp(row[of])) for key, of in factors.items()}


def _name_columns(fit: Fit, rows: list[Table]) -> list[Table]:
    """Give every row its column of the table, and its level; returns the categories."""
    encoder = fit.model.encoder_
    if encoder is None:
        for row in rows:
            row["column"] = row["name"]
        return []
    groups = []
    first = 0
    for kind in encoder.columns_:
        made = kind.names_out("")
        made_rows = rows[first : first + len(made)]
        for row in made_rows:
            row["column"] = kind.name
        if kind.kind == "level" and made_rows:
            place = slice(first, first + len(made))
            for row, name, is_rare in zip(made_rows, made, fit.printed.is_rare[place], strict=True):
                row["level"] = name.removeprefix("=") if name.startswith("=") and not is_rare else None
            groups.append(_group(fit, kind, place))
        first += len(made)
    return groups


def _group(fit: Fit, kind: Any, place: slice) -> Table:
    """A category: its reference, how much it moves the prediction, and the test of all its levels together.

    effect is the sd over rows of its part of the prediction: sum_l p_l b_l^2 - (sum_l p_l b_l)^2, then the root.
    """
    assert fit.weights is not None
    b, share = fit.weights[place], fit.seen.columns.mean[place]
    exponent = int(np.frexp(np.abs(b).max(initial=0.0))[1])  # squares of coefficients may leave the range of float64
    scaled = np.ldexp(b, -exponent)
    mean = float(share @ scaled)
    variance = float(share @ (scaled - mean) ** 2 + (1 - share.sum()) * mean**2)
    reference, is_rare = fit.printed.reference(kind, fit.model.encoder_.survey_.columns[kind.name])
    f, p = _joint_test(fit.inference, place) if fit.inference is not None else (None, None)
    return {
        "column": kind.name,
        "reference": reference,
        "is_reference_rare": is_rare,
        "n_pooled": int(fit.printed.is_rare[place].sum()),
        "reference_rows": fit.printed_mass(abs(round(float(fit.seen.mass * (1 - share.sum())), 6))),
        "n_levels": len(b) + 1,
        "effect": float(np.ldexp(np.sqrt(max(variance, 0.0)), exponent)),
        "f": f,
        "p": p,
    }


def _joint_test(inference: Any, place: slice) -> tuple[float | None, float | None]:
    """F = b' A^-1 b / (k s^2) of k coefficients b with covariance s^2 A, and its p-value; k F is chi-squared where s^2
    is known.
    """
    start = place.start + inference.has_intercept
    places = slice(start, place.stop + inference.has_intercept)
    b, A = np.ldexp(inference.estimate[places], -getattr(inference, "exponent", 0)), inference.inverse[places, places]
    size = np.sqrt(np.diagonal(A))
    is_squares = hasattr(inference, "rss")
    noise = inference.rss / inference.df_resid if is_squares else inference.dispersion
    if not noise > 0:
        return None, None
    z = b / size
    try:
        solved = linalg.cho_solve(linalg.cho_factor(A / np.outer(size, size)), z)
    except linalg.LinAlgError:
        return None, None
    f = float(z @ solved) / (len(b) * noise)
    if getattr(inference, "law", "t") == "z":
        return f, float(special.chdtrc(len(b), len(b) * f))
    return f, float(special.fdtrc(len(b), inference.df_resid, f))


N_ALPHAS = 60
# Columns that are drawn and named; those that move the prediction most.
MOST_LINES = 12


def path_facts(fit: Fit) -> Table | None:
    """Coefficients against alpha; None without a path of one coefficient per column, or where none is dropped."""
    if "path" not in fit.sections or fit.weights is None or fit.params.get("l1_ratio", 1.0) == 0:
        return None
    alphas, coef = _solutions(fit)
    chosen = float(fit.model.alpha_)
    n_nonzero = (coef != 0).sum(axis=1)
    sd = np.ones(coef.shape[1]) if fit.model.basis_ is not None else fit.seen.columns.sd
    effects = coef * sd
    reach = np.abs(effects).max(axis=0)
    names, is_rare = fit.printed.columns, fit.printed.is_rare
    shown = [int(j) for j in np.argsort(-reach, kind="stable") if reach[j] > 0 and not is_rare[j]]
    first = shown[:MOST_LINES]
    now = int(n_nonzero[int(np.argmin(np.abs(alphas - chosen)))])
    return {
        "alphas": alphas,
        "chosen": chosen,
        "n_nonzero": n_nonzero,
        "n_columns": coef.shape[1],
        "lines": [
            {"name": str(names[j]), "entered": _entered(alphas, coef[:, j]), "weights": coef[:, j]}
            | {"effects": effects[:, j]}
            for j in first
        ],
        "n_other": int((reach > 0).sum()) - len(first),
        "sentences": _sentences(names, alphas, coef, chosen, now),
    }


def _solutions(fit: Fit) -> tuple[Any, Any]:
    """alphas, largest first, and the coefficients there; the model's own alpha is among them with its own fit."""
    model, chosen = fit.model, float(fit.model.alpha_)
    path = model.path(fit.source, n_alphas=N_ALPHAS)
    alphas, coef = path.alphas, path.coef
    if 0 < chosen < alphas.min():  # go on to it in steps of the same size
        n_more = int(np.ceil(np.log(alphas.min() / chosen) / np.log(alphas[0] / alphas[1])))
        more = model.path(fit.source, alphas=np.geomspace(alphas.min(), chosen, min(n_more, N_ALPHAS) + 1)[1:])
        alphas, coef = np.concatenate([alphas, more.alphas]), np.concatenate([coef, more.coef])
    is_chosen = np.isclose(alphas, chosen, rtol=1e-12, atol=0.0)
    alphas, coef = np.append(alphas[~is_chosen], chosen), np.vstack([coef[~is_chosen], model.coef_])
    order = np.argsort(-alphas, kind="stable")
    return alphas[order], coef[order]


def _entered(alphas: Any, weights: Any) -> float:
    """The largest alpha at which the column has a weight."""
    return float(alphas[np.flatnonzero(weights)].max())


def _sentences(names: list[str], alphas: Any, coef: Any, chosen: float, n_now: int) -> list[str]:
    n_columns = coef.shape[1]
    said = [
        f"At alpha = {text.number(chosen)}, {text.count(n_now)} of {text.plural(n_columns, 'coefficient')} "
        f"{'is' if n_now == 1 else 'are'} not zero."
    ]
    used = np.flatnonzero((coef != 0).any(axis=0))
    order = sorted(used, key=lambda j: (-_entered(alphas, coef[:, j]), -float(np.abs(coef[:, j]).max())))
    if len(order) > 1:
        first = text.joined(list(dict.fromkeys(names[j] for j in order[:5])), 5)
        said.append(f"As the penalty gets weaker, the first to come in {'are' if len(order) > 1 else 'is'} {first}.")
    return said
