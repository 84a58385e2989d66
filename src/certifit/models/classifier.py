"""What every classifier shares: the scikit-learn contract. It predicts by scores of the classes.

fit: gate -> labels as codes -> `fit_codes`. A fitted model holds no rows. Scores of a model that has probabilities are
their logarithms.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
import pyarrow as pa
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from certifit.certificates.certificate import Certificate
from certifit.data.cells import Splits
from certifit.data.columns import Array
from certifit.data.files import write_predictions
from certifit.data.gate import class_source, predict_rows, predict_source, refuse_nonfinite, unchanged_on_error
from certifit.data.labels import one_type, read_labels
from certifit.data.source import Block, Memory, Source
from certifit.models.class_folds import FoldModels, log_posterior
from certifit.models.mapped import MappedRows, check_number
from certifit.runtime import one_blas_thread

_PIECE = 1 << 16  # rows whose scores are made at a time


class ScoredClassifier(MappedRows, ClassifierMixin, BaseEstimator, ABC):
    """A model that gives every class a score, for rows x as its maps make them, and predicts the largest.

    A model writes `fit`, `fit_codes`, `mapped_scores`, `_task`, `_state` and `_certified`.
    """

    classes_: Array
    data_: dict[str, float]  # n_rows, of those that have a class, and sum_weight

    def predict(self, X: Any, out: Any = None) -> Any:
        """The class of largest score of every row of an array, a frame or a scan.

        out: a .parquet or .csv file to write them to, in constant memory for a scan; then nothing is returned.
        """
        return self._predicted(X, out)

    def _predicted(self, X: Any, out: Any, offset: Any = None) -> Any:
        check_is_fitted(self)
        parts = self._each(X, self._labels, offset)
        if out is not None:
            write_predictions(parts, out, kind=_arrow_type(self.classes_))
            return None
        whole = list(parts)
        return np.concatenate(whole) if whole else self.classes_[:0]

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """The share of rows that are predicted right; of a scan with its own target too."""
        if not isinstance(X, Source):
            return float(super().score(X, one_type(np.asarray(read_labels(y))), sample_weight))
        check_is_fitted(self)
        hits, weight = predict_source(self, X).coded(self.classes_).reduce(self._hits)
        return float(hits / weight)

    @one_blas_thread
    def certify(self, X: Any, y: Any = None, sample_weight: Any = None) -> Certificate:
        """The certificate of this model recomputed on data; no solver takes part."""
        check_is_fitted(self)
        source = self._mapped(self.labelled(X, y, sample_weight))
        return self._certified(self._task(source), self._state())

    @abstractmethod
    def fit_codes(self, source: Source, classes: Array) -> Self:
        """Fit to checked rows whose y are places among the classes; the parameters are checked here."""

    def scores(self, block: Block) -> Array:
        """Scores of every class for the rows of a block of the source that the model was fitted to."""
        return self._finite(block, self.mapped_scores)

    @abstractmethod
    def mapped_scores(self, columns: Block) -> Array:
        """Scores of every class for rows that are mapped already."""

    @abstractmethod
    def _task(self, source: Source) -> Any:
        """What is optimised on mapped rows."""

    @abstractmethod
    def _state(self) -> Any:
        """The state that the attributes hold."""

    @abstractmethod
    def _certified(self, task: Any, state: Any) -> Certificate:
        """The proof of a state."""

    def labelled(
        self, X: Any, y: Any = None, sample_weight: Any = None, offset: Any = None, exposure: Any = None
    ) -> Source:
        """Rows of the fitted classes, with codes as in the fit."""
        predict_source(self, X) if isinstance(X, Source) else predict_rows(self, X)
        return class_source(self.reader(), X, y, sample_weight, self.classes_, offset, exposure)[0]

    def _each(self, X: Any, f: Callable[[Block], Any], offset: Any = None) -> Any:
        """f of every run of a scan, or of pieces of rows in memory."""
        if isinstance(X, Source):
            return predict_source(self, X, offset).without_target().map(f)
        block = predict_rows(self, X, offset)
        return (f(block.part(begin, begin + _PIECE)) for begin in range(0, max(_rows_of(block), 1), _PIECE))

    def _whole(self, X: Any, f: Callable[[Block], Array], offset: Any = None) -> Array:
        whole = list(self._each(X, f, offset))
        return np.concatenate(whole) if whole else np.zeros((0, len(self.classes_)))

    def _finite(self, block: Block, f: Callable[[Block], Array]) -> Array:
        """f of the mapped rows; a row without a finite score is refused."""
        if block.X.shape[0] == 0:
            return np.zeros((0, len(self.classes_)))
        columns = replace(block, X=self.columns_of(block), y=None, weight=None)
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
        return np.asarray(self.classes_[self._chosen(block)])

    def _chosen(self, block: Block) -> Array:
        """The place of the most probable class of every row; the first of equal ones."""
        return np.asarray(self.scores(block).argmax(axis=1))

    def _hits(self, block: Block) -> Array:
        weight = np.ones(_rows_of(block)) if block.weight is None else block.weight
        is_right = self._chosen(block) == codes_of(block)
        return np.array([weight @ is_right, weight.sum()])

    def _check_parameters(self) -> None:
        self._check_maps()


class Classifier(ScoredClassifier):
    """A model of p(k | x) = exp(score_k) / sum_j exp(score_j).

    A model writes `fit_codes`, `_task`, `_state`, `_certified` and `_log_scores`. One that has its folds cheaper than
    by refits writes `class_fold_models` too.
    """

    tol: Any

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
        return self._predicted(X, out)

    def predict_proba(self, X: Any) -> Array:
        """p(k | x): rows x classes, in the order of classes_."""
        return np.exp(self.predict_log_proba(X))

    def predict_log_proba(self, X: Any) -> Array:
        """log p(k | x)."""
        check_is_fitted(self)
        return self._whole(X, self._log_posterior)

    def class_fold_models(
        self, source: Source, classes: Array, rounds: Sequence[Splits], candidates: Sequence[Mapping[str, Any]]
    ) -> FoldModels | None:
        """Models of all candidates on the training rows of all splits; None where each is to be fitted by itself.

        source: rows whose y are places among the classes, as the gate gives them.
        """
        return None

    def has_fold_sums(self, source: Source) -> bool:
        """Whether sums by fold tell what the training rows of every split have, so that no split needs a pass."""
        return False

    def mapped_scores(self, columns: Block) -> Array:
        """Scores of every class for rows that are mapped already."""
        return self._log_scores(columns)

    def candidates(self, source: Source) -> list[dict[str, Any]]:
        """Values of the parameters worth trying where the user names none."""
        return [{}]

    @abstractmethod
    def _log_scores(self, columns: Block) -> Array:
        """Scores of every class for mapped rows: log p(k | x), but for what is equal for all classes of a row."""

    def _log_posterior(self, block: Block) -> Array:
        return log_posterior(self.scores(block))

    def _check_parameters(self) -> None:
        check_number("tol", self.tol)
        super()._check_parameters()


def pieces_of(X: Any, f: Callable[[Any], Array]) -> Array:
    """f of some rows at a time, joined: what f makes of all rows need not be held."""
    block = Block(X, None, None)
    parts = [f(block.part(begin, begin + _PIECE).X) for begin in range(0, max(_rows_of(block), 1), _PIECE)]
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def codes_of(block: Block) -> Array:
    """Places of the classes of the rows, -1 for none of them."""
    if block.y is None:
        raise ValueError("The rows carry no labels.")
    return block.y.astype(np.int64)


def _rows_of(block: Block) -> int:
    return int(block.X.shape[0])


def _arrow_type(classes: Array) -> pa.DataType:
    kind = classes.dtype.kind
    return {"b": pa.bool_(), "i": pa.int64(), "u": pa.uint64(), "f": pa.float64()}.get(kind, pa.large_string())
