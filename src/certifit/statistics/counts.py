"""Joint counts of a discrete column and a discrete target: a statistic that adds.

I = sum over pairs (x, y) that occur of p(x, y) log(p(x, y) / (p(x) p(y))), in nats, p = weight / weight of all rows.
Missing is a level of its own. Weight 2 is the row twice.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from certifit.data.columns import Array

_COLUMNS = ["level", "target", "weight"]


@dataclass(frozen=True)
class JointCounts:
    """The weight of every pair (level, target) that occurs: an Arrow table with these columns. Null is missing."""

    pairs: pa.Table

    @staticmethod
    def of(levels: pa.Array, target: Array, weight: Array | None = None) -> JointCounts:
        """Of some rows. Levels are of any type that Arrow can hash; targets are numbers."""
        encoded = pc.dictionary_encode(levels, null_encoding="encode")
        codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        values, places = np.unique(target, return_inverse=True)
        first, second, weights = counted_pairs(codes, places, weight)
        columns = [encoded.dictionary.take(pa.array(first)), pa.array(values[second]), pa.array(weights)]
        return JointCounts(pa.table(columns, names=_COLUMNS))

    def __add__(self, other: JointCounts) -> JointCounts:
        both = pa.concat_tables([self.pairs, other.pairs])
        added = both.group_by(_COLUMNS[:2], use_threads=False).aggregate([("weight", "sum")])
        return JointCounts(added.rename_columns(_COLUMNS))

    @property
    def n_pairs(self) -> int:
        """Number of pairs that occur."""
        return int(self.pairs.num_rows)

    @property
    def levels(self) -> pa.Array:
        """The levels, each once; null for missing."""
        return pc.unique(self.pairs.column("level").combine_chunks())

    def information(self) -> float:
        """Mutual information of the two, in nats."""
        encoded = pc.dictionary_encode(self.pairs.column("level").combine_chunks(), null_encoding="encode")
        target = np.unique(self.pairs.column("target").to_numpy(), return_inverse=True)[1]
        weight = self.pairs.column("weight").to_numpy()
        return pairs_information(encoded.indices.to_numpy(zero_copy_only=False), target, weight)


def counted_pairs(first: Array, second: Array, weight: Array | None = None) -> tuple[Array, Array, Array]:
    """(a, b, weight) of every pair of codes that occurs; the weight is the number of rows unless one is given."""
    width = int(second.max(initial=-1)) + 1
    keys = first.astype(np.int64) * max(width, 1) + second
    size = int(keys.max(initial=-1)) + 1
    if size <= 4 * len(keys) + 1024:
        rows = np.bincount(keys, minlength=size)
        used = np.flatnonzero(rows)
        weights = rows[used] if weight is None else np.bincount(keys, weights=weight, minlength=size)[used]
    else:
        used, inverse, rows = np.unique(keys, return_inverse=True, return_counts=True)
        weights = rows if weight is None else np.bincount(inverse, weights=weight)
    return used // max(width, 1), used % max(width, 1), weights


def pairs_information(first: Array, second: Array, weight: Array) -> float:
    """Mutual information in nats of pairs of codes with their weights, each pair once; 0 without rows."""
    w = np.asarray(weight, dtype=np.float64)
    total = float(w.sum())
    if not total > 0:
        return 0.0
    w = np.ldexp(w, -math.frexp(total)[1])  # a power of two: whole numbers stay exact
    a, b = np.bincount(first, weights=w), np.bincount(second, weights=w)
    total = float(w.sum())
    occurs = w > 0
    w, first, second = w[occurs], first[occurs], second[occurs]
    terms = w / total * np.log(w * total / (a[first] * b[second]))
    return max(0.0, math.fsum(terms))
