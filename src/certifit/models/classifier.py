"""What every classifier shares: labels as codes, and scores of the classes that it predicts by.

Scores of a model that has probabilities are their logarithms.

Weights of classes: a factor on the weights of the rows of each class.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Hashable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Literal, Self

import numpy as np
import pyarrow as pa
from sklearn.base import ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from certifit.data.columns import Array
from certifit.data.labels import coded, one_type, read_labels
from certifit.data.source import Block, Memory, Source, tree_sum
from certifit.data.user_input import (
    OutPath,
    Predictions,
    UserLabels,
    UserRows,
    UserTarget,
    UserWeights,
    class_source,
    predict_rows,
    predict_source,
    refuse_nonfinite,
)
from certifit.data.view import Target
from certifit.models.certificate import Certificate
from certifit.models.estimator import StateT, TaskEstimator, TaskT, joined, name_of_target
from certifit.models.folds import log_posterior
from certifit.models.parameters import check_number
from certifit.runtime import one_blas_thread

PIECE = 1 << 16  # rows whose scores are made at a time


def _has_probabilities(model: Classifier[Any, Any]) -> bool:
    return not model.has_margins


class Classifier(ClassifierMixin, TaskEstimator[TaskT, StateT]):
    """A model that gives every class a score, for rows x as its maps make them, and predicts the largest.

    p(k | x) = exp(score_k) / sum_j exp(score_j), where scores are no mere margins. A model writes `mapped_scores` and
    what every estimator writes.
    """

    has_margins: ClassVar[bool] = False  # scores are distances from a boundary, and no logarithms of probabilities
    classes_: Array
    target_name_: str
    data_: dict[str, float]  # n_rows, of those that have a class, and sum_weight
    _piece_rows = PIECE

    def fit(self, X: UserRows, y: UserTarget = None, sample_weight: UserWeights = None) -> Self:
        """Fit to rows X and labels y of any type, or to a scan that carries its target.

        sample_weight: one number per row; weight 2 is the row twice.
        """
        return self._fit(X, y, sample_weight=sample_weight)

    @available_if(_has_probabilities)
    def predict_proba(self, X: UserRows) -> Array:
        """p(k | x): rows x classes, in the order of classes_."""
        return np.asarray(np.exp(self.predict_log_proba(X)))

    @available_if(_has_probabilities)
    def predict_log_proba(self, X: UserRows) -> Array:
        """log p(k | x)."""
        return self._whole(X, self._log_posterior)

    def predict(self, X: UserRows, out: OutPath = None) -> Predictions:
        """The class of largest score, the most probable one, of every row of an array, a frame or a scan.

        out: a .parquet or .csv file to write them to, in constant memory for a scan; then nothing is returned.
        """
        return self._predict(X, out)

    def _predict(self, X: UserRows, out: OutPath, **roles: UserWeights) -> Predictions:
        check_is_fitted(self)
        return joined(self._each(X, self._labels, **roles), self.classes_[:0], out, kind=_arrow_type(self.classes_))

    def score(self, X: UserRows, y: UserTarget = None, sample_weight: UserWeights = None) -> float:
        """The share of rows that are predicted right; of a scan with its own target too."""
        if not isinstance(X, Source):
            return float(super().score(X, one_type(np.asarray(read_labels(y))), sample_weight))
        check_is_fitted(self)
        hits, weight = predict_source(self, X).reading(Target.CODES, self.classes_).reduce(self._hits)
        return float(hits / weight)

    def certify(self, X: UserRows, y: UserTarget = None, sample_weight: UserWeights = None) -> Certificate:
        """The certificate of this model recomputed on data; no solver takes part."""
        return self._certify(X, y, sample_weight=sample_weight)

    def fit_codes(self, source: Source, classes: Array) -> Self:
        """Fit to checked rows whose y are places among the classes."""
        self._check_parameters()
        self.classes_ = classes
        self._learn(source)
        return self

    def _gate(self, X: UserRows, y: UserTarget, classes: UserLabels = None, **roles: UserWeights) -> Source:
        known = None if classes is None else coded(np.asarray(read_labels(classes)))[0]
        source, self.classes_ = class_source(self, X, y, known=known, **roles)
        self.target_name_ = name_of_target(X, y)
        return source

    def _gate_again(self, X: UserRows, y: UserTarget, classes: UserLabels = None, **roles: UserWeights) -> Source:
        return self.labelled(X, y, **roles)

    @one_blas_thread
    def _partial_fit(
        self, X: UserRows, y: UserTarget = None, *, classes: UserLabels = None, **roles: UserWeights
    ) -> Self:
        """One pass over more rows. classes: all labels there will be, in the first call."""
        if classes is None and not hasattr(self, "classes_"):
            raise ValueError("classes must be passed on the first call to partial_fit: all labels that y will hold.")
        if classes is not None and hasattr(self, "classes_"):
            known = coded(np.asarray(read_labels(classes)))[0]
            if not np.array_equal(known, self.classes_):
                last = self.classes_.tolist()
                raise ValueError(f"classes={known.tolist()} is not the same as on the last call: {last}.")
        return super()._partial_fit(X, y, classes=classes, **roles)

    def scores(self, block: Block) -> Array:
        """Scores of every class for the rows of a block of the source that the model was fitted to."""
        return self._finite(block, self.mapped_scores)

    @abstractmethod
    def mapped_scores(self, columns: Block) -> Array:
        """Scores of every class for mapped rows: log p(k | x), but for what is equal for all classes of a row."""

    def _log_posterior(self, block: Block) -> Array:
        return log_posterior(self.scores(block))

    def labelled(
        self,
        X: UserRows,
        y: UserTarget = None,
        sample_weight: UserWeights = None,
        offset: UserWeights = None,
        exposure: UserWeights = None,
    ) -> Source:
        """Rows of the fitted classes, with codes as in the fit."""
        predict_source(self, X) if isinstance(X, Source) else predict_rows(self, X)
        return class_source(self.reader(), X, y, sample_weight, self.classes_, offset, exposure)[0]

    def _whole(self, X: UserRows, f: Callable[[Block], Array], **roles: UserWeights) -> Array:
        check_is_fitted(self)
        whole: Array = joined(self._each(X, f, **roles), np.zeros((0, len(self.classes_))))
        return whole

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
        """The place of the most probable class of every row; the first of equal ones, as in scikit-learn."""
        return np.asarray(self.scores(block).argmax(axis=1))

    def _hits(self, block: Block) -> Array:
        weight = np.ones(_rows_of(block)) if block.weight is None else block.weight
        is_right = self._chosen(block) == codes_of(block)
        return np.array([weight @ is_right, weight.sum()])


def pieces_of(X: Any, f: Callable[[Any], Array]) -> Array:
    """f of some rows at a time, joined: what f makes of all rows need not be held."""
    block = Block(X, None, None)
    parts = [f(block.part(begin, begin + PIECE).X) for begin in range(0, max(_rows_of(block), 1), PIECE)]
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


ClassWeight = Mapping[Hashable, float] | Literal["balanced"] | None


class WeightedClasses(Classifier[TaskT, StateT]):
    """A classifier with class_weight: a dict {label: weight}, "balanced" or None; its factors are class_weight_."""

    class_weight: ClassWeight
    class_weight_: Array | None

    def _begin(self, source: Source) -> None:
        if len(self.classes_) < 2:
            raise ValueError(f"y has one class only, {self.classes_.tolist()}. A classifier needs at least two.")
        self.class_weight_ = self._class_weights(source)

    def _learn(self, source: Source) -> None:
        super()._learn(source)
        if self.class_weight_ is not None:  # the rows' own weights are what a later look at the data compares
            self.data_ = self.data_ | {"sum_weight": class_sums(source, len(self.classes_)).sum()}

    def _weighted(self, source: Source) -> Source:
        """The rows with their weights times those of their classes."""
        factors = self.class_weight_
        return source if factors is None else source.weighted(partial(_of_class, factors=factors))

    def _class_weights(self, source: Source) -> Array | None:
        """A factor a class; None where all are 1."""
        return None if self.class_weight is None else self._factors_of(class_sums(source, len(self.classes_)))

    def _factors_of(self, sums: Array) -> Array:
        """A factor a class; sums: weights of the classes."""
        weights = self.class_weight
        if weights == "balanced":
            return np.asarray(sums.sum() / (len(sums) * sums))
        if not isinstance(weights, Mapping):
            raise ValueError(f"class_weight must be a dict {{label: weight}}, 'balanced' or None. Got {weights!r}.")
        labels = self.classes_.tolist()
        for key, factor in weights.items():
            label = key.item() if isinstance(key, np.generic) else key
            if label not in labels:
                raise ValueError(f"class_weight names {label!r}, and the classes are {labels}.")
            check_number(f"class_weight[{label!r}]", factor)
        return np.array([float(weights.get(label, 1.0)) for label in labels])


def class_sums(source: Source, n_classes: int) -> Array:
    """Sum of the weights of every class, in the tree of all sums."""
    return np.asarray(source.reduce(partial(_sums_of_run, n_classes=n_classes, block_rows=source.block_rows)))


def _sums_of_run(run: Block, n_classes: int, block_rows: int) -> Array:
    codes = codes_of(run)
    weight = np.ones(len(codes)) if run.weight is None else run.weight
    starts = range(0, max(len(codes), 1), block_rows)
    parts = ((codes[begin : begin + block_rows], weight[begin : begin + block_rows]) for begin in starts)
    return tree_sum(np.bincount(code[code >= 0], row_weight[code >= 0], n_classes) for code, row_weight in parts)


def _of_class(run: Block, factors: Array) -> Array:
    """The factor of every row; 0 for a row without a class."""
    codes = codes_of(run)
    return np.where(codes >= 0, factors[codes], 0.0)
