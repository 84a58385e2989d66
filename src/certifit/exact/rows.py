"""The rows of a certificate as they are: float64 numbers of the mapped columns, in memory."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from certifit.data.columns import Array
from certifit.data.gate import fit_source, predict_source, unlabelled_source
from certifit.data.source import Source


@dataclass(frozen=True)
class Asked:
    """What a certificate claims of a fit beyond its value.

    aside: columns that the fits it is compared with do not use. claims_exact_fit: the value is relative to the null
    model's objective.
    """

    aside: frozenset[int] = frozenset()
    claims_exact_fit: bool = False


PLAIN = Asked()


@dataclass(frozen=True)
class ExactRows:
    """Rows that have a weight: dense columns, target (or code of a class), weight and offset of every one."""

    X: Array
    y: Array
    weight: Array
    offset: Array
    names: tuple[str, ...]

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.weight)

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return len(self.names)

    def only(self, places: Array) -> ExactRows:
        """The same rows with some of their columns."""
        return replace(self, X=self.X[:, places], names=tuple(self.names[j] for j in places))


def source_of(model: Any, X: Any, y: Any = None, sample_weight: Any = None, **beside: Any) -> Source:
    """The mapped rows that a fitted model's certificate is about, with all that multiplies their weights."""
    if hasattr(model, "classes_"):
        mapped: Source = model._mapped(model.labelled(X, y, sample_weight, **beside))
        if getattr(model, "class_weight_", None) is not None:
            mapped = model._weighted(mapped)
        return mapped
    if hasattr(model, "target_name_"):
        source = fit_source(model.reader(), X, y, sample_weight, **beside)
    else:
        source = unlabelled_source(model.reader(), X, sample_weight)
    predict_source(model, source)
    found: Source = model._mapped(source)
    return found


def rows_of(source: Source) -> ExactRows:
    """All rows of a source that have a weight, and where targets are codes, a class."""
    block = source.gather()
    X = block.X.toarray() if sp.issparse(block.X) or hasattr(block.X, "toarray") else block.X
    n_rows = block.n_rows
    y = np.zeros(n_rows) if block.y is None else np.asarray(block.y, dtype=np.float64)
    weight = np.ones(n_rows) if block.weight is None else np.asarray(block.weight, dtype=np.float64)
    offset = np.zeros(n_rows) if block.offset is None else np.asarray(block.offset, dtype=np.float64)
    kept = weight > 0
    dense = np.asarray(X, dtype=np.float64)
    return ExactRows(dense[kept], y[kept], weight[kept], offset[kept], tuple(source.names))
