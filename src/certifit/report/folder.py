"""A fit on disk, all of its files or none: model.certifit, report.html, report.json, MODEL_CARD.md, coefficients.csv.

A model of classes has deciding.csv in place of coefficients.csv. Pictures are files in pictures/; a selection of
features adds selection.csv. All but the model come from one context.
The files are written to a temporary folder first and moved when all are complete. A folder of other
files is refused; files that certifit wrote there before are replaced.
"""

import contextlib
import csv
import io
import json
import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from certifit.data.privacy import Rule, harmless
from certifit.data.temporary import TEMPORARY, remove, temporary_in, uninterrupted
from certifit.data.writing import refuse_unwritable
from certifit.report.text import joined, visible

MODEL, REPORT, CONTEXT, COEFFICIENTS = "model.certifit", "report.html", "report.json", "coefficients.csv"
SELECTION, DECIDING, CARD, PICTURES = "selection.csv", "deciding.csv", "MODEL_CARD.md", "pictures"
FILES = (MODEL, REPORT, CONTEXT, CARD, COEFFICIENTS, DECIDING, SELECTION)

NUMBER_KEYS = ("estimate", "error", "t", "p", "low", "high", "digits")
ROBUST_KEYS = ("robust_error", "robust_p", "robust_low", "robust_high")
COEFFICIENT_HEAD = "name,coefficient,std_error,t,p_value,lower,upper,digits_proven"
RATIO_KEYS = ("ratio", "ratio_low", "ratio_high", "step_ratio", "step_ratio_low", "step_ratio_high")
ROBUST_HEAD = "robust_error,robust_p_value,robust_lower,robust_upper"
DECIDING_KEYS = ("log_odds", "evidence", "count", "mean", "sd")
DECIDING_HEAD = f"name,column,class,{','.join(DECIDING_KEYS)}"
SELECTION_HEAD = "step,n_features,change,error,standard_error,train_error,chosen,features"

# How a file of each name begins, or what stands near its beginning, when certifit wrote it.
MARKS = {
    MODEL: b'"certifit"',
    REPORT: b'<meta name="generator" content="certifit ',
    CONTEXT: b'{"format": "certifit report"',
    CARD: b"\nlibrary_name: certifit\n",
    COEFFICIENTS: COEFFICIENT_HEAD.encode(),
    DECIDING: DECIDING_HEAD.encode(),
    SELECTION: SELECTION_HEAD.encode(),
}
PICTURE_MARK = b"<!-- Made by certifit -->"


def write(
    folder: str | os.PathLike[str],
    model: Any,
    source: Any,
    data: str | Sequence[str],
    weight: str | None = None,
    scan: str = "scan_csv",
    validation: dict[str, Any] | None = None,
    selection: dict[str, Any] | None = None,
    positive: Any = None,
    show_values: bool = False,
) -> dict[str, Any]:
    """Write the files for a fitted model and the source it was fitted on; returns the report's context.

    `data` is the name of the data file (or folder, or several), as the report should show it; `weight` its column of
    row weights; `scan` the function of certifit that reads it; `validation` and `selection` come from
    `report.validation`; `positive` is the label of two that precision and recall speak of, the second where None.
    show_values: print cell values that few rows hold, too; see `data.privacy`.
    """
    from certifit.modelfile import save
    from certifit.models.adapter import answer_of
    from certifit.report.context import build
    from certifit.report.facts import single_weights

    check(folder)
    files = _names([data] if isinstance(data, str) else list(data), selection is not None)
    files |= {"deciding": DECIDING} if answer_of(model).is_class else {}
    files |= {"coefficients": None} if single_weights(model) is None else {}
    files |= {"scan": scan, "bad_rows": getattr(source, "skipped", 0), "weight": weight}
    files |= {"offset": model.offset_name_, "exposure": model.exposure_name_}
    told = {"validation": validation, "selection": selection, "positive": positive}
    context = build(model, source, files, **told, rule=Rule(show_values))
    texts = _texts(context)
    with staged(Path(folder)) as stage:
        save(model, stage / MODEL)
        (stage / PICTURES).mkdir()
        for name, content in texts.items():
            _write_text(stage / name, content)
    return context


def _names(paths: list[str], has_selection: bool) -> dict[str, Any]:
    """What was read and what is written, as a reader types it."""
    return {
        "data": paths[0] if len(paths) == 1 else f"{len(paths)} files, {paths[0]} to {paths[-1]}",
        "paths": paths,
        "model": MODEL,
        "report": REPORT,
        "card": CARD,
        "coefficients": COEFFICIENTS,
        "deciding": None,
        "selection": SELECTION if has_selection else None,
    }


def _texts(context: dict[str, Any]) -> dict[str, str]:
    """Every file but the model, by name."""
    from certifit.report.page import card, render
    from certifit.report.sections import drawings
    from certifit.report.svg import picture_style, standalone

    drawn = drawings(context)
    texts = {
        REPORT: render(context),
        CONTEXT: json.dumps(context, allow_nan=False) + "\n",
        CARD: card(context),
    }
    texts |= {figure["file"]: standalone(drawn[figure["name"]], picture_style()) for figure in context["figures"]}
    return texts | {name: table(context) for name, (key, table) in TABLES.items() if context[key] is not None}


def check(folder: str | os.PathLike[str]) -> list[str]:
    """Refuse a folder that cannot be written or holds other files. Returns our files in it."""
    path = Path(folder)
    refuse_unwritable(path)
    if not path.exists():
        return []
    names = sorted(entry.name for entry in path.iterdir() if not entry.name.startswith(TEMPORARY))
    ours = [name for name in names if name in FILES] + (_pictures(path) if PICTURES in names else [])
    if PICTURES in names and PICTURES not in ours:
        refuse_unwritable(path / PICTURES)
    foreign = [name for name in ours if not _is_ours(path / name)]
    if foreign:
        raise ValueError(f"{_show(path)} holds {joined(foreign)}, not written by certifit. Choose another folder.")
    if names and not ours:
        raise ValueError(f"{_show(path)} holds other files ({joined(names, 3)}). Choose a new or empty folder.")
    return ours


@contextlib.contextmanager
def staged(folder: Path) -> Iterator[Path]:
    """A temporary folder whose files appear in `folder` when the block ends without an error."""
    inside = folder.exists()
    above = folder if inside else folder.absolute().parent
    above.mkdir(parents=True, exist_ok=True)
    stage = temporary_in(above)
    try:
        stage.mkdir()
        yield stage
        with uninterrupted():
            if inside:
                _replace(stage, folder)
            else:
                os.rename(stage, folder)
    except BaseException:
        remove(stage)
        raise


def _replace(stage: Path, folder: Path) -> None:
    """Move the files of the stage over those of an earlier fit, and remove what is left of that; all or none."""
    names = sorted(path.relative_to(stage).as_posix() for path in stage.rglob("*") if path.is_file())
    known = {*FILES, *names, *(_pictures(folder) if (folder / PICTURES).is_dir() else [])}
    earlier = sorted(name for name in known if (folder / name).exists())
    kept = stage / TEMPORARY
    for name in earlier:
        (kept / name).parent.mkdir(parents=True, exist_ok=True)
        _copy(folder / name, kept / name)
    try:
        if (stage / PICTURES).is_dir():
            (folder / PICTURES).mkdir(exist_ok=True)
        for name in names:
            os.replace(stage / name, folder / name)
        for name in set(earlier).difference(names):
            (folder / name).unlink()
    except BaseException:
        for name in names:
            (folder / name).unlink(missing_ok=True)
        for name in earlier:
            os.replace(kept / name, folder / name)
        raise
    shutil.rmtree(stage)


def _copy(file: Path, to: Path) -> None:
    """A second name of the file; a copy where the disk has no such thing."""
    try:
        os.link(file, to)
    except OSError:
        shutil.copy2(file, to)


def _pictures(folder: Path) -> list[str]:
    """Files in the folder of pictures that a report may have written; the folder itself where it is not one."""
    place = folder / PICTURES
    if place.is_symlink() or not place.is_dir():
        return [PICTURES]
    from certifit.report.sections import PICTURES as KNOWN

    return [picture.file for picture in KNOWN if (folder / picture.file).exists()]


def coefficient_table(context: dict[str, Any]) -> str:
    """The coefficients as CSV with every digit; column and level say which category a level belongs to.

    Last, without numbers, a line for the levels of each column that are not shown.
    """
    text = io.StringIO()
    ratios = RATIO_KEYS if context["coefficients"]["ratio"] is not None else ()
    text.write(",".join([COEFFICIENT_HEAD, ROBUST_HEAD, "column,level", *ratios]) + "\n")
    writer = csv.writer(text, lineterminator="\n")
    for row in context["coefficients"]["rows"]:
        numbers = ["" if row[key] is None else repr(row[key]) for key in (*NUMBER_KEYS, *ROBUST_KEYS)]
        places = [harmless(row[key] or "") for key in ("column", "level")]
        factors = ["" if row[key] is None else repr(row[key]) for key in ratios]
        writer.writerow([harmless(row["name"]), *numbers, *places, *factors])
    n_more = len(NUMBER_KEYS) + len(ROBUST_KEYS) + 2 + len(ratios)
    for one in context["coefficients"]["pooled"]:
        writer.writerow([harmless(f"{one['column']}: {one['words']}"), *[""] * n_more])
    return text.getvalue()


def selection_table(context: dict[str, Any]) -> str:
    """The steps of a selection as CSV with every digit; names of features are separated by ` | `."""
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


def deciding_table(context: dict[str, Any]) -> str:
    """What decides as CSV with every digit, one line per column and class."""
    deciding, text = context["deciding"], io.StringIO()
    text.write(f"{DECIDING_HEAD}\n")
    writer = csv.writer(text, lineterminator="\n")
    for row in deciding["rows"]:
        for k, label in enumerate(deciding["labels"]):
            numbers = ["" if row[key] is None or row[key][k] is None else repr(row[key][k]) for key in DECIDING_KEYS]
            writer.writerow([harmless(row["name"]), harmless(row["column"]), harmless(label), *numbers])
    return text.getvalue()


# file -> key of the context that it is made from, and how
TABLES = {
    COEFFICIENTS: ("coefficients", coefficient_table),
    DECIDING: ("deciding", deciding_table),
    SELECTION: ("selection", selection_table),
}


def _write_text(path: Path, text: str) -> None:
    with open(path, "w", encoding="utf-8", errors="backslashreplace", newline="\n") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def _is_ours(path: Path) -> bool:
    if path.is_symlink() or not path.is_file():
        return False
    with open(path, "rb") as file:
        return MARKS.get(path.name, PICTURE_MARK) in file.read(1 << 16)


def _show(path: Path) -> str:
    return f"'{visible(path)}'"
