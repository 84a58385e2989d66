"""Files without the rows whose target is missing: nothing can be learnt from them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

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


class Complete:
    """The rows of files that have a target."""

    def __init__(self, files: Any, target: str, n_missing: int) -> None:
        self.files, self.target, self.n_missing = files, target, n_missing
        self.n_rows = files.n_rows - n_missing
        if not self.n_rows:
            raise ValueError(f"Column {target!r}, the target, is missing in every row.")

    def __getattr__(self, name: str) -> Any:
        if name in ("files", "__setstate__"):
            raise AttributeError(name)
        return getattr(self.files, name)

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
