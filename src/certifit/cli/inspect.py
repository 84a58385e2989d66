"""certifit inspect MODEL."""

import json
import shlex
import textwrap
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from certifit.cli.errors import conceal_model, readable_file, show, values_option
from certifit.cli.models import OFFSETS
from certifit.report.text import count, joined, number, plural, visible

WIDTH = 100
LABEL = 15
MOST_NOTES = 8
MOST_CLASSES = 8
MOST_WEIGHTS = 8


@click.command()
@click.argument("model")
@click.option("--json", "as_json", is_flag=True, help="Print everything as one JSON object.")
@values_option
def inspect(model: str, as_json: bool) -> int:
    """Show what MODEL holds: the fit, its columns, its certificate as it was written, the data it saw, digests.

    The file is read and checked as `predict` would; nothing in it is run and no data is needed.
    Whether the certificate is true is for `certifit verify MODEL DATA` to prove.
    The file does not tell how many rows hold a level, so levels are only printed with --show-values.
    """
    path = readable_file(model, "a model file")
    from certifit.data.privacy import rule
    from certifit.modelfile import inspect as look

    contents = look(path)
    if not rule().shows:
        contents = _printed(contents, path)
    if as_json:
        show(json.dumps(contents.to_dict(), allow_nan=False))
        return 0
    for line in [*_head(model, contents), *_body(contents), *_tail(model)]:
        show(line)
    return 0


def _printed(contents: Any, path: Path) -> Any:
    """Without levels, and without labels of classes that are not known to have enough rows."""
    from certifit.data.privacy import NOT_SHOWN, masked_deep

    classes = None if contents.classes is None else contents.classes | {"labels": _printed_labels(contents)}
    encoder = contents.encoder
    if encoder is not None:
        from certifit.modelfile import load

        conceal_model(load(path))
        reference = encoder["parameters"]["reference"]
        named = {"reference": dict.fromkeys(reference, NOT_SHOWN)} if isinstance(reference, dict) else {}
        encoder = encoder | {"parameters": encoder["parameters"] | named}
    shown = {"coefficients": contents.coefficients, "certificate": contents.certificate, "classes": classes}
    estimators = contents.estimators and [one | {"encoder": encoder} for one in contents.estimators]
    return replace(contents, **masked_deep(shown | {"encoder": encoder, "estimators": estimators}))


def _printed_labels(contents: Any) -> list[Any]:
    from certifit.data.privacy import NOT_SHOWN, Rule, rare_label

    labels = contents.classes["labels"]
    is_counted = contents.data["sum_weight"] == contents.data["n_rows"]
    rows = contents.classes["weights"] if is_counted and "weights" in contents.classes else [0] * len(labels)
    places = range(1, len(labels) + 1)
    return [
        label if Rule().may_print(n_rows) else rare_label(place, len(labels), NOT_SHOWN)
        for label, n_rows, place in zip(labels, rows, places, strict=True)
    ]


def _head(model: str, contents: Any) -> list[str]:
    file = contents.file
    size = f"{count(file['n_bytes'])} bytes, format {file['format']}, written by certifit {file['library']}"
    return [f"{visible(model)}: {contents.model['class']}, {size}", ""]


def _body(contents: Any) -> list[str]:
    rows = [
        *[("target", words) for words in _target(contents)],
        ("objective", contents.model["objective"]),
        ("parameters", _parameters(contents)),
        ("features", _features(contents.features)),
        *[("to note", note) for note in _notes(contents.encoder)],
        *_coefficients(contents),
        *_classes(contents.classes),
        *_components(contents.components),
        *_estimators(contents.estimators),
        *[("residuals", f"scale {number(scale)}") for scale in [contents.model.get("scale")] if scale is not None],
        ("data", _data(contents.data, contents.model.get("rows_kept", 0), contents.estimators is not None)),
        *[("it claims", sentence) for sentence in contents.certificate["sentences"]],
        ("proof", contents.certificate["kind"]),
        ("sha256", f"file     {contents.file['sha256']}"),
        ("", f"header   {contents.file['sha256_header']}"),
        ("", f"payload  {contents.file['sha256_payload']}"),
    ]
    lines: list[str] = []
    before = None
    for label, words in rows:
        lines += _row("" if label == before else label, words)
        before = label
    return lines


def _row(label: str, words: str) -> list[str]:
    first = f"  {label.ljust(LABEL)}"
    return textwrap.wrap(visible(words), WIDTH, initial_indent=first, subsequent_indent=" " * len(first)) or [first]


def _target(contents: Any) -> list[str]:
    if contents.target is None:
        return []
    data, name = contents.data, visible(contents.target, 60)
    beside = [f"{role}: {visible(column, 60)}" for role in OFFSETS if (column := contents.model.get(role)) is not None]
    if "target_mean" not in data or contents.classes is not None:
        return [name, *beside]
    return [f"{name}, mean {number(data['target_mean'])}, spread {number(data['target_sd'])}", *beside]


def _parameters(contents: Any) -> str:
    parameters = dict(contents.model["parameters"])
    if "alpha" in parameters and "alpha" in contents.model:
        parameters["alpha"] = contents.model["alpha"]  # the one used, where none was asked for
    words = [f"{name} {_value(value)}" for name, value in sorted(parameters.items())]
    basis = contents.model["basis"]
    words += [] if basis is None else [f"polynomial of degree {basis['degree']} in {basis['form']}"]
    words += [f"factors of {plural(n, 'column')}"] if (n := contents.model.get("n_factors")) else []
    words += [f"bounds on {plural(n, 'column')}"] if (n := contents.model.get("n_bounded")) else []
    return ", ".join(words)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return number(value, 10) if isinstance(value, float) else str(value)


def _features(features: dict[str, Any]) -> str:
    names = features["names"]
    return f"{count(features['count'])}: {joined(names, 12)}" if names else f"{count(features['count'])}, without names"


def _notes(encoder: dict[str, Any] | None) -> list[str]:
    """What the table's columns became, and what the fit noted about them."""
    if encoder is None:
        return []
    kinds = list(encoder["kinds"].values())
    first = "table: " + ", ".join(f"{kinds.count(kind)} {kind}" for kind in dict.fromkeys(kinds))
    notes = encoder["notes"]
    rest = [f"and {plural(len(notes) - MOST_NOTES, 'note')} more"] if len(notes) > MOST_NOTES else []
    return [first, *notes[:MOST_NOTES], *rest]


def _coefficients(contents: Any) -> list[tuple[str, str]]:
    coefficients = contents.coefficients
    if coefficients is None:
        return []
    total, nonzero = coefficients["count"], coefficients["n_nonzero"]
    words = plural(total, "coefficient") if nonzero == total else f"{count(nonzero)} of {count(total)} not zero"
    intercept = coefficients["intercept"]
    words += ", no intercept" if intercept is None else f", intercept {number(intercept)}"
    words += ", with standard errors" if contents.model["has_standard_errors"] else ""
    return [("coefficients", words), *[("", shown) for shown in _weights(coefficients)]]


def _classes(classes: dict[str, Any] | None) -> list[tuple[str, str]]:
    """Labels with their priors, columns, and what was added to variances; labels alone of a model without priors."""
    if classes is None:
        return []
    if "priors" not in classes:
        labels = [str(label) for label in classes["labels"]]
        return [("classes", f"{count(len(labels))}: {joined(labels, MOST_CLASSES)}")]
    pairs = list(zip(classes["labels"], classes["priors"], strict=True))
    shown = [f"{visible(str(label), 40)} {number(prior)}" for label, prior in pairs[:MOST_CLASSES]]
    more = [f"and {count(len(pairs) - MOST_CLASSES)} more"] if len(pairs) > MOST_CLASSES else []
    priors = "priors as given" if classes["are_priors_given"] else "priors"
    rows = [("classes", f"{count(len(pairs))}, {priors}: {'; '.join([*shown, *more])}")]
    left_out = classes["left_out"]
    used = plural(classes["n_columns"] - len(left_out), "column")
    rows.append(("columns", used + (f", left out: {joined(left_out, 8)}" if left_out else "")))
    if "epsilon" in classes:
        rows.append(("smoothing", f"{number(classes['epsilon'])} added to every variance"))
    return rows


def _components(components: dict[str, Any] | None) -> list[tuple[str, str]]:
    """How many directions there are and what they explain."""
    if components is None:
        return []
    kept, total = components["variances"], components["total_variance"]
    shown = "; ".join(number(variance) for variance in kept[:MOST_WEIGHTS])
    more = f"; and {count(len(kept) - MOST_WEIGHTS)} more" if len(kept) > MOST_WEIGHTS else ""
    share = f"{100 * components['explained']:.4g} % of {number(total)}"
    words = f"{count(len(kept))} of {plural(components['n_columns'], 'column')} explain {share}"
    return [("components", words), ("", f"variances {shown}{more}")]


def _estimators(estimators: list[dict[str, Any]] | None) -> list[tuple[str, str]]:
    """What the model is made of, and how many of their certificates hold."""
    if estimators is None:
        return []
    n_holding = sum(one["certificate"]["holds"] for one in estimators)
    name = f"{estimators[0]['model']['class']}, {estimators[0]['model']['objective']}"
    return [("estimators", f"{plural(len(estimators), 'model')}, {count(n_holding)} certified"), ("", name)]


def _weights(coefficients: dict[str, Any]) -> list[str]:
    """The first weights that are not zero, in the order of the columns; levels that may not be shown are counted."""
    from certifit.data.privacy import NOT_SHOWN

    pairs = [pair for pair in zip(coefficients["names"], coefficients["values"], strict=True) if pair[1] != 0]
    named = [(name, value) for name, value in pairs if NOT_SHOWN not in name]
    shown = [f"{visible(name, 40)} {number(value)}" for name, value in named[:MOST_WEIGHTS]]
    more = [f"and {count(len(named) - MOST_WEIGHTS)} more"] if len(named) > MOST_WEIGHTS else []
    n_levels = len(pairs) - len(named)
    levels = [f"and {plural(n_levels, 'level')} of categories (--show-values shows them)"] if n_levels else []
    return ["; ".join([*shown, *more, *levels])] if pairs else []


def _data(data: dict[str, Any], n_kept: int, are_several: bool) -> str:
    weights = "" if data["sum_weight"] == data["n_rows"] else f", weights sum to {number(data['sum_weight'], 6)}"
    most = " or more" if are_several else ""  # other copies keep others
    kept = f"{count(n_kept)} of them{most} are, for predictions are made of them," if n_kept else "no row is"
    return f"{plural(data['n_rows'], 'row')}{weights}; {kept} in the file"


def _tail(model: str) -> list[str]:
    return ["", f"Read, not verified. To verify it: certifit verify {shlex.quote(visible(model))} DATA"]
