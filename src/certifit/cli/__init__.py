"""The command line: `certifit fit`, `select`, `predict`, `verify`, `inspect`, `demo`.

Exit codes: 0 done (verify: the certificate holds), 1 the certificate does not hold, 2 bad input, 3 a defect of
certifit, 130 interrupted, 143 terminated. A command is imported when it is named, and everything heavy inside it, so
that `--help` is fast.
"""

import certifit.cli.signals

# isort: split
import click

import certifit.cli.postponed  # noqa: F401
from certifit.cli.errors import Commands

COMMANDS = {
    "demo": "Fit bundled data and show where the reports are.",
    "fit": "Fit CSV, Parquet, Excel or other files; write the model and a report.",
    "inspect": "Show what a model file holds.",
    "predict": "Predict the rows of CSV or Parquet files with a saved model.",
    "select": "Choose the columns that predict best; write the model and a report.",
    "verify": "Compute the certificate of a saved fit again on its data.",
}


@click.group(
    cls=Commands, told=COMMANDS, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.version_option(package_name="certifit", message="certifit %(version)s")
def main() -> None:
    """Regression and classification with cross-validation, p-values and a certificate that the fit converged.

    \b
    certifit demo                                          try it on bundled data
    certifit fit data.csv --target y --out result          fit a quantity or classes, write a report
    certifit select data.csv --target y --out result       choose the columns that predict best
    certifit predict result/model.certifit new.csv --out p.csv
    certifit verify result/model.certifit data.csv         compute its certificate again
    certifit inspect result/model.certifit                 show what a model file holds

    Exit codes: 0 done, 1 the certificate does not hold, 2 bad input, 130 interrupted.
    """
