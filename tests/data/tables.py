"""A table of numbers, a map that reads it, and the bits of its statistics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from certifit.data.arrow import one_chunk, valid_bits, values_of
from certifit.data.columns import Columns, Number
from certifit.data.source import Memory, Source
from certifit.statistics.gram import gram

N_ROWS = 100_003  # no multiple of a block, a row group or a partition


@dataclass(frozen=True)
class Numbers:
    """Every column a number; a missing value is 7."""

    def apply(self, table: Any) -> Columns:
        columns = [one_chunk(table.column(name)) for name in table.column_names]
        return Columns([Number(values_of(c), valid_bits(c), 7.0) for c in columns], table.num_rows)

    def get_feature_names_out(self, names: Any = None) -> Any:
        return np.asarray(names, dtype=object)


def table_of_numbers(n_rows: int = N_ROWS, seed: int = 0) -> pa.Table:
    """Floats, whole numbers, a column with gaps, the target y and the weight w."""
    rng = np.random.default_rng(seed)
    gaps = rng.normal(size=n_rows)
    return pa.table(
        {
            "a": rng.normal(size=n_rows),
            "b": rng.integers(0, 50, n_rows),
            "c": pa.array(gaps, mask=rng.random(n_rows) < 0.1),
            "y": rng.normal(size=n_rows),
            "w": rng.random(n_rows) + 0.5,
        }
    )


def in_memory(table: pa.Table) -> Memory:
    """The same rows as an array."""
    X = np.column_stack([table.column(name).combine_chunks().fill_null(7).to_numpy() for name in ("a", "b", "c")])
    return Memory(X.astype(np.float64), table["y"].to_numpy(), table["w"].to_numpy())


def bits(source: Source) -> Any:
    """The Gram sums of the source, all bits."""
    if source.is_table:
        source = source.through(Numbers())
    return gram(source, centred=True).sums.tobytes()
