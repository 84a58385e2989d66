"""The fit at one query, in full: what weighs, what comes out, and how sure it is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg

from certifit.data.columns import Array
from certifit.models.local.task import LocalRows
from certifit.runtime import one_blas_thread

RANK = 1e-10  # of the largest singular value: smaller ones count as zero


@dataclass(frozen=True)
class LocalFit:
    """The local fit at a query.

    names, coefficients, standard_errors: of 1 and every term, in the units of the columns; of a polynomial about the
    query, so that the first is the prediction and the next are slopes. weights: of the kept rows, the largest is 1.
    rank, condition: of the local system; the condition of a singular one is infinite.
    """

    query: Array
    prediction: float
    names: tuple[str, ...]
    coefficients: Array
    standard_errors: Array
    weights: Array
    rank: int
    condition: float

    def __str__(self) -> str:
        width = max(map(len, self.names))
        lines = [
            f"  {name:<{width}}  {value: .6g}  (standard error {error:.3g})"
            for name, value, error in zip(self.names, self.coefficients, self.standard_errors, strict=True)
        ]
        effective = float(self.weights.sum())
        head = f"Local fit, prediction {self.prediction:.6g}; weights of all rows add up to {effective:.4g}"
        tail = f"  rank {self.rank} of {len(self.names)}, condition {self.condition:.3g}"
        return "\n".join([head, *lines, tail])


@one_blas_thread
def local_fit(rows: LocalRows, X: Array, tau: float, noise: float, names: list[str]) -> LocalFit:
    """The fit at the one row of X, by singular values."""
    query = rows.seen(X)[0]
    u = rows.points - query
    K = weights_at(rows, query, tau)
    w = K * rows.weight
    columns, at, units, labels = _terms(rows, u, X, names)
    share = w / w.sum()
    mean = share @ columns
    root = np.sqrt(w)
    centred = root[:, None] * (columns - mean)
    smoother, rank = _inverse(centred, rows)
    # theta = B y. Terms of a polynomial are 0 at the query: the constant is the prediction.
    slopes = smoother * root
    constant = share - mean @ slopes
    B = np.vstack([constant, slopes]) / np.concatenate([[1.0], units])[:, None]
    coefficients = B @ (rows.y - rows.mean) / rows.y_scale
    coefficients[0] += rows.mean / rows.y_scale
    errors = noise * np.sqrt((np.square(B) / rows.weight).sum(axis=1) * rows.unit)
    value = coefficients[0] + (0.0 if at is None else float(at @ coefficients[1:]))
    condition = _condition(np.column_stack([root, root[:, None] * columns]))
    return LocalFit(X[0].copy(), float(value), labels, coefficients, errors, K / K.max(), rank + 1, condition)


def weights_at(rows: LocalRows, query: Array, tau: float) -> Array:
    """K of every row at a query, in the units of the distances; of the nearest rows alone where no other has weight."""
    square = np.square(rows.points - query).sum(axis=1)
    least = float(square.min())
    if rows.form.kind == "gaussian":
        return np.asarray(np.exp(-(square - least) / (2 * tau * tau)))
    u = np.sqrt(square) / tau
    K = np.maximum(1 - u**3, 0.0) ** 3 if rows.form.kind == "tricube" else rows.form.weights_of(u[None])[0]
    return np.asarray(K if K.max() > 0 else (square == least).astype(float))


def _terms(rows: LocalRows, u: Array, X: Array, names: list[str]) -> tuple[Array, Array | None, Array, tuple[str, ...]]:
    """The terms of all rows, those of the query where they are not 0, their units, and the names of 1 and of all."""
    if rows.columns is not None:
        at = rows.form.columns(X)
        assert at is not None
        phi = ("1", *(f"phi{j}" for j in range(rows.columns.shape[1])))
        return rows.columns, at[0], np.ones(rows.columns.shape[1]), phi
    d = u.shape[1]
    scale = np.ones(d) if rows.standard is None else rows.standard.scale
    parts, units, labels = [np.zeros((len(u), 0))], [np.zeros(0)], ["1"]
    if rows.form.degree >= 1:
        parts.append(u)
        units.append(scale)
        labels += list(names)
    if rows.form.degree == 2:
        pairs = [(j, k) for j in range(d) for k in range(j, d)]
        parts.append(np.column_stack([u[:, j] * u[:, k] for j, k in pairs]) if pairs else np.zeros((len(u), 0)))
        units.append(np.array([scale[j] * scale[k] for j, k in pairs]))
        labels += [f"{names[j]}^2" if j == k else f"{names[j]} {names[k]}" for j, k in pairs]
    return np.column_stack(parts), None, np.concatenate(units), tuple(labels)


def _inverse(centred: Array, rows: LocalRows) -> tuple[Array, int]:
    """The pseudo-inverse of the centred columns, and their rank; in units of the widest linear column."""
    n_linear = rows.points.shape[1] if rows.columns is None else rows.columns.shape[1]
    if centred.shape[1] == 0:
        return np.zeros((0, len(centred))), 0
    width = float(np.linalg.norm(centred[:, :n_linear], axis=0).max())
    width = width / np.sqrt(rows.weight.sum()) if width > 0 else 1.0
    units = np.where(np.arange(centred.shape[1]) < n_linear, width, width**2)
    U, sizes, V = scipy.linalg.svd(centred / units, full_matrices=False, check_finite=False)
    is_there = sizes > RANK * sizes[0]
    inverse = (V[is_there].T / sizes[is_there]) @ U[:, is_there].T
    return np.asarray(inverse / units[:, None]), int(is_there.sum())


def _condition(weighted: Array) -> float:
    sizes = np.linalg.norm(weighted, axis=0)
    if not (sizes > 0).all():
        return float("inf")
    values = np.linalg.svd(weighted / sizes, compute_uv=False)
    return float(values[0] / values[-1]) if len(values) == weighted.shape[1] and values[-1] > 0 else float("inf")
