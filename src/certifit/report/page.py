"""The report as one HTML file: no script, no network, everything escaped."""

from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from certifit.report import text
from certifit.report.pictures import curve, effects, fit, histogram, path, quantiles, residuals, validation, variance
from certifit.report.tables import (
    MOST_ROWS,
    aligned,
    coefficient_items,
    column_rows,
    main_items,
    step_rows,
    validation_rows,
)
from certifit.report.usage import python_lines, shell_lines

# Sentences of a check that are shown at once; columns of a table of the data that is not folded.
MOST_SENTENCES, FEW_COLUMNS = 4, 12


def render(context: dict[str, Any]) -> str:
    """HTML of a context made by `context.build`."""
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).with_name("templates")),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    filters = ("count", "number", "share", "power", "plural", "joined", "p_value", "percent", "measured")
    environment.filters.update({name: getattr(text, name) for name in filters})
    environment.filters.update(visible=text.visible)
    return environment.get_template("report.html").render(
        **context,
        answer=_answer(context),
        objective=context["model"]["objective"].removeprefix("minimised: "),
        items=coefficient_items(context),
        main_table=main_items(context),
        columns=column_rows(context),
        leaders=validation_rows(context),
        steps=step_rows(context),
        quartiles=aligned([text.number(value) for value in context["quality"]["quartiles"]]),
        picture=_pictures(context),
        python=python_lines(context),
        shell=shell_lines(context),
        most_rows=MOST_ROWS,
        most_sentences=MOST_SENTENCES,
        few_columns=FEW_COLUMNS,
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
    if context["validation"] is not None:
        drawn |= {"validation": validation, "variance": variance}
    pictures = {name: Markup(module.draw(context)) for name, module in drawn.items()}
    if context["selection"] is not None:
        pictures |= {"path": Markup(path.draw(context)), "names": Markup(path.draw_names(context))}
    return pictures


def _answer(context: dict[str, Any]) -> list[str]:
    """The result in a few sentences, before any table."""
    model, data, quality, certificate = (context[key] for key in ("model", "data", "quality", "certificate"))
    target = text.visible(model["target"], 60)
    columns = f"with a {model['basis']}" if model["basis"] else f"on {_used(context)}"
    sentences = [f"{target} was fitted from {text.plural(data['n_rows'], 'row')} by {model['words']} {columns}."]
    if quality["exact"]:
        sentences.append("The fit passes through every row, up to rounding.")
    elif quality["r2"] is not None:
        what = "variance" if quality["centered"] else "squared size"
        error = text.number(quality["sigma"], 3)
        sentences.append(
            f"It explains {_percent(quality['r2'])} of the {what} of {target}; a typical error is {error}."
        )
    if context["validation"] is not None and context["validation"]["rows"]:
        sentences.append(context["validation"]["sentences"][0])
    if certificate["holds"]:
        sentences.append(
            "It converged, and this is proven: no other coefficients can make the "
            f"{_minimised(model)} smaller by more than {text.power(certificate['value'])} of its value."
        )
    else:
        sentences.append("It did not converge: see above.")
    return sentences


def _used(context: dict[str, Any]) -> str:
    columns, n_made = context["data"]["columns"], context["model"]["n_columns"]
    n_coefficients = n_made + context["model"]["intercept"]
    n_used = sum(column["kind"] != "set aside" for column in columns)
    words = text.plural(len(columns), "column")
    if n_used < len(columns):
        words = f"{text.count(n_used)} of {words}"
    return words if n_made == n_used else f"{words} ({text.plural(n_coefficients, 'coefficient')})"


def _minimised(model: dict[str, Any]) -> str:
    return "squared error" if model["alpha"] == 0 else "penalised squared error"


def _percent(r2: float) -> str:
    shown = f"{100 * r2:.1f}"
    return f"{shown} %" if not (shown == "100.0" and r2 < 1) else f"{text.share(100 * r2, 100.0)} %"
