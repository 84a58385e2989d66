"""Blocks of rows and the sources that hand them out.

Rows are numbered globally from 0. Block k is rows [k B, (k + 1) B) with B fixed by the number of columns, whatever
chunks the data comes in. A *stretch* is a power of two of blocks; the compiled core sums the blocks of a stretch in a
binary tree by block number, `reduce` continues that tree over stretches, so any chunking gives the same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import Any, Protocol, Self, TypeVar

import numpy as np
import scipy.sparse as sp

from certifit.data.columns import Array, Columns, Csr, Dense
from certifit.data.parts import Arrays, PartPlan, Parts, local_parts
from certifit.data.picked import FEW_ROWS, PickedTable, rows_where
from certifit.data.roles import Roles
from certifit.data.view import Target, View, code_places
from certifit.runtime import memory_limit


class Adds(Protocol):
    """A statistic: what `reduce` sums."""

    def __add__(self, other: Any) -> Any: ...


Statistic = TypeVar("Statistic", bound=Adds)
Result = TypeVar("Result")
State = TypeVar("State")


@dataclass(frozen=True)
class Block:
    """Consecutive rows: X (array or CSR), y and weight (float64 or None), the global number of the first.

    group: a key a row (uint64), equal for rows that belong together; None where no column says so.
    offset: what is added to a row's score b + x'w, log exposure in it (float64); None is 0 everywhere.
    """

    X: Any
    y: Array | None
    weight: Array | None
    first_row: int = 0
    group: Array | None = None
    offset: Array | None = None

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.X.shape[0])

    @property
    def rows(self) -> Any:
        """X as the compiled core takes it."""
        if isinstance(self.X, Columns):
            return self.X.core()
        if sp.issparse(self.X):
            return [("csr", self.X.data, self.X.indices, self.X.indptr, self.X.shape[1])]
        return [("dense", self.X)]

    def part(self, begin: int, end: int) -> Block:
        """Rows [begin, end) of this block."""
        return Block(
            _part(self.X, begin, end),
            None if self.y is None else self.y[begin:end],
            None if self.weight is None else self.weight[begin:end],
            self.first_row + begin,
            None if self.group is None else self.group[begin:end],
            None if self.offset is None else self.offset[begin:end],
        )

    def where(self, keep: Array) -> Block:
        """The rows whose flag is set; first_row stays that of this block."""
        return self._where(keep, rows_where(self.X, keep))

    def where_read(self, keep: Array) -> Block:
        """The same; columns of a table of few rows are picked when they are read."""
        is_few = hasattr(self.X, "schema") and self.n_rows <= FEW_ROWS
        return self._where(keep, PickedTable(self.X, keep) if is_few else rows_where(self.X, keep))

    def _where(self, keep: Array, X: Any) -> Block:
        columns = (
            None if column is None else column[keep] for column in (self.y, self.weight, self.group, self.offset)
        )
        y, weight, group, offset = columns
        return Block(X, y, weight, self.first_row, group, offset)


def _part(X: Any, begin: int, end: int) -> Any:
    if isinstance(X, Columns):
        return X.part(begin, end)
    if not sp.issparse(X) or X.format != "csr":
        return X[begin:end]
    end = min(end, X.shape[0])
    first, last = X.indptr[begin], X.indptr[max(end, begin)]
    part = sp.csr_array((max(end - begin, 0), X.shape[1]), dtype=X.dtype)
    # Slicing would copy the entries, and so may making CSR of them.
    part.data, part.indices = X.data[first:last], X.indices[first:last]
    part.indptr = X.indptr[begin : max(end, begin) + 1] - first
    return part


class RowMap(Protocol):
    """What `Source.through` needs of a map: rows in, rows out."""

    def apply(self, X: Any) -> Any:
        """The mapped rows."""

    def get_feature_names_out(self, input_features: Any = None) -> Any:
        """Names of the mapped columns."""


class RowError(ValueError):
    """Something is wrong with one row: "<before> at row <row><after>". Maps count rows from the start of a block."""

    def __init__(self, before: str, row: int, after: str) -> None:
        super().__init__(f"{before} at row {row}{after}")
        self.before, self.row, self.after = before, row, after

    def moved(self, first_row: int) -> RowError:
        """The same error with its row counted from the start of the source."""
        return RowError(self.before, self.row + first_row, self.after)

    def __reduce__(self) -> tuple[Any, ...]:
        return RowError, (self.before, self.row, self.after)  # workers send it back


def block_rows(n_columns: int) -> int:
    """B: a power of two of rows, some 2 MB; up to 128 MB for wide rows, or their d x d sums would outweigh it."""
    bits = (n_columns + 1).bit_length()
    return 1 << min(16, max(10, 18 - bits, min(2 * bits - 8, 24 - bits)))


def stretch_blocks(n_columns: int) -> int:
    """Blocks of a stretch: sixteen, fewer for wide rows (a stretch is held in memory)."""
    fitting = (1 << 24) // (block_rows(n_columns) * max(n_columns, 1))  # 128 MB of float64
    return 1 << (min(16, max(1, fitting)).bit_length() - 1)


class Source:
    """Rows that can be read again and again. A subclass implements `stretches` (an engine: `map`); the rest follows.

    is_table: rows are Arrow columns that need an encoder before a model can take them.
    view: which target is read, and which columns have a role.
    stretch_rows: rows of a stretch, a power of two of blocks; None is the default for the number of columns.
    is_local: whether this process reads the rows. is_shared: whether several fits read them, one after the other, so
    that what one has made of them is kept for the next. coarseness: of the columns of a frame (`data/columns.py`).
    """

    is_table: bool = False
    is_local: bool = True
    is_shared: bool = False
    coarseness: Array | None = None
    names: list[str]
    named: bool = False
    target: str = "y"
    view: View
    n_features: int
    block_rows: int
    stretch_rows: int | None = None

    @property
    def in_memory(self) -> bool:
        """Whether the rows, before they are mapped, are in the memory of this process."""
        return False

    def stretches(self) -> Iterator[Block]:
        """All rows in order, in stretches of blocks (or one stretch of all rows)."""
        raise NotImplementedError

    def set_names(self, names: Sequence[str]) -> None:
        """Name the feature columns; blocks and stretches take the sizes that suit their number."""
        self.names, self.n_features = list(names), len(names)
        self.block_rows, self.stretch_rows = block_rows(self.n_features), None

    def map(self, f: Callable[[Block], Result]) -> Iterable[Result]:
        """f of every stretch, in the order of the stretches."""
        return (f(stretch) for stretch in self.stretches())

    def reduce(self, f: Callable[[Block], Statistic]) -> Statistic:
        """Sum of f over the stretches, in a binary tree by stretch number."""
        return tree_sum(self.map(f))

    def in_parts(self, f: Callable[[Block], Arrays | None], plan: PartPlan) -> Parts:
        """The rows that f makes of every stretch, sorted and cut, held where the rows are; None: a stretch has none."""
        return local_parts((rows for rows in self.map(f) if rows is not None), plan, self.may_spill)

    @property
    def may_spill(self) -> bool:
        """Whether what a fit makes of the rows may be written to temporary files."""
        return True

    def visit(self, step: Callable[[State, int, Block], State], state: State) -> State:
        """The state after step(state, number, stretch) of every stretch in order: learning row by row."""
        for number, stretch in enumerate(self.stretches()):
            state = step(state, number, stretch)
        return state

    def resized(self, block_rows: int, stretch_rows: int) -> Self:
        """The same rows in blocks and stretches of other sizes."""
        other = copy(self)
        other.block_rows, other.stretch_rows = block_rows, stretch_rows
        return other

    def blocked(self, block_rows: int) -> Self:
        """The same rows in blocks of another size, and stretches of at least one."""
        return self.resized(block_rows, max(block_rows, self.rows_of_stretch()))

    def remembered(self, key: Any, make: Callable[[], Result]) -> Result:
        """A fact about all rows that costs a pass, found once per source and question."""
        facts = self.__dict__.setdefault("_facts", {})
        key = (*self.names, key)
        if key not in facts:
            facts[key] = make()
        fact: Result = facts[key]
        return fact

    def tell(self, question: Hashable, answer: Any) -> None:
        """What a pass over these rows would find, where another pass has found it along with its own sums."""
        self.__dict__["_told"] = {question: answer}

    def known(self, question: Hashable) -> Any:
        """What was told of these rows; None where nothing was."""
        return self.__dict__.get("_told", {}).get(question)

    def __copy__(self) -> Self:
        """The same rows for other columns, blocks or another target, of which nothing was told."""
        other = type(self).__new__(type(self))
        other.__dict__.update(self.__dict__)
        other.__dict__.pop("_told", None)
        return other

    def surveyed(self, key: Any, make: Callable[[], Result]) -> Result:
        """A survey of all rows, found once per question; of training rows once for all models (`Splits.trained`)."""
        return self.remembered(key, make)

    def rows_of_stretch(self) -> int:
        """Rows of a stretch that is not the last."""
        return self.stretch_rows or self.block_rows * stretch_blocks(self.n_features)

    def first_block(self) -> Block:
        """Rows of block 0."""
        stretch = next(self.stretches(), None)
        if stretch is None or stretch.n_rows == 0:
            raise ValueError("Found 0 rows. A fit needs at least one.")
        return stretch if stretch.n_rows <= self.block_rows else stretch.part(0, self.block_rows)

    def through(self, row_map: RowMap) -> Source:
        """This source with every stretch mapped when it is read."""
        from certifit.data.source_wrappers import Mapped

        return Mapped(self, row_map)

    def weighted(self, times: Callable[[Block], Array], name: Hashable = None) -> Source:
        """This source with every weight multiplied by `times`, a number per row; weight 0 is no row.

        name: sources of equal names have equal weights, and what one has surveyed the others know.
        """
        from certifit.data.source_wrappers import Weighted

        return Weighted(self, times, name)

    def reading(self, target: Target, classes: Array | None = None) -> Source:
        """The same rows with their target read in another way; classes: the sorted labels of Target.CODES."""
        other = copy(self)
        other.view = self.view.reading(target, classes)
        return other

    def select(self, columns: Sequence[str]) -> Source:
        """The same rows with only these feature columns."""
        from certifit.data.source_wrappers import chosen_columns

        return chosen_columns(self, columns)

    def narrow(self) -> Source:
        """The same rows with as few columns as can be read, for a pass over their targets."""
        return self

    def kept(self, may_spill: bool = False) -> Source:
        """The same rows; those of files are parsed once (`data/kept.py`), by the first pass that asks for them."""
        return self

    def unkept(self) -> Source:
        """The same rows, encoded anew in every pass: for a fit that fills the memory budget without them."""
        return self

    def gather(self, limit_bytes: int | None = None, *, keeps_sparse: bool = False) -> Block:
        """All rows as one block, or a refusal; no limit is that of `memory`.

        keeps_sparse: rows of a table with words are one CSR array; else they are expanded.
        """
        limit_bytes = memory_limit() if limit_bytes is None else limit_bytes
        stretches, size = [], 0
        for stretch in map(_sparse, self.stretches()) if keeps_sparse else self.stretches():
            stretches.append(stretch)
            entries = getattr(stretch.X, "by_column", stretch.X)
            size += entries.data.nbytes if hasattr(entries, "data") else 8 * stretch.n_rows * self.n_features
            if size > limit_bytes:
                raise MemoryError(
                    f"This fit needs all rows in memory and they exceed the limit of {limit_bytes / 2**30:.3g} GiB. "
                    "Use fewer columns than rows, sample rows, or allow more with certifit.memory(bytes)."
                )
        return join(stretches)


@lru_cache(maxsize=8)
def _plain_names(n_columns: int) -> tuple[str, ...]:
    """Names of columns that have none: making many takes longer than a small fit."""
    return tuple(f"x{j}" for j in range(n_columns))


@cache
def _plain_view(roles: tuple[str, ...]) -> View:
    """Of rows that have these parts, each named by its role."""
    return View.of(Roles(**{role: role for role in roles}))


class Memory(Source):
    """Rows in memory: an array of any numeric type and layout, or CSR. No copy is made."""

    def __init__(
        self,
        X: Any,
        y: Array | None,
        weight: Array | None = None,
        names: list[str] | None = None,
        offset: Array | None = None,
        coarseness: Array | None = None,
    ) -> None:
        self._take(Block(X, y, weight, offset=offset))
        self.coarseness, self.named = coarseness, names is not None
        self.set_names(_plain_names(int(X.shape[1])) if names is None else names)

    @staticmethod
    def of(block: Block, names: list[str] | None = None) -> Memory:
        """All that a block has, its group and offset too."""
        memory = Memory(block.X, None, names=names)
        memory._take(block)
        return memory

    def _take(self, block: Block) -> None:
        """The rows, and the view that says what they have."""
        parts = {"target": block.y, "weight": block.weight, "group": block.group, "offset": block.offset}
        self.block = block
        self.view = _plain_view(tuple(role for role, values in parts.items() if values is not None))

    @property
    def in_memory(self) -> bool:
        """They are."""
        return True

    def stretches(self) -> Iterator[Block]:
        """One stretch of all rows; stretches of `stretch_rows` where that is set."""
        block = viewed(self.block, self.view)
        if self.stretch_rows is None:
            yield block
            return
        for begin in range(0, block.n_rows, self.stretch_rows):
            yield block.part(begin, begin + self.stretch_rows)

    def blocked(self, block_rows: int) -> Self:
        """Blocks of another size; all rows stay one stretch where they are."""
        if self.stretch_rows is not None:
            return super().blocked(block_rows)
        other = copy(self)
        other.block_rows = block_rows
        return other


class Batches(Source):
    """Rows that come in batches of any size: `open_batches` starts again at row 0 on every call.

    roles: names of what the blocks have beside X. An offset that is not among them is refused.
    """

    def __init__(
        self,
        open_batches: Callable[[], Iterable[Block]],
        names: list[str],
        roles: Roles = Roles("y"),  # noqa: B008 (frozen)
        named: bool = True,
    ) -> None:
        self.open_batches = open_batches
        self.named, self.target, self.view = named, roles.target or "y", View.of(roles)
        self.set_names(names)

    def stretches(self) -> Iterator[Block]:
        """The batches cut and joined to stretches of blocks."""
        return recut((viewed(batch, self.view) for batch in self.open_batches()), self.rows_of_stretch())


def recut(batches: Iterable[Block], size: int) -> Iterator[Block]:
    """The same rows in blocks of `size` rows, numbered from 0; the last may be shorter."""
    held: list[Block] = []
    n_held = 0
    first_row = 0
    for batch in batches:
        begin = 0
        while begin < batch.n_rows:
            end = min(batch.n_rows, begin + size - n_held)
            held.append(batch.part(begin, end))
            n_held += end - begin
            begin = end
            if n_held == size:
                yield join(held, first_row)
                first_row += size
                held, n_held = [], 0
    if held:
        yield join(held, first_row)


def viewed(block: Block, view: View) -> Block:
    """Rows whose target is a number or None, as a view has them."""
    if view.target is Target.RAW:
        return block if block.offset is None else replace(block, offset=None)
    if block.offset is not None and not view.has_offset:
        raise ValueError(
            "The rows have an offset that is not declared. Use Batches(..., roles=Roles(offset='offset'))."
        )
    if block.y is None or view.target is Target.NUMBER:
        return block
    y = None if view.classes is None else code_places(block.y, view.classes)
    return replace(block, y=y)


def itself(stretch: Block) -> Block:
    """The stretch."""
    return stretch


def join(blocks: list[Block], first_row: int = 0) -> Block:
    """Blocks one after the other as one block."""
    if not blocks:
        raise ValueError("Found 0 rows. A fit needs at least one.")
    if len(blocks) == 1 and not isinstance(blocks[0].X, Columns):
        return replace(blocks[0], first_row=first_row)
    rows = [_expanded(block.X) for block in blocks]
    X = rows[0] if len(rows) == 1 else _stacked(rows)
    columns = (_joined([getattr(block, name) for block in blocks]) for name in ("y", "weight", "group", "offset"))
    y, weight, group, offset = columns
    return Block(X, y, weight, first_row, group, offset)


def _expanded(X: Any) -> Any:
    """Rows x columns; numbers that lie side by side already are not copied, like rows that were given as an array."""
    if not isinstance(X, Columns):
        return X
    only = X.segments[0] if len(X.segments) == 1 else None
    if isinstance(only, Dense) and only.values.dtype == np.float64 and only.values.flags.c_contiguous:
        return only.values
    return X.toarray()


def is_sparse(X: Any) -> bool:
    """Whether entries that are 0 are not stored: of CSR, or of a column of a table."""
    return bool(sp.issparse(X)) or any(isinstance(part, Csr) for part in getattr(X, "segments", ()))


def _sparse(stretch: Block) -> Block:
    """Columns of a table of which some are mostly zero as one CSR array; other rows as they are."""
    X = stretch.X
    if not isinstance(X, Columns) or not is_sparse(X):
        return stretch
    parts = [part.rows if isinstance(part, Csr) else sp.csr_array(part.dense(X.shape[0])) for part in X.segments]
    return replace(stretch, X=sp.csr_array(sp.hstack(parts, format="csr")))


def _joined(parts: list[Array | None]) -> Array | None:
    return None if parts[0] is None else np.concatenate([part for part in parts if part is not None])


def _stacked(rows: list[Any]) -> Any:
    if hasattr(rows[0], "schema"):
        import pyarrow as pa

        return pa.concat_tables(rows)
    return sp.csr_array(sp.vstack(rows)) if sp.issparse(rows[0]) else np.concatenate(rows)


def tree_sum(parts: Iterable[Statistic]) -> Statistic:
    """Sum in a binary tree by number: equal neighbours merge as they come, the rest from the right at the end."""
    waiting: list[tuple[int, Statistic]] = []  # (level, sum of 2**level parts)
    for part in parts:
        node, level = part, 0
        while waiting and waiting[-1][0] == level:
            node = waiting.pop()[1] + node
            level += 1
        waiting.append((level, node))
    if not waiting:
        raise ValueError("Found 0 rows. A fit needs at least one.")
    total = waiting.pop()[1]
    while waiting:
        total = waiting.pop()[1] + total
    return total
