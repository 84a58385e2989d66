"""Whether something can be written at a place, found by trying: permissions do not tell of read-only disks."""

import os
import secrets
import shutil
from pathlib import Path

from certifit.data.harmless import visible

TEMPORARY = ".certifit-"


def refuse_unwritable(place: Path) -> None:
    """Refuse a folder in which no file can be made, or one that cannot be made itself. Nothing is left behind."""
    whole = place.absolute()
    folder = next(part for part in (whole, *whole.parents) if os.path.exists(part))
    if not folder.is_dir():
        raise ValueError(f"{_quoted(folder)} is a file. Give the name of a folder.")
    missing = whole.relative_to(folder).parts
    if missing and os.path.lexists(folder / missing[0]):
        raise ValueError(f"{_quoted(folder / missing[0])} is a link to nothing. Choose another folder.")
    trial = folder / f"{TEMPORARY}{secrets.token_hex(6)}"
    try:
        trial.mkdir()
        try:
            trial.joinpath(*missing).mkdir(parents=True, exist_ok=True)
        finally:
            shutil.rmtree(trial, ignore_errors=True)
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise ValueError(f"{_quoted(folder)} cannot be written: {why}. Choose another folder.") from error


def _quoted(path: Path) -> str:
    return f"'{visible(path)}'"
