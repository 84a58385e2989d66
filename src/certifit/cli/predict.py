"""certifit predict MODEL DATA.csv --out P.csv."""

import contextlib
import os
import secrets
import sys
from collections.abc import Iterator
from difflib import get_close_matches
from pathlib import Path
from typing import Any, BinaryIO

import click

from certifit.cli.errors import readable_file, say
from certifit.cli.progress import Display
from certifit.report.text import joined, plural, visible


@click.command(short_help="Predict the rows of a CSV file with a saved model.")
@click.argument("model")
@click.argument("data", metavar="DATA.csv")
@click.option("--out", "-o", default="-", metavar="P.csv", help="File to write. Default: standard output.")
@click.option(
    "--interval",
    type=float,
    metavar="L",
    help="Add columns lower and upper that hold a new row with this probability, such as 0.95.",
)
@click.option("--quiet", "-q", is_flag=True, help="Print nothing but errors.")
def predict(model: str, data: str, out: str, interval: float | None, quiet: bool) -> int:
    """Predict every row of DATA.csv with MODEL, a file that `certifit fit` wrote, in constant memory.

    Columns are found by name: their order does not matter, and others are ignored.
    The output has one row a row of DATA.csv, in the same order, under the header `prediction`.
    """
    if interval is not None and not 0 < interval < 1:
        raise click.UsageError(f"--interval must be between 0 and 1, such as 0.95. Got {interval:g}.")
    model_path, data_path = readable_file(model, "a model file"), readable_file(data, "a CSV file")
    if out != "-":
        _refuse_input(out, model_path, data_path)
    from certifit.modelfile import load

    fitted = load(model_path)
    if interval is not None and fitted.inference_ is None:
        raise ValueError(_no_interval(fitted))
    source, ignored = matched(fitted, data_path)
    if ignored and not quiet:
        say(f"Ignored {plural(len(ignored), 'column')} that the model does not use: {joined(ignored, 10)}.")
    with Display(quiet or out == "-") as display, _opened(out) as file:
        display.step("predicting")
        n_rows = _stream(fitted, display.watch(source), interval, file)
    if out != "-" and not quiet:
        say(f"Wrote {plural(n_rows, 'prediction')} to {out}.")
    return 0


def matched(fitted: Any, path: Path, **scan: str | None) -> tuple[Any, list[str]]:
    """The file as a source of the columns the model uses, in its order; and the columns it does not use.

    scan: target and weight, as for `scan_csv`.
    """
    from certifit.data.files import scan_csv

    names = getattr(fitted, "feature_names_in_", None)
    source = scan_csv(path, **scan)
    if names is None:
        if source.n_features != fitted.n_features_in_:
            raise ValueError(
                f"the model was fitted on {plural(fitted.n_features_in_, 'column')} without names, and "
                f"'{visible(path)}' has {plural(source.n_features, 'column')}. Keep those columns, in order."
            )
        return source, []
    wanted = [str(name) for name in names]
    missing = [name for name in wanted if name not in source.names]
    if missing:
        close = [get_close_matches(name, source.names, n=1) for name in missing]
        near = [f"'{visible(found[0], 60)}'" for found in close if found]
        hint = f" Did you rename {' or '.join(near[:3])}?" if near else ""
        raise ValueError(
            f"'{visible(path)}' lacks {plural(len(missing), 'column')} of the model: {joined(missing)}."
            f"{hint} Its columns are {joined(source.names, 20)}."
        )
    return scan_csv(path, columns=wanted, **scan), [name for name in source.names if name not in wanted]


def _stream(fitted: Any, source: Any, interval: float | None, file: BinaryIO) -> int:
    from certifit.report.passes import named, predict_block

    file.write(b"prediction\n" if interval is None else b"prediction,lower,upper\n")
    n_rows = 0
    for run in source.runs():
        columns = [predict_block(fitted, source, run.X)]
        if interval is not None:
            columns += list(fitted.predict_interval(named(source, run.X), interval).T)
        file.write(_lines(columns))
        n_rows += run.n_rows
    return n_rows


def _lines(columns: list[Any]) -> bytes:
    """Rows of CSV; every number is the shortest text that reads back as the same float64."""
    import io

    import pyarrow as pa
    from pyarrow import csv

    table = pa.table([pa.array(column) for column in columns], names=[str(j) for j in range(len(columns))])
    text = io.BytesIO()
    csv.write_csv(table, text, csv.WriteOptions(include_header=False))
    return text.getvalue()


def _no_interval(fitted: Any) -> str:
    if fitted.alpha_ > 0:
        return "a ridge fit has no intervals: its penalty biases predictions. Use --model linear for them."
    return "this fit has no intervals: its columns repeat each other, or it has no more rows than coefficients."


def _refuse_input(out: str, *inputs: Path) -> None:
    """An output that is a folder, lies in no folder, or would overwrite what is read."""
    path = Path(out)
    if path.is_dir():
        raise ValueError(f"'{visible(path)}' is a folder. Give --out the name of a file.")
    if not path.absolute().parent.is_dir():
        raise ValueError(f"there is no folder '{visible(path.absolute().parent)}'. Make it, or choose another --out.")
    if path.exists() and any(os.path.samefile(path, one) for one in inputs):
        raise ValueError(f"--out '{visible(path)}' is a file that is read here. Give --out another name.")


@contextlib.contextmanager
def _opened(out: str) -> Iterator[BinaryIO]:
    """Standard output; a device or pipe as it is; else a temporary file, renamed when it is complete."""
    if out == "-":
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    path = Path(os.path.realpath(out))
    if path.exists() and not path.is_file():
        with open(path, "wb") as file:
            yield file
        return
    temporary = path.with_name(f".certifit-{secrets.token_hex(6)}")
    try:
        with open(temporary, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
