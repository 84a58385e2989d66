"""The bound of self-concordance: for losses with |l'''| <= M l'' the curvature at a point bounds the objective below.

Along any line the curvature of the objective f changes by no more than a factor e^(M |change of a score|). With g and H
at a point, lambda^2 = g'H^-1 g, |change of a score| <= R/M |step|_H and q = R lambda:

    q < 1  =>  a minimum exists, and f - min f <= [q + (1 - q) log(1 - q)] / R^2 = lambda^2 / 2 (1 + q/3 + ...)

Any larger R or lambda proves as well.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

import numpy as np

from certifit.data.columns import Array
from certifit.data.source import Block
from certifit.models.glm.softmax_task import GlmOrSoftmaxTask
from certifit.models.glm.task import GlmTask
from certifit.statistics.factor import DEPENDENT, FLAT, Curvature
from certifit.statistics.gram import gram
from certifit.statistics.loss_sums import At, scores_of
from certifit.statistics.remainders import Remainders, column_factor, remainders
from certifit.statistics.residual import TINY

LEAST_SIZE = float(np.sqrt(TINY))  # its square is no less than TINY
NEAR = 10 * math.sqrt(FLAT)  # a column closer than this, relative, to the span of others may make a Hessian flat
SERIES = 0.1  # below it the bound is summed as a series, where nothing cancels


def relative_to(excess: float, scale: float) -> float:
    """excess / scale, infinite where it overflows or one of them is not known; 0 where there is none of both."""
    if excess == scale == 0:
        return 0.0
    with np.errstate(all="ignore"):
        ratio = float(np.float64(excess) / np.float64(scale))
    return ratio if np.isfinite(scale) and not np.isnan(ratio) else np.inf


@dataclass(frozen=True)
class Decrement:
    """lambda and R at a state, both at least what they are, and what rounding adds to lambda."""

    value: float
    rounding: float
    reach: float

    @property
    def q(self) -> float:
        """R lambda."""
        return self.reach * (self.value + self.rounding)

    def is_far(self, aim: float) -> bool:
        """Whether the state itself, not rounding, is what keeps the excess above an aim."""
        return bool(np.isfinite(self.value) and self.value > self.rounding and self.value * self.value / 2 > aim)

    def allowance(self, scale: float) -> float:
        """What rounding adds to lambda^2 / 2, relative to a scale."""
        if not self.value < np.inf:
            return np.inf
        return relative_to((self.value + self.rounding / 2) * self.rounding, scale) + TINY

    def estimate(self) -> float:
        """lambda^2 / 2, where nothing is proven. A product that leaves float64 is infinite, a power raises."""
        size = self.value + self.rounding
        return size * size / 2

    def excess(self) -> float:
        """The bound on f - min f; infinite where it proves nothing. Squares below the range of float64 are not 0."""
        size = self.value + self.rounding
        if not self.q < 1:
            return np.inf
        if 0 < size < LEAST_SIZE:
            return TINY
        if self.q < SERIES:  # sum over k >= 2 of q^k / (k (k - 1)), over R^2; what is left after q^12 is below 1e-12
            return size * size * sum(self.q ** (k - 2) / (k * (k - 1)) for k in range(2, 14)) * (1 + 1e-11)
        return (self.q + (1 - self.q) * float(np.log1p(-self.q))) / self.reach**2


# Self-concordance near the scores of the rows, for convex losses that have no M for all scores.
#
# Let |l'''| <= M l'' for scores no further than `room` from those of the rows at the state, R = M max_i |(x_i,
# 1)|_{H^-1} and q = R lambda < 1, as in certificate.py. On the way to a point at the distance s from the state, in
# the norm of H, every score moves by at most R s / M. The slope along any such way is at least -lambda + (1 - e^(-R
# s)) / R, which is >= 0 from s = -log(1 - q) / R on. So the minimum lies within that distance, and the bound with
# this M holds, if scores move by no more than room on it:
#
#     -log(1 - q) / M <= room

ROOMS = (0.5, 0.05, 0.005)  # the first whose scores are all legal; then half of what is left to the nearest end


@dataclass(frozen=True)
class NearScores:
    """M for scores within `room` of those of the rows."""

    concordance: float
    room: float

    def covers(self, q: float) -> bool:
        """Whether a proof with this M stays where it holds."""
        is_near = math.isinf(self.room) or (q < 1 and -math.log1p(-q) <= self.concordance * self.room)
        return bool(0 <= q < 1) and is_near


def near_scores(task: GlmOrSoftmaxTask, point: Array) -> NearScores | None:
    """M near the rows at a point: one pass over the scores. None where the loss has none, or is not convex."""
    if not task.loss.is_convex:
        return None
    if task.loss.concordance is not None:
        return NearScores(task.loss.concordance, math.inf)
    assert isinstance(task, GlmTask)  # softmax has one
    loss = task.loss
    ends = score_ends(task, point)
    if ends is None:
        return None
    (low, high), (least, most) = ends, getattr(loss, "scores", (-math.inf, math.inf))
    for room in (*ROOMS, min(low - least, most - high) / 2):
        if not room > 0:
            continue
        constant = loss.concordance_on(low - room, high + room)
        if constant is None:
            return None
        if constant < math.inf:
            return NearScores(max(constant, 1e-300), room)
    return None


def score_ends(task: GlmTask, point: Array) -> tuple[float, float] | None:
    """The least and the largest score of the rows that count: a pass. None where there are none."""
    ends = [run for run in task.source.map(partial(_ends, at=task.at(point))) if run is not None]
    return (min(low for low, _ in ends), max(high for _, high in ends)) if ends else None


def _ends(run: Block, at: At) -> tuple[float, float] | None:
    z = scores_of(run, at.scaling, at.weights, at.intercept)
    z = z if run.weight is None else z[run.weight > 0]
    return (float(np.min(z)), float(np.max(z))) if len(z) else None


# Directions along which an objective does not curve, and those along which nothing changes at all.
#
# A certificate may leave out a direction without curvature only if it changes no score and no penalty. Penalties too
# weak to be seen in the Hessian are left out of the objective first: they are >= 0, so the minimum is not below that
# of the rest, and what they cost at the state is added to the excess.
#
# Columns without a penalty that counts are then looked at in more bits (statistics/remainders.py): those that are
# combinations of others to the last bit change no score. Others are left out only where it is said what that costs.

WEAK = 1e-10  # of the curvature of a column


def is_weak(l2: Array, curvature: Array) -> Array:
    """Which strengths are > 0 and do not settle what the columns leave open."""
    return np.asarray((l2 > 0) & (l2 <= WEAK * curvature))


@dataclass(frozen=True)
class Related:
    """Columns that are nearly combinations of others. columns: their places; found: what is left of them."""

    columns: Array
    found: Remainders
    names: list[str]

    @property
    def is_exact(self) -> bool:
        """Whether all are combinations of others to the last bit."""
        return bool(self.found.is_exact.all())

    @property
    def is_apart(self) -> bool:
        """Whether one differs from a combination by more than the rounding of its entries."""
        return bool(self.found.is_apart.any())

    def kept(self, size: int) -> Array:
        """The entries of a point that are left, the intercept's last."""
        return np.setdiff1d(np.arange(size), self.columns)

    def fault(self) -> str:
        """What is wrong with columns that are apart, and what to do."""
        i = int(np.flatnonzero(self.found.is_apart)[0])
        others = ", ".join(repr(self.names[k]) for k in np.flatnonzero(self.found.times[0][i])[:3]) or "a constant"
        name = self.names[self.found.columns[i]]
        return (
            f"column {name!r} is a combination of {others} but for {max(self.found.size[i], 1e-300):.0e} of its size, "
            "which is more than rounding: what it adds is lost in the rounding of the scores. Replace it by its "
            "difference from that combination, or leave it out."
        )


def related(task: GlmOrSoftmaxTask, firm: Array, hessian: Array | None = None) -> Related | None:
    """Columns that are nearly combinations of others without a penalty that counts; None where there are none.

    Those that differ from one by more than rounding are looked for where a Hessian is flat without the others.
    """
    free, columns = np.flatnonzero(~firm), task.columns_of(firm)
    if columns is None:
        return None
    source, found = columns.source, columns.remainders
    kept = np.delete(np.arange(task.shape[0]), [] if found is None else free[found.columns])
    places = np.arange(task.size).reshape(task.shape)[kept].ravel()
    if hessian is not None and Curvature(hessian[np.ix_(places, places)]).n_flat:
        sums = gram(source, task.fit_intercept, twofold=True)
        factor = column_factor(sums, task.fit_intercept, NEAR / DEPENDENT)
        if len(factor.dependent):
            near = remainders(source, factor, sums.scaling, task.fit_intercept)
            found = near if near.is_apart.any() else found
    return None if found is None else Related(free[found.columns], found, list(source.names))
