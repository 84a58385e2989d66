"""Dask data frames and arrays as sources of rows.

The rows of every partition are counted once. A stretch of global rows is then one task that is given the partitions it
crosses, so block borders, and with them every bit, are those of the same rows in memory; the partial sums are added
on the workers in the tree of `Source.reduce`. Dask's scheduler is whatever it is set to: threads, processes, cluster.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from copy import copy
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

import numpy as np
import pyarrow as pa

from certifit.data.arrow import ArrowSource
from certifit.data.columns import Array
from certifit.data.engines.dask_parts import DaskParts, shared_task
from certifit.data.labels import codes_of, label_column
from certifit.data.offsets import added, refuse_no_exposure
from certifit.data.parts import Arrays, PartPlan, Parts
from certifit.data.roles import Roles, features
from certifit.data.source import Block, Result, Source, Statistic, join, recut, tree_sum
from certifit.data.view import Target, View
from certifit.runtime import threads

_TASKS_AT_ONCE = 64


def from_dask(
    data: Any,
    target: Any = None,
    weight: Any = None,
    columns: Sequence[str] | None = None,
    *,
    group: str | None = None,
    offset: Any = None,
    exposure: Any = None,
) -> DaskSource:
    """Rows in a Dask data frame (columns are given by name) or a Dask array (target, weight, ... are Dask arrays).

    group: the column of a data frame whose equal values cross-validation keeps in one fold (a customer, a patient).
    offset: what is added to the score of a row. exposure: numbers > 0 (time, people) whose log is added.
    One pass here counts the rows of every partition. A fit computes the partitions anew on every pass over the rows,
    unless you persist() them.
    """
    try:
        from dask.base import is_dask_collection
    except ImportError as error:
        raise ImportError("from_dask needs Dask: pip install 'dask[dataframe,distributed]'.") from error
    if not is_dask_collection(data) or not hasattr(data, "to_delayed"):
        raise TypeError(f"from_dask needs a Dask data frame or array. Got {type(data).__name__}.")
    if hasattr(data, "columns"):
        return _of_frame(data, Roles(target, weight, group, offset, exposure), columns)
    if group is not None:
        raise ValueError("group= names a column of a data frame. Got a Dask array.")
    if columns is not None:
        raise ValueError("columns= is for data frames. Select the columns of the array: X[:, [0, 3]].")
    return _of_array(data, {"y": target, "weight": weight, "offset": offset, "exposure": exposure})


class DaskSource(Source):
    """Partitions (delayed blocks) and the global number of each one's first row."""

    is_local = False

    def __init__(
        self, chunks: _FrameChunks | _ArrayChunks, n_rows: Sequence[int], names: list[str], table: ArrowSource | None
    ) -> None:
        if not sum(n_rows):
            raise ValueError("Found 0 rows. A fit needs at least one.")
        self.chunks, self.parts, self.view, self.named = chunks, chunks.parts(), chunks.view, table is not None
        self.starts, self.n_rows = [0, *accumulate(n_rows)], sum(n_rows)
        if table is not None:
            self.is_table, self.schema, self.target = True, table.schema, table.target
        self.set_names(names)

    def stretches(self) -> Iterator[Block]:
        """The partitions cut and joined to stretches of blocks."""
        return recut((_computed([part], self.parts)[0] for part in self.parts), self.rows_of_stretch())

    def reading(self, target: Target, classes: Array | None = None) -> DaskSource:
        """The same rows with their target read in another way: raw, it is their only column."""
        other = copy(self)
        other.chunks = self.chunks.reading(target, classes)
        other.view, other.parts = other.chunks.view, other.chunks.parts()
        if target is Target.RAW:
            other.set_names([self.target])
        return other

    def map(self, f: Callable[[Block], Result]) -> Iterator[Result]:
        """f of every stretch, computed by the workers, some stretches at a time."""
        tasks = self._tasks(f)
        for begin in range(0, len(tasks), _TASKS_AT_ONCE):
            yield from _computed(tasks[begin : begin + _TASKS_AT_ONCE], self.parts)

    def reduce(self, f: Callable[[Block], Statistic]) -> Statistic:
        """Sum of f over the stretches, added by the workers in the same tree."""
        total: Statistic = _computed([tree_sum(self._tasks(f))], self.parts)[0]
        return total

    def in_parts(self, f: Callable[[Block], Arrays | None], plan: PartPlan) -> Parts:
        """The rows that f makes of every stretch, sorted and cut, held by the workers."""
        return DaskParts.built(self._tasks(f), plan)

    def _tasks(self, f: Callable[[Block], Any]) -> list[Any]:
        from dask.delayed import delayed

        shared = shared_task(f)
        tasks = []
        for begin in range(0, self.n_rows, self.rows_of_stretch()):
            end = min(begin + self.rows_of_stretch(), self.n_rows)
            first, last = bisect_right(self.starts, begin) - 1, bisect_left(self.starts, end)
            cuts = [(max(begin - start, 0), end - start) for start in self.starts[first:last]]
            tasks.append(delayed(_of_stretch)(shared, begin, cuts, *self.parts[first:last]))
        return tasks


def _of_stretch(f: Callable[[Block], Result], begin: int, cuts: list[tuple[int, int]], *parts: Block) -> Result:
    """f of one stretch, cut from the partitions it crosses."""
    pieces = [part.part(start, min(end, part.n_rows)) for part, (start, end) in zip(parts, cuts, strict=True)]
    with threads(1):  # the workers are what runs in parallel
        return f(join([piece for piece in pieces if piece.n_rows], begin))


def _computed(tasks: list[Any], parts: Sequence[Any]) -> list[Any]:
    """The results of delayed tasks. If one fails because a partition does, the error names it."""
    from dask.base import compute
    from dask.delayed import delayed

    try:
        return list(compute(*tasks))
    except Exception as failure:
        if isinstance(failure, CancelledError) or type(failure).__name__ == "CommClosedError":
            raise ConnectionError(
                f"The Dask scheduler is lost: {failure}. Start the cluster and its client anew, then fit again."
            ) from failure
        for k, part in enumerate(parts):
            try:
                compute(delayed(_nothing)(part))
            except Exception as error:
                raise ValueError(f"Partition {k} of {len(parts)} could not be computed: {error}") from error
        raise


def _nothing(part: Any) -> None:
    return None


def _of_frame(frame: Any, roles: Roles, columns: Sequence[str] | None) -> DaskSource:
    from dask.delayed import delayed

    named = {str(name): name for name in frame.columns}
    chosen = features([str(name) for name in frame.columns], roles, columns, "The data frame")
    frames = frame[[named[name] for name in (*chosen, *roles.columns())]].to_delayed()
    facts = _computed([delayed(_rows_and_schema)(partition) for partition in frames], frames)
    table = ArrowSource(tuple, _common([schema for _, schema in facts]), columns=chosen, **roles.named())
    return DaskSource(_FrameChunks(frames, table), [n_rows for n_rows, _ in facts], chosen, table)


@dataclass(frozen=True)
class _FrameChunks:
    """Partitions of a data frame, and how their rows are read."""

    frames: Sequence[Any]
    table: ArrowSource

    @property
    def view(self) -> View:
        """What is read beside the features."""
        return self.table.view

    def parts(self) -> list[Any]:
        """Delayed blocks."""
        from dask.delayed import delayed

        shared = delayed(self.table, pure=False, traverse=False)
        return [delayed(_frame_block)(frame, shared) for frame in self.frames]

    def reading(self, target: Target, classes: Array | None) -> _FrameChunks:
        """The same partitions with their target read in another way."""
        return replace(self, table=self.table.reading(target, classes))


def _rows_and_schema(frame: Any) -> tuple[int, pa.Schema]:
    return len(frame), pa.Table.from_pandas(frame, preserve_index=False).schema.remove_metadata()


def _frame_block(frame: Any, table: ArrowSource) -> Block:
    read = [*table.names, *table.view.beside.columns()]
    wanted = frame.loc[:, [str(name) in read for name in frame.columns]]
    rows = pa.Table.from_pandas(wanted, preserve_index=False).replace_schema_metadata(None)
    return table.block(rows.cast(pa.schema([table.schema.field(name) for name in rows.column_names])), 0)


def _common(schemas: list[pa.Schema]) -> pa.Schema:
    """The schema of all partitions; one that differs is named."""
    common = _wide(schemas[0])
    for k, schema in enumerate(schemas):
        try:
            common = pa.unify_schemas([common, _wide(schema)], promote_options="permissive")
        except (pa.ArrowException, ValueError, TypeError) as error:
            raise ValueError(f"Partition {k} has other types than those before it: {error}") from error
    return common


def _wide(schema: pa.Schema) -> pa.Schema:
    """Categories with codes of one width: pandas takes the narrowest that a partition needs."""
    types = [pa.dictionary(pa.int32(), k.value_type) if pa.types.is_dictionary(k) else k for k in schema.types]
    return pa.schema(list(zip(schema.names, types, strict=True)))


def _of_array(X: Any, beside: dict[str, Any]) -> DaskSource:
    """beside: y, weight, offset and exposure, each a Dask array or None."""
    from dask.delayed import delayed

    if X.ndim != 2:
        raise ValueError(f"X must have 2 dimensions. Got {X.ndim}.")
    X = X.rechunk({1: -1})
    rows = X.to_delayed()[:, 0]
    columns = {name: _chunks(values, X, name) for name, values in beside.items() if values is not None}
    n_rows = X.chunks[0]
    if np.isnan(sum(n_rows)):
        n_rows = _computed([delayed(len)(chunk) for chunk in rows], rows)
    roles = Roles(**{"target" if name == "y" else name: name for name in columns})
    return DaskSource(_ArrayChunks(rows, columns, View.of(roles)), n_rows, [f"x{j}" for j in range(X.shape[1])], None)


@dataclass(frozen=True)
class _ArrayChunks:
    """Chunks of X and of what there is of y, weight, offset and exposure, and how the target is read."""

    rows: Sequence[Any]
    columns: dict[str, list[Any]]
    view: View

    def parts(self) -> list[Any]:
        """Delayed blocks."""
        from dask.delayed import delayed

        of = _target_block if self.view.target is Target.RAW else _array_block
        names = (self.view.roles if of is _target_block else self.view.beside).columns()
        beside = [{name: self.columns[name][k] for name in names} for k in range(len(self.rows))]
        return [delayed(of)(X, self.view.classes, **columns) for X, columns in zip(self.rows, beside, strict=True)]

    def reading(self, target: Target, classes: Array | None) -> _ArrayChunks:
        """The same chunks with their target read in another way."""
        if "y" not in self.columns and target is Target.RAW:
            raise ValueError("The Dask array has no target. Use from_dask(X, target=y).")
        return replace(self, view=self.view.reading(target, classes))


def _chunks(values: Any, X: Any, name: str) -> list[Any]:
    """The chunks of a column, cut like the rows of X."""
    if getattr(values, "ndim", None) != 1 or not hasattr(values, "to_delayed"):
        raise ValueError(f"{name} must be a Dask array of one number per row. Got {type(values).__name__}.")
    if not np.isnan(X.shape[0] + values.shape[0]):
        if values.shape != X.shape[:1]:
            raise ValueError(f"{name} has {values.shape[0]} rows but X has {X.shape[0]}.")
        values = values.rechunk((X.chunks[0],))
    return list(values.to_delayed())


def _target_block(X: Any, classes: Array | None, y: Any, weight: Any = None) -> Block:
    """The labels as a table of one column."""
    values = np.asarray(y)
    column = pa.array(values.tolist() if values.dtype.kind == "O" else values)
    return Block(pa.table([column], names=["y"]), None, _numbers(weight, "weight", len(values)))


def _array_block(
    X: Any, classes: Array | None, y: Any = None, weight: Any = None, offset: Any = None, exposure: Any = None
) -> Block:
    if X.dtype.kind not in "fiub":
        raise TypeError(f"X has dtype {X.dtype}, but every entry must be a number.")
    X = X.astype(np.float64) if X.dtype == np.float16 else X
    target = _numbers(y, "y", len(X)) if classes is None else _labels(y, classes, len(X))
    times = _numbers(exposure, "exposure", len(X))
    if times is not None:
        refuse_no_exposure(times, "exposure", "row {} of the chunk".format)
    row_offset = added(_numbers(offset, "offset", len(X)), times)
    return Block(X, target, _numbers(weight, "weight", len(X)), offset=row_offset)


def _labels(y: Any, classes: Array, n_rows: int) -> Array:
    column = label_column(pa.array(np.asarray(y).tolist()), "y", "row {}".format, 0)
    if len(column) != n_rows:
        raise ValueError(f"y has {len(column)} rows in a chunk where X has {n_rows}.")
    return codes_of(column, classes)


def _numbers(values: Any, name: str, n_rows: int) -> Any:
    if values is None:
        return None
    values = np.ascontiguousarray(values, dtype=np.float64)
    if values.shape != (n_rows,):
        raise ValueError(f"{name} has {len(values)} rows in a chunk where X has {n_rows}.")
    if not np.isfinite(values).all() or (name == "weight" and (values < 0).any()):
        raise ValueError(f"{name} must be finite numbers{' >= 0' if name == 'weight' else ''}.")
    return values
