"""The report as one HTML file: no script, no network, everything escaped."""

from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from certifit.report import text
from certifit.report.pictures import curve, effects, fit, histogram, quantiles, residuals
from certifit.report.usage import python_lines, shell_lines

# Rows of a table on the page; the rest stands in the JSON and CSV files.
MOST_ROWS = 600
# A longer table of coefficients is folded, with its most important rows before it.
LONG, MAIN_ROWS = 40, 20


def render(context: dict[str, Any]) -> str:
    """HTML of a context made by `context.build`."""
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).with_name("templates")),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    filters = ("count", "number", "share", "power", "plural", "joined", "p_value")
    environment.filters.update({name: getattr(text, name) for name in filters})
    environment.filters.update(visible=text.visible)
    return environment.get_template("report.html").render(
        **context,
        answer=_answer(context),
        objective=context["model"]["objective"].removeprefix("minimised: "),
        table=_coefficient_table(context["coefficients"]["rows"][:MOST_ROWS]),
        main_table=_coefficient_table(_main_rows(context)),
        columns=_column_table(context),
        quartiles=_aligned([text.number(value) for value in context["quality"]["quartiles"]]),
        picture=_pictures(context),
        python=python_lines(context),
        shell=shell_lines(context),
        most_rows=MOST_ROWS,
    )


def _pictures(context: dict[str, Any]) -> dict[str, Markup]:
    # The SVG text is built by functions that escape every name, so it may enter the page as it is.
    drawn = {
        "fit": fit,
        "effects": effects,
        "residuals": residuals,
        "histogram": histogram,
        "quantiles": quantiles,
    }
    if context["pictures"]["curve"] is not None:
        drawn["curve"] = curve
    return {name: Markup(module.draw(context)) for name, module in drawn.items()}


def _answer(context: dict[str, Any]) -> list[str]:
    """The result in a few sentences, before any table."""
    model, data, quality, certificate = (context[key] for key in ("model", "data", "quality", "certificate"))
    target = text.visible(model["target"], 60)
    columns = f"with a {model['basis']}" if model["basis"] else f"on {text.plural(model['n_features'], 'column')}"
    sentences = [f"{target} was fitted from {text.plural(data['n_rows'], 'row')} by {model['words']} {columns}."]
    if quality["exact"]:
        sentences.append("The fit passes through every row, up to rounding.")
    elif quality["r2"] is not None:
        what = "variance" if quality["centered"] else "squared size"
        error = text.number(quality["sigma"], 3)
        sentences.append(
            f"It explains {_percent(quality['r2'])} of the {what} of {target}; a typical error is {error}."
        )
    if certificate["holds"]:
        sentences.append(
            "It converged, and this is proven: no other coefficients can make the "
            f"{_minimised(model)} smaller by more than {text.power(certificate['value'])} of its value."
        )
    else:
        sentences.append("It did not converge: see above.")
    return sentences


def _minimised(model: dict[str, Any]) -> str:
    return "squared error" if model["alpha"] == 0 else "penalised squared error"


def _percent(r2: float) -> str:
    shown = f"{100 * r2:.1f}"
    return f"{shown} %" if not (shown == "100.0" and r2 < 1) else f"{text.share(100 * r2, 100.0)} %"


def _main_rows(context: dict[str, Any]) -> list[dict[str, Any]]:
    """Nothing when the whole table is short; else the rows of largest |t|, or effect without inference."""
    rows = context["coefficients"]["rows"]
    key = "t" if context["coefficients"]["has_inference"] else "effect"
    ranked = sorted((row for row in rows if row[key] is not None), key=lambda row: -abs(row[key]))
    return ranked[:MAIN_ROWS] if len(rows) > LONG else []


def _coefficient_table(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Cells as text, aligned at the decimal point."""
    decimals = [text.decimals_for(row["error"], row["estimate"]) for row in rows]
    columns = {
        key: _aligned([text.fixed(row[key], d) for row, d in zip(rows, decimals, strict=True)])
        for key in ("estimate", "error", "low", "high")
    }
    columns["t"] = _aligned([text.number(row["t"], 3) if row["t"] is None else f"{row['t']:.2f}" for row in rows])
    columns["p"] = _aligned([text.p_value(row["p"]) for row in rows])
    columns["digits"] = [("–" if row["digits"] is None else f"{int(row['digits'])}", "") for row in rows]
    return [
        {"name": row["name"], "weak": row["p"] is not None and row["p"] > 0.05}
        | {key: cells[k] for key, cells in columns.items()}
        for k, row in enumerate(rows)
    ]


def _column_table(context: dict[str, Any]) -> list[dict[str, Any]]:
    rows = [context["data"]["target"], *context["data"]["columns"][:MOST_ROWS]]
    columns = {key: _aligned([text.number(row[key]) for row in rows]) for key in ("mean", "sd", "low", "high")}
    return [
        {"name": row["name"], "is_target": k == 0} | {key: cells[k] for key, cells in columns.items()}
        for k, row in enumerate(rows)
    ]


def _aligned(cells: list[str]) -> list[tuple[str, str]]:
    """(text, invisible digits after it), so that decimal points of right-aligned cells stand in one line."""
    lengths = [_after_point(cell) for cell in cells]
    longest = min(max(lengths, default=0), 9)
    return [
        (
            cell,
            "" if length >= longest or "e" in cell or not cell[-1:].isdigit() else _filler(cell, longest, length),
        )
        for cell, length in zip(cells, lengths, strict=True)
    ]


def _filler(cell: str, longest: int, length: int) -> str:
    return ("" if "." in cell else ".") + "0" * (longest - length)


def _after_point(cell: str) -> int:
    return len(cell.split(".")[1]) if "." in cell and "e" not in cell else 0
