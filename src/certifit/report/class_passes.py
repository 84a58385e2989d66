"""What the report of a model of classes needs of the data: moments of the columns by class, and a sample of the rows.

The sample is used to measure what single columns tell, and is not kept.
All counts are sums of weights: a row of weight 2 is the row twice.

How much a column alone tells about the class: the share of the uncertainty about it that the column removes.

    share = I(x; y) / H(y),   H(y) = - sum_k p_k log p_k

I is that of the counts by level and class, less what chance gives: (levels - 1) (classes - 1) / (2 n) nats. A number is
cut into levels of about equally many rows, of about equally many distinct values, and between the means of the classes,
on a sample of the rows: a cut can only lose information.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from certifit.data.cells import ByLabel
from certifit.data.columns import Array
from certifit.data.labels import with_codes
from certifit.data.picked import rows_where
from certifit.data.source import Block, Source
from certifit.report.columns import Moments
from certifit.report.passes import Drawn, Seen, drawn_rows, share_drawn
from certifit.statistics.cell_sums import CellMoments, cell_moments

N_CUTS = 16
MOST_CLASSES = 100


def of_levels(within: Array, weights: Array, n_rows: float) -> float | None:
    """Of a category, from the share of every level but one (columns) within each class (rows)."""
    within = np.column_stack([within, np.clip(1 - within.sum(axis=1), 0.0, None)])
    return _share(within * weights[:, None], n_rows)


def of_numbers(x: Array, codes: Array, weight: Array | None, n_classes: int) -> float | None:
    """Of a number, from some rows."""
    ordered = np.sort(x)
    distinct = ordered[np.append(True, ordered[1:] != ordered[:-1])]
    cuts = np.unique(np.concatenate([*map(_quantiles, (ordered, distinct)), _between(x, codes)]))
    place = np.searchsorted(cuts, x)  # a cut belongs to the level below it
    n_levels = len(cuts) + 1
    counts = np.bincount(codes * n_levels + place, weight, minlength=n_classes * n_levels)
    return _share(counts.reshape(n_classes, n_levels).astype(np.float64), len(x))


def _quantiles(ordered: Array) -> Array:
    """The values that the shares 1/16, 2/16 and so on of all of them are not above."""
    return np.asarray(ordered[np.arange(1, N_CUTS) * (len(ordered) - 1) // N_CUTS])


def _between(x: Array, codes: Array) -> Array:
    """Halfway from each mean of a class to the next."""
    count = np.bincount(codes)
    means = np.sort(np.bincount(codes, x)[count > 0] / count[count > 0])
    return np.asarray(means[1:] / 2 + means[:-1] / 2)


def are_flags(means: Array, variances: Array) -> Array:
    """Whether only 0 and 1 have such moments, class by class: the variance of a flag is m (1 - m). Per column."""
    is_share = (means >= 0) & (means <= 1)
    return np.asarray((is_share & (np.abs(variances - means * (1 - means)) <= 1e-9)).all(axis=0))


def _share(counts: Array, n_rows: float) -> float | None:
    """I / H of counts, classes x levels; None where there is nothing to know."""
    joint = counts[:, counts.sum(axis=0) > 0] / counts.sum()
    classes, levels = joint.sum(axis=1), joint.sum(axis=0)
    entropy = _entropy(classes)
    if not entropy > 0 or len(classes) > MOST_CLASSES:
        return None
    chance = (len(levels) - 1) * (int((classes > 0).sum()) - 1) / (2 * n_rows)
    information = entropy + _entropy(levels) - _entropy(joint.ravel()) - chance
    return min(max(information / entropy, 0.0), 1.0)


def _entropy(shares: Array) -> float:
    used = shares[shares > 0]
    return float(-(used * np.log(used)).sum())


@dataclass(frozen=True)
class Sample:
    """Rows drawn by their numbers, the same ones on every engine."""

    X: Array
    codes: Array
    weight: Array | None

    @staticmethod
    def of(block: Block, share: float) -> Sample:
        """A share of the rows of a block that have a class and weight."""
        codes = np.zeros(0) if block.y is None else block.y
        kept = (codes >= 0) & drawn_rows(block.first_row, block.n_rows, block.weight, share)
        rows = rows_where(block.X, kept)
        X = rows.toarray() if hasattr(rows, "toarray") else np.asarray(rows)
        weight = None if block.weight is None else block.weight[kept]
        return Sample(X.astype(np.float64), codes[kept].astype(np.int64), weight)

    def __add__(self, other: Sample) -> Sample:
        weight = None
        if self.weight is not None and other.weight is not None:
            weight = np.concatenate([self.weight, other.weight])
        return Sample(np.vstack([self.X, other.X]), np.concatenate([self.codes, other.codes]), weight)


@dataclass(frozen=True)
class ByClass:
    """Rows of every class and the moments of its columns.

    coded: of the columns as a table's encoder makes them. fitted: the same after the basis, the columns of the model.
    sample, fitted_sample: some rows of each.
    positive: the place of the class that precision and recall speak of; None with more than two.
    """

    classes: Array
    positive: int | None
    coded: CellMoments
    fitted: CellMoments
    sample: Sample
    fitted_sample: Sample

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

    def told(self, places: list[int], is_category: bool) -> float | None:
        """Share of the uncertainty about the class that a category of these coded columns, or one of them, removes."""
        n_rows = float(self.coded.n_rows.sum())
        if is_category:
            return of_levels(self.coded.means[:, places], self.weights, n_rows)
        shares = [self._coded_alone.told(j) for j in places]
        return max((one for one in shares if one is not None), default=None)

    def told_by_fitted(self, j: int) -> float | None:
        """The same of a column of the model."""
        return self._fitted_alone.told(j)

    @cached_property
    def _coded_alone(self) -> Alone:
        return Alone.of(self.coded, self.sample)

    @cached_property
    def _fitted_alone(self) -> Alone:
        return Alone.of(self.fitted, self.fitted_sample)


@dataclass(frozen=True)
class Alone:
    """Columns that are asked one by one what they tell. means: classes x columns; are_flags: per column."""

    means: Array
    are_flags: Array
    weights: Array
    n_rows: float
    sample: Sample

    @staticmethod
    def of(moments: CellMoments, sample: Sample) -> Alone:
        """Of these moments by class, and some rows."""
        means = moments.means
        flags = are_flags(means, moments.variances)
        return Alone(means, flags, moments.weights, float(moments.n_rows.sum()), sample)

    def told(self, j: int) -> float | None:
        """Share of the uncertainty about the class that the column removes."""
        sample = self.sample
        if self.are_flags[j]:
            return of_levels(self.means[:, [j]], self.weights, self.n_rows)
        return of_numbers(sample.X[:, j], sample.codes, sample.weight, len(self.means)) if len(sample.codes) else None


def survey(model: Any, source: Source, positive: Any = None) -> tuple[Seen, ByClass]:
    """One pass over the data; one more where the model has a basis, or the columns are no table."""
    rows, classes = with_codes(source, model.classes_)
    basis = model.basis_
    encoder = None if model.encoder_ is None else model.encoder_.uncoded()
    encoded = rows if encoder is None else rows.through(encoder)
    cells = ByLabel(len(classes))
    coded = cell_moments(encoded, cells)
    fitted = coded if basis is None else cell_moments(encoded.through(basis), cells)
    ends = None if encoder is not None else encoded.reduce(Ends.of)
    sample = _sample(encoded, encoder, int(coded.n_rows.sum()))
    columns = sample if basis is None else replace(sample, X=np.asarray(basis.apply(sample.X)))
    return _seen(coded, ends, sample), ByClass(classes, positive_of(classes, positive), coded, fitted, sample, columns)


def _sample(encoded: Source, encoder: Any, n_rows: int) -> Sample:
    """Some rows; none where no column is a number, for counts tell the rest."""
    kinds = ["number"] if encoder is None else [kind.kind for kind in encoder.columns_]
    if not {"number", "date"}.intersection(kinds):
        return Sample(np.zeros((0, encoded.n_features)), np.zeros(0, dtype=np.int64), None)
    return encoded.reduce(partial(Sample.of, share=share_drawn(n_rows, encoded.n_features)))


def positive_of(classes: Array, positive: Any = None) -> int | None:
    """The place of the positive one of two classes, the second where none is named; None with more than two."""
    if len(classes) > 2:
        if positive is None:
            return None
        raise ValueError(f"positive is for two classes. There are {len(classes)}.")
    if positive is None:
        return 1
    labels = classes.tolist()
    places = [k for k, label in enumerate(labels) if label == positive or str(label) == str(positive)]
    if not places:
        raise ValueError(f"positive must be one of the classes {labels}. Got {positive!r}.")
    return places[0]


@dataclass(frozen=True)
class Ends:
    """Smallest and largest entry of every column, of dense and sparse rows."""

    low: Array
    high: Array

    @staticmethod
    def of(block: Block) -> Ends:
        """Of the rows of one block that have weight."""
        X = block.X if block.weight is None else block.X[block.weight > 0]
        if not X.shape[0]:
            nowhere = np.full(X.shape[1], np.inf)
            return Ends(nowhere, -nowhere)
        low, high = X.min(axis=0), X.max(axis=0)
        low, high = (low.toarray().ravel(), high.toarray().ravel()) if sp.issparse(X) else (low, high)
        return Ends(np.asarray(low, dtype=np.float64), np.asarray(high, dtype=np.float64))

    def __add__(self, other: Ends) -> Ends:
        return Ends(np.minimum(self.low, other.low), np.maximum(self.high, other.high))


def _seen(coded: CellMoments, ends: Ends | None, sample: Sample) -> Seen:
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
    drawn = Drawn()
    drawn.add_rows(sample.X)
    return Seen(n_rows=int(coded.n_rows.sum()), mass=mass, columns=columns, drawn=drawn)
