"""The rows that candidates are scored on: a source, and the arrays it came from where there are any."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.utils import indexable
from sklearn.utils.validation import column_or_1d, has_fit_parameter

from certifit.data.cells import Splits
from certifit.data.columns import Array
from certifit.data.gate import checked_weight, class_source, fit_source
from certifit.data.offsets import checked_offset
from certifit.data.source import Block, Memory, Source
from certifit.data.user_rows import n_samples, taken
from certifit.data.user_types import UserLabels, UserRows, UserTarget, UserWeights
from certifit.maps import TableEncoder
from certifit.models.adapter import learner_of
from certifit.selection.offsets import WithOffset
from certifit.selection.scoring import Scorer
from certifit.selection.shared import Shared
from certifit.selection.splits import group_numbers, targets

SMALL = 64 << 20  # bytes of a file that is read once and held


@dataclass(frozen=True)
class Rows:
    """Training data: a source of rows, and the arrays it came from where there are any."""

    source: Source
    X: Any = None
    y: Any = None
    weight: Array | None = None
    groups: UserLabels = None
    labels: Array | None = None  # of a classifier: the place of every row's class among the classes
    classes: Array | None = None
    offset: Array | None = None  # log exposure in it
    shared: Shared = field(default_factory=Shared)

    @staticmethod
    def of(
        estimator: BaseEstimator,
        X: UserRows,
        y: UserTarget = None,
        sample_weight: UserWeights = None,
        groups: UserLabels = None,
        offset: UserWeights = None,
        exposure: UserWeights = None,
    ) -> Rows:
        """Checked rows. An estimator of another library checks X itself."""
        is_ours = learner_of(estimator).is_ours
        beside = {"offset": offset, "exposure": exposure}
        refuse_given(estimator, **beside)
        if isinstance(X, Source):
            if not is_ours:
                raise TypeError(f"{type(estimator).__name__} cannot read a scan. Give it arrays.")
            if groups is not None:
                raise ValueError("A scan names its groups: scan_csv(..., group='name of the column').")
            scan, classes = _checked(estimator, X, y, sample_weight, **beside)
            if classes is not None:
                scan = scan.held(SMALL)  # a classifier makes several passes
            labels = None if classes is None else targets(scan.narrow()).astype(np.int64)
            return Rows(scan, labels=labels, classes=classes)
        source, classes = _checked(estimator, X, y, sample_weight, **beside) if is_ours else (None, None)
        X, y = indexable(X, y)
        labels = None
        if is_classifier(estimator) and y is not None:
            found, labels = np.unique(column_or_1d(y, warn=True), return_inverse=True)
            classes = found if classes is None else classes
        weight = None if sample_weight is None else checked_weight(sample_weight, n_samples(X))
        own = checked_offset(offset, exposure, n_samples(X))
        source = _numbered(X, y, labels, weight, own) if source is None else source
        if groups is not None:
            source = _Grouped(source, group_numbers(groups, n_samples(X)))
        return Rows(source, X, y, weight, groups, labels, classes, own)


@dataclass(frozen=True)
class Part:
    """Some rows of arrays, as an estimator is given them."""

    X: Any
    y: Any
    weight: Array | None
    offset: Array | None

    def fitted(self, model: BaseEstimator) -> BaseEstimator:
        """The model fitted to these rows."""
        beside = {"sample_weight": self.weight, "offset": self.offset}
        refuse_given(model, **beside)
        return model.fit(self.X, self.y, **given(**beside))

    def scored(self, model: BaseEstimator, scorer: Scorer) -> float:
        """The score of a fitted model on these rows."""
        return float(scorer(self.seen_by(model), self.X, self.y, **given(sample_weight=self.weight)))

    def seen_by(self, model: BaseEstimator) -> BaseEstimator:
        """The model as it predicts these rows: with their offsets."""
        return model if self.offset is None else WithOffset(model, self.offset)


def given(**options: Any) -> dict[str, Any]:
    """The options that are not None."""
    return {name: value for name, value in options.items() if value is not None}


def refuse_given(estimator: BaseEstimator, **options: Any) -> None:
    """Refuse options that the fit of an estimator does not take."""
    for name in given(**options):
        if not has_fit_parameter(estimator, name):
            raise ValueError(f"{type(estimator).__name__} takes no {name}. Leave it out, or use another model.")


def _checked(
    estimator: BaseEstimator, X: UserRows, y: UserTarget, sample_weight: UserWeights, **beside: Any
) -> tuple[Source, Array | None]:
    """The checked rows of one of our models, as its own fit has them, and the classes that y are codes of."""
    if is_classifier(estimator):
        return class_source(clone(estimator), X, y, sample_weight, **beside)
    return fit_source(clone(estimator), X, y, sample_weight, **beside), None


def reading_new_levels(estimator: BaseEstimator, source: Source) -> BaseEstimator:
    """The estimator for refits: a level that only validation rows have is the reference, as in sums over rows."""
    if not source.is_table or "encoder" not in estimator.get_params(deep=False):
        return estimator
    encoder = TableEncoder() if estimator.encoder is None else clone(estimator.encoder)
    return clone(estimator).set_params(encoder=encoder.set_params(unseen="reference"))


def times_of(rows: Rows, splits: Splits, split: int) -> tuple[Array, Array]:
    """How often each row of arrays trains and validates a split."""
    n_rows = n_samples(rows.X)
    cells = splits.cells.of(rows.source.first_block() if n_rows == 0 else _all(rows.source, n_rows))
    train, validation = (np.append(times, 0.0)[cells] for times in (splits.train[split], splits.validation[split]))
    return train, validation


def picked(rows: Rows, times: Array) -> Part:
    """Rows taken as often as `times` says."""
    numbers = np.repeat(np.arange(len(times)), times.astype(np.int64))
    if rows.weight is not None:
        numbers = numbers[rows.weight[numbers] > 0]  # weight 0 is no row
    y = None if rows.y is None else taken(rows.y, numbers)
    weight, offset = (None if column is None else column[numbers] for column in (rows.weight, rows.offset))
    return Part(taken(rows.X, numbers), y, weight, offset)


def _numbered(X: UserRows, y: UserTarget, labels: Array | None, weight: Array | None, offset: Array | None) -> Source:
    """Row numbers and targets alone, for rows that only the estimator understands."""
    n_rows = n_samples(X)
    if n_rows == 0:
        raise ValueError("Found array with 0 sample(s) while a minimum of 1 is required.")
    target = labels if labels is not None or y is None else np.asarray(y)
    if target is not None and (target.ndim != 1 or target.dtype.kind not in "fiub"):
        target = None  # only a splitter that asks for it misses it
    target = None if target is None else target.astype(np.float64)
    return Memory(np.zeros((n_rows, 1)), target, weight, offset=offset)


def _all(source: Source, n_rows: int) -> Block:
    """A block that numbers all rows, with their groups."""
    groups = [run.group for run in source.runs()] if source.first_block().group is not None else []
    group = np.concatenate([one for one in groups if one is not None]) if groups else None
    return Block(np.zeros((n_rows, 0)), None, None, 0, group)


class _Grouped(Memory):
    """Rows in memory with a group each; runs as the source it wraps has them."""

    def __init__(self, inner: Source, group: Array) -> None:
        self.__dict__.update(inner.__dict__)
        self.is_table = inner.is_table
        self._inner, self._group = inner, group

    def runs(self) -> Iterator[Block]:
        """Runs of the inner source, with groups."""
        inner = self._inner if self.run_rows is None else self._inner.resized(self.block_rows, self.run_rows)
        for run in inner.runs():
            yield replace(run, group=self._group[run.first_row : run.first_row + run.n_rows])
