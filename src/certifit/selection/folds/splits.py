"""Ways to split rows into training and validation sets: folds, bootstrap, leave-one-out, scikit-learn's splitters.

Where a row goes depends on its global number (or its group's key, its class) and on `random_state`, never on the
engine that reads it: an array, a file and a cluster give the same folds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from numbers import Integral, Real
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from certifit.data.arrow import key_of
from certifit.data.cells import NO_CELL, ByGroup, ByRow, Cells, GroupSizes, Listed, Splits, group_cells, mixed, patterns
from certifit.data.columns import Array
from certifit.data.copies import copies
from certifit.data.source import Block, Memory, Source
from certifit.data.user_input import UserLabels, UserTarget


@runtime_checkable
class Splitter(Protocol):
    """A splitter of scikit-learn, or of ours."""

    def split(self, X: Any, y: UserTarget = None, groups: UserLabels = None) -> Iterable[tuple[Any, Any]]:
        """Numbers of the training and of the validation rows of every split."""


UserSplits: TypeAlias = int | str | Splitter | Iterable[tuple[ArrayLike, ArrayLike]]
"""cv: a number of folds, a splitter, "loo" where it is taken, or pairs of (training rows, validation rows)."""

ANYWHERE, TOGETHER = "anywhere", "together"  # where copies of a row may go
MOST_CELLS = 64  # more would cost more sums than passes over the rows


class Folds:
    """k folds: every row validates once in a round and trains in the others.

    Parameters
    ----------
    n_splits : int >= 2, default 10
    stratify : bool, default False
        Give every fold the same share of each class of y.
    repeats : int >= 1, default 1
        Rounds of folds, each with another deal of the rows.
    random_state : int, default 0
        Another number is another deal. The same number is the same deal on every engine.
    copies : "anywhere" or "together", default "anywhere"
        "together": rows that are equal in every column and in the target stay in one fold, so that no row validates a
        fit to a copy of itself. They are found by a 64-bit hash: one pass, eight bytes per row.

    Rows of one group (`groups`, or the column that a scan names as its `group`) stay together.
    A scikit-learn splitter: `split`, `get_n_splits`.

    >>> train, validation = next(Folds(3).split([[0]] * 6))
    >>> len(train), len(validation)
    (4, 2)
    """

    def __init__(
        self,
        n_splits: int = 10,
        *,
        stratify: bool = False,
        repeats: int = 1,
        random_state: int = 0,
        copies: str = ANYWHERE,
    ) -> None:
        self.n_splits = _whole("n_splits", n_splits, 2)
        self.stratify = bool(stratify)
        self.repeats = _whole("repeats", repeats, 1)
        self.random_state = _whole("random_state", random_state, 0)
        if copies not in (ANYWHERE, TOGETHER):
            raise ValueError(f"copies must be {ANYWHERE!r} or {TOGETHER!r}. Got {copies!r}.")
        self.copies = copies

    def get_n_splits(self, X: Any = None, y: UserTarget = None, groups: UserLabels = None) -> int:
        """Number of splits, all rounds."""
        return self.n_splits * self.repeats

    def split(self, X: Any, y: UserTarget = None, groups: UserLabels = None) -> Iterator[tuple[Array, Array]]:
        """Numbers of the training and the validation rows, split by split."""
        n_rows = len(X) if not hasattr(X, "shape") else int(X.shape[0])
        rows = _plain_rows(n_rows, None if y is None else np.asarray(y), groups)
        if self.copies == TOGETHER:
            rows = _copied_rows(X, y, groups)
        for splits in self.rounds(rows):
            cells = splits.cells.of(rows.block)
            for cell in range(self.n_splits):
                yield np.flatnonzero(cells != cell), np.flatnonzero(cells == cell)

    def rounds(self, source: Source, labels: Array | None = None) -> list[Splits]:
        """The splits of a source, one entry per round. labels: the class of every row, else the target's values."""
        first = source.first_block()
        if self.stratify and first.group is not None:
            raise ValueError("Folds cannot both stratify and keep groups together. Use stratify=False.")
        seeds = [self.random_state if r == 0 else int(_seed(self.random_state, r)) for r in range(self.repeats)]
        if self.copies == TOGETHER and first.group is not None:
            raise ValueError("Folds keep either groups or copies together. Use copies='anywhere' with groups.")
        if first.group is not None:
            return [Splits.folds(group_cells(source, self.n_splits, seed)) for seed in seeds]
        n_rows = known_rows(source)
        if n_rows is not None and n_rows < self.n_splits:
            raise ValueError(f"{self.n_splits} folds need {self.n_splits} rows. Got n_samples = {n_rows}.")
        counted = _is_row(source) if first.weight is not None else None
        if not self.stratify and counted is None and self.copies == ANYWHERE:
            return [Splits.folds(ByRow(self.n_splits, seed)) for seed in seeds]
        if self.stratify:
            labels = targets(source) if labels is None else labels
        labels = labels if self.stratify else None
        if self.copies == TOGETHER:
            first_of = copies(source).first
            return [Splits.folds(_dealt_together(first_of, labels, counted, self.n_splits, seed)) for seed in seeds]
        return [Splits.folds(_dealt(labels, counted, self.n_splits, seed)) for seed in seeds]

    def __repr__(self) -> str:
        kept = "" if self.copies == ANYWHERE else f", copies={self.copies!r}"
        return (
            f"Folds({self.n_splits}, stratify={self.stratify}, repeats={self.repeats}, "
            f"random_state={self.random_state}{kept})"
        )


class Bootstrap:
    """Rows drawn with repetition to train on; those never drawn, (1 - 1/n)^n of them, about 37 %, validate.

    Parameters
    ----------
    n_splits : int >= 1, default 100
        Number of draws, each of as many rows as there are.
    random_state : int, default 0

    >>> drawn, left_out = next(Bootstrap(1).split([[0]] * 1000))
    >>> len(drawn), 330 < len(left_out) < 410
    (1000, True)
    """

    def __init__(self, n_splits: int = 100, *, random_state: int = 0) -> None:
        self.n_splits = _whole("n_splits", n_splits, 1)
        self.random_state = _whole("random_state", random_state, 0)

    def get_n_splits(self, X: Any = None, y: UserTarget = None, groups: UserLabels = None) -> int:
        """Number of draws."""
        return self.n_splits

    @staticmethod
    def left_out_share(n_rows: int) -> float:
        """(1 - 1/n)^n: the share of rows that a draw of n rows leaves out, on average."""
        return float((1.0 - 1.0 / n_rows) ** n_rows)

    def split(self, X: Any, y: UserTarget = None, groups: UserLabels = None) -> Iterator[tuple[Array, Array]]:
        """Numbers of the rows drawn (repeated) and of those never drawn, draw by draw."""
        n_rows = len(X) if not hasattr(X, "shape") else int(X.shape[0])
        for draw in range(self.n_splits):
            times = self._times(n_rows, draw)
            yield np.repeat(np.arange(n_rows), times), np.flatnonzero(times == 0)

    def rounds(self, source: Source, labels: Array | None = None) -> list[Splits]:
        """The draws of a source: a cell holds the rows that are drawn equally often."""
        n_rows = row_count(source)
        return [_drawn(self._times(n_rows, draw)) for draw in range(self.n_splits)]

    def _times(self, n_rows: int, draw: int) -> Array:
        """How often each row is drawn."""
        if n_rows < 2:
            raise ValueError(f"A bootstrap needs at least 2 rows. The data has {n_rows}.")
        generator = np.random.Generator(np.random.Philox(key=[self.random_state, draw]))
        times = np.bincount(generator.integers(0, n_rows, n_rows), minlength=n_rows)
        if times.all():  # nobody left out: only among a handful of rows
            times[generator.integers(0, n_rows)] = 0
        return times

    def __repr__(self) -> str:
        return f"Bootstrap({self.n_splits}, random_state={self.random_state})"


class HoldOut:
    """One split: some rows are held out, the others train.

    Parameters
    ----------
    test_size : float in (0, 1), default 0.2
        Share of the rows that is held out; with groups the share is met as nearly as whole groups allow.
    stratify : bool, default False
        Hold out the same share of each class of y.
    random_state : int, default 0
        Which rows are held out depends on their global numbers (or the keys of their groups) and on this number, never
        on the engine or the chunks.

    Rows of one group stay together. A scikit-learn splitter: `split`, `get_n_splits`.

    >>> train, test = next(HoldOut(0.25).split([[0]] * 8))
    >>> len(train), len(test)
    (6, 2)
    """

    def __init__(self, test_size: Any = 0.2, *, stratify: bool = False, random_state: int = 0) -> None:
        if not isinstance(test_size, Real) or isinstance(test_size, bool) or not 0 < float(test_size) < 1:
            raise ValueError(f"test_size must be a share of the rows between 0 and 1, e.g. 0.2. Got {test_size!r}.")
        self.test_size = float(test_size)
        self.stratify = bool(stratify)
        self.random_state = _whole("random_state", random_state, 0)

    def get_n_splits(self, X: Any = None, y: UserTarget = None, groups: UserLabels = None) -> int:
        """One."""
        return 1

    def split(self, X: Any, y: UserTarget = None, groups: UserLabels = None) -> Iterator[tuple[Array, Array]]:
        """Numbers of the training rows and of those held out."""
        n_rows = len(X) if not hasattr(X, "shape") else int(X.shape[0])
        rows = _plain_rows(n_rows, None, groups)
        labels = None if y is None else np.unique(np.asarray(y), return_inverse=True)[1]
        (splits,) = self.rounds(rows, labels)
        cells = splits.cells.of(rows.block)
        yield np.flatnonzero(cells == 0), np.flatnonzero(cells == 1)

    def rounds(self, source: Source, labels: Array | None = None) -> list[Splits]:
        """The split of a source. labels: the class of every row, else the target's values."""
        sides = np.eye(2)
        return [Splits(self._cells(source, labels), sides[:1], sides[1:])]

    def _cells(self, source: Source, labels: Array | None) -> Cells:
        """Cell 1 holds the rows that are held out, cell 0 the others."""
        first = source.first_block()
        if first.group is not None:
            if self.stratify:
                raise ValueError("HoldOut cannot both stratify and keep groups together. Use stratify=False.")
            return self._of_groups(source)
        n_rows = row_count(source)
        counted = _is_row(source) if first.weight is not None else None
        if not self.stratify:
            labels = np.zeros(n_rows)
        elif labels is None:
            labels = targets(source)
        cells = np.full(n_rows, NO_CELL, dtype=np.int8)
        order = mixed(np.arange(n_rows, dtype=np.uint64), self.random_state)
        for label in np.unique(labels):
            rows = np.flatnonzero((labels == label) if counted is None else (labels == label) & counted)
            cells[rows] = 0
            n_out = int(np.floor(self.test_size * len(rows) + 0.5))
            cells[rows[np.argsort(order[rows], kind="stable")[:n_out]]] = 1
        for cell, name in enumerate(("to train on", "held out")):
            if not (cells == cell).any():
                raise ValueError(f"test_size={self.test_size:g} of {n_rows} rows leaves none {name}.")
        return Listed(2, cells)

    def _of_groups(self, source: Source) -> Cells:
        """Groups in an order hashed from their keys are held out while they bring the share nearer."""
        sizes = source.reduce(GroupSizes.of)
        if len(sizes.keys) < 2:
            raise ValueError("HoldOut needs 2 groups at least, for a group stays together. The data has 1.")
        cells, wanted = np.zeros(len(sizes.keys), dtype=np.int32), self.test_size * float(sizes.counts.sum())
        held = 0.0
        for at in np.argsort(mixed(sizes.keys, self.random_state), kind="stable"):
            if abs(held + sizes.counts[at] - wanted) < abs(held - wanted):
                cells[at], held = 1, held + float(sizes.counts[at])
        if not cells.any():
            cells[np.argmin(sizes.counts)] = 1
        return ByGroup(2, sizes.keys, cells)

    def __repr__(self) -> str:
        return f"HoldOut({self.test_size:g}, stratify={self.stratify}, random_state={self.random_state})"


def rounds_of(cv: UserSplits, source: Source, labels: Array | None = None, groups: UserLabels = None) -> list[Splits]:
    """Splits of a source by anything that says how: a number of folds, ours, scikit-learn's, a list of pairs."""
    if isinstance(cv, Integral) and not isinstance(cv, bool):
        is_stratified = labels is not None and source.first_block().group is None  # groups stay together
        return Folds(int(cv), stratify=is_stratified).rounds(source, labels)
    if isinstance(cv, Folds | Bootstrap | HoldOut):
        return cv.rounds(source, labels)
    n_rows = row_count(source)
    if isinstance(cv, Splitter) and not isinstance(cv, str):
        y = labels if labels is not None else targets(source) if source.first_block().y is not None else None
        keys = group_keys(source) if groups is None else groups
        pairs = list(cv.split(np.zeros((n_rows, 1)), y, keys))
    elif isinstance(cv, Iterable) and not isinstance(cv, str):
        pairs = list(cv)
    else:
        raise TypeError(
            f"cv must be a number of folds, Folds(...), Bootstrap(...), HoldOut(...), 'loo', a scikit-learn splitter "
            f"or a list of (training rows, validation rows). Got {cv!r}."
        )
    return _rounds_of_pairs([(_numbers(train, n_rows), _numbers(test, n_rows)) for train, test in pairs], n_rows)


def is_leave_one_out(cv: UserSplits) -> bool:
    """Whether every row is to be a validation set of its own."""
    if isinstance(cv, str):
        return cv == "loo"
    if not isinstance(cv, Splitter) or isinstance(cv, Folds | Bootstrap | HoldOut):
        return False
    from sklearn.model_selection import LeaveOneOut

    return isinstance(cv, LeaveOneOut)


def _rounds_of_pairs(pairs: list[tuple[Array, Array]], n_rows: int) -> list[Splits]:
    """All splits in one round where few cells do, else a round each."""
    if not pairs:
        raise ValueError("cv gave no split.")
    together = patterns(pairs, n_rows, MOST_CELLS)
    if together is not None:
        return [together]
    apart = [patterns([pair], n_rows, n_rows + 1) for pair in pairs]
    return [splits for splits in apart if splits is not None]


def known_rows(source: Source) -> int | None:
    """Number of rows where it is known without a pass."""
    return source.block.n_rows if isinstance(source, Memory) else getattr(source, "n_rows", None)


def row_count(source: Source) -> int:
    """Number of rows, counted where it is not known."""
    known = known_rows(source)
    return source.remembered("rows", lambda: sum(source.map(_n_rows))) if known is None else known


def targets(source: Source) -> Array:
    """The target of every row."""
    parts = list(source.map(_target))
    if any(part is None for part in parts):
        raise ValueError("Stratified folds need a target.")
    return np.concatenate(parts)


def group_keys(source: Source) -> Array | None:
    """The key of every row's group; None where rows have none."""
    parts = list(source.map(_group))
    return None if any(part is None for part in parts) else np.concatenate(parts)


def _n_rows(block: Block) -> int:
    return block.n_rows


def _target(block: Block) -> Any:
    return block.y


def _group(block: Block) -> Any:
    return block.group


def group_numbers(groups: UserLabels, n_rows: int) -> Array:
    """A key a row from any labels of groups, as files have them."""
    labels = np.asarray(groups)
    if labels.shape != (n_rows,):
        raise ValueError(f"groups must have one label per row. Got shape {labels.shape} for {n_rows} rows.")
    distinct, places = np.unique(labels, return_inverse=True)
    keys = np.array([key_of(str(label)) for label in distinct.tolist()], dtype=np.uint64)
    return np.asarray(keys[places])


def _plain_rows(n_rows: int, y: Array | None, groups: UserLabels) -> Memory:
    """A source of nothing but row numbers, targets and groups."""
    group = None if groups is None else group_numbers(groups, n_rows)
    return Memory.of(Block(np.zeros((n_rows, 1)), y, None, group=group))


def _copied_rows(X: Any, y: UserTarget, groups: UserLabels) -> Memory:
    """Rows whose copies can be told."""
    values = X if hasattr(X, "shape") and not hasattr(X, "columns") else np.asarray(X)
    if values.dtype.kind == "O":
        raise ValueError("Copies of rows with text are found in a scan or a table of Arrow. Use cf.from_arrow.")
    group = None if groups is None else group_numbers(groups, values.shape[0])
    return Memory.of(Block(values, None if y is None else np.asarray(y), None, group=group))


def _dealt(labels: Array | None, counted: Array | None, n_cells: int, seed: int) -> Cells:
    """Rows that count are dealt out in turn, in the order of their classes; the others are in no cell."""
    n_rows = len(labels) if labels is not None else len(counted) if counted is not None else 0
    order = np.arange(n_rows) if labels is None else np.argsort(labels, kind="stable")
    order = order if counted is None else order[counted[order]]
    cells = np.full(n_rows, NO_CELL, dtype=np.int32)
    cells[order] = ByRow(n_cells, seed).of(Block(np.zeros((len(order), 0)), None, None))
    return Listed(n_cells, cells)


def _dealt_together(first_of: Array, labels: Array | None, counted: Array | None, n_cells: int, seed: int) -> Cells:
    """The same, where rows go to the cell of the first that they equal. first_of: the number of that row."""
    if counted is not None:  # of the copies that count, the first
        keys, numbers = first_of[counted], np.flatnonzero(counted)
        _, first, places = np.unique(keys, return_index=True, return_inverse=True)
        first_of = np.full(len(first_of), -1)
        first_of[numbers] = numbers[first][places]
    is_first = first_of == np.arange(len(first_of))
    if np.count_nonzero(is_first) < n_cells:
        raise ValueError(
            f"{n_cells} folds need {n_cells} different rows. The data has {np.count_nonzero(is_first)}, and copies of "
            "them."
        )
    dealt = _dealt(labels, is_first, n_cells, seed)
    cell_of_row = np.append(dealt.of(Block(np.zeros((len(first_of), 0)), None, None)), np.int32(NO_CELL))
    return Listed(n_cells, cell_of_row[first_of])


def _is_row(source: Source) -> Array | None:
    """Which rows have a weight above 0, for one of weight 0 is no row; None where all have."""
    counted = np.concatenate(list(source.map(_counts)))
    return None if counted.all() else counted


def _counts(block: Block) -> Array:
    return np.ones(block.n_rows, dtype=bool) if block.weight is None else block.weight > 0


def _drawn(times: Array) -> Splits:
    counts = np.arange(times.max() + 1, dtype=np.float64)
    cells = Listed(len(counts), times.astype(np.int8 if len(counts) <= 127 else np.int32))
    return Splits(cells, counts[None, :], (counts == 0).astype(np.float64)[None, :])


def _numbers(rows: ArrayLike, n_rows: int) -> Array:
    """Row numbers from numbers or a mask."""
    rows = np.asarray(rows)
    if rows.dtype == bool:
        if len(rows) != n_rows:
            raise ValueError(f"A mask of a split has {len(rows)} entries, and the data has {n_rows} rows.")
        return np.flatnonzero(rows)
    if len(rows) and (rows.min() < 0 or rows.max() >= n_rows):
        raise ValueError(f"A split names row {rows.min() if rows.min() < 0 else rows.max()} of {n_rows} rows.")
    return np.asarray(rows, dtype=np.int64)


def _seed(seed: int, number: int) -> Any:
    return mixed(np.array([number], dtype=np.uint64), seed)[0] % np.uint64(1 << 31)


def _whole(name: str, value: object, least: int) -> int:
    if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
        raise ValueError(f"{name} must be a whole number >= {least}. Got {value!r}.")
    return int(value)
