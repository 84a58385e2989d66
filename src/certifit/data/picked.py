"""Some rows of a block: those whose flag is set."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from certifit.data.columns import Array, Columns

FEW_ROWS = 4096  # of a block, up to which the time that its columns take is more than that of their rows


def rows_where(X: Any, keep: Array) -> Any:
    """Some rows of columns, an array, CSR or a table in Arrow."""
    if isinstance(X, Columns):
        return X.taken(keep)
    return X.filter(keep) if hasattr(X, "schema") else X[keep]


class PickedTable:
    """Some rows of a table of few rows. A column is picked when it is read; columns of numbers are read together, which
    takes next to no time per column.
    """

    def __init__(self, table: Any, keep: Array) -> None:
        self.table, self.keep, self.schema = table, keep, table.schema
        self.num_rows = int(keep.sum())
        self.shape = self.num_rows, table.num_columns

    def column(self, name: str) -> Any:
        """The rows of a column."""
        return self.table.column(name).filter(self.keep)

    @cached_property
    def picked(self) -> Any:
        """The rows as a table."""
        return self.table.filter(self.keep)

    def __getattr__(self, name: str) -> Any:
        """Whatever else is asked of a table."""
        if name.startswith("_") or name == "table":
            raise AttributeError(name)
        return getattr(self.picked, name)
