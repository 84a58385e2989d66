"""A table of numbers is encoded to itself, so what a model sums first is summed in the pass that surveys the table.

Only the survey tells whether a number has a gap, is constant or repeats another column: then the sum is made anew.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow.types as pt

from certifit.data.along import Sums, TakesAlong
from certifit.data.kept import kept_rows
from certifit.data.source import Source
from certifit.maps.table.encoder import TableEncoder
from certifit.maps.table.kinds import Number

_MOST_COLUMNS = 256  # beyond it sums of columns x columns, made in vain, would take longer than a pass over a file


def encoded_table(
    source: Source, fitted: Callable[[Source], TableEncoder], sums: Sums | None
) -> tuple[TableEncoder, Source]:
    """The fitted encoder of a table and its encoded rows, which know the sums where these were taken along.

    sums: those that a model makes first; None where that is not known.
    """
    expected = None if sums is None or source.in_memory else _of_numbers(source)
    if sums is None or expected is None:
        encoder = fitted(source)
        return encoder, kept_rows(source.through(encoder))
    along = TakesAlong(source, expected, sums)
    encoder = fitted(along)
    is_taken = along.taken is not None and all(type(kind) is Number and kind.is_plain for kind in encoder.columns_)
    rows = kept_rows(source.through(encoder), n_done=int(is_taken))
    if is_taken:
        rows.tell(sums, along.taken)
    return encoder, rows


def _of_numbers(source: Source) -> TableEncoder | None:
    """The encoder of a table in which all columns are numbers without a gap; None where one is stored otherwise."""
    schema = getattr(source, "schema", None)
    if schema is None or source.n_features > _MOST_COLUMNS:
        return None
    kinds = (schema.field(name).type for name in source.names)
    if not all(pt.is_floating(kind) or pt.is_integer(kind) for kind in kinds):
        return None
    encoder = TableEncoder()
    encoder.columns_ = [Number(name) for name in source.names]
    encoder.n_features_in_ = source.n_features
    return encoder
