"""The result in a few sentences, before any table."""

from certifit.report import text
from certifit.report.facts import Table


def answer(context: Table) -> list[str]:
    """What was fitted, how good it is, how it does on new rows, whether it is proven."""
    model, data, quality, certificate = (context[key] for key in ("model", "data", "quality", "certificate"))
    target = text.visible(model["target"], 60)
    columns = f"with a {model['basis']}" if model["basis"] else f"on {_used(context)}"
    sentences = [f"{target} was fitted from {text.plural(data['n_rows'], 'row')} by {model['words']} {columns}."]
    sentences += _kept(context)
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
            f"{model['minimised']} smaller by more than {text.power(certificate['value'])} of its value."
        )
    else:
        sentences.append("It did not converge: see above.")
    return sentences


def _used(context: Table) -> str:
    columns, n_made = context["data"]["columns"], context["model"]["n_columns"]
    n_coefficients = n_made + context["model"]["intercept"]
    n_used = sum(column["kind"] != "set aside" for column in columns)
    words = text.plural(len(columns), "column")
    if n_used < len(columns):
        words = f"{text.count(n_used)} of {words}"
    return words if n_made == n_used else f"{words} ({text.plural(n_coefficients, 'coefficient')})"


def _kept(context: Table) -> list[str]:
    chosen = context["coefficients"]["chosen"]
    if chosen is None:
        return []
    n_kept, n_dropped = len(chosen["kept"]), len(chosen["dropped"])
    if not n_dropped:
        return ["All columns kept a coefficient."]
    return [f"It kept {text.plural(n_kept, 'column')} and dropped {text.count(n_dropped)}."]


def _percent(r2: float) -> str:
    shown = f"{100 * r2:.1f}"
    return f"{shown} %" if not (shown == "100.0" and r2 < 1) else f"{text.share(100 * r2, 100.0)} %"
