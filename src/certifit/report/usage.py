"""How to use the saved model: lines of Python and of the shell, with the real names, quoted."""

import shlex
from typing import Any

from certifit.models.learner import ROWS_KEPT
from certifit.report import text
from certifit.report.facts import Fit, Table
from certifit.report.text import visible

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
    interval = " --interval 0.95" if _has_inference(context) else ""
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
    found = []
    if levels:
        n_levels = sum(len(kind.levels) for kind in levels)
        found.append(f"{text.plural(n_levels, 'level')} of {_columns([kind.name for kind in levels])}")
    if texts:
        n_words = sum(len(kind.own_names) for kind in texts)
        found.append(f"{text.plural(n_words, 'word')} of {_columns([kind.name for kind in texts])}")
    if filled:
        found.append(f"the means that fill gaps of {_columns(filled)}")
    if basis is not None:
        found.append("the smallest and largest value of each column of the polynomial")
    if fit.by_class is not None:
        found.append(f"the labels of {text.count(len(fit.by_class.classes))} classes")
    return [*found, *fit.words.stores]


def _columns(names: list[str]) -> str:
    return f"{text.plural(len(names), 'column')} ({text.joined(names, 5)})"


def holds_words(context: Table) -> str:
    """The model file in a sentence."""
    model, found = context["files"]["model"], context["model"]["holds"]
    listed = "; ".join(found) if found else "no cell value"
    kept = "no row" if ROWS_KEPT not in found else "the rows of the fit: share it as you would share them"
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
