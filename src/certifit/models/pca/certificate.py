"""The certificate of principal components: computed from the rows and the directions alone.

Four claims, each relative, and the value is the worst of them:
    orthonormality   max |V'V - I|
    residual         max_i |A v_i - l_i v_i| / l_1: an eigenvalue of A lies within it of every l_i (A symmetric)
    missed variance  (sum of the k largest eigenvalues of A - trace V'AV) / trace A: by Ky Fan no k orthonormal
                     directions explain more than that sum
    centre, scale    |mean - the rows' own| / root of trace A, beyond the rounding of the numbers; scales likewise;
                     what else a model says of the scores: 2 where the sign of a direction is not the model's own
Where there is no matrix, the variance missed is what random directions find outside the span in a few products.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy.linalg

from certifit.data.columns import Array
from certifit.models.certificate import Certificate
from certifit.models.pca.task import Directions, VarianceTask
from certifit.runtime import one_blas_thread
from certifit.statistics.residual import TINY, UNIT

PROBES = 10  # random directions; a bound from them fails with probability 10^-PROBES
PROBE_PASSES = 4
PROBE_SEED = 20_06
MOST_DIGITS = 15.0


@dataclass(frozen=True)
class PCACertificate(Certificate):
    """The proof that goes with principal components.

    explained: the share of the variance that the directions explain. projection_error: mean squared distance of the
    rows from the plane, which is the sum of the variances dropped (divided by the sum of weights). gap: smallest
    variance kept less the largest dropped, relative to the largest. outside: with probability 1 - 1e-10 no direction
    outside the span explains more than this share of the variance; None where eigenvalues prove it.
    """

    rank: int = 0
    n_columns: int = 0
    residual: float = 0.0
    orthonormality: float = 0.0
    missed: float = 0.0
    placed: float = 0.0
    explained: float = 1.0
    projection_error: float = 0.0
    gap: float | None = None
    outside: float | None = None

    def sentences(self) -> list[str]:
        """The certificate in words."""
        if self.fault:
            return [self._first_sentence()]
        if self.holds and not self.rank and self.outside is None:
            return self._still_sentences()
        k = len(self.names)
        what = "this direction" if k == 1 else f"these {k} directions"
        facts = (
            f"|Av - lambda v| is at most {self.residual:.1e} of the largest variance, "
            f"the directions are orthonormal to {self.orthonormality:.1e}"
        )
        compared = "the best could add" if self.outside is None else "random probes found"
        missed = f"{compared} {self.missed:.1e} of the variance to what {what} explain{'s' if k == 1 else ''}"
        head = "Converged" if self.holds else f"NOT certified to {self.tolerance:.0e}"
        placed = "" if self.placed <= self.tolerance else f"; centre, scale or signs are off by {self.placed:.1e}"
        explain = (
            f"{'It explains' if k == 1 else 'They explain'} {100 * self.explained:.4g} % of the variance; the mean"
        )
        second = f"{explain} squared projection error is {self.projection_error:.4g}, the sum of the variances dropped."
        return [f"{head}: {facts}; {missed}{placed}.", second, *self._gap_sentences(), *self._digit_sentences()]

    def _still_sentences(self) -> list[str]:
        """Of rows that do not vary: a share of a variance that is rounding would say nothing."""
        first = (
            "Converged: the rows do not vary beyond the rounding of their largest entries, so every direction has "
            f"variance 0 to that rounding; the directions are orthonormal to {self.orthonormality:.1e}."
        )
        return [first, *self._digit_sentences()]

    def _gap_sentences(self) -> list[str]:
        out = []
        if self.outside is not None:
            out.append(
                f"No matrix was held. With probability 1 - 1e-{PROBES} no direction outside explains more than "
                f"{100 * self.outside:.3g} % of the variance."
            )
        if len(self.names) > self.rank:
            out.append(
                f"The rows vary in {self.rank} directions only, beyond the rounding of their largest entries; the "
                "other components have variance 0 to that rounding."
            )
        elif len(self.names) == self.rank < self.n_columns and 1 - self.explained > self.value:
            several = f"{self.rank} direction{'s' * (self.rank != 1)}"
            out.append(
                f"The rows vary in {several} beyond the rounding of their largest entries. What they vary in others, a "
                f"variance of {self.projection_error:.4g} in sum, is within that rounding and left out. If it matters, "
                "give columns without their offset."
            )
        if self.gap is not None and self.gap <= self.rounding + self.residual:
            out.append(
                "The smallest variance kept equals the largest dropped to rounding: which directions of that variance "
                "are kept is not determined by the data."
            )
        return out

    def _digit_sentences(self) -> list[str]:
        proven = [pair for pair in zip(self.digits, self.names, strict=True) if pair[0] > 0]
        out = []
        if proven:
            fewest, worst = min(proven)
            which = "every direction" if len(proven) == len(self.digits) else f"{len(proven)} of {len(self.digits)}"
            out.append(f"Correct digits proven: at least {math.floor(fewest)} in {which} (fewest: {worst!r}).")
        unknown = [repr(name) for digits, name in zip(self.digits, self.names, strict=True) if not digits > 0]
        if unknown:
            shown = ", ".join(unknown[:10]) + (", ..." if len(unknown) > 10 else "")
            out.append(
                f"No digit is proven for {shown}: a variance that others equal, or 0, has no direction of its own."
            )
        return out


def unproven_directions(variances: Array, total: float, n_columns: int) -> dict[str, object]:
    """What a certificate without a proof says of directions: how many, and the share that they explain."""
    k, kept = len(variances), float(variances.sum())
    return {
        "rank": k,
        "n_columns": n_columns,
        "condition": math.inf,
        "names": tuple(f"pca{i}" for i in range(k)),
        "digits": (0.0,) * k,
        "orthonormality": math.inf,
        "explained": min(kept / total, 1.0) if total > 0 else 1.0,
        "projection_error": max(total - kept, 0.0),
    }


@one_blas_thread
def certify(task: VarianceTask, state: Directions, tolerance: float, placed: float = 0.0) -> PCACertificate:
    """How far the directions are from the best; no solver takes part. placed: how far what scores are made of is."""
    with np.errstate(all="ignore"):  # what leaves the range is infinitely far off
        return _certified(task, state, tolerance, placed)


def _certified(task: VarianceTask, state: Directions, tolerance: float, placed: float) -> PCACertificate:
    V = np.ascontiguousarray(state.components.T)
    d, k = V.shape
    # The factor is 0 where squares of such numbers are none in float64: a variance of 0 is still 0.
    stated = np.divide(state.variances, task.factor, out=np.zeros(k), where=state.variances != 0)
    task.refine_for(float(stated[stated > 0].min(initial=task.total)))
    probes = _probes(V) if task.eigenvalues() is None else np.zeros((d, 0))
    AV, probed = np.hsplit(task.product(np.hstack([V, probes])), [k])  # one reading of the matrix, or rows, for both
    variances = np.einsum("ij,ij->j", V, AV)  # v'Av
    scale = max(float(variances.max()), TINY)
    residuals = np.linalg.norm((AV - V * stated) / scale, axis=0) * scale  # squares of small ones would vanish
    surely = scale - task.error  # the largest variance is at least this
    residual = float(np.nan_to_num(residuals, nan=np.inf).max()) / surely if surely > 0 else np.inf
    orthonormality = float(np.abs(V.T @ V - np.eye(k)).max())
    explained = float(variances.sum())
    outside = _rest(task, V, AV, probed)
    rounding = (task.error + 4 * UNIT * math.sqrt(d) * scale) / scale + outside.rounding + TINY
    missed = max(outside.best - explained, 0.0) / max(task.total, TINY)
    placed = max(placed, _misplaced(task, state))
    error = max(task.total - explained, 0.0) * float(np.float64(task.unit) ** 2)
    if not variances.max() > 0 and task.error > 0:  # no share of a largest variance that may be 0 is known
        rounding = np.inf
    off = np.array([residual, orthonormality, missed, placed, rounding])
    return PCACertificate(
        claim="worst of residual, orthonormality, missed variance, centre",
        theorem="Ky Fan: no k orthonormal directions explain more than the k largest eigenvalues",
        value=np.inf if np.isnan(off).any() else float(off[:-1].max()) + rounding,
        tolerance=tolerance,
        rounding=rounding,
        rank=_rank(task, task.eigenvalues(), stated),
        n_columns=d,
        condition=float(np.sqrt(scale / max(variances.min(), TINY))),
        names=tuple(f"pca{i}" for i in range(k)),
        digits=tuple(_digits(stated, outside.largest, residuals + task.error + UNIT * scale, k < d)),
        residual=residual,
        orthonormality=orthonormality,
        missed=missed,
        placed=placed,
        explained=explained / task.total if task.total > 0 else 1.0,
        projection_error=error,
        gap=(float(variances.min()) - outside.next_value) / scale if k < d else None,
        outside=outside.outside,
    )


@dataclass(frozen=True)
class _Rest:
    """What lies outside the span: best, the variance of the k best directions; next_value, the largest found outside.

    largest: a bound on it. outside: the same as a share of the total, where it holds but with small probability.
    rounding: what eigenvalues add to that of the certificate.
    """

    best: float
    next_value: float
    largest: float
    outside: float | None
    rounding: float


def _rest(task: VarianceTask, V: Array, AV: Array, probed: Array) -> _Rest:
    k, values = V.shape[1], task.eigenvalues()
    if values is None:
        Q, AQ, outside = _probed(task, V, probed)
        inside, between, beyond = V.T @ AV, V.T @ AQ, Q.T @ AQ
        # The span's best k directions of both together: a direction found may lie partly in the span already.
        best = float(_eigenvalues(np.block([[inside, between], [between.T, beyond]]))[:k].sum())
        next_value = float(_eigenvalues(beyond).max(initial=0.0))
        return _Rest(best, next_value, outside * task.total, outside, 0.0)
    scale = max(float(np.einsum("ij,ij->j", V, AV).max()), TINY)
    rounding = math.sqrt(k) * (2 * task.error + 4 * len(values) * UNIT * scale) / max(task.total, TINY)
    next_value = float(values[k]) if len(values) > k else 0.0
    return _Rest(float(values[:k].sum()), next_value, next_value, None, rounding)


def _misplaced(task: VarianceTask, state: Directions) -> float:
    """How far the centre is from the rows' own, in units of their spread, and the scales, relative."""
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        step = np.abs(state.mean - task.mean)
        step = np.maximum(step - 4 * UNIT * np.maximum(np.abs(state.mean), np.abs(task.mean)), 0.0)
        off = float(np.linalg.norm(step / task.unit / task.scale)) / math.sqrt(max(task.total, TINY))
        stretched = float(np.abs(state.scale / task.scale - 1).max(initial=0.0))
    return max(off, stretched)


def _rank(task: VarianceTask, values: Array | None, stated: Array) -> int:
    """Directions in which the rows vary: those stated, or eigenvalues above their rounding where these are more."""
    visible = int(np.count_nonzero(np.sqrt(stated) > task.noise))
    return visible if values is None else max(visible, int(np.count_nonzero(values > max(task.noise**2, task.error))))


def _digits(values: Array, beyond: float, errors: Array, has_more: bool) -> Array:
    """-log10 of the sine of the angle to the true direction, at most residual / gap to the other eigenvalues."""
    distance = np.abs(values[:, None] - values[None, :])
    np.fill_diagonal(distance, np.inf)
    gap = distance.min(axis=1, initial=np.inf)
    if has_more:
        gap = np.minimum(gap, values - beyond)
    gap = gap - errors
    with np.errstate(divide="ignore", invalid="ignore"):
        digits = -np.log10(errors / gap)
    return np.where((gap > errors) & (values > 0), np.clip(digits, 0.0, MOST_DIGITS), 0.0)


def _probes(V: Array) -> Array:
    """Random directions outside the span of V."""
    d, k = V.shape
    w = np.random.default_rng(PROBE_SEED).standard_normal((d, max(min(PROBES, d - k), 0)))
    return np.asarray(w - V @ (V.T @ w))


def _probed(task: VarianceTask, V: Array, image: Array) -> tuple[Array, Array, float]:
    """Directions Q that random ones lead to outside the span of V, AQ, and a bound on the largest variance outside.

    image: A times `_probes(V)`. The bound is a share of the total. B = (I - VV')A(I - VV'). For Gaussian w_1 .. w_r
    the norm of B^q is at most 10 sqrt(2/pi) max |B^q w_i| but with probability 10^-r (Halko, Martinsson and Tropp
    2011, lemma 4.1).
    """
    d, k = V.shape
    r = image.shape[1]
    if r == 0:
        return np.zeros((d, 0)), np.zeros((d, 0)), 0.0
    w = _probes(V) if r == d - k else np.zeros((d, r))
    size = np.zeros(r)  # logarithm of |B^q w|
    for step in range(PROBE_PASSES if r < d - k else 0):
        image = image if step == 0 else task.product(w)
        image = image - V @ (V.T @ image)
        norms = np.maximum(np.linalg.norm(image, axis=0), TINY)
        size += np.log(norms)
        w = image / norms
    basis = np.asarray(scipy.linalg.qr(w, mode="economic")[0])
    basis -= V @ (V.T @ basis)
    images = task.product(basis)
    bound = math.exp((math.log(10 * math.sqrt(2 / math.pi)) + float(size.max())) / PROBE_PASSES)
    if r == d - k:  # they span all that is outside
        bound = float(_eigenvalues(basis.T @ images)[0]) + task.error
    return basis, images, min(bound / max(task.total, TINY), 1.0)


def _eigenvalues(A: Array) -> Array:
    """Eigenvalues of A, symmetric but for rounding, none below 0, the largest first."""
    return np.asarray(np.maximum(np.linalg.eigvalsh((A + A.T) / 2)[::-1], 0.0))
