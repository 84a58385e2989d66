"""How to use the saved model: lines of Python and of the shell, with the real names, quoted."""

import shlex
from typing import Any

from certifit.report.text import visible


def python_lines(context: dict[str, Any]) -> list[str]:
    """Load, predict, summary, verify."""
    files, target = context["files"], context["model"]["target"]
    again = f"{files['data']!r}, target={target!r}"
    again += f", weight={files['weight']!r}" if files["weight"] else ""
    lines = ["import certifit as cf", f"model = cf.load({files['model']!r})"]
    columns = ""
    if context["data"]["named"]:
        lines.append("names = list(model.feature_names_in_)")
        columns = ", columns=names"
    lines.append(f'predictions = model.predict(cf.scan_csv("new.csv"{columns}))')
    if context["coefficients"]["has_inference"]:
        lines.append("print(model.summary())  # coefficients, p-values, intervals")
    lines.append(f"print(cf.verify(model, cf.scan_csv({again}{columns})))")
    return lines


def shell_lines(context: dict[str, Any]) -> list[str]:
    """Predict and verify."""
    files = context["files"]
    model, data = (shlex.quote(visible(files[key])) for key in ("model", "data"))
    interval = " --interval 0.95" if context["coefficients"]["has_inference"] else ""
    weight = f" --weight {shlex.quote(visible(files['weight']))}" if files["weight"] else ""
    return [
        f"certifit predict {model} new.csv --out predictions.csv{interval}",
        f"certifit verify {model} {data}{weight}",
    ]
