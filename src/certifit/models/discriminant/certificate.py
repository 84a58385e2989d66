"""The certificate of Gaussian classes: how far the likelihood is from its maximum, every stored number from the best.

    nats    sum_k p^_k log(p^_k / p_k) + max_k [ trace(M_k) - log det(I + M_k) + |T_k (m^_k - m_k)|^2 ] / 2,
            M = T S^ T' - I,  S^-1 = T'T
    error   |p_k / p^_k - 1|,  |m_kj - m^_kj| by the larger of |m^_kj| and sqrt(S^_jj),
            |S_ij - S^_ij| / sqrt(S^_ii S^_jj), the largest of all

The classes' own divergences weigh p^_k in the mean over the rows: the largest is at least that, and leaves no class of
few rows unseen. M is that of the roots T, which predict: S = (T'T)^-1 has digits that float64 entries do not hold.
The closed form of the sums tells both while their roundings are small; otherwise the rows are read once more, about the
state, where nothing cancels (`statistics.class_moments`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular

from certifit.data.columns import Array
from certifit.models.discriminant.likelihood import (
    CLAIM,
    THEOREM,
    TREATING,
    LikelihoodCertificate,
    chance_rounding,
    shortfall,
)
from certifit.models.discriminant.task import DiagonalCovariance, FullCovariance, GaussianState, GaussianTask
from certifit.runtime import one_blas_thread
from certifit.statistics.class_moments import StateMoments, plain_numbers, remainders, state_moments
from certifit.statistics.residual import MATRIX_ERROR, TINY, TWOFOLD_UNIT, UNIT

SPACING = 2.0**-1074  # distance of the numbers below the range in which float64 keeps all its digits
ASK = 1e-10  # error of the sums above which the rows are read again, about the state


@dataclass(frozen=True)
class _Off:
    """Bounds on both numbers, and what of them may be the arithmetic's own. mean: nats over all rows."""

    mean: float
    nats: float
    nats_rounding: float
    error: float
    error_rounding: float

    @property
    def rounding(self) -> float:
        return self.nats_rounding + self.error_rounding


@one_blas_thread
def certify_gaussian(task: GaussianTask, state: GaussianState, tolerance: float) -> LikelihoodCertificate:
    """How far the state of Gaussian classes is from the best."""
    best = task.solve()
    fault, treated = "", ""
    if best.redundant != state.redundant:
        fault = "Other columns are left out than those that say nothing more."
    elif not _uses_the_others(state):
        fault = "The roots of some class leave out other columns than those that say nothing more."
    elif state.redundant:
        fault, treated = _left_out(task)
    with np.errstate(all="ignore"):
        off = _by_sums(task, best, state)
        if task.rows is not None and not fault and not off.rounding <= ASK:
            off = _by_rows(task, best, state)
    coarse = _coarseness(state)
    value = max(off.nats, off.error + coarse) + TINY
    return LikelihoodCertificate(
        claim=CLAIM,
        theorem=THEOREM,
        value=np.inf if fault or np.isnan(value) else value,
        tolerance=tolerance,
        rounding=off.rounding + coarse + TINY if np.isfinite(off.rounding) else np.inf,
        rank=len(task.names) - len(state.redundant),
        n_columns=len(task.names),
        condition=task.condition,
        dependent=tuple(task.names[j] for j in state.redundant),
        kind=task.kind + treated,
        fault=fault,
        shortfall=off.mean + TINY,
        error=off.error + coarse,
    )


def _coarseness(state: GaussianState) -> float:
    """What a variance near the end of float64's range loses when it is stored: an entry and its parts, each rounded."""
    spreads = _standard_deviations(state)
    return 4 * SPACING / float(np.square(spreads[spreads > 0]).min(initial=1.0))


def _uses_the_others(state: GaussianState) -> bool:
    """Whether the roots of every class are 0 in the columns that are left out, and in no others."""
    sizes = state.roots[:, 0] if state.roots.shape[1] == 1 else np.diagonal(state.roots, axis1=1, axis2=2)
    wanted = np.isin(np.arange(state.roots.shape[2]), state.redundant, invert=True)
    return bool(((sizes != 0) == wanted).all()) and not state.roots[:, :, ~wanted].any()


def _left_out(task: GaussianTask) -> tuple[str, str]:
    """Why columns that are left out may say more after all; or how they are treated, where not to the last bit."""
    assert task.relations is not None
    columns, others, times = task.relations
    if task.rows is None:
        return "", ""
    sizes = remainders(task.rows, columns, others, times)
    if (sizes > 0).any():
        sizes = np.minimum(sizes, remainders(task.rows, columns, others, plain_numbers(times)))
    if (sizes > 1).any():
        worst = int(np.argmax(sizes))
        return (
            f"Column {task.names[columns[worst]]!r} is left out as constant or a combination of the columns before it, "
            f"but its entries differ from that by up to {sizes[worst]:.3g} times their rounding, which may say more "
            "about the class. Subtract from it what it repeats, or drop it."
        ), ""
    names = [repr(task.names[j]) for j in columns[sizes > 0]]
    if not names:
        return "", ""
    shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    return "", f"{TREATING}{shown} as constant or a combination of others, but for the rounding of its entries,"


def _by_sums(task: GaussianTask, best: GaussianState, state: GaussianState) -> _Off:
    """From the difference of the state and the closed form of the sums."""
    nats, by_class = shortfall(best.priors, state.priors), []
    is_one = len(best.roots) == 1
    divergences = [_root_divergence(right, wrong) for right, wrong in zip(best.roots, state.roots, strict=True)]
    for k, root in enumerate(state.class_roots()):
        step = best.means[k] - state.means[k]
        away = root[0] * step if len(root) == 1 else root @ step
        by_class.append(float(away @ away) / 2 + divergences[0 if is_one else k])
    mean, nats = nats + float(best.priors @ by_class), nats + max(by_class)
    moved = _rounding(task, state)  # a square, as the value is: their roots add
    rounding = moved + chance_rounding(np.log(best.priors))
    spreads = _standard_deviations(best)
    errors = _mean_error(best.means - state.means, best.means, spreads), _prior_error(best.priors, state.priors)
    error = max(*errors, _covariance_error(best.covariance, state.covariance, spreads[0] if is_one else spreads))
    lost = _sum_error(task)
    mean, nats = (value + 2 * (value * moved) ** 0.5 + rounding for value in (mean, nats))
    return _Off(mean, nats, rounding, error + lost, lost)


def _by_rows(task: GaussianTask, best: GaussianState, state: GaussianState) -> _Off:
    """From moments of the rows about the state itself."""
    about = _About.of(task, best, state)
    shares = task.priors[None, :] if len(state.roots) == 1 else np.eye(len(task.priors))
    stated = state.covariance[None] if len(state.roots) == 1 else state.covariance
    stated = stated.reshape(-1, 1) if len(task.names) == 1 else stated  # of one column, variances
    parts = [
        about.covariance(task, *parts_of_class)
        for parts_of_class in zip(shares, state.roots, stated, strict=True)
        if about.seen[parts_of_class[0] > 0].any()
    ]
    most, least, wrong, lost, spreads = (np.array(parts_of_class) for parts_of_class in zip(*parts, strict=True))
    priors, chance = shortfall(best.priors, state.priors), chance_rounding(np.log(best.priors))
    means = ((np.sqrt(about.away) + about.lean_error) ** 2 / 2)[about.seen]
    nats = priors + chance + float(most.max() + means.max())
    weights = best.priors[about.seen]
    mean = priors + chance + float(weights @ means + (most[0] if len(most) == 1 else weights @ most))
    floor = priors + float(least.max() + (about.away / 2)[about.seen].max())
    of_priors, of_unseen = _prior_error(best.priors, state.priors), about.unseen(best, state)
    errors = about.mean_error(spreads), of_priors, of_unseen, float(wrong.max())
    rounding = float(lost.max()) + 4 * MATRIX_ERROR
    return _Off(mean, nats, nats - floor, max(errors) + rounding, rounding)


@dataclass(frozen=True)
class _About:
    """Moments about the state, of classes with rows; all in scaled units.

    away: |lean|^2. lean_error, lost: bounds on the errors of lean and of whitened - lean lean' in their norms.
    """

    sums: StateMoments
    scale: Array
    means: Array
    seen: Array
    away: Array
    lean_error: Array
    lost: Array

    @staticmethod
    def of(task: GaussianTask, best: GaussianState, state: GaussianState) -> _About:
        assert task.rows is not None and task.cells is not None
        scale, has_rows = task.moments.scaling.scale, task.moments.weight > 0
        roots, means = state.class_roots() / scale, state.means * scale
        spreads = np.broadcast_to(_standard_deviations(best) * scale, means.shape)
        weight = np.where(has_rows, task.moments.weight, 1.0)
        sums = state_moments(task.rows, task.cells, task.moments.scaling, weight, means, roots, spreads)
        is_square = roots.shape[1] > 1
        traces = np.trace(sums.whitened, axis1=1, axis2=2) if is_square else sums.whitened.sum(axis=1)
        size = np.sqrt(_diagonals(sums.spread, is_square))
        terms = np.einsum("kij,kj->ki", np.abs(roots), size) if is_square else np.abs(roots[:, 0]) * size
        unit = TWOFOLD_UNIT if sums.is_twofold else UNIT
        noise = 4 * means.shape[1] * unit * np.sqrt((terms**2).sum(axis=1)) + UNIT * np.sqrt(traces)
        away = (sums.lean**2).sum(axis=1)
        lean_error = MATRIX_ERROR * np.sqrt(traces) + noise
        lost = MATRIX_ERROR * traces + (2 * np.sqrt(traces) + noise) * noise
        lost = lost + (2 * np.sqrt(away) + lean_error) * lean_error
        return _About(sums, scale, means, has_rows, away, lean_error, lost)

    def covariance(self, task: GaussianTask, shares: Array, root: Array, stated: Array) -> tuple[object, ...]:
        """Of one covariance: its divergence at most and at least, the error of its entries, and that of the latter.

        Last, the standard deviations of the best covariance at least.
        """
        sums, s, is_square = self.sums, task.shrinkage, len(root) > 1
        C = np.tensordot(shares, sums.spread - _outer(sums.step, is_square), 1)
        squares = np.tensordot(shares, _diagonals(sums.spread, is_square), 1)
        if _is_diagonal(task) and task.relations is not None:
            # Columns left out are constant, by their entries; their means are rounded.
            C[task.relations[0]] = 0.0
            squares = squares * (np.isin(np.arange(len(squares)), task.relations[0], invert=True))
        A = np.tensordot(shares, sums.whitened - _outer(sums.lean, is_square), 1)
        ridge, T = task.ridge(_diagonals(C, is_square)), root / self.scale
        added = (T * ridge) @ T.T if is_square else T[0] ** 2 * ridge
        ridge_error = task.ridge_error() if ridge.any() else 0.0
        e = (1 - s) * float(shares @ self.lost) + ridge_error * float(np.linalg.norm(added))
        used = np.diagonal(root) != 0 if is_square else root[0] != 0
        M = (1 - s) * A + added
        mu = _eigenvalues((M - np.eye(len(M)))[np.ix_(used, used)]) if is_square else (M - 1)[used]
        wanted = (1 - s) * C + (np.diag(ridge) if is_square else ridge)
        units = self.scale * self.scale[:, None] if is_square else self.scale * self.scale
        sizes = np.sqrt(np.maximum(_diagonals(wanted, is_square), 0.0))
        wrong = _covariance_error(wanted, stated * units, sizes)
        lost = 4 * MATRIX_ERROR * float(_ratios(squares, sizes**2).max(initial=1.0)) + ridge_error
        least = np.sqrt(np.maximum((1 - ridge_error) * sizes**2 - 4 * MATRIX_ERROR * squares, 0.0))
        return _worst_of_eigenvalues(mu, e), _of_eigenvalues(mu), wrong, lost, least

    def mean_error(self, spreads: Array) -> float:
        """Of the means, by the larger of their size and the standard deviation of the best covariance of the class."""
        step = self.sums.step[self.seen]
        return _mean_error(step, self.means[self.seen] + step, spreads)

    def unseen(self, best: GaussianState, state: GaussianState) -> float:
        """Classes without rows have the parameters that the closed form gives them."""
        blank = ~self.seen
        same = np.array_equal(best.means[blank], state.means[blank])
        if len(best.roots) == len(blank):
            same &= np.array_equal(best.covariance[blank], state.covariance[blank])
            same &= np.array_equal(best.roots[blank], state.roots[blank])
        return 0.0 if same else np.inf


def _is_diagonal(task: GaussianTask) -> bool:
    return isinstance(task, DiagonalCovariance)


def _ratios(a: Array, b: Array) -> Array:
    """a / b, and 0 for 0 / 0."""
    return np.asarray(np.divide(a, b, out=np.zeros(np.shape(a)), where=a != 0))


def _outer(vectors: Array, is_square: bool) -> Array:
    return np.asarray(vectors[:, :, None] * vectors[:, None, :] if is_square else vectors * vectors)


def _diagonals(matrices: Array, is_square: bool) -> Array:
    return np.diagonal(matrices, axis1=-2, axis2=-1) if is_square else matrices


def _standard_deviations(state: GaussianState) -> Array:
    """Of every class; one row where they share a covariance."""
    if state.means.shape[1] == 1:
        return np.asarray(np.sqrt(np.maximum(state.covariance.reshape(-1, 1), 0.0)))
    is_square = state.roots.shape[1] > 1
    return np.asarray(np.sqrt(np.maximum(np.atleast_2d(_diagonals(state.covariance, is_square)), 0.0)))


def _prior_error(right: Array, wrong: Array) -> float:
    return float(np.where(right == wrong, 0.0, np.abs(wrong - right) / right).max())


def _mean_error(step: Array, means: Array, spreads: Array) -> float:
    sizes = np.maximum(np.abs(means), spreads)
    return float(np.where(step == 0, 0.0, np.abs(step) / sizes).max(initial=0.0))


def _covariance_error(right: Array, wrong: Array, sizes: Array) -> float:
    """Largest |difference| / (size_i size_j): matrices and vectors of variances, of one class or of each."""
    by = sizes[..., :, None] * sizes[..., None, :] if right.ndim > sizes.ndim else sizes * sizes
    return float(np.where(right == wrong, 0.0, np.abs(right - wrong) / by).max(initial=0.0))


def _eigenvalues(matrix: Array) -> Array:
    if not np.isfinite(matrix).all():
        return np.full(len(matrix), -np.inf)
    return np.asarray(np.linalg.eigvalsh((matrix + matrix.T) / 2))


def _root_divergence(right: Array, wrong: Array) -> float:
    """The same for M = LL' - I, L = T T^^-1: from the difference of the roots, which loses nothing to the condition."""
    if np.array_equal(right, wrong):
        return 0.0
    if len(right) == 1:
        used = right[0] != 0
        step = (wrong[0] - right[0])[used] / right[0][used]
        return _of_eigenvalues(step * (2 + step)) if not wrong[0][~used].any() else np.inf
    used = np.diagonal(right) != 0
    inside = np.ix_(used, used)
    if wrong[~used].any() or wrong[:, ~used].any() or not np.isfinite(wrong).all():
        return np.inf
    step = solve_triangular(right[inside], (wrong - right)[inside].T, lower=True, trans="T").T  # L - I
    return _of_eigenvalues(_eigenvalues(step + step.T + step @ step.T))


def _worst_of_eigenvalues(mu: Array, error: float) -> float:
    """`_of_eigenvalues` at most, where each may be off by so much: the function is convex."""
    if not (mu - error > -1).all() or np.isnan(error):
        return np.inf
    return float(np.maximum(_divergences(mu - error), _divergences(mu + error)).sum())


def _of_eigenvalues(mu: Array) -> float:
    """[trace M - log det(I + M)] / 2 from the eigenvalues of M."""
    return float(_divergences(mu).sum()) if (mu > -1).all() else np.inf


def _divergences(mu: Array) -> Array:
    small = np.abs(mu) < 1e-4
    return np.asarray(np.where(small, mu * mu * (0.5 - mu / 3 + mu * mu / 4), mu - np.log1p(mu)) / 2)


def _sum_error(task: GaussianTask) -> float:
    """What the roundings of the sums can add to the error of a mean or a covariance."""
    has_ridge = task.shrinkage > 0 or bool(np.any(task.added))
    ridge = task.ridge_error() if has_ridge else 0.0
    if isinstance(task, DiagonalCovariance):
        return _variance_error(task) + ridge
    assert isinstance(task, FullCovariance)
    variances = np.diagonal(task.moments.scatter, axis1=1, axis2=2) / task.moments.weight[:, None]
    spreads, away = np.sqrt(np.maximum(variances, 0.0)), np.abs(task.moments.away)
    unit = MATRIX_ERROR if task.moments.low is None else 4 * UNIT
    if task.is_shared:
        spreads, away = np.sqrt(task.priors @ spreads**2), np.sqrt(task.priors @ away**2)
    # Where nothing is left of a variance, what is added to it alone stands against the rounding of its sums; columns
    # that are left out as constant have none, by their entries.
    best = task.solve()
    sizes = _standard_deviations(best) * task.moments.scaling.scale
    spreads = np.where(spreads > 0, spreads, sizes if has_ridge else 0.0)
    away = np.where((sizes == 0) & np.isin(np.arange(len(task.names)), best.redundant), 0.0, away)
    return float(unit * (1 + _ratios(away, spreads) ** 2).max(initial=1.0)) + ridge


def _variance_error(task: DiagonalCovariance) -> float:
    """Of variances, relative: the error of their sums of squares, and of means that were rounded."""
    moments, best = task.moments, task.solve()
    has_rows, used = moments.weight > 0, np.isin(np.arange(len(task.names)), best.redundant, invert=True)
    squares = (moments.squares[has_rows] / moments.weight[has_rows][:, None])[:, used]
    spreads = (np.sqrt(best.covariance[has_rows]) * moments.scaling.scale)[:, used]
    lost = MATRIX_ERROR * _ratios(squares, spreads**2)
    rounded = 8 * UNIT * np.abs(moments.shift[has_rows][:, used])  # of rows that came in parts: their means are rounded
    return float((lost + rounded / spreads).max(initial=MATRIX_ERROR))


def _rounding(task: GaussianTask, state: GaussianState) -> float:
    """What the roundings of sums and of the state itself can add to the divergence.

    Roundings of sums count with the square of the condition; of a factor of twofold sums, with the condition.
    """
    is_plain = isinstance(task, DiagonalCovariance) or task.moments.low is None
    twofold = max(TWOFOLD_UNIT, UNIT**2 * float(task.moments.n_rows.sum()))
    sums = 16 * (MATRIX_ERROR if is_plain else twofold)
    factor = 4 * UNIT * task.condition ** (2 if is_plain else 1)
    spread = min(sums * task.condition**2 + factor, 1.0)
    sizes = np.sqrt((state.roots**2).sum(axis=1)) * np.abs(state.means).max(axis=0)  # |mean| in standard deviations
    moved = (16 * MATRIX_ERROR * sizes).max(axis=0)
    return float(len(task.names) * spread**2 + moved @ moved)
