"""How to use the saved model: lines of Python and of the shell, with the real names, quoted."""

import shlex
from typing import Any

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
