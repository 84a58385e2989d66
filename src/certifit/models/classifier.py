"""What classifiers with a closed form share: the scikit-learn contract, and `fit` in one place.

fit: gate -> labels as codes -> maps -> statistic by class -> closed form -> certify -> store. A fitted model holds no
rows. Scores are logarithms throughout.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

import numpy as np
import pyarrow as pa
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from certifit.certificates.certificate import Certificate
from certifit.data.cells import ByLabel, Cells, Splits
from certifit.data.columns import Array
from certifit.data.files import write_predictions
from certifit.data.gate import class_source, predict_rows, predict_source, refuse_nonfinite
from certifit.data.labels import one_type, read_labels
from certifit.data.source import Block, Memory, Source
from certifit.models.class_folds import FoldModels, fold_models, log_posterior
from certifit.models.class_refits import refitted_models
from certifit.models.mapped import MappedRows, check_number, unchanged_on_error
from certifit.runtime import one_blas_thread

_PIECE = 1 << 16  # rows whose scores are made at a time


class Classifier(MappedRows, ClassifierMixin, BaseEstimator):
    """A model of p(x, k) whose parameters are a closed form of sums by class."""

    tol: float
    classes_: Array
    class_count_: Array
    data_: dict[str, float]  # n_rows, of those that have a class, and sum_weight

    @one_blas_thread
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit to rows X and labels y of any type, or to a scan that carries its target.

        sample_weight: one number a row; weight 2 is the row twice.
        """
        self._check_parameters()
        with unchanged_on_error(self):
            source, classes = class_source(self, X, y, sample_weight)
            self.target_name_ = source.target if isinstance(X, Source) else str(getattr(y, "name", None) or "y")
            return self.fit_codes(source, classes)

    def predict(self, X: Any, out: Any = None) -> Any:
        """The most probable class of every row of an array, a frame or a scan.

        out: a .parquet or .csv file to write them to, in constant memory for a scan; then nothing is returned.
        """
        check_is_fitted(self)
        parts = self._each(X, self._labels)
        if out is not None:
            write_predictions(parts, out, kind=_arrow_type(self.classes_))
            return None
        whole = list(parts)
        return np.concatenate(whole) if whole else self.classes_[:0]

    def predict_proba(self, X: Any) -> Array:
        """p(k | x): rows x classes, in the order of classes_."""
        return np.exp(self.predict_log_proba(X))

    def predict_log_proba(self, X: Any) -> Array:
        """log p(k | x)."""
        check_is_fitted(self)
        return self._whole(X, self._log_posterior)

    def predict_joint_log_proba(self, X: Any) -> Array:
        """log p(x, k) = log p(k) + log p(x | k)."""
        check_is_fitted(self)
        return self._whole(X, self._joint)

    def joint_log_likelihood(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """sum_i weight_i log p(x_i, y_i), of labelled rows or of a scan that carries its target."""
        check_is_fitted(self)
        return float(self.labelled(X, y, sample_weight).reduce(self._row_likelihoods))

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """The share of rows that are predicted right; of a scan with its own target too."""
        if not isinstance(X, Source):
            return float(super().score(X, one_type(np.asarray(read_labels(y))), sample_weight))
        check_is_fitted(self)
        hits, weight = predict_source(self, X).coded(self.classes_).reduce(self._hits)
        return float(hits / weight)

    @one_blas_thread
    def certify(self, X: Any, y: Any = None, sample_weight: Any = None) -> Certificate:
        """The certificate of this model recomputed on data from sums of its rows."""
        check_is_fitted(self)
        source = self._mapped(self.labelled(X, y, sample_weight))
        statistic = self._statistic(source, ByLabel(len(self.classes_)))
        return self._certified(self._task(statistic, source), self._state())

    def scores(self, block: Block) -> Array:
        """Scores of every class for the rows of a block of the source that the model was fitted to."""
        return self._class_scores(block)

    def fit_codes(self, source: Source, classes: Array) -> Self:
        """Fit to checked rows whose y are places among the classes."""
        self.classes_ = classes
        mapped = self._fit_maps(source)
        self._settle(self._statistic(mapped, ByLabel(len(classes))), mapped)
        return self

    def class_fold_models(
        self, source: Source, classes: Array, rounds: Sequence[Splits], candidates: Sequence[Mapping[str, Any]]
    ) -> FoldModels | None:
        """Models of all candidates on the training rows of all splits; None where they are too large.

        From sums by fold; where these do not tell, from sums over the training rows of every split.
        source: rows whose y are places among the classes, as the gate gives them.
        """
        probe = clone(self)
        probe._check_parameters()
        probe.classes_ = classes
        found = fold_models(probe, source, rounds, candidates)
        return refitted_models(probe, source, rounds, candidates) if found is None else found

    def columns_of(self, block: Block) -> Any:
        """The columns that the fitted encoder and basis make of the rows of a block."""
        return self._columns(block)

    def has_fold_sums(self, source: Source) -> bool:
        """Whether sums by fold tell what the training rows of every split have, so that no split needs a pass."""
        return clone(self).fold_columns(source) is not None

    def fold_columns(self, source: Source) -> Source | None:
        """The columns that sums by fold are made of; None where each training set has its own."""
        if self.basis is not None:
            return None
        mapped = self._fit_maps(source)
        self.column_names_ = list(mapped.names)
        return None if self.encoder_ is not None and self.encoder_.opened()[1] else mapped

    def fold_parts(self, source: Source, cells: Cells) -> Callable[[Array], Any]:
        """The statistic of unions of cells, as a function of how often each union (row) holds each cell."""
        statistic = self._statistic(source, cells)
        combined: Callable[[Array], Any] = statistic.combined
        return combined

    def sums_key(self) -> Any:
        """What the sums depend on: models of equal keys share them."""
        return None

    def statistic_bytes(self, n_cells: int, n_columns: int) -> int:
        """Size of the statistic of so many cells."""
        return 24 * n_cells * n_columns

    def mapped_scores(self, columns: Block) -> Array:
        """Scores of every class for rows that are mapped already."""
        return self._log_scores(columns)

    def candidates(self, source: Source) -> list[dict[str, Any]]:
        """Values of the parameters worth trying where the user names none."""
        return [{}]

    def _settle(self, statistic: Any, source: Source) -> None:
        """The closed form of a statistic, its certificate, both stored."""
        task = self._task(statistic, source)
        state = task.solve()
        self.column_names_ = list(source.names)
        self._store(task, state)
        self.data_ = {"n_rows": int(statistic.n_rows.sum()), "sum_weight": float(self.class_count_.sum())}
        self.certificate_ = self._certified(task, self._state())
        if not self.certificate_.holds:
            warnings.warn(self.certificate_.sentences()[0], ConvergenceWarning, stacklevel=5)

    def _statistic(self, source: Source, cells: Cells) -> Any:
        """Sums of the mapped rows by cell."""
        raise NotImplementedError

    def _task(self, statistic: Any, source: Source) -> Any:
        """What has a closed form."""
        raise NotImplementedError

    def _store(self, task: Any, state: Any) -> None:
        raise NotImplementedError

    def _state(self) -> Any:
        """The state that the attributes hold."""
        raise NotImplementedError

    def _certified(self, task: Any, state: Any) -> Certificate:
        raise NotImplementedError

    def _log_joint(self, columns: Block) -> Array:
        """log p(x, k) of mapped rows."""
        raise NotImplementedError

    def _log_scores(self, columns: Block) -> Array:
        """The same less what is equal for all classes of a row."""
        return self._log_joint(columns)

    def labelled(self, X: Any, y: Any = None, sample_weight: Any = None) -> Source:
        """Rows of the fitted classes, with codes as in the fit."""
        predict_source(self, X) if isinstance(X, Source) else predict_rows(self, X)
        return class_source(self._reader(), X, y, sample_weight, self.classes_)[0]

    def _reader(self) -> Self:
        """A copy that reads rows as this model was fitted to them; the gate may set its attributes."""
        probe: Self = clone(self)
        if self.encoder_ is not None and probe.encoder is None:
            probe.encoder = self.encoder_  # a frame is then read as the table that the model was fitted to
        return probe

    def _each(self, X: Any, f: Callable[[Block], Any]) -> Any:
        """f of every run of a scan, or of pieces of rows in memory."""
        if isinstance(X, Source):
            return predict_source(self, X).without_target().map(f)
        block = predict_rows(self, X)
        return (f(block.part(begin, begin + _PIECE)) for begin in range(0, max(_rows_of(block), 1), _PIECE))

    def _whole(self, X: Any, f: Callable[[Block], Array]) -> Array:
        whole = list(self._each(X, f))
        return np.concatenate(whole) if whole else np.zeros((0, len(self.classes_)))

    def _class_scores(self, block: Block) -> Array:
        return self._finite(block, self._log_scores)

    def _joint(self, block: Block) -> Array:
        return self._finite(block, self._log_joint)

    def _finite(self, block: Block, f: Callable[[Block], Array]) -> Array:
        """f of the mapped rows; a row without a finite score is refused."""
        if block.X.shape[0] == 0:
            return np.zeros((0, len(self.classes_)))
        columns = Block(self._columns(block), None, None, block.first_row)
        scores = f(columns)
        if np.isfinite(scores).all():
            return scores
        refuse_nonfinite(Memory(columns.X, None, names=self.column_names_))  # or one class would be sure of such a row
        lost = np.flatnonzero(~np.isfinite(scores.max(axis=1)))
        if len(lost):
            row = int(lost[0]) + block.first_row
            raise ValueError(f"Row {row} of X lies so far from every class that its scores leave the range of float64.")
        return scores

    def _labels(self, block: Block) -> Array:
        return np.asarray(self.classes_[self._class_scores(block).argmax(axis=1)])

    def _log_posterior(self, block: Block) -> Array:
        return log_posterior(self._class_scores(block))

    def _row_likelihoods(self, block: Block) -> Any:
        joint = self._joint(block)
        own = joint[np.arange(len(joint)), _codes(block).clip(min=0)]
        weight = np.ones(len(own)) if block.weight is None else block.weight
        return np.float64(weight[_codes(block) >= 0] @ own[_codes(block) >= 0])

    def _hits(self, block: Block) -> Array:
        weight = np.ones(_rows_of(block)) if block.weight is None else block.weight
        is_right = self._class_scores(block).argmax(axis=1) == _codes(block)
        return np.array([weight @ is_right, weight.sum()])

    def _check_parameters(self) -> None:
        check_number("tol", self.tol)
        self._check_maps()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.basis is None
        return tags


def checked_priors(name: str, priors: Any, classes: Sequence[Any] | Array) -> Array | None:
    """One number >= 0 a class, of sum 1; None stays None."""
    if priors is None:
        return None
    values = np.asarray(priors, dtype=np.float64)
    if values.shape != (len(classes),):
        raise ValueError(f"{name} must have one number a class, {len(classes)}. Got shape {values.shape}.")
    if not (np.isfinite(values).all() and (values >= 0).all() and abs(values.sum() - 1) <= 1e-8):
        raise ValueError(f"{name} must be numbers >= 0 that add up to 1. Got {values.tolist()}.")
    return values


def pieces_of(X: Any, f: Callable[[Any], Array]) -> Array:
    """f of some rows at a time, joined: what f makes of all rows need not be held."""
    block = Block(X, None, None)
    parts = [f(block.part(begin, begin + _PIECE).X) for begin in range(0, max(_rows_of(block), 1), _PIECE)]
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _codes(block: Block) -> Array:
    if block.y is None:
        raise ValueError("The rows carry no labels.")
    return block.y.astype(np.int64)


def _rows_of(block: Block) -> int:
    return int(block.X.shape[0])


def _arrow_type(classes: Array) -> pa.DataType:
    kind = classes.dtype.kind
    return {"b": pa.bool_(), "i": pa.int64(), "u": pa.uint64(), "f": pa.float64()}.get(kind, pa.large_string())
