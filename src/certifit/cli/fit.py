"""certifit fit DATA... --target NAME --out DIR."""

import warnings
from collections.abc import Sequence
from typing import Any

import click

from certifit.cli.errors import NOT_PROVEN, say
from certifit.cli.paths import Data, find_data, listed_names, reading, reading_options, refuse_inside
from certifit.cli.progress import Display


@click.command(short_help="Fit CSV or Parquet files; write the model and a report.")
@click.argument("data", metavar="DATA...", nargs=-1, required=True)
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
@click.option("--categories", metavar="A,B,C", help="Columns of whole numbers that are codes of categories.")
@click.option(
    "--reference", multiple=True, metavar="COLUMN=LEVEL",
    help="Level that the others of a category are compared with. Repeatable; or `most-frequent` for all. "
    "Default: the first in order.",
)  # fmt: skip
@click.option(
    "--unseen", type=click.Choice(["error", "reference"]), default="error", show_default=True,
    help="How the model shall read a level that the fit did not see.",
)  # fmt: skip
@click.option(
    "--max-levels", type=click.IntRange(min=2), default=1000, show_default=True, metavar="N",
    help="Leave out categories with more levels.",
)  # fmt: skip
@click.option(
    "--min-count", type=click.FloatRange(min=1), default=1, show_default=True, metavar="N",
    help="Group levels with fewer rows as `other`.",
)  # fmt: skip
@click.option("--no-intercept", is_flag=True, help="Force the fit through zero.")
@click.option(
    "--tol", type=float, default=1e-8, show_default=True, metavar="T",
    help="Excess over the best fit, relative, that counts as converged.",
)  # fmt: skip
@reading_options
@click.option("--quiet", "-q", is_flag=True, help="Print nothing but warnings and errors.")
def fit(
    *,
    data: tuple[str, ...],
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
    **others: Any,
) -> int:
    """Fit DATA, one or more CSV or Parquet files or folders of them, and write four files to DIR.

    Columns may be numbers, true/false, categories and dates, with missing values; the report says what became of each.

    report.html opens in a browser, model.certifit is for predict and verify, coefficients.csv has standard
    errors and p-values, report.json all numbers of the report.

    Exit code 0 when the fit is proven to have converged, 1 when it is not.

    \b
    certifit fit houses.csv --target price --out houses
    certifit fit houses.csv -t price -o houses --columns area,rooms --degree 2
    certifit fit flights/*.parquet -t delay -o flights --reference carrier=UA
    """
    if alpha is not None and kind != "ridge":
        raise click.UsageError("--alpha is the ridge penalty and --model is linear. Add --model ridge.")
    if no_intercept and degree is not None:
        raise click.UsageError("--no-intercept does not go with --degree: its columns are not zero at zero.")
    encoding = {name: others.pop(name) for name in ("categories", "reference", "unseen", "max_levels", "min_count")}
    options = {"fit_intercept": not no_intercept, "basis": _basis(degree), "tol": tol}
    if kind == "ridge":
        options["alpha"] = alpha
    found = find_data(data, **reading(**others))
    refuse_inside(out, data)
    roles = {"target": target, "weight": weight, "columns": listed_names(columns)}
    return run(found, out, kind, options, encoding, quiet, **roles)


def run(
    data: Data, out: str, kind: str, options: dict[str, Any], encoding: dict[str, Any], quiet: bool, **roles: Any
) -> int:
    """Scan, fit, write, print; the exit code."""
    from certifit.report import folder

    replaced = folder.check(out)
    from certifit.cli.words import lines
    from certifit.models.linear import LinearRegression, Ridge

    make = {"linear": LinearRegression, "ridge": Ridge}[kind]
    with warnings.catch_warnings(record=True) as caught, Display(quiet) as display:
        warnings.simplefilter("always")
        display.step("reading types")
        source = display.watch(data.open(**roles))
        display.step("fitting")
        model = make(**options, encoder=_encoder(source.names, **encoding)).fit(source)
        display.step("writing the report")
        context = folder.write(out, model, source, data.shown, roles["weight"], data.scan)
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


def _encoder(
    names: Sequence[str],
    categories: str | None = None,
    reference: Sequence[str] = (),
    **options: Any,
) -> Any:
    from certifit.maps import TableEncoder

    if tuple(reference) in (("most-frequent",), ("most frequent",)):
        chosen: Any = "most frequent"
    else:
        chosen = dict(_reference(pair, names) for pair in reference) or "first"
    return TableEncoder(reference=chosen, categories=listed_names(categories) or (), **options)


def _reference(pair: str, names: Sequence[str]) -> tuple[str, str]:
    """(column, level) of 'column=level'; either may hold a = of its own."""
    from certifit.data.roles import refuse_unknown

    cuts = [(pair[:k], pair[k + 1 :]) for k, letter in enumerate(pair) if letter == "="]
    if not cuts:
        raise click.UsageError(f"--reference is written COLUMN=LEVEL, or most-frequent. Got {pair!r}.")
    found = next((cut for cut in cuts if cut[0] in names), None)
    if found is None:
        refuse_unknown(cuts[0][0], names, "The data")
    return found or cuts[0]


def _unsaid(caught: list[warnings.WarningMessage], context: dict[str, Any]) -> list[str]:
    """Warnings of the fit, once each, unless the result says the same with more detail."""
    said = any(notice["level"] != "note" for notice in context["warnings"])
    relevant = [w for w in caught if not issubclass(w.category, (DeprecationWarning, FutureWarning, ImportWarning))]
    return [] if said else list(dict.fromkeys(str(w.message) for w in relevant))
