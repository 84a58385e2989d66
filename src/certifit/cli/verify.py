"""certifit verify MODEL DATA.csv."""

import click

from certifit.cli.errors import NOT_PROVEN, readable_file
from certifit.cli.predict import matched
from certifit.cli.progress import Display
from certifit.report.text import count, visible


@click.command(short_help="Prove a saved fit again on its data.")
@click.argument("model")
@click.argument("data", metavar="DATA.csv")
@click.option("--target", "-t", metavar="NAME", help="Column that was predicted. Default: as in the model file.")
@click.option("--weight", metavar="NAME", help="Column of row weights, when the fit had one.")
@click.option("--quiet", "-q", is_flag=True, help="Print nothing; the exit code says it.")
def verify(model: str, data: str, target: str | None, weight: str | None, quiet: bool) -> int:
    """Prove that MODEL is the best fit to DATA.csv, the data it was fitted on; no solver takes part.

    Exit code 0 when the proof holds, 1 when it does not, 2 for bad input.
    """
    model_path, data_path = readable_file(model, "a model file"), readable_file(data, "a CSV file")
    from certifit.modelfile import load
    from certifit.modelfile import verify as check

    fitted = load(model_path)
    if weight is None and fitted.data_["sum_weight"] != fitted.data_["n_rows"]:
        raise ValueError("the fit had row weights. Name their column with --weight NAME.")
    source, _ = matched(fitted, data_path, target=target or fitted.target_name_, weight=weight)
    with Display(quiet) as display:
        display.step("verifying")
        result = check(fitted, display.watch(source))
    if not quiet:
        rows = f"{count(fitted.data_['n_rows'])} rows"
        head = f"Proven: {visible(model)} is the best fit to {visible(data)} ({rows})."
        click.echo(head if result.holds else f"NOT proven: {visible(model)} on {visible(data)}.")
        lines = result.certificate.sentences() if result.holds else result.reasons
        for line in lines:
            click.echo(f"  {visible(line)}")
    return 0 if result.holds else NOT_PROVEN
