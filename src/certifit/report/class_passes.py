"""What the report of a model of classes needs of the data: moments of the columns by class; no row is kept.

All counts are sums of weights: a row of weight 2 is the row twice.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from certifit.data.cells import ByLabel
from certifit.data.columns import Array
from certifit.data.labels import with_codes
from certifit.data.source import Block, Source
from certifit.report.moments import Moments
from certifit.report.passes import Seen
from certifit.statistics.cell_sums import CellMoments, cell_moments


@dataclass(frozen=True)
class ByClass:
    """Rows of every class and the moments of its columns.

    coded: of the columns as a table's encoder makes them. fitted: the same after the basis, the columns of the model.
    positive: the place of the class that precision and recall speak of; None with more than two.
    """

    classes: Array
    positive: int | None
    rows: Source
    coded: CellMoments
    fitted: CellMoments

    @property
    def names(self) -> list[str]:
        """The labels as text."""
        return [str(label) for label in self.classes.tolist()]

    @property
    def weights(self) -> Array:
        """Sum of weights of every class."""
        return self.coded.weights

    @property
    def shares(self) -> Array:
        """Share of the rows that each class has."""
        return np.asarray(self.weights / self.weights.sum())


def survey(model: Any, source: Source, positive: Any = None) -> tuple[Seen, ByClass]:
    """One pass over the data; one more where the model has a basis, or the columns are no table."""
    rows, classes = with_codes(source, model.classes_)
    encoder, basis = getattr(model, "encoder_", None), getattr(model, "basis_", None)
    encoded = rows if encoder is None else rows.through(encoder)
    cells = ByLabel(len(classes))
    coded = cell_moments(encoded, cells)
    fitted = coded if basis is None else cell_moments(encoded.through(basis), cells)
    ends = None if encoder is not None else encoded.reduce(Ends.of)
    return _seen(coded, ends), ByClass(classes, positive_of(classes, positive), rows, coded, fitted)


def positive_of(classes: Array, positive: Any = None) -> int | None:
    """The place of the positive one of two classes, the second where none is named; None with more than two."""
    if len(classes) > 2:
        if positive is None:
            return None
        raise ValueError(f"positive is for two classes. There are {len(classes)}.")
    if positive is None:
        return 1
    labels = classes.tolist()
    found = [k for k, label in enumerate(labels) if label == positive or str(label) == str(positive)]
    if not found:
        raise ValueError(f"positive must be one of the classes {labels}. Got {positive!r}.")
    return found[0]


@dataclass(frozen=True)
class Ends:
    """Smallest and largest entry of every column, of dense and sparse rows."""

    low: Array
    high: Array

    @staticmethod
    def of(block: Block) -> "Ends":
        """Of the rows of one block that have weight."""
        X = block.X if block.weight is None else block.X[block.weight > 0]
        if not X.shape[0]:
            nowhere = np.full(X.shape[1], np.inf)
            return Ends(nowhere, -nowhere)
        low, high = X.min(axis=0), X.max(axis=0)
        low, high = (low.toarray().ravel(), high.toarray().ravel()) if sp.issparse(X) else (low, high)
        return Ends(np.asarray(low, dtype=np.float64), np.asarray(high, dtype=np.float64))

    def __add__(self, other: "Ends") -> "Ends":
        return Ends(np.minimum(self.low, other.low), np.maximum(self.high, other.high))


def _seen(coded: CellMoments, ends: Ends | None) -> Seen:
    mass = float(coded.weights.sum())
    share = (coded.weights / mass)[:, None]
    nothing = np.full(coded.means.shape[1], np.nan)
    columns = Moments(
        mass=mass,
        mean=(share * coded.means).sum(axis=0),
        squares=coded.total_variances() * mass,
        low=nothing if ends is None else ends.low,
        high=nothing if ends is None else ends.high,
    )
    return Seen(n_rows=int(coded.n_rows.sum()), mass=mass, columns=columns)
