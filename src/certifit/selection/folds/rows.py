"""The rows that candidates are scored on: a source, and the arrays it came from where there are any.

Then rows and columns of any kind of table (arrays, sparse arrays, frames, sources), and models seen with their offsets.

Statistics that models compared on the same rows share, each made once.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial, update_wrapper
from inspect import signature
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.utils import Tags, check_array, check_consistent_length, get_tags, indexable
from sklearn.utils.validation import column_or_1d, has_fit_parameter, validate_data

from certifit.data.arrow import frame_table, is_frame
from certifit.data.cells import Splits
from certifit.data.columns import Array, refuse_kinds
from certifit.data.offsets import checked_offset
from certifit.data.source import Block, Memory, Result, Source
from certifit.data.source_wrappers import Changed
from certifit.data.user_input import (
    UserLabels,
    UserRows,
    UserTarget,
    UserWeights,
    canonical,
    checked_weight,
    class_source,
    fit_source,
    n_samples,
    refuse_nonfinite,
    refuse_targets,
    taken,
)
from certifit.maps import TableEncoder, encoder_of
from certifit.models.adapter import learner_of
from certifit.models.folds import NO_ROWS
from certifit.selection.folds.metrics import Scorer
from certifit.selection.folds.splits import group_numbers, targets

MOST_BYTES = 1 << 28  # of statistics that are kept for another model; more are made again

Made = TypeVar("Made")


class Shared:
    """The store of one comparison (`Store`): mapped columns, and Gram matrices by cell of the same columns.

    The oldest statistics are forgotten where all of them take more than MOST_BYTES; what is made again has equal bits.
    """

    def __init__(self) -> None:
        self._known: dict[Hashable, tuple[Sequence[object], Any, int]] = {}

    def once(self, made_of: Sequence[object], key: Hashable, make: Callable[[], Made], n_bytes: int = 0) -> Made:
        """What `make` returns, or has returned before for the same objects (by identity) and an equal key."""
        place = (*map(id, made_of), key)  # the objects are kept, so no other can have their ids
        if place not in self._known:
            self._known[place] = made_of, make(), n_bytes
            self._forget(place)
        made: Made = self._known[place][1]
        return made

    def _forget(self, newest: Hashable) -> None:
        total = sum(n_bytes for _, _, n_bytes in self._known.values())
        for place in [place for place, (_, _, n_bytes) in self._known.items() if n_bytes and place != newest]:
            if total <= MOST_BYTES:
                break
            total -= self._known.pop(place)[2]


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
            scan = scan.kept()
            labels = None if classes is None else targets(scan.narrow()).astype(np.int64)
            return Rows(scan, labels=labels, classes=classes)
        source, classes = _checked(estimator, X, y, sample_weight, **beside) if is_ours else (None, None)
        X, y = indexable(X, y)
        labels = None
        if is_classifier(estimator) and y is not None:
            known, labels = np.unique(column_or_1d(y, warn=True), return_inverse=True)
            classes = known if classes is None else classes
        weight = None if sample_weight is None else checked_weight(sample_weight, n_samples(X))
        row_offset = checked_offset(offset, exposure, n_samples(X))
        source = _numbered(X, y, labels, weight, row_offset) if source is None else source
        if groups is not None:
            source = _Grouped(source, group_numbers(groups, n_samples(X)))
        return Rows(source, X, y, weight, groups, labels, classes, row_offset)


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
    parameters = estimator.get_params()
    name = next((name for name in ("encoder", "estimator__encoder") if name in parameters), None)
    if not source.is_table or name is None:
        return estimator
    asked = encoder_of(parameters[name])
    encoder = TableEncoder() if asked is None else clone(asked)
    return clone(estimator).set_params(**{name: encoder.set_params(unseen="reference")})


def times_of(rows: Rows, splits: Splits, split: int) -> tuple[Array, Array]:
    """How often each row of arrays trains and validates a split; neither set may be without a weight."""
    n_rows = n_samples(rows.X)
    cells = splits.cells.of(rows.source.first_block() if n_rows == 0 else _all(rows.source, n_rows))
    train, validation = (np.append(times, 0.0)[cells] for times in (splits.train[split], splits.validation[split]))
    weight = 1.0 if rows.weight is None else rows.weight
    if not ((train * weight > 0).any() and (validation * weight > 0).any()):
        raise ValueError(NO_ROWS)
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
    groups = [stretch.group for stretch in source.stretches()] if source.first_block().group is not None else []
    group = np.concatenate([part for part in groups if part is not None]) if groups else None
    return Block(np.zeros((n_rows, 0)), None, None, 0, group)


class _Grouped(Changed):
    """Rows in memory with a group each."""

    def __init__(self, inner: Source, group: Array) -> None:
        super().__init__(inner)
        self.group = group

    def then(self, f: Callable[[Block], Result]) -> Callable[[Block], Result]:
        """f of the stretch with its groups."""
        return lambda stretch: f(
            replace(stretch, group=self.group[stretch.first_row : stretch.first_row + stretch.n_rows])
        )


# ---- rows and columns of any kind of table ---------------------------------------------------------------------------


def checked_rows(selector: BaseEstimator, X: Any, y: Any) -> tuple[Any, Any]:
    """Training rows and targets as the estimator takes them; sets n_features_in_ and feature_names_in_."""
    if not is_frame(X):
        X = checked_array(selector, X, y)
    else:
        X = X if hasattr(X, "iloc") or hasattr(X, "get_column") or isinstance(X, pa.Table) else frame_table(X)
        validate_data(selector, X, y, skip_check_array=True)
        if 0 in X.shape:
            raise ValueError(f"Found {X.shape[0]} rows and {X.shape[1]} columns. A fit needs one of each at least.")
    if y is None:
        return X, None
    if not get_tags(selector).target_tags.multi_output:
        y = column_or_1d(y, warn=True)
    if np.asarray(y).dtype.kind == "f":
        refuse_targets(y)
    y = check_array(y, ensure_2d=False, dtype=None, input_name="y")
    check_consistent_length(X, y)
    if y.ndim == 1 and len(y) > 1 and (y == y[0]).all():
        raise ValueError(f"y is constant: {len(y):,} rows with the value {y[0]!r}. No feature can explain it.")
    return X, y


def checked_array(selector: BaseEstimator, X: Any, y: Any = "no_validation", reset: bool = True) -> Any:
    """X as an array or CSR; texts only for an estimator that reads them. y is only looked for."""
    refuse_kinds(X)
    tags = get_tags(selector)
    if reset and y is None and tags.target_tags.required:
        validate_data(selector, X, y)  # its words are the ones that users know
    return validate_data(
        selector, canonical(X), reset=reset, accept_sparse="csr" if tags.input_tags.sparse else False,
        dtype=None if tags.input_tags.string else "numeric", ensure_all_finite=False, ensure_min_samples=int(reset),
    )  # fmt: skip


def refuse_gaps(selector: BaseEstimator, X: Any, names: list[str]) -> None:
    """Name the row and column of the first NaN or infinity, unless the estimator takes them."""
    if get_tags(selector).input_tags.allow_nan:
        return
    if not is_frame(X):
        refuse_nonfinite(Memory(X, None, names=names)) if X.dtype.kind == "f" else None
        return
    for name, column in zip(names, frame_table(X).columns, strict=True):
        if pa.types.is_floating(column.type) or pa.types.is_integer(column.type):
            values = column.to_numpy().astype(np.float64, copy=False)[:, None]
            refuse_nonfinite(Memory(values, None, names=[name]))


def take_columns(X: Any, columns: Sequence[int]) -> Any:
    """Some columns of an array, a sparse array, a frame or a source, which stays what it is."""
    columns = list(columns)
    if isinstance(X, Source):
        return X.select([X.names[column] for column in columns])
    if hasattr(X, "iloc"):
        return X.iloc[:, columns]
    return X.select(columns) if isinstance(X, pa.Table) else X[:, columns]


def take_rows(X: Any, rows: Array) -> Any:
    """Some rows of an array, a sparse array or a frame; None stays None."""
    if X is None:
        return None
    if hasattr(X, "iloc"):
        return X.iloc[rows]
    return X.take(rows) if isinstance(X, pa.Table) else X[rows]


# ---- a fitted model with the offsets of some rows, for scorers that know none ----------------------------------------

_PREDICTIONS = ("predict", "predict_proba", "predict_log_proba", "decision_function", "score")


def with_offset(model: BaseEstimator, X: UserRows, offset: UserWeights, exposure: UserWeights) -> BaseEstimator:
    """A fitted model as it predicts rows X with these offsets; a scan carries its own."""
    if offset is None and exposure is None:
        return model
    if isinstance(X, Source):
        raise ValueError("A scan carries its offset and exposure: scan_csv(..., offset=, exposure=).")
    return WithOffset(model, checked_offset(offset, exposure, n_samples(X)))


class WithOffset:
    """A fitted model whose predictions and own score are given the offset of every row."""

    def __init__(self, model: BaseEstimator, offset: Array | None) -> None:
        self._model, self._offset = model, offset

    def __getattr__(self, name: str) -> Any:
        if name in ("_model", "_offset"):
            raise AttributeError(name)
        attribute = getattr(self._model, name)
        if name not in _PREDICTIONS:
            return attribute
        if "offset" not in signature(attribute).parameters:
            raise TypeError(f"{name} of {type(self._model).__name__} takes no offset, so rows with one have no score.")
        return update_wrapper(partial(attribute, offset=self._offset), attribute)

    def __sklearn_tags__(self) -> Tags:
        return get_tags(self._model)

    def __sklearn_is_fitted__(self) -> bool:
        return True
