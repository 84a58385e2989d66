"""The model and its data in plain facts.

How to use the saved model: lines of Python and of the shell, with the real names, quoted.

The certificate and the way to it: how far the fit can be from the best one, in numbers and in words.
"""

from __future__ import annotations

import math
import shlex
from dataclasses import asdict
from typing import Any

from certifit.data.privacy import FEWEST
from certifit.models.adapter import learner_of
from certifit.models.learner import ROWS_KEPT, SUPPORT_KEPT, Params, Words
from certifit.models.table import kind_of_proof
from certifit.report import text
from certifit.report.coefficients import why_no_intercept
from certifit.report.columns import column_facts
from certifit.report.facts import Fit
from certifit.report.text import Table, visible

MOST_PATHS = 5


def usage(context: dict[str, Any]) -> dict[str, Any]:
    """Lines to copy."""
    return {"python": python_lines(context), "shell": shell_lines(context)}


def python_lines(context: dict[str, Any]) -> list[str]:
    """Load, predict, summary, verify."""
    files, target = context["files"], context["model"]["target"]
    scan, new = f"cf.{files['scan']}", _new_file(context)
    paths = files["paths"]
    again = f"{paths[0]!r}" if len(paths) == 1 else "paths"
    again += f", target={target!r}"
    again += f", weight={files['weight']!r}" if files["weight"] else ""
    offsets = "".join(f", {role}={files[role]!r}" for role in ("offset", "exposure") if files.get(role))
    again += f", bad_rows={files['bad_rows']}" if files["bad_rows"] else ""
    lines = ["import certifit as cf", f"model = cf.load({files['model']!r})"]
    if len(paths) > 1:
        lines.append(f"paths = {paths!r}" if len(paths) <= MOST_PATHS else f"paths = [...]  # the {len(paths)} files")
    columns = ""
    if context["data"]["named"]:
        lines.append("names = list(model.feature_names_in_)")
        columns = ", columns=names"
    if context["data"]["read_as"]:
        lines.append("types = model.encoder_.readings_  # columns that are not written plainly")
        columns += ", types=types"
    columns += offsets
    lines.append(f'predictions = model.predict({scan}("{new}"{columns}))')
    if context["classes"] is not None:
        lines.append(f'probabilities = model.predict_proba({scan}("{new}"{columns}))  # columns as model.classes_')
    if _has_inference(context):
        lines.append("print(model.summary())  # coefficients, p-values, intervals")
    lines.append(f"print(cf.verify(model, {scan}({again}{columns})))")
    return lines


def shell_lines(context: dict[str, Any]) -> list[str]:
    """Predict and verify."""
    files = context["files"]
    model = shlex.quote(visible(files["model"]))
    quoted = [shlex.quote(visible(path)) for path in files["paths"]]
    data = " ".join(quoted if len(quoted) <= MOST_PATHS else [quoted[0], "...", quoted[-1]])
    interval = " --interval 0.95" if _has_inference(context) and context["classes"] is None else ""
    proba = "" if context["classes"] is None else " --proba"
    weight = f" --weight {shlex.quote(visible(files['weight']))}" if files["weight"] else ""
    bad_rows = f" --bad-rows {files['bad_rows']}" if files["bad_rows"] else ""
    out = "predictions.parquet" if files["scan"] == "scan_parquet" else "predictions.csv"
    return [
        f"certifit predict {model} {_new_file(context)} --out {out}{interval}{proba}",
        f"certifit verify {model} {data}{weight}{bad_rows}",
    ]


def _has_inference(context: dict[str, Any]) -> bool:
    """Whether the model file has standard errors, so that a summary and intervals need no rows."""
    return context["coefficients"] is not None and bool(context["coefficients"]["has_intervals"])


def _new_file(context: dict[str, Any]) -> str:
    return "new.parquet" if context["files"]["scan"] == "scan_parquet" else "new.csv"


# What the files of a fit hold of the data: the printed ones little, the model file what a prediction needs.


def held_values(fit: Fit) -> list[str]:
    """What the model file holds in the way of data values, in words."""
    encoder, basis = fit.model.encoder_, fit.model.basis_
    kinds = [] if encoder is None else list(encoder.columns_)
    levels = [kind for kind in kinds if kind.kind == "level"]
    texts = [kind for kind in kinds if kind.kind == "text"]
    filled = [kind.name for kind in kinds if kind.kind in ("number", "date") and kind.takes_gaps]
    values = []
    if levels:
        n_levels = sum(len(kind.levels) for kind in levels)
        values.append(f"{text.plural(n_levels, 'level')} of {_columns([kind.name for kind in levels])}")
    if texts:
        n_words = sum(len(kind.own_names) for kind in texts)
        values.append(f"{text.plural(n_words, 'word')} of {_columns([kind.name for kind in texts])}")
    if filled:
        values.append(f"the means that fill gaps of {_columns(filled)}")
    if basis is not None:
        values.append("the smallest and largest value of each column of the polynomial")
    if fit.by_class is not None:
        values.append(f"the labels of {text.count(len(fit.by_class.classes))} classes")
    return [*values, *fit.words.stores]


def _columns(names: list[str]) -> str:
    return f"{text.plural(len(names), 'column')} ({text.joined(names, 5)})"


def holds_words(context: Table) -> str:
    """The model file in a sentence."""
    model, values = context["files"]["model"], context["model"]["holds"]
    listed = "; ".join(values) if values else "no cell value"
    rows = {ROWS_KEPT: "the rows of the fit", SUPPORT_KEPT: "rows of the fit, its support vectors"}
    kept = next((f"{what}: share it as you would share them" for key, what in rows.items() if key in values), "no row")
    return (
        f"{text.visible(model, 60)} holds {kept}. Beside coefficients and sums over the rows it holds what predictions "
        f"need: {listed}. Whoever has the file can read that."
    )


def privacy_words(context: dict[str, Any]) -> str:
    """What the printed files show of single rows."""
    data = context["data"]
    if data["shows_values"]:
        return (
            "No row is stored here, but this was made with --show-values: levels, words, labels and the ends of ranges "
            "may be those of a single row."
        )
    return (
        f"No row is stored here, and no cell value that fewer than {data['fewest']} rows hold: rare levels, words and "
        "labels are counted, not named, ranges are quantiles, pictures of rows are counts on a grid, rows are named "
        "by number."
    )


def model_facts(fit: Fit) -> Table:
    """What was fitted, and how it is called."""
    model = fit.model
    alpha = None if model.alpha_ is None else float(model.alpha_)
    parameters = {**fit.params} | ({} if alpha is None else {"alpha": alpha})
    if hasattr(fit.inference, "family"):
        parameters |= {"family": fit.inference.family.name, "link": fit.inference.link}
    n_columns = len(model.column_names_)
    return {
        "kind": type(model).__name__,
        "words": _named(fit.words, parameters),
        "minimised": fit.words.minimised,
        "objective": str(model.objective),
        "target": str(model.target_name_),
        "intercept": fit.has_intercept,
        "alpha": alpha,
        "parameters": {name: value for name, value in parameters.items() if isinstance(value, int | float | str)},
        "basis": None if model.basis_ is None else _basis_words(fit),
        "n_features": int(model.n_features_in_),
        "n_columns": n_columns,
        "made": _made(fit, n_columns),
        "n_nonzero": n_columns if fit.weights is None else int((fit.weights != 0).sum()),
        "is_sparse": fit.words.is_sparse,
        "weaker": fit.words.weaker,
        "holds": held_values(fit),
        "monomials": _monomials(fit),
    }


def _named(words: Words, parameters: Params) -> str:
    """What the model is called, with the parameters filled in."""
    shown: dict[str, str] = {}
    for name, value in parameters.items():
        word = str(getattr(value, "name", value))  # families and links have names
        is_number = isinstance(value, int | float)
        shown[name] = (
            "usual"
            if value is None
            else text.number(value, 4)
            if is_number
            else words.spelt.get(word, word.replace("_", " "))
        )
    return words.name.format_map(shown)


def _made(fit: Fit, n_columns: int) -> str:
    """What the columns of the data became."""
    if fit.by_class is None and fit.weights is not None:
        return text.plural(n_columns + fit.has_intercept, "coefficient")
    encoder = fit.model.encoder_
    n_used = 0 if encoder is None else sum(kind.kind != "set aside" for kind in encoder.columns_)
    return f"{text.count(n_columns)} used" if n_used == n_columns else f"made into {text.count(n_columns)}"


def _basis_words(fit: Fit) -> str:
    degree, n_features = getattr(fit.model.basis, "degree", None), fit.source.n_features
    if degree is None:
        return f"sum of {len(fit.model.column_names_)} functions of {n_features} columns"
    what = "one column" if n_features == 1 else f"{n_features} columns"
    return f"polynomial of degree {degree} in {what}"


def _monomials(fit: Fit) -> dict[str, float] | None:
    model = fit.model
    if model.basis_ is None or not hasattr(model.basis, "degree"):
        return None
    if fit.printed.n_rare or why_no_intercept(fit):  # powers mix the terms, and the first is the intercept
        return None
    try:
        return {str(name): float(value) for name, value in model.monomials().items()}
    except (AttributeError, ValueError):
        return None


def data_facts(fit: Fit) -> Table:
    """Rows, weights, target and columns."""
    model, source, seen = fit.model, fit.source, fit.seen
    return {
        "named": source.named,
        "is_table": source.is_table,
        "read_as": {} if model.encoder_ is None else dict(model.encoder_.readings_),
        "skipped": getattr(source, "skipped", None),
        "checksummed": getattr(source, "checksummed", None),
        "notes": list([] if model.encoder_ is None else model.encoder_.notes_),
        "file_notes": list(getattr(source, "notes", [])),
        "shows_values": fit.printed.rule.shows,
        "fewest": FEWEST,
        "n_rows": seen.n_rows,
        "mass": seen.mass,
        "weighted": seen.mass != seen.n_rows,
        "target": _target(fit),
        "columns": column_facts(fit),
    }


def _target(fit: Fit) -> Table:
    """Its range, mean and spread, or its classes."""
    facts: Table = {"name": str(fit.model.target_name_)}
    facts |= dict.fromkeys(("mean", "sd", "low", "high", "classes"))
    seen = fit.means.target if fit.means is not None else None if fit.errors is None else fit.errors.seen.target
    if seen is not None:
        data = fit.model.data_
        facts |= {"mean": float(data["target_mean"]), "sd": float(data["target_sd"])}
        low, high = fit.printed.rule.ends(fit.seen.drawn.target, seen.low, seen.high)
        facts |= {"low": low, "high": high}
    if fit.by_class is not None:
        classes = zip(fit.printed.labels, fit.printed_mass(fit.by_class.weights), fit.by_class.shares, strict=True)
        facts["classes"] = [{"label": label, "rows": rows, "share": share} for label, rows, share in classes]
    return facts


MOST_STEPS = 500


def certificate_facts(fit: Fit) -> Table:
    """The certificate, its sentences, and what it means for predictions."""
    certificate = fit.model.certificate_
    moves = certificate.prediction_change
    return {
        "holds": bool(certificate.holds),
        "value": float(certificate.value),
        "tolerance": float(certificate.tolerance),
        "rounding": float(certificate.rounding),
        "rank": certificate.rank,
        "n_columns": certificate.n_columns,
        "condition": certificate.condition,
        "dependent": [text.visible(words) for words in certificate.dependent],
        "claim": str(certificate.claim),
        "theorem": str(certificate.theorem),
        "kind": kind_of_proof(fit.words, learner_of(fit.model).exact, certificate),
        "sentences": [text.visible(words) for words in certificate.sentences()],
        "prediction_moves": moves,
        "fault": certificate.fault or None,
        "is_local": bool(getattr(certificate, "is_local", False)),
        "remedy": fit.words.remedy,
        "goal": asdict(fit.words.goal),
        "words": _words(fit, certificate, moves),
    }


def _words(fit: Fit, certificate: Any, moves: float | None) -> list[str]:
    """How far from the best fit, and how far predictions may still move; or what was computed again."""
    what, target, goal = fit.words.minimised, text.visible(fit.model.target_name_, 60), fit.words.goal
    bound = f"{text.power(float(certificate.value))} {goal.unit}"
    if goal.is_derived:
        return [text.visible(sentence) for sentence in certificate.sentences()]
    if getattr(certificate, "is_local", False) and not certificate.fault:
        first = text.visible(certificate.sentences()[0])
    elif certificate.holds:
        first = f"No {goal.chosen} can make the {what} {goal.better} by more than {bound}."
    elif certificate.fault:
        first = f"There is no bound: {certificate.fault}"
    else:
        asked = text.power(float(certificate.tolerance))
        first = f"Better {goal.chosen} may make the {what} {goal.better} by up to {bound}; {asked} was asked for."
    if moves is None:
        second = f"For the {what} that says nothing certain about single predictions: there is no bound on them here."
        return [first, second]
    sd = float(fit.model.data_["target_sd"])
    compared = f", which is {text.power(moves / sd)} of the spread of {target}" if sd > 0 else ""
    return [
        first,
        f"The best fit would move the predictions of these rows by at most {text.power(moves)} (root mean square)"
        f"{compared}.",
    ]


def history_facts(fit: Fit) -> Table | None:
    """The steps of the solver; None where it kept none. Seconds are left out: a report of the same fit is the same."""
    steps = list(fit.model.history_)
    is_closed_form = len(steps) == 1 and math.isnan(steps[0].get("objective", math.nan))
    if not steps or is_closed_form:
        return None
    keys = ("iteration", "objective", "gap", "step")
    rows = [{key: step.get(key) for key in keys} for step in steps[-MOST_STEPS:]]
    n_steps = int(steps[-1]["iteration"])
    return {"n_steps": n_steps, "rows": rows, "sentences": [_history_words(n_steps, rows)]}


def _history_words(n_steps: int, rows: list[Table]) -> str:
    words = f"The solver took {text.plural(n_steps, 'step')}"
    gap = rows[-1]["gap"]
    if gap is None or not math.isfinite(gap):
        return f"{words}."
    ended = f"by its own reckoning it ended {text.power(gap)} above the best" if gap > 0 else "it ended at the best"
    return f"{words}; {ended}. The proof does not rely on that: it is computed anew from the data."
