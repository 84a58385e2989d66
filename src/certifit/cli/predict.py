"""certifit predict MODEL DATA... --out P.csv.

Offset and exposure columns of new data: those that are named, else those of the fit.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeVar

import click

from certifit.cli.errors import conceal_model, readable_file, say, values_option
from certifit.cli.models import OFFSETS
from certifit.cli.paths import (
    CSV_TYPES,
    PARQUET,
    Data,
    find_data,
    listed_names,
    reading,
    reading_options,
    refuse_inside,
)
from certifit.cli.prediction_columns import Costs, Threshold, kept_columns, with_kept
from certifit.cli.progress import Display
from certifit.data.privacy import are_names
from certifit.data.roles import listed
from certifit.report.text import joined, plural, visible

Command = TypeVar("Command", bound=Callable[..., Any])

NONE = "none"
_WITHOUT = {"offset": "offset 0", "exposure": "exposure 1: a rate"}


def offset_options(command: Command) -> Command:
    """The options of a command that reads a model and its data."""
    for role in OFFSETS:
        words = f"Column of the {role}; `{NONE}` for none. Default: as in the model file."
        command = click.option(f"--{role}", metavar="NAME", help=words)(command)
    return command


def offset_roles(fitted: Any, **columns: str | None) -> dict[str, str | None]:
    """The columns that the model reads as offset and exposure: the given ones, else those of its fit."""
    from certifit.data.user_input import takes

    roles = {}
    for role, name in columns.items():
        if name not in (None, NONE) and not takes(fitted, role):
            raise ValueError(f"--{role}: a {type(fitted).__name__} has none. Leave it out.")
        fitted_column = {"offset": fitted.offset_name_, "exposure": fitted.exposure_name_}[role]
        roles[role] = fitted_column if name is None else None if name == NONE else name
    return roles


def offsets_there(fitted: Any, names: Sequence[str], is_quiet: bool, **columns: str | None) -> dict[str, str | None]:
    """The same for a prediction, which needs neither: a column of the fit that new data lacks is left out, and said."""
    roles = offset_roles(fitted, **columns)
    for role, name in roles.items():
        if name is None or columns[role] is not None:
            continue
        is_there = name in names
        roles[role] = name if is_there else None
        read = f"column {name!r}, as in the fit" if is_there else f"left out: there is no column {name!r}"
        effect = f"For {_WITHOUT[role]}, add --{role} {NONE}." if is_there else f"Predictions are for {_WITHOUT[role]}."
        if not is_quiet:
            say(f"The {role} is {read}. {effect}")
    return roles


N_FOLDS = 10  # of intervals from held-out rows
MOST_NUMBERS = 1 << 22  # probabilities that are held at a time


@click.command()
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
    help="Add columns lower and upper: a new value lies between them with this probability, such as 0.95; of a "
    "generalised linear model, its mean does.",
)
@click.option(
    "--fitted-on", "fitted_on", multiple=True, metavar="DATA",
    help="With --interval: the data of the fit, for intervals from errors on held-out rows (CV+), which a model with a "
    "penalty needs. The model is fitted again without each of 10 folds; a model file holds no rows.",
)  # fmt: skip
@click.option("--proba", is_flag=True, help="Of classes: add a column p(LABEL) with the probability of each.")
@click.option("--keep", metavar="A,B", help="Columns of DATA to write in front of the predictions, such as an id.")
@click.option(
    "--threshold", metavar="LABEL=P",
    help="Of two classes: predict LABEL where its probability is at least P; P alone is of the second label.",
)  # fmt: skip
@click.option(
    "--costs", metavar="LABEL=C,...",
    help="Of classes: what a wrong prediction costs for a row of each class, 1 where not named; predict what costs "
    "least on average.",
)  # fmt: skip
@offset_options
@reading_options
@values_option
@click.option("--quiet", "-q", is_flag=True, help="Print nothing but errors.")
def predict(
    model: str,
    data: tuple[str, ...],
    out: str,
    interval: float | None,
    fitted_on: tuple[str, ...],
    proba: bool,
    keep: str | None,
    threshold: str | None,
    costs: str | None,
    offset: str | None,
    exposure: str | None,
    quiet: bool,
    **others: Any,
) -> int:
    """Predict every row of DATA with MODEL, a file that `certifit fit` wrote, in constant memory.

    DATA are one or more CSV, Parquet, Feather, JSON lines or Excel files, or folders of them; - is standard input.
    Columns are found by name: their order does not matter, and others are ignored.
    The output has one row per row of DATA, in the same order, under the header `prediction`: a number, or a label.
    """
    if interval is not None and not 0 < interval < 1:
        raise click.UsageError(f"--interval must be between 0 and 1, such as 0.95. Got {interval:g}.")
    if fitted_on and interval is None:
        raise click.UsageError("--fitted-on is for intervals. Add --interval L, such as 0.9.")
    model_path, files = readable_file(model, "a model file"), find_data(data, **reading(**others))
    seen = find_data(fitted_on, **reading(**others)) if fitted_on else None
    if out != "-":
        _refuse_output(out, model_path, *map(Path, files.files))
        refuse_inside(out, data)
    elif sys.stdout is None:
        raise ValueError("standard output is closed, and predictions go there. Give --out the name of a file.")
    from certifit.modelfile import load

    fitted = load(model_path)
    conceal_model(fitted)
    _refuse_options(fitted, interval, proba, seen is not None)
    if threshold is not None and costs is not None:
        raise click.UsageError("--threshold and --costs say both what is predicted. Give one.")
    least, kept = Threshold.of(threshold, fitted) or Costs.of(costs, fitted), listed_names(keep) or []
    beside = offsets_there(fitted, files.names(), quiet, offset=offset, exposure=exposure)
    with Display(quiet or out == "-") as display:
        display.step("reading types")
        source, ignored = matched(fitted, files, display, **beside)
        more = kept_columns(kept, files.names(), source.names)
        beside_rows = files.open(dict.fromkeys(more, "text"), columns=kept) if kept else None
        ignored = [name for name in ignored if name not in kept]
        if ignored and not quiet:
            say(f"Ignored {plural(len(ignored), 'column')} that the model does not use: {joined(ignored, 10)}.")
        between = _own_intervals(fitted, interval)
        if seen is not None and interval is not None:
            display.step("fitting without each fold")
            between = _fold_intervals(fitted, seen, interval, display)
        display.step("predicting")
        infinite: list[tuple[int, int]] = []
        predicted = (
            _labels(fitted, source, proba, least)
            if is_of_classes(fitted)
            else _numbers_of(fitted, source, between, infinite)
        )
        n_rows = _write(*with_kept(predicted, beside_rows, kept), out)
    if infinite and not quiet:
        many = plural(sum(n_rows_of_run for _, n_rows_of_run in infinite), "prediction")
        where = getattr(source, "place", "row {}".format)(min(infinite)[0])
        say(
            f"Warning: {many} beyond the range of float64, written as inf, the first at {where}: the model is far from "
            "the rows of its fit there."
        )
    if source.skipped and not quiet:
        say(f"Skipped {plural(source.skipped, 'bad row')}: they have no prediction.")
    if out != "-" and not quiet:
        say(f"Wrote {plural(n_rows, 'prediction')} to {out}.")
    return 0


def is_of_classes(fitted: Any) -> bool:
    """Whether a model predicts labels."""
    from certifit.models.adapter import answer_of

    return answer_of(fitted).is_class


def _refuse_options(fitted: Any, interval: float | None, proba: bool, has_rows: bool) -> None:
    """What the model cannot give."""
    from certifit.models.adapter import answer_of
    from certifit.models.learner import Answer

    answer = answer_of(fitted)
    if answer is Answer.NONE:
        raise ValueError(f"the model file holds a {type(fitted).__name__}, which predicts nothing.")
    if answer.is_class:
        if interval is not None:
            raise ValueError("--interval is for a quantity, and this model predicts classes. Use --proba.")
        if proba and answer is Answer.MARGINS:
            raise ValueError(f"--proba: a {type(fitted).__name__} has no probabilities. Leave it out.")
        return
    if proba:
        raise ValueError("--proba is for classes, and this model predicts a quantity. Use --interval L.")
    if interval is not None and fitted.inference_ is None and not has_rows:
        raise ValueError(_no_interval(fitted))


_LOOKED_FOR = 20  # missing columns for which one of a like name is looked for


def matched(fitted: Any, data: Data, display: Display, **roles: Any) -> tuple[Any, list[str]]:
    """The files as a source of the columns the model uses, in its order; and the columns it does not use.

    roles: target, weight, offset and exposure, as for a scan.
    """
    from certifit.models.adapter import feature_names

    wanted = feature_names(fitted)
    if "target" in roles:  # the rows of the fit, some of which it may have set aside by groups
        roles["group"] = fitted.data_.get("held_out", {}).get("group")
    taken = [name for name in roles.values() if name is not None]
    there = [name for name in data.names() if name not in taken]
    shown = visible(data.files[0])
    if wanted is None:
        if len(there) != fitted.n_features_in_:
            raise ValueError(
                f"the model was fitted on {plural(fitted.n_features_in_, 'column')} without names, and "
                f"'{shown}' has {plural(len(there), 'column')}. Keep those columns, in order."
            )
        source = data.open(_label_type(fitted, roles.get("target")), is_of_classes(fitted), columns=there, **roles)
        return _numbers(display.watch(source)), []
    in_files = set(there)
    missing = [name for name in wanted if name not in in_files]
    if missing:
        # To look for names like one takes long among thousands.
        close = [get_close_matches(name, there, n=1) for name in missing[:_LOOKED_FOR]] if are_names(there) else []
        near = [f"'{visible(names_near[0], 60)}'" for names_near in close if names_near]
        hint = f" Did you rename {' or '.join(near[:3])}?" if near else ""
        raise ValueError(
            f"'{shown}' lacks {plural(len(missing), 'column')} of the model: {joined(missing)}.{hint} {listed(there)}"
        )
    opened = data.open(_types(fitted, roles.get("target")), is_of_classes(fitted), columns=wanted, **roles)
    for note in [] if display.is_quiet else opened.notes:
        say(f"Note: {note}")
    source = display.watch(opened)
    used = set(wanted)
    ignored = [name for name in there if name not in used]
    return source if fitted.encoder_ is not None else _numbers(source), ignored


def _types(fitted: Any, target: str | None) -> dict[str, str]:
    """How CSV cells of the columns were read in the fit."""
    labels = _label_type(fitted, target)
    if fitted.encoder_ is None:
        return labels
    codes = set(fitted.encoder_.categories)
    kinds = [kind for kind in fitted.encoder_.columns_ if kind.kind in CSV_TYPES and kind.name not in codes]
    readings: dict[str, str] = fitted.encoder_.readings_
    return {kind.name: CSV_TYPES[kind.kind] for kind in kinds} | readings | labels


def _label_type(fitted: Any, target: str | None) -> dict[str, str]:
    """How CSV cells of labels were read in the fit."""
    if target is None or not is_of_classes(fitted):
        return {}
    label = fitted.classes_.tolist()[0]
    return {target: "text"} if isinstance(label, str) else {target: "flag"} if isinstance(label, bool) else {}


class _Numbers:
    """A table of numbers as an array, for a model that was fitted on one."""

    def apply(self, table: Any) -> Any:
        import numpy as np
        import pyarrow as pa

        for name, kind in zip(table.schema.names, table.schema.types, strict=True):
            if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)):
                raise ValueError(f"Column {name!r} is {kind}, and the model was fitted on numbers.")
        columns = [column.cast(pa.float64(), safe=False).to_numpy() for column in table.columns]  # rounded beyond 2^53
        return np.column_stack(columns)

    def get_feature_names_out(self, names: Any = None) -> Any:
        return list(names)


def _numbers(source: Any) -> Any:
    mapped = source.through(_Numbers())
    mapped.skipped = source.skipped
    return mapped


Predicted = tuple[Iterator[Any], Any]  # record batches, and their schema


Between = Callable[..., Any]  # rows -> rows x (lower, upper)


def _own_intervals(fitted: Any, level: float | None) -> Between | None:
    """Those of the law of the errors, which a fit without a penalty has."""
    return None if level is None else lambda rows, **options: fitted.predict_interval(rows, level, **options)


def _fold_intervals(fitted: Any, data: Data, level: float, display: Display) -> Between:
    """CV+: intervals from the errors of fits on rows that they did not see, with no law assumed."""
    from sklearn.base import clone

    from certifit.selection.compare.intervals import fold_intervals
    from certifit.selection.compare.nested import rows_of_fit
    from certifit.selection.folds.rows import Rows
    from certifit.selection.folds.splits import rounds_of, row_count

    if fitted.data_["sum_weight"] != fitted.data_["n_rows"]:
        raise ValueError("--fitted-on is for a fit without row weights: intervals from held-out errors count rows.")
    if fitted.offset_name_ or fitted.exposure_name_:
        raise ValueError("--fitted-on is for a fit without offset and exposure: errors of rates are not alike.")
    source = rows_of_fit(fitted, matched(fitted, data, display, target=fitted.target_name_)[0])
    n_rows = row_count(source)
    if n_rows != fitted.data_["n_rows"]:
        raise ValueError(
            f"--fitted-on has {n_rows:,} rows, and the model was fitted to {fitted.data_['n_rows']:,}. Give the data "
            "of the fit."
        )
    model = clone(fitted)
    intervals = fold_intervals(model, Rows.of(model, source), rounds_of(N_FOLDS, source))
    return lambda rows, **options: intervals.at(rows, level, **options)


def _numbers_of(fitted: Any, source: Any, between: Between | None, infinite: list[tuple[int, int]]) -> Predicted:
    """Predictions, with their intervals where wanted.

    infinite: takes the first row of a run whose prediction is infinite, and how many are.
    """
    import numpy as np
    import pyarrow as pa

    from certifit.data.source import block_rows
    from certifit.data.writing import record_batch
    from certifit.report.passes import predict_block, with_offset

    names = ("prediction",) if between is None else ("prediction", "lower", "upper")
    schema = pa.schema([(name, pa.float64()) for name in names])

    def of(run: Any) -> Any:
        with np.errstate(over="ignore", invalid="ignore"):
            columns = [predict_block(fitted, source, run.X, run.first_row, run.offset)]
            if between is not None:
                rows, options = with_offset(source, run.X, run.offset)
                columns += list(between(rows, **options).T)
        beyond = np.flatnonzero(~np.isfinite(columns[0]))
        if len(beyond):
            infinite.append((run.first_row + int(beyond[0]), len(beyond)))
        return record_batch(columns, schema)

    if between is not None:
        # An interval needs the columns spelt out, so runs are cut to suit their number.
        size = block_rows(source.n_features if fitted.inference_ is None else len(fitted.coef_))
        source = source.resized(size, size)
    return iter(source.map(of)), schema


def _labels(fitted: Any, source: Any, proba: bool, least: Threshold | Costs | None = None) -> Predicted:
    """Labels, and the probabilities of all classes where wanted."""
    import pyarrow as pa

    from certifit.cli.by_label import spelt
    from certifit.data.source import RowError
    from certifit.data.writing import record_batch
    from certifit.report.passes import with_offset

    classes = fitted.classes_
    kind = pa.array(classes.tolist()).type
    labels = map(spelt, classes.tolist()) if proba else ()
    columns = [("prediction", kind), *((f"p({label})", pa.float64()) for label in labels)]
    schema = pa.schema(columns)

    def of(run: Any) -> Any:
        rows, options = with_offset(source, run.X, run.offset)
        try:
            shares = fitted.predict_proba(rows, **options) if proba or least is not None else None
            labels = fitted.predict(rows, **options).tolist() if least is None else least.labels(shares, classes)
            return record_batch([labels, *(shares.T if proba and shares is not None else ())], schema)
        except RowError as error:
            raise error.moved(run.first_row) from None

    # Probabilities are as many columns as there are classes.
    size = max(1, min(source.block_rows, MOST_NUMBERS // len(classes)))
    return iter(source.resized(size, size).map(of)), schema


def _write(batches: Iterable[Any], schema: Any, out: str) -> int:
    """To a file that appears whole or not at all; to standard output, a device or a pipe as it comes."""
    from certifit.data.writing import write_batches

    path = Path(out)
    if out != "-" and (path.is_file() or not path.exists()):
        return write_batches(batches, path, schema)
    if out == "-":
        n_rows = _stream(batches, schema, sys.stdout.buffer)
        sys.stdout.buffer.flush()
        return n_rows
    with open(path, "wb") as file:
        return _stream(batches, schema, file)


def _stream(batches: Iterable[Any], schema: Any, file: Any) -> int:
    from certifit.data.writing import csv_writer

    write = csv_writer(file, schema)
    n_rows = 0
    for batch in batches:
        write(batch)
        n_rows += batch.num_rows
    return n_rows


def _no_interval(fitted: Any) -> str:
    """Why a fit has no intervals of its own, and the way to those that every model has."""
    held_out = "Add --fitted-on DATA with the data of the fit for intervals from errors on held-out rows (CV+)"
    name = type(fitted).__name__
    if (fitted.alpha_ or 0) > 0:
        from certifit.models.adapter import learner_of

        words = learner_of(fitted).words.of_fit(fitted.alpha_, 0)
        way = (words.weaker or "").removeprefix("fit with ")
        return (
            f"a {name} with a penalty has no intervals of its own: the penalty biases predictions. {held_out}, or fit "
            f"with {way or 'alpha 0'}."
        )
    if relations := getattr(fitted.certificate_, "dependent", ()):
        from certifit.models.least_squares.inference import listed_relations

        return (
            f"this fit has no intervals of its own: columns repeat each other ({listed_relations(relations)}). "
            f"{held_out}, or fit again without a column of each relation (--drop)."
        )
    n_rows = plural(int(fitted.data_["n_rows"]), "row")
    return f"a {name} of {n_rows} has no intervals of its own. {held_out}."


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
    if is_special:
        return
    if not out.lower().endswith((".csv", *PARQUET)):
        raise ValueError(f"--out '{visible(path)}' is neither CSV nor Parquet. End its name in .csv or .parquet.")
    from certifit.data.writing import refuse_unwritable

    refuse_unwritable(Path(os.path.realpath(path)).parent)
