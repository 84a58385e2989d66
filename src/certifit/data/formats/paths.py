"""Which files a path, a glob, a folder or a list means, a check that they stay as they are, and files seen otherwise.

A file in place=north/ has a column place, north in all its rows. Rows whose target is missing are left out: nothing
can be learnt from them.
"""

from __future__ import annotations

import glob
import os
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

AnyPath = str | PathLike[str]


class ShownAs(str):
    """The place of a copy, which messages call by the name that its user typed.

    about: what they add to the name. note: what a report should say of the copy.
    """

    def __new__(cls, place: str, typed: str, about: str = "", note: str = "") -> ShownAs:
        """A path."""
        path = super().__new__(cls, place)
        path.typed, path.about, path.note = typed, about, note
        return path

    typed: str
    about: str
    note: str

    def __getnewargs__(self) -> tuple[str, str, str, str]:  # type: ignore[override]  # more arguments than str has
        return str(self), self.typed, self.about, self.note

    def __repr__(self) -> str:
        return repr(self.typed) + self.about


def listed(path: AnyPath | Sequence[AnyPath], endings: Sequence[str]) -> list[str]:
    """The files, sorted by name within a glob or a folder. `endings`: which files of a folder count."""
    if not isinstance(path, str | PathLike):
        files = [file for each in path for file in listed(each, endings)]
        if not files:
            raise ValueError("The list of files is empty.")
        return files
    text = os.fspath(path)
    if os.path.isdir(text):
        return _of_folder(text, endings)
    if not os.path.exists(text) and glob.has_magic(text):
        files = sorted(file for file in glob.glob(text, recursive=True) if os.path.isfile(file))
        if not files:
            raise FileNotFoundError(f"No file matches {text!r}.")
        return files
    if not os.path.exists(text):
        raise FileNotFoundError(f"There is no file {text!r}.")
    if not os.path.isfile(text):
        raise ValueError(f"{text!r} is not a regular file. A scan reads its rows more than once.")
    return [text]


def _of_folder(folder: str, endings: Sequence[str]) -> list[str]:
    files = []
    for place, folders, names in os.walk(folder, onerror=_refuse):
        folders[:] = [name for name in folders if name[0] not in "._"]
        wanted = [name for name in names if name[0] not in "._" and name.lower().endswith(tuple(endings))]
        files += [str(Path(place, name)) for name in wanted if Path(place, name).is_file()]
    files.sort()
    if not files:
        raise FileNotFoundError(f"The folder {folder!r} has no file that ends in {' or '.join(endings)}.")
    return files


# Tables whose files keep deleted rows: what lies beside the files, the name, and what reads the table by its log.
_LOGGED = {
    "_delta_log": ("Delta", "polars.scan_delta({!r})"),
    ".hoodie": ("Hudi", "pyarrow.Table.from_batches(HudiTableBuilder.from_base_uri({!r}).build().read_snapshot())"),
    "metadata/*.metadata.json": ("Iceberg", "polars.scan_iceberg({!r} + '/metadata/NEWEST.metadata.json')"),
}


def without_log(paths: list[str]) -> list[str]:
    """The paths; refused where they lie in a table whose log alone tells which of their rows are deleted."""
    for folder in dict.fromkeys(folder for path in paths for folder in Path(os.path.abspath(path)).parents):
        for mark, (kind, reading) in _LOGGED.items():
            if any(folder.glob(mark)):
                raise ValueError(
                    f"{str(folder)!r} is a table of {kind}: its files hold deleted rows too; only its log tells which. "
                    f"Use cf.from_arrow({reading.format(str(folder))}), or write that to a Parquet file elsewhere."
                )
    return paths


def _refuse(error: OSError) -> None:
    """A folder that cannot be listed hides rows."""
    raise error


class Unchanged:
    """What tells files from others: place, size, times and the digest of a pass. One that changed since is refused."""

    def __init__(self, paths: Sequence[str]) -> None:
        self.seen = {path: _stamp(path) for path in paths}
        self.digests: dict[str, int] = {}

    def check(self, path: str, digest: int | None = None) -> None:
        """Raise if the file is another one than at the start. digest: of all its bytes, after a pass."""
        is_other = digest is not None and self.digests.setdefault(path, digest) != digest
        if is_other or _stamp(path) != self.seen[path]:
            raise ValueError(f"{path!r} changed since it was scanned. Scan it again.")


def refused_memory(path: str, error: Exception) -> MemoryError:
    """What to say where the rows of a file do not fit into memory; its bytes may be sound."""
    said = str(error).strip().rstrip(".") or "no memory is left"
    return MemoryError(f"{path!r} could not be read: {said}. Close other programs, or read fewer columns (columns=).")


def digested(data: bytes | memoryview, before: int = 0) -> int:
    """A digest of bytes that goes on from that of those before them: CRC-32, at a few GB per second."""
    return zlib.crc32(data, before)


def _stamp(path: str) -> tuple[int, ...]:
    try:
        status = os.stat(path)
    except OSError as error:
        raise ValueError(f"{path!r} could not be read: {error.strerror}.") from error
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


NO_VALUE = "__HIVE_DEFAULT_PARTITION__"


def folder_keys(path: AnyPath | Sequence[AnyPath], files: Sequence[str]) -> list[dict[str, str | None]]:
    """name -> value of the folders between a given folder and each of its files; empty where none says so."""
    paths = [path] if isinstance(path, str | os.PathLike) else list(path)
    folders = [os.fspath(each) for each in paths if os.path.isdir(each)]
    return [_keys(file, folders) for file in files]


def _keys(file: str, folders: Sequence[str]) -> dict[str, str | None]:
    root = next((folder for folder in folders if not os.path.relpath(file, folder).startswith("..")), None)
    if root is None:
        return {}
    parts = os.path.dirname(os.path.relpath(file, root)).split(os.sep)
    pairs = [part.partition("=")[::2] for part in parts if "=" in part]
    return {unquote(name): None if value == NO_VALUE else unquote(value) for name, value in pairs}


def keyed(files: Any, keys: Sequence[Mapping[str, str | None]], types: Mapping[str, Any]) -> Any:
    """The files with the columns of their folders; the files themselves where there are none."""
    return Keyed(files, keys, types) if any(keys) else files


class Around:
    """Files with something changed; all else is asked of them."""

    files: Any

    def __getattr__(self, name: str) -> Any:
        if name in ("files", "__setstate__"):
            raise AttributeError(name)
        return getattr(self.files, name)


class Keyed(Around):
    """Files with a column more for each name in their folders. Whole numbers are numbers, unless one begins with 0.

    types: "text" keeps whole numbers as text.
    """

    def __init__(self, files: Any, keys: Sequence[Mapping[str, str | None]], types: Mapping[str, Any]) -> None:
        self.files, self.keys = files, list(keys)
        self.names = list(keys[0])
        for path, of_file in zip(files.paths, keys, strict=True):
            if list(of_file) != self.names:
                raise ValueError(
                    f"The folders of {path!r} name the columns {list(of_file)}, those of {files.paths[0]!r} "
                    f"{self.names}. All files of a scan need the same columns."
                )
        if twice := sorted(set(self.names) & set(files.schema.names)):
            raise ValueError(f"{files.paths[0]!r} has column {twice[0]!r}, which its folder names too. Rename one.")
        fields = [pa.field(name, _type(name, [of_file[name] for of_file in keys], types)) for name in self.names]
        self.schema = pa.schema([*files.schema, *fields])

    @property
    def notes(self) -> list[str]:
        """What a report should say."""
        plural = "a column" if len(self.names) == 1 else "columns"
        return [*self.files.notes, f"Names of folders were read as {plural}: {', '.join(map(repr, self.names))}."]

    def batches(self, columns: Sequence[str], size: int) -> Iterator[pa.RecordBatch]:
        """All rows of these columns; a batch is of one file."""
        inside = [name for name in columns if name not in self.names] or self.files.schema.names[:1]
        schema = pa.schema([self.schema.field(name) for name in columns])
        at, read = 0, 0
        for batch in self.files.batches(inside, size):
            while read == self.files.rows[at]:
                at, read = at + 1, 0
            read += batch.num_rows
            arrays = dict(zip(batch.schema.names, batch.columns, strict=True))
            for name in self.names:
                kind = self.schema.field(name).type
                value = pa.scalar(self.keys[at][name]).cast(kind) if self.keys[at][name] else pa.scalar(None, kind)
                arrays[name] = pa.repeat(value, batch.num_rows)
            yield pa.RecordBatch.from_arrays([arrays[name] for name in columns], schema=schema)


def _type(name: str, values: Sequence[str | None], types: Mapping[str, Any]) -> pa.DataType:
    is_number = all(value is None or re.fullmatch(r"-?(0|[1-9]\d{0,17})", value) for value in values) and any(values)
    asked = types.get(name, "number" if is_number else "text")
    if asked not in ("text", "number") or (asked == "number" and not is_number):
        raise ValueError(
            f"types={{{name!r}: {asked!r}}} asks for another reading, but {name!r} stands in the names of folders, as "
            f"{'whole numbers' if is_number else 'text'}. Give 'text', or leave it out."
        )
    return pa.int64() if asked == "number" else pa.string()


_ROWS = 65_536


def complete(files: Any, target: str | None) -> Any:
    """The files; without rows that lack the target, where there are any."""
    if target is None:
        return files
    n_missing = (
        files.missing[target] if hasattr(files, "missing") and target in files.missing else _count(files, target)
    )
    return Complete(files, target, n_missing) if n_missing else files


def _count(files: Any, target: str) -> int:
    return sum(batch.num_rows - int(_present(batch, target).sum()) for batch in files.batches([target], _ROWS))


def _present(batch: pa.RecordBatch, target: str) -> Any:
    column = batch.column(batch.schema.get_field_index(target))
    present = pc.is_valid(column).to_numpy(zero_copy_only=False)
    if pa.types.is_floating(column.type):
        present &= ~pc.is_nan(column).fill_null(True).to_numpy(zero_copy_only=False)
    return present


class Complete(Around):
    """The rows of files that have a target."""

    def __init__(self, files: Any, target: str, n_missing: int) -> None:
        self.files, self.target, self.n_missing = files, target, n_missing
        self.n_rows = files.n_rows - n_missing
        if not self.n_rows:
            notes = "".join(f" {path.note}" for path in files.paths if isinstance(path, ShownAs) and path.note)
            raise ValueError(f"Column {target!r}, the target, is missing in every row.{notes}")

    @property
    def notes(self) -> list[str]:
        """What a report should say: this first."""
        rows = "rows was" if self.n_missing == 1 else "rows were"
        said = (
            f"{self.n_missing:,} of {self.files.n_rows:,} {rows} left out: the target {self.target!r} is missing there."
        )
        return [said, *self.files.notes]

    def batches(self, columns: Sequence[str], size: int) -> Iterator[pa.RecordBatch]:
        """All rows that have a target, of these columns."""
        for batch in self.files.batches(list(dict.fromkeys([*columns, self.target])), size):
            present = _present(batch, self.target)
            kept = batch if present.all() else batch.filter(pa.array(present))
            if kept.num_rows:
                yield kept.select(list(columns))

    def place(self, row: int) -> str:
        """Where a row stands among all of them: one more pass over the target, made for an error."""
        before = 0
        for batch in self.files.batches([self.target], _ROWS):
            present = np.flatnonzero(_present(batch, self.target))
            if row < len(present):
                return str(self.files.place(before + int(present[row])))
            row, before = row - len(present), before + batch.num_rows
        return f"row {row}"
