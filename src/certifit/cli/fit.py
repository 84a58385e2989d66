"""certifit fit DATA... --target NAME --out DIR."""

import warnings
from functools import partial
from typing import Any

import click

from certifit.cli.progress import Display
from certifit.cli.request import FOLDS, Done, Request, carry_out, request_options

# Refits for cross-validation that nobody asked for may read so many cells of the table in all.
FREE_CELLS = 20_000_000
MOST_REFITS = 100
# A picture of bias and variance takes hundreds of solves.
MOST_COLUMNS, N_ALPHAS = 120, 13

LINEAR, RIDGE = "least squares", "ridge"
KINDS = {"auto": (LINEAR, RIDGE), "linear": (LINEAR,), "ridge": (RIDGE,)}


@click.command(short_help="Fit CSV or Parquet files; write the model and a report.")
@request_options(
    click.option(
        "--model", "kind", type=click.Choice(list(KINDS)), default="auto", show_default=True,
        help="linear: least squares, with p-values. ridge: with a penalty, without p-values. "
        "auto: what predicts rows it did not see better.",
    ),
    click.option("--alpha", type=float, metavar="A", help="Strength of the ridge penalty. Default: the folds choose."),
    click.option("--degree", type=click.IntRange(min=1), metavar="K", help="Fit a polynomial of this degree."),
    click.option(
        "--cv", type=click.IntRange(min=0), metavar="K",
        help=f"Folds of cross-validation; 0 for none, then auto is linear. Default: {FOLDS}.",
    ),
    click.option(
        "--rule", type=click.Choice(["min", "1se"]), default="min", show_default=True,
        help="Penalty with the smallest error, or the strongest within one standard error of it.",
    ),
)  # fmt: skip
def fit(*, kind: str, alpha: float | None, degree: int | None, rule: str, **given: Any) -> int:
    """Fit DATA, one or more CSV or Parquet files or folders of them, and write four files to DIR.

    Columns may be numbers, true/false, categories and dates, with missing values; the report says what became of each,
    and how well the model predicts rows that it did not see.

    report.html opens in a browser, model.certifit is for predict and verify, coefficients.csv has standard
    errors and p-values, report.json all numbers of the report.

    Exit code 0 when the fit is proven to have converged, 1 when it is not.

    \b
    certifit fit houses.csv --target price --out houses
    certifit fit houses.csv -t price -o houses --columns area,rooms --degree 2
    certifit fit flights/*.parquet -t delay -o flights --reference carrier=UA
    """
    if alpha is not None and kind != "ridge":
        raise click.UsageError(f"--alpha is the ridge penalty and --model is {kind}. Add --model ridge.")
    if given["no_intercept"] and degree is not None:
        raise click.UsageError("--no-intercept does not go with --degree: its columns are not zero at zero.")
    return run(Request.of(**given), kind, alpha, degree, rule)


def run(
    request: Request, kind: str = "auto", alpha: float | None = None, degree: int | None = None, rule: str = "min"
) -> int:
    """Scan, tune, fit, write, print; the exit code."""
    return carry_out(request, partial(_fit, request, kind, alpha, degree, rule))


def _fit(
    request: Request, kind: str, alpha: float | None, degree: int | None, rule: str, source: Any, display: Display
) -> Done:
    from certifit.models.linear import LinearRegression, Ridge

    options = request.options(source.names) | {"basis": _basis(degree)}
    every = {LINEAR: LinearRegression(**options), RIDGE: Ridge(alpha, **options)}
    models = {name: every[name] for name in KINDS[kind]}
    board, notes = validated(request, models, source, display, rule)
    display.step("fitting")
    first = next(iter(models.values()))
    model = (first if board is None else board.chosen.model).fit(source)
    if request.cv == 0:
        return Done(model, source)
    from certifit.report.validation import validation_facts

    found = None if board is None else _decomposed(board, len(model.coef_), source, display)
    return Done(model, source, validation_facts(board, notes, request.roles["group"], found))


def validated(
    request: Request, models: dict[str, Any], source: Any, display: Display, rule: str = "min"
) -> tuple[Any, list[str]]:
    """The leaderboard, and sentences on what could not be done; None where there is none."""
    if request.cv == 0:
        return None, []
    display.step("cross-validating")
    from certifit.selection.leaderboard import folds_for, leaderboard

    folds, note = folds_for(source, request.cv or FOLDS)
    notes = [] if note is None else [note]
    if folds is None:
        return None, notes
    most = MOST_REFITS
    if request.cv is None:
        most = min(most, FREE_CELLS // max(1, (source.n_rows or 0) * source.n_features))
    prefer = LINEAR if LINEAR in models else None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of refits; the fit to all rows says its own
            board = leaderboard(
                models,
                source,
                cv=folds,
                rule=rule,
                prefer=prefer,
                because="only it can have p-values",
                most_refits=most,
            )
    except ValueError as error:
        if request.cv is not None:
            raise
        # What is wrong with the data as such, the fit says.
        return None, [*notes, f"Not cross-validated: {error}"]
    return board, notes


def _decomposed(board: Any, n_columns: int, source: Any, display: Display) -> Any:
    """Values of alpha, and bias and variance along them; None where they are not known or cost too much."""
    from certifit.selection.decomposition import decompose
    from certifit.selection.engine import Rows

    tuned = next((entry for entry in board.entries if len(entry.candidates.get("params", [])) > N_ALPHAS), None)
    if tuned is None or tuned.route != "statistics" or n_columns > MOST_COLUMNS:
        return None
    display.step("measuring bias and variance")
    params = tuned.candidates["params"]
    some = [params[round(k * (len(params) - 1) / (N_ALPHAS - 1))] for k in range(N_ALPHAS)]
    found = decompose(tuned.model, Rows.of(tuned.model, source), some)
    return None if found is None else ([one["alpha"] for one in some], found)


def _basis(degree: int | None) -> Any:
    if degree is None:
        return None
    from certifit.maps import Polynomial

    return Polynomial(degree)
