"""certifit inspect MODEL."""

import json
import shlex
import textwrap
from typing import Any

import click

from certifit.cli.errors import readable_file
from certifit.report.text import count, joined, number, plural, visible

WIDTH = 100
LABEL = 15
MOST_NOTES = 8
MOST_WEIGHTS = 8


@click.command(short_help="Show what a model file holds.")
@click.argument("model")
@click.option("--json", "as_json", is_flag=True, help="Print everything as one JSON object.")
def inspect(model: str, as_json: bool) -> int:
    """Show what MODEL holds: the fit, its columns, its certificate as it was written, the data it saw, digests.

    The file is read and checked as `predict` would; nothing in it is run and no data is needed.
    Whether the certificate is true is for `certifit verify MODEL DATA` to prove.
    """
    path = readable_file(model, "a model file")
    from certifit.modelfile import inspect as look

    found = look(path)
    if as_json:
        click.echo(json.dumps(found.to_dict(), allow_nan=False))
        return 0
    for line in [*_head(model, found), *_body(found), *_tail(model)]:
        click.echo(visible(line))
    return 0


def _head(model: str, found: Any) -> list[str]:
    file = found.file
    size = f"{count(file['n_bytes'])} bytes, format {file['format']}, written by certifit {file['library']}"
    return [f"{visible(model)}: {found.model['class']}, {size}", ""]


def _body(found: Any) -> list[str]:
    rows = [
        ("target", _target(found)),
        ("minimised", found.model["objective"].removeprefix("minimised: ")),
        ("parameters", _parameters(found)),
        ("features", _features(found.features)),
        *[("to note", note) for note in _notes(found.encoder)],
        ("coefficients", _coefficients(found)),
        *[("", words) for words in _weights(found.coefficients)],
        *[("residuals", f"scale {number(scale)}") for scale in [found.model.get("scale")] if scale is not None],
        ("data", _data(found.data)),
        *[("it claims", sentence) for sentence in found.certificate["sentences"]],
        ("sha256", f"file     {found.file['sha256']}"),
        ("", f"header   {found.file['sha256_header']}"),
        ("", f"payload  {found.file['sha256_payload']}"),
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


def _target(found: Any) -> str:
    data = found.data
    return f"{visible(found.target, 60)}, mean {number(data['target_mean'])}, spread {number(data['target_sd'])}"


def _parameters(found: Any) -> str:
    given = found.model["parameters"] | {"alpha": found.model["alpha"]}
    if found.model["estimator"] == "linear_regression":
        del given["alpha"]
    words = [f"{name} {_value(value)}" for name, value in sorted(given.items())]
    basis = found.model["basis"]
    words += [] if basis is None else [f"polynomial of degree {basis['degree']} in {basis['form']}"]
    words += [f"factors of {plural(n, 'column')}"] if (n := found.model.get("n_factors")) else []
    words += [f"bounds on {plural(n, 'column')}"] if (n := found.model.get("n_bounded")) else []
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


def _coefficients(found: Any) -> str:
    coefficients = found.coefficients
    total, nonzero = coefficients["count"], coefficients["n_nonzero"]
    words = plural(total, "coefficient") if nonzero == total else f"{count(nonzero)} of {count(total)} not zero"
    intercept = coefficients["intercept"]
    words += ", no intercept" if intercept is None else f", intercept {number(intercept)}"
    return words + (", with standard errors" if found.model["has_standard_errors"] else "")


def _weights(coefficients: dict[str, Any]) -> list[str]:
    """The first weights that are not zero, in the order of the columns."""
    pairs = [pair for pair in zip(coefficients["names"], coefficients["values"], strict=True) if pair[1] != 0]
    shown = [f"{visible(name, 40)} {number(value)}" for name, value in pairs[:MOST_WEIGHTS]]
    more = [f"and {count(len(pairs) - MOST_WEIGHTS)} more"] if len(pairs) > MOST_WEIGHTS else []
    return ["; ".join([*shown, *more])] if shown else []


def _data(data: dict[str, Any]) -> str:
    weights = "" if data["sum_weight"] == data["n_rows"] else f", weights sum to {number(data['sum_weight'], 6)}"
    return f"{plural(data['n_rows'], 'row')}{weights}; no row is in the file"


def _tail(model: str) -> list[str]:
    return ["", f"Read, not proven again. To prove it: certifit verify {shlex.quote(visible(model))} DATA"]
