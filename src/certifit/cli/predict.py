"""certifit predict MODEL DATA... --out P.csv."""

import os
import sys
from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import click

from certifit.cli.errors import readable_file, say
from certifit.cli.paths import CSV_TYPES, PARQUET, Data, find_data, reading, reading_options, refuse_inside
from certifit.cli.progress import Display
from certifit.report.text import joined, plural, visible


@click.command(short_help="Predict the rows of CSV or Parquet files with a saved model.")
@click.argument("model")
@click.argument("data", metavar="DATA...", nargs=-1, required=True)
@click.option(
    "--out", "-o", default="-", metavar="P.csv",
    help="File to write, CSV or Parquet by the end of its name. Default: CSV on standard output.",
)  # fmt: skip
@click.option(
    "--interval",
    type=float,
    metavar="L",
    help="Add columns lower and upper that hold a new row with this probability, such as 0.95.",
)
@reading_options
@click.option("--quiet", "-q", is_flag=True, help="Print nothing but errors.")
def predict(model: str, data: tuple[str, ...], out: str, interval: float | None, quiet: bool, **others: Any) -> int:
    """Predict every row of DATA with MODEL, a file that `certifit fit` wrote, in constant memory.

    DATA are one or more CSV or Parquet files or folders of them.
    Columns are found by name: their order does not matter, and others are ignored.
    The output has one row a row of DATA, in the same order, under the header `prediction`.
    """
    if interval is not None and not 0 < interval < 1:
        raise click.UsageError(f"--interval must be between 0 and 1, such as 0.95. Got {interval:g}.")
    model_path, found = readable_file(model, "a model file"), find_data(data, **reading(**others))
    if out != "-":
        _refuse_output(out, model_path, *map(Path, found.files))
        refuse_inside(out, data)
    from certifit.modelfile import load

    fitted = load(model_path)
    if interval is not None and fitted.inference_ is None:
        raise ValueError(_no_interval(fitted))
    with Display(quiet or out == "-") as display:
        display.step("reading types")
        source, ignored = matched(fitted, found, display)
        if ignored and not quiet:
            say(f"Ignored {plural(len(ignored), 'column')} that the model does not use: {joined(ignored, 10)}.")
        display.step("predicting")
        n_rows = _write(_predictions(fitted, source, interval), out, _HEADS[interval is not None])
    if source.skipped and not quiet:
        say(f"Skipped {plural(source.skipped, 'bad row')}: they have no prediction.")
    if out != "-" and not quiet:
        say(f"Wrote {plural(n_rows, 'prediction')} to {out}.")
    return 0


_HEADS = {False: ("prediction",), True: ("prediction", "lower", "upper")}


def matched(fitted: Any, data: Data, display: Display, **roles: Any) -> tuple[Any, list[str]]:
    """The files as a source of the columns the model uses, in its order; and the columns it does not use.

    roles: target and weight, as for a scan.
    """
    names = getattr(fitted, "feature_names_in_", None)
    taken = [name for name in roles.values() if name is not None]
    there = [name for name in data.names() if name not in taken]
    shown = visible(data.files[0])
    if names is None:
        if len(there) != fitted.n_features_in_:
            raise ValueError(
                f"the model was fitted on {plural(fitted.n_features_in_, 'column')} without names, and "
                f"'{shown}' has {plural(len(there), 'column')}. Keep those columns, in order."
            )
        return _numbers(display.watch(data.open(columns=there, **roles))), []
    wanted = [str(name) for name in names]
    missing = [name for name in wanted if name not in there]
    if missing:
        close = [get_close_matches(name, there, n=1) for name in missing]
        near = [f"'{visible(found[0], 60)}'" for found in close if found]
        hint = f" Did you rename {' or '.join(near[:3])}?" if near else ""
        raise ValueError(
            f"'{shown}' lacks {plural(len(missing), 'column')} of the model: {joined(missing)}."
            f"{hint} Its columns are {joined(there, 20)}."
        )
    source = display.watch(data.open(types=_types(fitted), columns=wanted, **roles))
    ignored = [name for name in there if name not in wanted]
    return source if fitted.encoder_ is not None else _numbers(source), ignored


def _types(fitted: Any) -> dict[str, str]:
    """How CSV cells of the columns were read in the fit."""
    if fitted.encoder_ is None:
        return {}
    codes = set(fitted.encoder_.categories)
    kinds = [kind for kind in fitted.encoder_.columns_ if kind.kind in CSV_TYPES and kind.name not in codes]
    return {kind.name: CSV_TYPES[kind.kind] for kind in kinds}


class _Numbers:
    """A table of numbers as an array, for a model that was fitted on one."""

    def apply(self, table: Any) -> Any:
        import numpy as np
        import pyarrow as pa

        for name, kind in zip(table.schema.names, table.schema.types, strict=True):
            if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)):
                raise ValueError(f"Column {name!r} is {kind}, and the model was fitted on numbers.")
        columns = [column.cast(pa.float64()).to_numpy() for column in table.columns]
        return np.column_stack(columns)

    def get_feature_names_out(self, names: Any = None) -> Any:
        return list(names)


def _numbers(source: Any) -> Any:
    mapped = source.through(_Numbers())
    mapped.skipped = source.skipped
    return mapped


def _predictions(fitted: Any, source: Any, interval: float | None) -> Iterator[Any]:
    """Arrays of predictions, with their intervals: one row a row."""
    import numpy as np

    from certifit.data.source import block_rows
    from certifit.report.passes import named, predict_block

    def of(run: Any) -> Any:
        prediction = predict_block(fitted, source, run.X, run.first_row)
        if interval is None:
            return prediction
        return np.column_stack([prediction, fitted.predict_interval(named(source, run.X), interval)])

    if interval is not None:
        # An interval needs the columns spelt out, so runs are cut to suit their number.
        size = block_rows(len(fitted.coef_))
        source = source.resized(size, size)
    yield from source.map(of)


def _write(parts: Iterable[Any], out: str, names: tuple[str, ...]) -> int:
    """To a file that appears whole or not at all; to standard output, a device or a pipe as it comes."""
    from certifit.data.files import write_predictions

    path = Path(out)
    if out != "-" and (path.is_file() or not path.exists()):
        return write_predictions(parts, path, names)
    if out == "-":
        n_rows = _stream(parts, sys.stdout.buffer, names)
        sys.stdout.buffer.flush()
        return n_rows
    with open(path, "wb") as file:
        return _stream(parts, file, names)


def _stream(parts: Iterable[Any], file: Any, names: tuple[str, ...]) -> int:
    file.write((",".join(names) + "\n").encode())
    n_rows = 0
    for part in parts:
        file.write(_lines(part.reshape(-1, len(names))))
        n_rows += len(part)
    return n_rows


def _lines(rows: Any) -> bytes:
    """Rows of CSV; every number is the shortest text that reads back as the same float64."""
    import io

    import pyarrow as pa
    from pyarrow import csv

    table = pa.table({str(j): rows[:, j] for j in range(rows.shape[1])})
    text = io.BytesIO()
    csv.write_csv(table, text, csv.WriteOptions(include_header=False))
    return text.getvalue()


def _no_interval(fitted: Any) -> str:
    if fitted.alpha_ > 0:
        return "a ridge fit has no intervals: its penalty biases predictions. Use --model linear for them."
    return "this fit has no intervals: its columns repeat each other, or it has no more rows than coefficients."


def _refuse_output(out: str, *inputs: Path) -> None:
    """An output that is a folder, lies in no folder, is of no known format, or would overwrite what is read."""
    path = Path(out)
    if path.is_dir():
        raise ValueError(f"'{visible(path)}' is a folder. Give --out the name of a file.")
    if not path.absolute().parent.is_dir():
        raise ValueError(f"there is no folder '{visible(path.absolute().parent)}'. Make it, or choose another --out.")
    if path.exists() and any(os.path.samefile(path, one) for one in inputs):
        raise ValueError(f"--out '{visible(path)}' is a file that is read here. Give --out another name.")
    is_special = path.exists() and not path.is_file()
    if not is_special and not out.lower().endswith((".csv", *PARQUET)):
        raise ValueError(f"--out '{visible(path)}' is neither CSV nor Parquet. End its name in .csv or .parquet.")
