"""The result in a few sentences before any table, and the few numbers at the head of the page.

Then three questions of a fit, answered from the other facts: is the model rich enough, is the optimum reached, does
it hold on new rows?
"""

from __future__ import annotations

from certifit.models.learner import how_sure
from certifit.report import text
from certifit.report.tables import decimals
from certifit.report.text import Table

# Classes that are named.
FEW = 4


def answer(context: Table) -> list[str]:
    """What was fitted, how good it is, how it does on new rows, whether it is proven."""
    parts = [_set_aside, _fitted, _kept, _explained, _deviance, _new_rows, _classes, proven]
    if _is_flexible(context):  # figures on rows that it may know by heart come after those on new rows
        parts = [_set_aside, _fitted, _new_rows, _new_share, _explained, proven]
    return [sentence for part in parts for sentence in part(context)]


def _is_flexible(context: Table) -> bool:
    return context["quality"] is not None and context["quality"]["flexible"]


def _new_share(context: Table) -> list[str]:
    """R² on new rows, of a model that can follow single rows."""
    r2 = _new_r2(context)
    what = "deviance" if (context["validation"] or {}).get("share") == "Explained" else "variance"
    return [] if r2 is None else [f"There it explains {_percent(r2)} of the {what} of {_target(context)}."]


def _new_r2(context: Table) -> float | None:
    validation = context["validation"]
    leader = None if validation is None else next((row for row in validation["rows"] if row["is_chosen"]), None)
    return None if leader is None or context["quality"]["metric"] is not None else leader["r2"]


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
    if quality["flexible"]:
        where = "Of the rows that it was fitted to, which a model of this kind can learn by heart,"
        return [f"{where} it explains {_percent(quality['r2'])} of the {what}."]
    return [f"It explains {_percent(quality['r2'])} of the {what} of {target}; a typical error is {error}."]


def _deviance(context: Table) -> list[str]:
    deviance = context["deviance"]
    return [] if deviance is None or context["classes"] is not None else deviance["sentences"]


def _new_rows(context: Table) -> list[str]:
    validation = context["validation"]
    if context["classes"] is not None or validation is None or not validation["rows"]:
        return []
    return [validation["sentences"][0 if validation["holdout"] is None else 1]]


def _classes(context: Table) -> list[str]:
    return [] if context["classes"] is None else context["classes"]["sentences"][:2]


def proven(context: Table) -> list[str]:
    """Whether the optimum is proven to be reached, in a sentence."""
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
    shown = text.hundredths(r2)
    return f"{shown} %" if not (shown == "100.0" and r2 < 1) else f"{text.share(100 * r2, 100.0)} %"


def tiles(context: Table) -> list[Table]:
    """title, value, small: words below it; kind: good, bad or none."""
    parts = (_rows, _quality, _deviance_tiles, _new_rows_tile, _class_tiles, _proof)
    return [{"kind": ""} | tile for part in parts for tile in part(context)]


def _rows(context: Table) -> list[Table]:
    model, data = context["model"], context["data"]
    made = f", {model['made']}" if model["n_columns"] != model["n_features"] else ""
    small = text.plural(model["n_features"], "column") + made
    if data["weighted"]:
        small = f"weights sum to {text.count(data['mass'])}"
    return [{"title": "Rows", "value": text.count(data["n_rows"]), "small": small}]


def _quality(context: Table) -> list[Table]:
    quality = context["quality"]
    if quality is None:
        return []
    adjusted, metric = quality["adjusted_r2"], quality["metric"]
    small = "share of variance explained" if adjusted is None else f"adjusted {text.share(adjusted)}"
    spread = f"spread of the target {text.amount(context['data']['target']['sd'])}"
    fit = {"title": "R²", "value": text.share(quality["r2"]), "small": small}
    if quality["flexible"] and metric is None:
        new = _new_r2(context)
        if new is not None:
            small = f"{text.share(quality['r2'])} on the rows of the fit"
            return [{"title": "R² on new rows", "value": text.share(new), "small": small}]
        fit |= {"title": "R² on its own rows", "small": "new rows are predicted less well"}
    if metric is not None:
        title = metric["name"][0].upper() + metric["name"][1:]
        fit = {"title": title, "value": text.number(metric["value"]), "small": text.less_than(metric)}
    return [fit, {"title": "Typical error", "value": text.number(quality["sigma"]), "small": spread}]


def _deviance_tiles(context: Table) -> list[Table]:
    deviance = context["deviance"]
    if deviance is None or context["classes"] is not None:
        return []
    small = "of a constant rate's" if deviance["lift"]["is_rate"] else "of a constant's"
    tiles = [{"title": "Deviance explained", "value": text.percent(deviance["explained"]), "small": small}]
    if deviance["spread"] is not None:
        more = f"1 is the {deviance['family']} family's"
        tiles.append({"title": "Dispersion", "value": text.number(deviance["spread"], 3), "small": more})
    elif deviance["dispersion"] is not None:
        more = "variance over squared mean" if deviance["family"] == "gamma" else "estimated"
        tiles.append({"title": "Dispersion", "value": text.number(deviance["dispersion"], 3), "small": more})
    return tiles


def _new_rows_tile(context: Table) -> list[Table]:
    validation = context["validation"]
    if context["classes"] is not None or validation is None or not validation["rows"]:
        return []
    leader = next(row for row in validation["rows"] if row["is_chosen"])
    error, plus_minus = text.measured(leader["error"], leader["standard_error"])
    has_r2 = context["quality"] is not None and context["quality"]["metric"] is None
    title = (
        "Error on new rows" if has_r2 else f"{validation['measure'][0].upper()}{validation['measure'][1:]}, new rows"
    )
    return [{"title": title, "value": error, "small": f"± {plus_minus}, {validation['n_splits']} folds"}]


def _class_tiles(context: Table) -> list[Table]:
    classes = context["classes"]
    if classes is None:
        return []
    scores, base = classes["metrics"], classes["baseline"]
    where = " on new rows" if classes["is_new"] else " on its own rows"
    positive = None if classes["positive"] is None else classes["labels"][classes["positive"]]
    f1 = "mean of the classes" if positive is None else f"of {text.visible(positive, 24)}"
    return [
        {"title": f"Accuracy{where}", "value": text.percent(scores["accuracy"]["value"])}
        | {"small": f"always {text.visible(base['label'], 20)}: {text.percent(base['accuracy'])}"},
        {"title": "AUC", "value": decimals(scores["auc"]["value"]), "small": _interval(scores["auc"])},
        {"title": "F1", "value": decimals(scores["f1"]["value"]), "small": f1},
    ]


def _interval(estimate: Table) -> str:
    return (
        "0.5 is guessing" if estimate["low"] is None else f"{decimals(estimate['low'])} to {decimals(estimate['high'])}"
    )


def _proof(context: Table) -> list[Table]:
    certificate = context["certificate"]
    value, asked = text.power(certificate["value"]), f"{text.power(certificate['tolerance'])} asked"
    unit = certificate["goal"]["unit"]
    nats = "" if unit == "of its value" else f" {unit}"
    if certificate["holds"] and certificate["goal"]["is_derived"]:
        small = str(certificate["goal"]["agreed"])
    elif certificate["holds"]:
        small = f"within {text.bound(certificate['value'])}{nats} of the best; {asked}"
    elif certificate["fault"] is not None:
        small = "no bound: see above"
    else:
        small = f"may be {value}{nats} {'above' if not nats else 'below'} the best; {asked}"
    value = (
        f"Yes, {how_sure(certificate['goal']['is_derived'], certificate['is_local'])}" if certificate["holds"] else "No"
    )
    kind = "good" if certificate["holds"] else "bad"
    return [{"title": certificate["goal"]["done"], "value": value, "small": small, "kind": kind}]


def question_facts(context: Table) -> Table:
    """rows [{question, answer}]; nothing where no errors on new rows are known."""
    validation = context["validation"]
    if validation is None or not validation["rows"]:
        return {}
    chosen = next((row for row in validation["rows"] if row["is_chosen"]), None)
    if chosen is None:
        return {}
    answers = {
        "Is the model rich enough?": _rich(validation, chosen),
        "Is the optimum reached?": " ".join(proven(context)),
        "Does it hold on new rows?": _holds(validation, chosen),
    }
    return {"rows": [{"question": question, "answer": answer} for question, answer in answers.items()]}


def _rich(validation: Table, chosen: Table) -> str:
    error, plus_minus = text.measured(chosen["error"], chosen["standard_error"])
    lead = f"Its {validation['measure']} on rows that it did not see is {error} (±{plus_minus})."
    others = [row for row in validation["rows"] if not row["is_chosen"] and not row["is_baseline"]]
    poorer = next((row for row in validation["rows"] if row["is_baseline"]), None)
    if others:
        lead += f" {_rival(chosen, min(others, key=lambda row: row['error']), len(others))}"
    if poorer is not None:
        lead += f" The baseline, {poorer['name']} alone: {text.amount(poorer['error'], 3)}."
    return lead


def _rival(chosen: Table, rival: Table, n_others: int) -> str:
    name = text.visible(rival["name"], 40)
    of = f"Of {n_others} other models on the same folds the best, {name},"
    if n_others == 1:
        of = f"The other model on the same folds, {name},"
    error, _ = text.measured(rival["error"], chosen["standard_error"])
    if chosen["is_best"]:
        return f"{of} has {error}: no other model does better."
    difference, plus_minus = text.measured(chosen["difference"], chosen["difference_error"])
    verdict = (
        "the difference may be chance"
        if chosen["difference"] <= 2 * chosen["difference_error"]
        else "a richer model does better"
    )
    return f"{of} has {error}, less by {difference} (±{plus_minus}): {verdict}."


def _holds(validation: Table, chosen: Table) -> str:
    if validation["holdout"] is not None:
        return str(validation["sentences"][0])
    error, plus_minus = text.measured(chosen["error"], chosen["standard_error"])
    folds = f"{text.count(validation['n_splits'])} folds"
    if chosen["train_error"] is None:
        return f"Over {folds} the {validation['measure']} on new rows is {error} (±{plus_minus})."
    training, _ = text.measured(chosen["train_error"], chosen["standard_error"])
    is_near = chosen["error"] - chosen["train_error"] <= 2 * chosen["standard_error"]
    verdict = "little of the fit is to noise" if is_near else "part of the fit is to the noise of its rows"
    return (
        f"Over {folds} the {validation['measure']} is {training} on the rows of the fits and {error} (±{plus_minus}) "
        f"on those held out: {verdict}."
    )
