"""A fit on disk: model.certifit, report.html, report.json, coefficients.csv in one folder, all or none.

A selection of features adds selection.csv.
The files are written to a temporary folder first and moved when all are complete. A folder of other
files is refused; files that certifit wrote there before are replaced.
"""

import contextlib
import csv
import io
import json
import os
import secrets
import shutil
import signal
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from certifit.report.text import joined, visible

MODEL, REPORT, CONTEXT, COEFFICIENTS = "model.certifit", "report.html", "report.json", "coefficients.csv"
SELECTION = "selection.csv"
FILES = (MODEL, REPORT, CONTEXT, COEFFICIENTS, SELECTION)
TEMPORARY = ".certifit-"

NUMBER_KEYS = ("estimate", "error", "t", "p", "low", "high", "digits")
COEFFICIENT_HEAD = "name,coefficient,std_error,t,p_value,lower,upper,digits_proven"
SELECTION_HEAD = "step,n_features,change,error,standard_error,train_error,chosen,features"

# How a file of each name begins, or what stands near its beginning, when certifit wrote it.
MARKS = {
    MODEL: b'"certifit"',
    REPORT: b'<meta name="generator" content="certifit ',
    CONTEXT: b'{"format": "certifit report"',
    COEFFICIENTS: COEFFICIENT_HEAD.encode(),
    SELECTION: SELECTION_HEAD.encode(),
}


def write(
    folder: str | os.PathLike[str],
    model: Any,
    source: Any,
    data: str | Sequence[str],
    weight: str | None = None,
    scan: str = "scan_csv",
    validation: dict[str, Any] | None = None,
    selection: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Write the files for a fitted model and the source it was fitted on; returns the report's context.

    `data` is the name of the data file (or folder, or several), as the report should show it; `weight` its column of
    row weights; `scan` the function of certifit that reads it; `validation` and `selection` come from
    `report.validation`.
    """
    from certifit.modelfile import save
    from certifit.report.context import build
    from certifit.report.page import render

    check(folder)
    paths = [data] if isinstance(data, str) else list(data)
    files = {
        "data": paths[0] if len(paths) == 1 else f"{len(paths)} files, {paths[0]} to {paths[-1]}",
        "paths": paths,
        "scan": scan,
        "bad_rows": getattr(source, "skipped", 0),
        "weight": weight,
        "model": MODEL,
        "report": REPORT,
        "coefficients": COEFFICIENTS,
        "selection": None if selection is None else SELECTION,
    }
    context = build(model, source, files, validation=validation, selection=selection)
    page = render(context)
    with staged(Path(folder)) as stage:
        save(model, stage / MODEL)
        _write_text(stage / REPORT, page)
        _write_text(stage / CONTEXT, json.dumps(context, allow_nan=False) + "\n")
        _write_text(stage / COEFFICIENTS, coefficient_table(context))
        if selection is not None:
            _write_text(stage / SELECTION, selection_table(context))
    return context


def check(folder: str | os.PathLike[str]) -> list[str]:
    """Refuse a folder that cannot be written or holds other files. Returns our files in it."""
    path = Path(folder)
    if not path.exists():
        above = next(parent for parent in path.absolute().parents if parent.exists())
        _refuse_unwritable(above)
        return []
    _refuse_unwritable(path)
    names = sorted(entry.name for entry in path.iterdir() if not entry.name.startswith(TEMPORARY))
    foreign = [name for name in names if name in FILES and not _is_ours(path / name)]
    if foreign:
        raise ValueError(f"{_show(path)} holds {joined(foreign)}, not written by certifit. Choose another folder.")
    ours = [name for name in names if name in FILES]
    if names and not ours:
        raise ValueError(f"{_show(path)} holds other files ({joined(names, 3)}). Choose a new or empty folder.")
    return ours


@contextlib.contextmanager
def staged(folder: Path) -> Iterator[Path]:
    """A temporary folder whose files appear in `folder` when the block ends without an error."""
    inside = folder.exists()
    above = folder if inside else folder.absolute().parent
    above.mkdir(parents=True, exist_ok=True)
    stage = above / f"{TEMPORARY}{secrets.token_hex(6)}"
    stage.mkdir()
    try:
        yield stage
        with _uninterrupted():
            if inside:
                files = sorted(stage.iterdir())
                for file in files:
                    os.replace(file, folder / file.name)
                for name in set(FILES).difference(file.name for file in files):
                    (folder / name).unlink(missing_ok=True)  # of the earlier fit
                stage.rmdir()
            else:
                os.rename(stage, folder)
    except BaseException:
        shutil.rmtree(stage, ignore_errors=True)
        raise


@contextlib.contextmanager
def _uninterrupted() -> Iterator[None]:
    """Ctrl-C waits until the files are moved, a matter of microseconds."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def coefficient_table(context: dict[str, Any]) -> str:
    """The coefficients as CSV with every digit; column and level say which category a level belongs to."""
    text = io.StringIO()
    text.write(COEFFICIENT_HEAD + ",column,level\n")
    writer = csv.writer(text, lineterminator="\n")
    for row in context["coefficients"]["rows"]:
        numbers = ["" if row[key] is None else repr(row[key]) for key in NUMBER_KEYS]
        writer.writerow([harmless(row["name"]), *numbers, *(harmless(row[key] or "") for key in ("column", "level"))])
    return text.getvalue()


def selection_table(context: dict[str, Any]) -> str:
    """The steps of a selection as CSV with every digit; names of features are parted by ` | `."""
    selection, text = context["selection"], io.StringIO()
    n_folds = len(selection["steps"][0]["folds"])
    text.write(",".join([SELECTION_HEAD, *(f"fold_{k + 1}" for k in range(n_folds))]) + "\n")
    writer = csv.writer(text, lineterminator="\n")
    for k, step in enumerate(selection["steps"]):
        numbers = [repr(step[key]) for key in ("error", "standard_error", "train_error")]
        chosen = "yes" if k == selection["chosen"] else ""
        names = " | ".join(visible(name) for name in step["features"])
        row = [k + 1, step["n_features"], harmless(step["change"] or ""), *numbers, chosen, harmless(names)]
        writer.writerow([*row, *map(repr, step["folds"])])
    return text.getvalue()


def harmless(name: str) -> str:
    """A name that a spreadsheet shows and does not run: a leading = + - @ gets an apostrophe."""
    shown = visible(name)
    return "'" + shown if shown.lstrip()[:1] in ("=", "+", "-", "@") else shown


def _write_text(path: Path, text: str) -> None:
    with open(path, "w", encoding="utf-8", errors="backslashreplace", newline="\n") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def _is_ours(path: Path) -> bool:
    if path.is_symlink() or not path.is_file():
        return False
    with open(path, "rb") as file:
        return MARKS[path.name] in file.read(1 << 16)


def _refuse_unwritable(path: Path) -> None:
    if not path.is_dir():
        raise ValueError(f"{_show(path)} is a file. Give the name of a folder.")
    if not os.access(path, os.W_OK | os.X_OK):
        raise ValueError(f"{_show(path)} cannot be written: permission denied. Choose another folder.")


def _show(path: Path) -> str:
    return f"'{visible(path)}'"
