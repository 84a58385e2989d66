"""The result in a few sentences, before any table."""

from certifit.report import text
from certifit.report.facts import Table

# Classes that are named.
FEW = 4


def answer(context: Table) -> list[str]:
    """What was fitted, how good it is, how it does on new rows, whether it is proven."""
    parts = (_set_aside, _fitted, _kept, _explained, _deviance, _new_rows, _classes, _proven)
    return [sentence for part in parts for sentence in part(context)]


def _set_aside(context: Table) -> list[str]:
    validation = context["validation"]
    return [] if validation is None or validation["holdout"] is None else validation["sentences"][:1]


def _fitted(context: Table) -> list[str]:
    model = context["model"]
    columns = f"with a {model['basis']}" if model["basis"] else f"on {_used(context)}"
    rows = text.plural(context["data"]["n_rows"], "row")
    return [f"{_target(context)} was fitted from {rows} by {model['words']} {columns}."]


def _target(context: Table) -> str:
    """Its name, and its classes where there are a few."""
    classes = context["data"]["target"]["classes"]
    name = text.visible(context["model"]["target"], 60)
    if classes is None:
        return name
    labels = [one["label"] for one in classes]
    return f"{name} ({text.joined(labels) if len(labels) <= FEW else text.plural(len(labels), 'class', 'classes')})"


def _explained(context: Table) -> list[str]:
    quality = context["quality"]
    if quality is None:
        return []
    if quality["exact"]:
        return ["The fit passes through every row, up to rounding."]
    if (metric := quality["metric"]) is not None:
        return [f"Its {metric['name']} is {text.number(metric['value'], 3)}: {text.less_than(metric)}."]
    if quality["r2"] is None:
        return []
    what = "variance" if quality["centered"] else "squared size"
    target, error = text.visible(context["model"]["target"], 60), text.number(quality["sigma"], 3)
    return [f"It explains {_percent(quality['r2'])} of the {what} of {target}; a typical error is {error}."]


def _deviance(context: Table) -> list[str]:
    found = context["deviance"]
    return [] if found is None or context["classes"] is not None else found["sentences"]


def _new_rows(context: Table) -> list[str]:
    validation = context["validation"]
    if context["classes"] is not None or validation is None or not validation["rows"]:
        return []
    return [validation["sentences"][0 if validation["holdout"] is None else 1]]


def _classes(context: Table) -> list[str]:
    return [] if context["classes"] is None else context["classes"]["sentences"][:2]


def _proven(context: Table) -> list[str]:
    certificate, what = context["certificate"], context["model"]["minimised"]
    goal = certificate["goal"]
    if not certificate["holds"]:
        return [f"{goal['failed']}: see above."]
    if goal["is_derived"]:
        return [str(goal["proven"])]
    bound = f"{text.power(certificate['value'])} {goal['unit']}"
    if certificate["is_local"]:
        return [f"It converged, by an estimate that is no proof: the {what} is about {bound} above the best nearby."]
    return [f"{goal['proven']} {goal['chosen']} can make the {what} {goal['better']} by more than {bound}."]


def _used(context: Table) -> str:
    columns, n_made = context["data"]["columns"], context["model"]["n_columns"]
    n_used = sum(column["kind"] != "set aside" for column in columns)
    words = text.plural(len(columns), "column")
    if n_used < len(columns):
        words = f"{text.count(n_used)} of {words}"
    return words if n_made == n_used else f"{words} ({context['model']['made']})"


def _kept(context: Table) -> list[str]:
    table = context["coefficients"]
    if table is None or table["chosen"] is None:
        return []
    chosen = table["chosen"]
    n_kept, n_dropped = len(chosen["kept"]), len(chosen["dropped"])
    if not n_dropped:
        return ["All columns kept a coefficient."]
    return [f"It kept {text.plural(n_kept, 'column')} and dropped {text.count(n_dropped)}."]


def _percent(r2: float) -> str:
    shown = f"{100 * r2:.1f}"
    return f"{shown} %" if not (shown == "100.0" and r2 < 1) else f"{text.share(100 * r2, 100.0)} %"
