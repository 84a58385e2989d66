"""certifit fit DATA.csv --target NAME --out DIR."""

import csv
import warnings
from pathlib import Path
from typing import Any

import click

from certifit.cli.errors import NOT_PROVEN, readable_file, say
from certifit.cli.progress import Display


@click.command(short_help="Fit a CSV file; write the model and a report.")
@click.argument("data", metavar="DATA.csv")
@click.option("--target", "-t", required=True, metavar="NAME", help="Column to predict.")
@click.option("--out", "-o", required=True, metavar="DIR", help="Folder for the model and the report; made if missing.")
@click.option(
    "--model", "kind", type=click.Choice(["linear", "ridge"]), default="linear", show_default=True,
    help="linear: least squares, with p-values. ridge: with a penalty, without p-values.",
)  # fmt: skip
@click.option("--alpha", type=float, metavar="A", help="Strength of the ridge penalty. Default: 1 / number of rows.")
@click.option("--degree", type=click.IntRange(min=1), metavar="K", help="Fit a polynomial of this degree.")
@click.option("--weight", metavar="NAME", help="Column of row weights; weight 2 is the row twice.")
@click.option("--columns", metavar="A,B,C", help="Columns to fit from. Default: all but target and weight.")
@click.option("--no-intercept", is_flag=True, help="Force the fit through zero.")
@click.option(
    "--tol",
    type=float,
    default=1e-8,
    show_default=True,
    metavar="T",
    help="Excess over the best fit, relative, that counts as converged.",
)
@click.option("--quiet", "-q", is_flag=True, help="Print nothing but warnings and errors.")
def fit(
    *,
    data: str,
    target: str,
    out: str,
    kind: str,
    alpha: float | None,
    degree: int | None,
    weight: str | None,
    columns: str | None,
    no_intercept: bool,
    tol: float,
    quiet: bool,
) -> int:
    """Fit DATA.csv (numbers, with a header line) and write four files to DIR.

    report.html opens in a browser, model.certifit is for predict and verify, coefficients.csv has standard
    errors and p-values, report.json all numbers of the report.

    Exit code 0 when the fit is proven to have converged, 1 when it is not.

    \b
    certifit fit houses.csv --target price --out houses
    certifit fit houses.csv -t price -o houses --columns area,rooms --degree 2
    """
    if alpha is not None and kind != "ridge":
        raise click.UsageError("--alpha is the ridge penalty and --model is linear. Add --model ridge.")
    if no_intercept and degree is not None:
        raise click.UsageError("--no-intercept does not go with --degree: its columns are not zero at zero.")
    chosen = None if columns is None else next(csv.reader([columns], skipinitialspace=True), [])
    basis = _basis(degree)
    options = {"fit_intercept": not no_intercept, "basis": basis, "tol": tol}
    if kind == "ridge":
        options["alpha"] = alpha
    return run(Path(data), out, kind, options, quiet, target=target, weight=weight, columns=chosen)


def run(data: Path, out: str, kind: str, options: dict[str, Any], quiet: bool, **scan: Any) -> int:
    """Scan, fit, write, print; the exit code."""
    from certifit.report import folder

    path = readable_file(str(data), "a CSV file")
    replaced = folder.check(out)
    from certifit.cli.words import lines
    from certifit.data.files import scan_csv
    from certifit.models.linear import LinearRegression, Ridge

    model = {"linear": LinearRegression, "ridge": Ridge}[kind](**options)
    with warnings.catch_warnings(record=True) as caught, Display(quiet) as display:
        warnings.simplefilter("always")
        source = display.watch(scan_csv(path, **scan))
        display.step("fitting")
        model.fit(source)
        display.step("writing the report")
        context = folder.write(out, model, source, data.name, scan["weight"])
    for warning in _unsaid(caught, context):
        say(f"Warning: {warning}")
    for line in [] if quiet else lines(context, out, replaced):
        click.echo(line)
    if quiet:
        for notice in context["warnings"]:
            if notice["level"] != "note":
                say(f"Warning: {notice['title']}. {notice['text']}")
    return 0 if context["certificate"]["holds"] else NOT_PROVEN


def _basis(degree: int | None) -> Any:
    if degree is None:
        return None
    from certifit.maps import Polynomial

    return Polynomial(degree)


def _unsaid(caught: list[warnings.WarningMessage], context: dict[str, Any]) -> list[str]:
    """Warnings of the fit, once each, unless the result says the same with more detail."""
    said = any(notice["level"] != "note" for notice in context["warnings"])
    relevant = [w for w in caught if not issubclass(w.category, (DeprecationWarning, FutureWarning, ImportWarning))]
    return [] if said else list(dict.fromkeys(str(w.message) for w in relevant))
