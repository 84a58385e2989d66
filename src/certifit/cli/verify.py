"""certifit verify MODEL DATA..."""

from typing import Any

import click

from certifit.cli.errors import NOT_PROVEN, conceal_model, readable_file, say, show, values_option
from certifit.cli.paths import find_data, reading, reading_options
from certifit.cli.predict import matched, offset_options, offset_roles
from certifit.cli.progress import Display
from certifit.report.text import count, joined


@click.command()
@click.argument("model")
@click.argument("data", metavar="DATA...", nargs=-1, required=True)
@click.option("--target", "-t", metavar="NAME", help="Column that was predicted. Default: as in the model file.")
@click.option("--weight", metavar="NAME", help="Column of row weights, when the fit had one.")
@offset_options
@reading_options
@values_option
@click.option("--exact", is_flag=True, help="Prove it in ball arithmetic: right to the last rounding, and slower.")
@click.option(
    "--most-minutes", type=float, default=10.0, show_default=True, help="Refuse an exact proof expected to take longer."
)
@click.option("--quiet", "-q", is_flag=True, help="Print nothing; the exit code tells the result.")
def verify(
    model: str,
    data: tuple[str, ...],
    target: str | None,
    weight: str | None,
    offset: str | None,
    exposure: str | None,
    exact: bool,
    most_minutes: float,
    quiet: bool,
    **others: Any,
) -> int:
    """Compute the certificate of MODEL again on DATA, the data it was fitted on; no solver takes part.

    Of a model with a bound on the optimum that proves it is the best fit. Trees, forests, boosting and networks have
    none: their numbers are computed again and compared.

    DATA are one or more CSV or Parquet files or folders of them.
    With --exact no rounding is left open; it needs python-flint (pip install 'certifit[exact]').
    Exit code 0 when the certificate holds, 1 when it does not, 2 for bad input.
    """
    model_path, files = readable_file(model, "a model file"), find_data(data, **reading(**others))
    from certifit.modelfile import load
    from certifit.modelfile import verify as check

    fitted = load(model_path)
    conceal_model(fitted)
    if weight is None and fitted.data_["sum_weight"] != fitted.data_["n_rows"]:
        raise ValueError("the fit had row weights. Name their column with --weight NAME.")
    target_name = fitted.target_name_  # a model of rows alone has none
    if target is not None and target_name is None:
        raise ValueError(f"--target: a {type(fitted).__name__} has none. Leave it out.")
    beside = offset_roles(fitted, offset=offset, exposure=exposure)
    if exact:
        _announce(fitted, most_minutes, quiet)
    with Display(quiet) as display:
        display.step("reading types")
        source, _ = matched(fitted, files, display, target=target or target_name, weight=weight, **beside)
        display.step("verifying exactly" if exact else "verifying")
        try:
            result = check(fitted, source, exact=exact, most_minutes=most_minutes)
        except ValueError as error:
            if "not among the classes" not in str(error):
                raise
            raise ValueError(f"{error} If --types was given to the fit, give it here too.") from error
    if not quiet:
        shown = joined(list(data), 3)
        rows = f"{count(fitted.data_['n_rows'])} rows"
        sure = "; an estimate near the fit, no proof" if result.sure == "estimated" else ""
        head = f"Computed again, and agrees{sure}: {model} on {shown} ({rows})."
        if result.sure == "proven":
            head = f"Proven{' exactly' if exact else ''}: {model} is the best fit to {shown} ({rows})."
        show(head if result.holds else f"NOT verified: {model} on {shown}.")
        for line in result.sentences():
            show(f"  {line}")
    return 0 if result.holds else NOT_PROVEN


def _announce(fitted: Any, most_minutes: float, quiet: bool) -> None:
    """The expected time of an exact proof, or a refusal, before any row is read."""
    from certifit.exact.balls import flint
    from certifit.exact.proof import expected_seconds, in_words, refuse_long
    from certifit.exact.table import prover_of

    prover_of(fitted)
    flint()
    refuse_long(fitted, most_minutes)
    if not quiet:
        size = f"{count(fitted.data_['n_rows'])} rows and {count(len(fitted.column_names_))} columns"
        say(f"An exact proof on {size}: {in_words(expected_seconds(fitted))} expected.")
