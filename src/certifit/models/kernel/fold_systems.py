"""Kernel ridge on many training sets of the same rows and many alphas, all in one block of conjugate gradients.

    (B_s + alpha I) t = r,    B_s = S_s G S_s,    S_s the roots of the shares of training set s, 0 for rows left out

Every pair of a training set and an alpha is a column; a step multiplies G by all columns that are left at once. One
randomly pivoted Cholesky factor F of all rows preconditions every training set through its own rows of F. Steps are
taken in float32; the residuals that they have to remove, and so the solutions, are float64. Rows of the same training
sets stand together, and a step leaves out the blocks of G whose rows or columns a training set does not have: a third
of the products of five folds. Of near alphas every second one begins at the sum of the others' solutions that has the
least residual.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg

from certifit.data.columns import Array
from certifit.mathematics.kernels.algebra import Kernel
from certifit.mathematics.kernels.tiles import multiply, narrow_times
from certifit.models.kernel.solver import pivoted_factor

RANK = 600  # of the preconditioner
AIM = 1e-9  # of the right-hand side: a residual of every fit
STAGE = 2e-5  # of its right-hand side: how far float32 goes before the residual is computed again
STAGES = 12
LATE = 0.25  # of the columns that need another stage: so few are not waited for
MOST_STEPS = 400  # of conjugate gradients in a stage
FAINT = 1e-6  # of the largest: an eigenvalue of the preconditioner that float32 does not hold
ROUNDED = 1e-12  # of the largest: multiples of shares that differ by less are alike
LEAST = np.finfo(np.float32).tiny
MOST_GROUPS = 16  # of rows whose products are made apart
NEAR = 8.0  # times an alpha: two of them that are no further apart tell much of one between them
LANES = 8  # columns that are multiplied together, whether there are so many or not
SHORT_ALPHAS = (1e-7, 1e6)  # of the largest k(x, x): float32 holds the matrix shifted by an alpha between these


@dataclass(frozen=True)
class Columns:
    """The training set and the alpha of every right-hand side."""

    split: Array
    alpha: Array

    def only(self, on: Array) -> Columns:
        """Some of the columns."""
        return Columns(self.split[on], self.alpha[on])

    def between(self) -> Array:
        """Which columns stand between two of the same training set whose alphas are near: every second one at most."""
        is_between = np.zeros(len(self.alpha), dtype=bool)
        for split in np.unique(self.split):
            places = np.flatnonzero(self.split == split)
            places = places[np.argsort(self.alpha[places], kind="stable")]
            is_near = self.alpha[places[2::2]] <= NEAR * self.alpha[places[:-2:2]]
            is_between[places[1:-1:2][is_near]] = True
        return is_between


@dataclass(frozen=True)
class RowGroups:
    """Rows in an order in which those of the same training sets stand together.

    bounds: where each group begins, and where the last one ends. is_in: groups x training sets.
    """

    order: Array
    bounds: Array
    is_in: Array

    @staticmethod
    def of(roots: Array) -> RowGroups:
        """By the training sets in which a row has weight; one group of all rows where there would be very many."""
        is_in, group = np.unique(roots > 0, axis=0, return_inverse=True)
        if len(is_in) > MOST_GROUPS:
            is_in, group = np.ones((1, roots.shape[1]), dtype=bool), np.zeros(len(roots), dtype=np.int64)
        sizes = np.bincount(group.reshape(-1), minlength=len(is_in))
        return RowGroups(np.argsort(group.reshape(-1), kind="stable"), np.append(0, np.cumsum(sizes)), is_in)

    def times(self, G: Array, V: Array, split: Array) -> Array:
        """G V on the rows of each column's training set, V being 0 on others. split: the set of every column."""
        widths = -(-np.bincount(split, minlength=self.is_in.shape[1]) // LANES)
        shares = np.square(np.diff(self.bounds) @ self.is_in / len(V))  # of G that a training set has
        if widths @ shares < -(-len(split) // LANES):
            return narrow_times(G, V, self.bounds, self.is_in[:, split])
        return narrow_times(G, V)


class FoldSystems:
    """The training sets of some rows. roots: rows x training sets. is_centred: B_s stands between projections I - ss',
    s its column of roots, and right-hand sides are at right angles to s."""

    def __init__(
        self, kernel: Kernel, points: Array, roots: Array, size: float, *, is_centred: bool, seed: int
    ) -> None:
        self.groups = RowGroups.of(roots)
        self.points, self.roots = np.ascontiguousarray(points[self.groups.order]), roots[self.groups.order]
        self.kernel, self.is_centred = kernel, is_centred
        self.scale = float(np.ldexp(1.0, 1 - int(np.frexp(size)[1])))  # 1 for a Gaussian kernel
        self._prepare(seed)

    @np.errstate(all="ignore")  # what leaves float32 is no step, and its column does not meet its aim
    def solve(self, right: Array, columns: Columns) -> tuple[Array, Array]:
        """G S t on every row, and which columns met their aim."""
        right = right[self.groups.order]
        X, R = np.zeros_like(right), right
        fitted = np.zeros_like(right)
        roots = self.roots[:, columns.split]
        aim = AIM * np.linalg.norm(right, axis=0)
        is_between = columns.between()
        on = (aim > 0) & ~is_between
        for stage in range(STAGES):
            if not on.any():
                break
            size = np.linalg.norm(R[:, on], axis=0)
            asked = 0.5 * aim[on] / size
            late = int(LATE * np.count_nonzero(asked < STAGE))
            asked = np.maximum(asked, STAGE)
            step = self._short_solve((R[:, on] / size).astype(np.float32), columns.only(on), asked, late)
            step = np.where(np.isfinite(step).all(axis=0), step, 0.0)
            X[:, on] += self._projected(step, roots[:, on]) * size  # float32 leaves some of s in it
            fitted[:, on] = self.kernel.times(self.points, self.points, roots[:, on] * X[:, on])
            if stage == 0:
                self._combine(X, fitted, right, columns, is_between)
            R = right - self._projected(roots * fitted, roots) - columns.alpha * X
            on = ~(np.linalg.norm(R, axis=0) <= aim)
        every = np.empty_like(fitted)
        every[self.groups.order] = fitted
        return every, ~on

    def _combine(self, X: Array, fitted: Array, right: Array, columns: Columns, is_between: Array) -> None:
        """Solutions for alphas between others: the sums of the others' solutions that have the least residual."""
        for split in np.unique(columns.split[is_between]):
            is_known, root = (columns.split == split) & ~is_between, self.roots[:, split, None]
            known, products = X[:, is_known], fitted[:, is_known]
            applied = self._projected(root * products, root)
            if not np.isfinite(applied).all():
                continue
            for place in np.flatnonzero((columns.split == split) & is_between):
                share = np.linalg.lstsq(applied + columns.alpha[place] * known, right[:, place], rcond=None)[0]
                X[:, place], fitted[:, place] = known @ share, products @ share

    def _projected(self, V: Array, roots: Array) -> Array:
        """Columns less their parts along s, where there is an intercept."""
        return np.asarray(V - roots * np.einsum("ij,ij->j", roots, V)) if self.is_centred else V

    def _prepare(self, seed: int) -> None:
        """G and F in float32, and the eigenvectors of F'F of every training set."""
        self.G = self.kernel.short_matrix(self.points, self.scale)
        if self.is_centred:  # a1' + 1a' is 0 between the projections, and float32 has more digits for what is left
            means = self.G.mean(axis=1, dtype=np.float64)
            self.G -= means.astype(np.float32)[:, None]
            self.G -= (means - means.mean()).astype(np.float32)
        whole = np.sqrt(np.mean(np.square(self.roots), axis=1))
        drawn = np.where(whole > 0, whole, 1.0 / np.sqrt(len(whole)))
        _, F = pivoted_factor(self.kernel, self.points, drawn, min(RANK, len(self.points) // 4), seed)
        self.F = (F / drawn[:, None] * np.sqrt(self.scale)).astype(np.float32)
        self.F_transposed = np.ascontiguousarray(self.F.T)
        self.short_roots = self.roots.astype(np.float32)
        self.values, self.vectors = [], []
        for root, inner in zip(self.short_roots.T, self._inner_products(drawn), strict=True):
            mean = (np.square(root) @ self.F).astype(np.float64) * self.is_centred
            values, vectors = scipy.linalg.eigh(inner - np.outer(mean, mean), check_finite=False)
            self.values.append(np.maximum(values, 0.0))
            self.vectors.append(vectors.astype(np.float32))

    def _inner_products(self, drawn: Array) -> list[Array]:
        """F'S_s^2F of every training set; where its shares are multiples of the same ones in every group of rows, the
        groups are summed once for all sets. drawn: those shares' roots."""
        multiples = np.square(self.roots / drawn[:, None])
        parts = [slice(*ends) for ends in zip(self.groups.bounds[:-1], self.groups.bounds[1:], strict=True)]
        if max(np.ptp(multiples[rows], axis=0).max() for rows in parts) > ROUNDED * multiples.max():
            return [_squared(root[:, None] * self.F) for root in self.short_roots.T]
        scaled = drawn.astype(np.float32)[:, None] * self.F
        sums = np.array([_squared(scaled[rows]) for rows in parts])
        return [np.tensordot(multiples[self.groups.bounds[:-1], s], sums, axes=1) for s in range(self.roots.shape[1])]

    def _short_solve(self, right: Array, columns: Columns, asked: Array, late: int) -> Array:
        """Conjugate gradients in float32 to the share `asked` of every right-hand side, whose size is 1; `late` columns
        or fewer are not waited for."""
        X, left = np.zeros_like(right), np.arange(right.shape[1])
        at = _Block(self, columns)
        R = right
        P = at.preconditioned(R)
        before = _inner(R, P)
        for _ in range(MOST_STEPS):
            product = at.times(P)
            step = before / np.maximum(_inner(P, product), LEAST)
            X[:, left] += step * P
            R = R - step * product
            on = np.sqrt(_inner(R, R)) > asked[left]
            if np.count_nonzero(on) <= late:
                break
            if not on.all():
                R, P, left, before = R[:, on], P[:, on], left[on], before[on]
                at = _Block(self, columns.only(left))
            Z = at.preconditioned(R)
            after = _inner(R, Z)
            P, before = Z + after / np.maximum(before, LEAST) * P, after
        return X.astype(np.float64) * self.scale


def largest_size(kernel: Kernel, points: Array) -> float:
    """The largest k(x, x)."""
    return float(kernel.diagonal(points).max(initial=0.0))


def is_short(alphas: Array, size: float) -> bool:
    """Whether float32 can take the steps for these alphas. size: the largest k(x, x)."""
    least, most = SHORT_ALPHAS
    return 0 < size < np.inf and bool((alphas >= least * size).all() and (alphas <= most * size).all())


def _squared(A: Array) -> Array:
    """A'A."""
    return multiply(A, A, transposed=True).astype(np.float64)


def _inner(A: Array, B: Array) -> Array:
    """Inner products of columns."""
    return np.asarray(np.einsum("ij,ij->j", A, B))


class _Block:
    """Products of some columns with scaled matrices B_s + alpha I, and with their preconditioners, in float32.

    With F'F = V diag(l) V' of the rows of a training set and l_0 the least of l, the preconditioner is
    I - F V diag((l - l_0) / (l (l + alpha))) V'F': the inverse of F F' + alpha I on what F has, times l_0 + alpha.
    """

    def __init__(self, systems: FoldSystems, columns: Columns) -> None:
        self.systems = systems
        self.split, self.roots = columns.split, systems.short_roots[:, columns.split]
        self.alphas = (columns.alpha * systems.scale).astype(np.float32)
        self.parts = []
        for split in np.unique(columns.split):
            places = np.flatnonzero(columns.split == split)
            values = systems.values[split]
            kept = values > FAINT * values[-1]
            least = values[kept][0] if kept.any() else 0.0
            alphas = columns.alpha[places] * systems.scale
            bottom = np.where(kept, values, 1.0)[:, None] * (values[:, None] + alphas)
            factors = np.where(kept[:, None], (values[:, None] - least) / bottom, 0.0)
            self.parts.append((places, systems.vectors[split], factors.astype(np.float32)))

    def times(self, V: Array) -> Array:
        """(B + alpha I) V."""
        product = self.roots * self.systems.groups.times(self.systems.G, self.roots * V, self.split)
        return np.asarray(self.systems._projected(product, self.roots) + self.alphas * V)

    def preconditioned(self, R: Array) -> Array:
        """The preconditioner times R."""
        inner = narrow_times(self.systems.F_transposed, self.roots * R)
        for places, vectors, factors in self.parts:
            inner[:, places] = vectors @ (factors * (vectors.T @ inner[:, places]))
        return np.asarray(R - self.systems._projected(self.roots * narrow_times(self.systems.F, inner), self.roots))
