"""Predicted probabilities against what happened: log loss, Brier score, calibration.

    log loss  = - mean log(probability given to what happened)
    Brier     = mean (p - y)^2 for two classes; with more, mean over rows of sum_k (p_k - [y = k])^2
    calibration: among rows with a prediction near p, is the share that happened p?

Probabilities are not clipped unless `clip` says so: a model that gave 0 to what happened has an infinite log loss.
A 1-D array is the probability of the positive class; columns are the classes in sorted order.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from certifit.data.columns import Array
from certifit.evaluation.metrics.errors import MeanLoss, scored
from certifit.evaluation.metrics.intervals import HELD_OUT, WEIGHTED, Estimate, check_level, clopper_pearson
from certifit.evaluation.metrics.rows import check_lengths, codes, column, in_order, numbers, row_weights

Strategy = Literal["quantile", "uniform"]
BINNED = "The expected calibration error depends on the bins and is above 0 even for a perfect model."
_SUM_TOLERANCE = 1e-4  # of a row's probabilities, float32 included


def log_loss(
    y_true: Any,
    y_proba: Any,
    *,
    normalize: bool = True,
    sample_weight: Any = None,
    labels: Any = None,
    clip: float = 0.0,
    n_resamples: int = 0,
    level: float = 0.95,
    random_state: int = 0,
) -> Estimate:
    """- mean log(probability given to what happened); normalize=False: the sum.

    Infinite where that probability is 0. `clip` lifts probabilities to clip and lowers them to 1 - clip;
    scikit-learn always does so with 2.2e-16 (float64) or 1.2e-7 (float32). `labels`: the sorted classes, where y_true
    does not hold all of them.

    >>> round(log_loss(["ham", "spam", "spam"], [0.1, 0.8, 0.6]), 6)
    0.279777
    >>> print(log_loss([0, 1], [0.2, 0.0]).sentence)
    Infinite: row 1 happened with a predicted probability of 0. No interval.
    """
    if not 0 <= clip < 0.5:
        raise ValueError(f"clip must be in [0, 0.5). Got {clip}.")
    losses = log_losses(y_true, y_proba, labels, clip)
    weight = row_weights(sample_weight, len(losses))
    hit = np.isinf(losses) if weight is None else np.isinf(losses) & (weight > 0)
    if hit.any():
        more = f" (and {int(hit.sum()) - 1} more)" if hit.sum() > 1 else ""
        sentence = f"Infinite: row {int(np.argmax(hit))}{more} happened with a predicted probability of 0. No interval."
        return Estimate(math.inf, level=level, sentence=sentence)
    return _mean(losses, weight, normalize, n_resamples, level, random_state)


def brier_score_loss(
    y_true: Any,
    y_proba: Any,
    *,
    sample_weight: Any = None,
    pos_label: Any = None,
    labels: Any = None,
    scale_by_half: bool | Literal["auto"] = "auto",
    n_resamples: int = 0,
    level: float = 0.95,
    random_state: int = 0,
) -> Estimate:
    """Mean over rows of sum_k (p_k - [y = k])^2, times 1/2 for two classes ("auto"), which is mean (p - y)^2.

    >>> round(brier_score_loss([0, 1, 1], [0.1, 0.9, 0.6]), 6)
    0.06
    """
    losses, n_classes = brier_losses(y_true, y_proba, pos_label, labels)
    half = n_classes == 2 if scale_by_half == "auto" else bool(scale_by_half)
    losses = losses / 2 if half else losses
    weight = row_weights(sample_weight, len(losses))
    return _mean(losses, weight, True, n_resamples, level, random_state)


def log_losses(y_true: Any, y_proba: Any, labels: Any = None, clip: float = 0.0) -> Array:
    """- log(probability given to what happened), one per row; MeanLoss.of adds them over blocks."""
    place, p = _places_and_probabilities(y_true, y_proba, labels)
    chance = p if p.ndim == 1 else p[np.arange(len(p)), place]
    chance = np.clip(chance, clip, 1 - clip) if clip else chance
    with np.errstate(divide="ignore"):
        logs = np.log(chance) if p.ndim == 2 else np.where(place == 1, np.log(chance), np.log1p(-chance))
    return np.asarray(0.0 - logs)


def brier_losses(y_true: Any, y_proba: Any, pos_label: Any = None, labels: Any = None) -> tuple[Array, int]:
    """(sum_k (p_k - [y = k])^2 of each row, number of classes)."""
    if _is_single(y_proba):
        if labels is not None:
            raise ValueError("labels orders columns and y_proba is 1-D. Use pos_label.")
        y, p = positives(y_true, y_proba, pos_label)
        return 2 * (p - y) ** 2, 2
    if pos_label is not None:
        raise ValueError("pos_label is for 1-D y_proba. With a column per class use labels.")
    place, p = _places_and_probabilities(y_true, y_proba, labels)
    apart = p.copy()
    apart[np.arange(len(p)), place] -= 1.0
    return np.sum(apart**2, axis=1), p.shape[1]


def positives(y_true: Any, y_prob: Any, pos_label: Any = None) -> tuple[Array, Array]:
    """(1.0 where the positive class happened, else 0.0; its predicted probability)."""
    truth, p = column(y_true, "y_true"), _probabilities(numbers(y_prob, "y_prob"))
    check_lengths({"y_true": truth, "y_prob": p})
    known, (place,) = codes({"y_true": truth})
    if len(known) > 2:
        raise ValueError(f"y_true holds {len(known)} classes and the probabilities are 1-D. Give a column per class.")
    if pos_label is None and not ({*known} <= {0, 1} or {*known} <= {-1, 1}):
        raise ValueError(f"Say with pos_label which of the classes {list(known)} the probabilities are of.")
    positive = 1 if pos_label is None else pos_label
    if len(known) == 2 and positive not in known:
        raise ValueError(f"pos_label={pos_label!r} is not one of the classes {list(known)}.")
    return np.array([float(label == positive) for label in known])[place], p


def _places_and_probabilities(y_true: Any, y_proba: Any, labels: Any) -> tuple[Array, Array]:
    """(the column of what happened in each row, the probabilities: 1-D, or a column per class)."""
    truth = column(y_true, "y_true")
    known, (place,) = codes({"y_true": truth}, labels)
    if known != in_order({*known}):
        raise ValueError(
            f"Columns of y_proba are in sorted order of the classes, so labels must be. Got {list(known)}."
        )
    p = numbers(y_proba, "y_proba") if _is_single(y_proba) else _table(y_proba)
    check_lengths({"y_true": truth, "y_proba": p})
    n_classes = 2 if p.ndim == 1 else p.shape[1]
    if len(known) != n_classes:
        counts = f"{len(known)} classes {list(known)[:10]}, but y_proba is for {n_classes}"
        raise ValueError(f"There are {counts}. Name all classes with labels=[...].")
    return place, _probabilities(p)


def _is_single(y_proba: Any) -> bool:
    shape = np.shape(y_proba)
    return len(shape) == 1 or shape[1:] == (1,)


def _table(y_proba: Any) -> Array:
    p = np.asarray(y_proba)
    if p.ndim != 2:
        raise ValueError(f"y_proba must be 1-D, or 2-D with a column per class. Got {p.ndim} dimensions.")
    if p.dtype.kind not in "fiubO":
        raise TypeError(f"y_proba must be numbers. Got {p.dtype}.")
    return np.asarray(p, dtype=np.float64)


def _probabilities(p: Array) -> Array:
    outside = ~((p >= 0) & (p <= 1))  # nan is outside
    if outside.any():
        row = int(np.argwhere(outside)[0][0])
        raise ValueError(f"Probabilities must be in [0, 1]. Row {row} has {p[row]}.")
    if p.ndim == 2:
        sums = p.sum(axis=1)
        wrong = np.abs(sums - 1) > _SUM_TOLERANCE
        if wrong.any():
            row = int(np.argmax(wrong))
            raise ValueError(f"The probabilities of a row must add up to 1. Row {row} adds up to {sums[row]:g}.")
    return p


def _mean(
    losses: Array, weight: Array | None, normalize: bool, n_resamples: int, level: float, random_state: int
) -> Estimate:
    def of(losses: Array, weight: Array | None) -> float:
        mean = MeanLoss.of(losses, weight)
        return mean.mean if normalize else mean.mean * mean.weight

    return scored(of, (losses,), weight, n_resamples, level, random_state)


# ---- calibration ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Calibration:
    """Predictions and outcomes summed by bins of the prediction; + merges blocks with the same edges.

    Bin b holds predictions in (edges[b], edges[b + 1]], the first one its lower edge too. A bin without rows stays in
    the table, with nan.
    """

    edges: Array  # from 0 to 1
    count: Array  # rows in each bin, or the sum of their weights
    predicted: Array  # sum of predictions
    happened: Array  # number (sum of weights) of rows in which the positive class happened
    level: float = 0.95
    weighted: bool = False

    @classmethod
    def of(cls, y: Array, p: Array, edges: Array, weight: Array | None = None, level: float = 0.95) -> Calibration:
        """Of one block of rows, y being 0 or 1."""
        place = np.searchsorted(edges[1:-1], p)  # left: an edge belongs to the bin below it
        weights = np.ones_like(p) if weight is None else weight
        count, predicted, happened = (
            np.bincount(place, v, minlength=len(edges) - 1) for v in (weights, p * weights, y * weights)
        )
        return cls(edges, count, predicted, happened, check_level(level), weight is not None)

    def __add__(self, other: Calibration) -> Calibration:
        if not isinstance(other, Calibration):
            return NotImplemented
        if not np.array_equal(self.edges, other.edges):
            raise ValueError("Calibrations add only over the same bins. Pass the edges as bins=[0, ..., 1] to each.")
        return replace(
            self,
            count=self.count + other.count,
            predicted=self.predicted + other.predicted,
            happened=self.happened + other.happened,
            weighted=self.weighted or other.weighted,
        )

    def __radd__(self, other: Any) -> Calibration:
        return self if other == 0 else NotImplemented  # sum() starts from 0

    @property
    def mean_prediction(self) -> Array:
        """Mean prediction of each bin; nan where it has no rows."""
        return self._by_count(self.predicted)

    @property
    def observed_share(self) -> Array:
        """Share of each bin's rows in which the positive class happened; nan where it has no rows."""
        return self._by_count(self.happened)

    @property
    def interval(self) -> tuple[Array, Array] | None:
        """Clopper-Pearson ends of each observed share, nan where a bin has no rows; None with weights."""
        if self.weighted:
            return None
        low, high = clopper_pearson(self.happened, np.maximum(self.count, 1), self.level)
        return np.where(self.count > 0, low, np.nan), np.where(self.count > 0, high, np.nan)

    @property
    def expected_calibration_error(self) -> float:
        """sum_b count_b / n |observed share_b - mean prediction_b|."""
        return float(np.sum(np.abs(self.happened - self.predicted)) / self.count.sum())

    @property
    def sentence(self) -> str:
        """What the intervals mean, and what the expected calibration error does not."""
        if self.weighted:
            return f"{WEIGHTED} {BINNED}"
        return (
            f"Each bin has its own {100 * self.level:g} % Clopper-Pearson interval, valid {HELD_OUT}; "
            f"of {len(self.count)} bins some may miss by chance. {BINNED}"
        )

    def table(self) -> list[dict[str, float]]:
        """One row a bin: lower, upper, count, mean_prediction, observed_share, low, high."""
        low, high = self.interval or (np.full(len(self.count), np.nan),) * 2
        columns = {
            "lower": self.edges[:-1],
            "upper": self.edges[1:],
            "count": self.count,
            "mean_prediction": self.mean_prediction,
            "observed_share": self.observed_share,
            "low": low,
            "high": high,
        }
        return [dict(zip(columns, row, strict=True)) for row in np.column_stack(list(columns.values())).tolist()]

    def _by_count(self, sums: Array) -> Array:
        return np.asarray(np.where(self.count > 0, sums / np.where(self.count > 0, self.count, 1), np.nan))

    def __repr__(self) -> str:
        head = ("lower", "upper", "count", "mean_prediction", "observed_share", "low", "high")
        lines = ["".join(f"{name:>16}" for name in head)]
        lines += ["".join(f"{row[name]:16.4g}" for name in head) for row in self.table()]
        return "\n".join([*lines, f"expected calibration error {self.expected_calibration_error:.4g}"])


def calibration(
    y: Any,
    p: Any,
    bins: Any = 10,
    strategy: Strategy = "quantile",
    level: float = 0.95,
    *,
    sample_weight: Any = None,
    pos_label: Any = None,
) -> Calibration:
    """Is what was predicted with probability p seen in a share p of the rows?

    "quantile" bins hold equally many rows (fewer bins where predictions are equal), "uniform" bins are equally wide.
    `bins` is their number, or their edges from 0 to 1.

    >>> result = calibration([0, 0, 1, 0, 1, 1], [0.1, 0.2, 0.3, 0.7, 0.8, 0.9], bins=2)
    >>> result.mean_prediction.round(3), result.observed_share.round(3)
    (array([0.2, 0.8]), array([0.333, 0.667]))
    """
    truth, predicted = positives(y, p, pos_label)
    weight = row_weights(sample_weight, len(truth))
    return Calibration.of(truth, predicted, _edges(predicted, bins, strategy, weight), weight, level)


def _edges(p: Array, bins: Any, strategy: str, weight: Array | None) -> Array:
    if np.ndim(bins) == 1:
        edges = numbers(bins, "bins")
        if len(edges) < 2 or edges[0] != 0 or edges[-1] != 1 or not (np.diff(edges[1:]) > 0).all():
            raise ValueError(f"Edges of bins must rise from 0 to 1. Got {edges.tolist()}.")
        return edges
    if not isinstance(bins, int | np.integer) or bins < 1:
        raise ValueError(f"bins must be a whole number >= 1, or edges from 0 to 1. Got {bins!r}.")
    if strategy not in _STRATEGIES:
        raise ValueError(f"strategy must be 'quantile' or 'uniform'. Got {strategy!r}.")
    return np.asarray(_STRATEGIES[strategy](p, int(bins), weight))


def _quantiles(p: Array, bins: int, weight: Array | None) -> Array:
    """Inner edge k is the smallest prediction with a share k / bins of the weight at or below it."""
    order = np.argsort(p, kind="stable")
    below = np.arange(1.0, len(p) + 1) if weight is None else np.cumsum(weight[order])
    at = np.searchsorted(below, np.arange(1, bins) * below[-1] / bins)
    inner = np.unique(p[order][at])
    return np.array([0.0, *inner[inner < p.max()], 1.0])  # 0 may stand twice: a bin of zeros alone


_STRATEGIES = {"quantile": _quantiles, "uniform": lambda p, bins, weight: np.linspace(0.0, 1.0, bins + 1)}
