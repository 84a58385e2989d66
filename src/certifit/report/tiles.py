"""The few numbers at the head of the page."""

from certifit.report import text
from certifit.report.class_tables import decimals
from certifit.report.facts import Table


def tiles(context: Table) -> list[Table]:
    """title, value, small: words below it; kind: good, bad or none."""
    parts = (_rows, _quality, _deviance, _new_rows, _classes, _proof)
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
    spread = f"spread of the target {text.number(context['data']['target']['sd'])}"
    fit = {"title": "R²", "value": text.share(quality["r2"]), "small": small}
    if metric is not None:
        title = metric["name"][0].upper() + metric["name"][1:]
        fit = {"title": title, "value": text.number(metric["value"]), "small": text.less_than(metric)}
    return [fit, {"title": "Typical error", "value": text.number(quality["sigma"]), "small": spread}]


def _deviance(context: Table) -> list[Table]:
    found = context["deviance"]
    if found is None or context["classes"] is not None:
        return []
    small = "of a constant rate's" if found["lift"]["is_rate"] else "of a constant's"
    tiles = [{"title": "Deviance explained", "value": text.percent(found["explained"]), "small": small}]
    if found["spread"] is not None:
        more = f"1 is the {found['family']} family's"
        tiles.append({"title": "Dispersion", "value": text.number(found["spread"], 3), "small": more})
    elif found["dispersion"] is not None:
        more = "variance over squared mean" if found["family"] == "gamma" else "estimated"
        tiles.append({"title": "Dispersion", "value": text.number(found["dispersion"], 3), "small": more})
    return tiles


def _new_rows(context: Table) -> list[Table]:
    validation = context["validation"]
    if context["classes"] is not None or validation is None or not validation["rows"]:
        return []
    leader = next(row for row in validation["rows"] if row["is_chosen"])
    error, plus_minus = text.measured(leader["error"], leader["standard_error"])
    has_r2 = context["quality"] is not None and context["quality"]["metric"] is None
    title = "Error on new rows" if has_r2 else f"M{validation['measure'][1:]}, new rows"
    return [{"title": title, "value": error, "small": f"± {plus_minus}, {validation['n_splits']} folds"}]


def _classes(context: Table) -> list[Table]:
    found = context["classes"]
    if found is None:
        return []
    scores, base = found["metrics"], found["baseline"]
    where = " on new rows" if found["is_new"] else " on its own rows"
    positive = None if found["positive"] is None else found["labels"][found["positive"]]
    f1 = "mean of the classes" if positive is None else f"of {text.visible(positive, 24)}"
    return [
        {"title": f"Right class{where}", "value": text.percent(scores["accuracy"]["value"])}
        | {"small": f"always {text.visible(base['label'], 20)}: {text.percent(base['accuracy'])}"},
        {"title": "AUC", "value": decimals(scores["auc"]["value"]), "small": _interval(scores["auc"])},
        {"title": "F1", "value": decimals(scores["f1"]["value"]), "small": f1},
    ]


def _interval(found: Table) -> str:
    return "0.5 is guessing" if found["low"] is None else f"{decimals(found['low'])} to {decimals(found['high'])}"


def _proof(context: Table) -> list[Table]:
    certificate = context["certificate"]
    value, asked = text.power(certificate["value"]), f"{text.power(certificate['tolerance'])} asked"
    unit = certificate["goal"]["unit"]
    nats = "" if unit == "of its value" else f" {unit}"
    if certificate["holds"] and certificate["goal"]["is_derived"]:
        small = "every number agrees within rounding"
    elif certificate["holds"]:
        small = f"within {value}{nats} of the best; {asked}"
    elif certificate["fault"] is not None:
        small = "no bound: see above"
    else:
        small = f"may be {value}{nats} {'above' if not nats else 'below'} the best; {asked}"
    sure = "estimated" if certificate["is_local"] else "proven"
    value = f"Yes, {sure}" if certificate["holds"] else "No"
    kind = "good" if certificate["holds"] else "bad"
    return [{"title": certificate["goal"]["done"], "value": value, "small": small, "kind": kind}]
