"""The formulas in slow, obvious NumPy, and least squares and classes in exact rational arithmetic.

minimise  sum_i w_i (y_i - b - x_i'v)^2 / (2 sum_i w_i) + alpha/2 |v|^2
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import xlogy

Rationals = list[Fraction]


# ---- float64 --------------------------------------------------------------------------------------------------------


def centred(X: Any, y: Any, weight: Any = None, fit_intercept: bool = True) -> tuple[Any, Any, Any, Any]:
    """sqrt(w) (x - mean), sqrt(w) (y - mean), and the means (0 without an intercept)."""
    X, y = np.asarray(X, dtype=np.float64), np.asarray(y, dtype=np.float64)
    weight = np.ones(len(y)) if weight is None else np.asarray(weight, dtype=np.float64)
    x_mean = np.average(X, axis=0, weights=weight) if fit_intercept else np.zeros(X.shape[1])
    y_mean = np.average(y, weights=weight) if fit_intercept else 0.0
    root = np.sqrt(weight)
    return (X - x_mean) * root[:, None], (y - y_mean) * root, x_mean, y_mean


def minimum_norm(X: Any, y: Any, weight: Any = None, fit_intercept: bool = True) -> tuple[Any, float]:
    """X+ y of the centred rows: of all minimisers the one of smallest norm."""
    Z, t, x_mean, y_mean = centred(X, y, weight, fit_intercept)
    coef = np.linalg.pinv(Z) @ t
    return coef, float(y_mean - x_mean @ coef)


def ridge(X: Any, y: Any, alpha: float, weight: Any = None, fit_intercept: bool = True) -> tuple[Any, float]:
    """(Z'Z + sum_w alpha I) v = Z't."""
    Z, t, x_mean, y_mean = centred(X, y, weight, fit_intercept)
    total = len(t) if weight is None else float(np.sum(weight))
    coef = np.linalg.solve(Z.T @ Z + total * alpha * np.eye(Z.shape[1]), Z.T @ t)
    return coef, float(y_mean - x_mean @ coef)


def ridge_dual(X: Any, y: Any, alpha: float, weight: Any = None, fit_intercept: bool = True) -> tuple[Any, float]:
    """v = Z' (ZZ' + sum_w alpha I)^-1 t: the same solution on the matrix of the rows."""
    Z, t, x_mean, y_mean = centred(X, y, weight, fit_intercept)
    total = len(t) if weight is None else float(np.sum(weight))
    coef = Z.T @ np.linalg.solve(Z @ Z.T + total * alpha * np.eye(len(t)), t)
    return coef, float(y_mean - x_mean @ coef)


def standard_errors(X: Any, y: Any, weight: Any = None, fit_intercept: bool = True) -> Any:
    """sqrt(RSS / (N - p) (A^-1)_jj) with A = [1 X]' W [1 X] and N the sum of weights; the intercept first."""
    weight = np.ones(len(y)) if weight is None else np.asarray(weight, dtype=np.float64)
    Z = np.column_stack([np.ones(len(y)), X]) if fit_intercept else np.asarray(X)
    A = Z.T @ (weight[:, None] * Z)
    residual = y - Z @ np.linalg.solve(A, Z.T @ (weight * y))
    variance = weight @ residual**2 / (weight.sum() - Z.shape[1])
    return np.sqrt(variance * np.diagonal(np.linalg.inv(A)))


# ---- classes --------------------------------------------------------------------------------------------------------


def gaussian_classes(X: Any, y: Any, weight: Any = None, covariance: str = "shared") -> tuple[Any, Any, list[Any]]:
    """Priors, means and covariances of the classes in sorted order, each row looked at once.

    shared: sum_i w_i (x_i - m_yi)(x_i - m_yi)' / sum_i w_i;  class: the same over the rows of a class; diagonal: its
    variances alone
    """
    weight = np.ones(len(y)) if weight is None else np.asarray(weight, dtype=np.float64)
    classes, d = sorted(set(y)), np.shape(X)[1]
    totals = [sum(w for w, label in zip(weight, y, strict=True) if label == k) for k in classes]
    means = np.zeros((len(classes), d))
    for x, w, label in zip(X, weight, y, strict=True):
        means[classes.index(label)] += w * x / totals[classes.index(label)]
    scatters = [np.zeros((d, d)) for _ in classes]
    for x, w, label in zip(X, weight, y, strict=True):
        away = x - means[classes.index(label)]
        scatters[classes.index(label)] += w * np.outer(away, away)
    priors = np.array(totals) / sum(totals)
    if covariance == "shared":
        return priors, means, [sum(scatters) / sum(totals)] * len(classes)
    own = [scatter / total for scatter, total in zip(scatters, totals, strict=True)]
    return priors, means, own if covariance == "class" else [np.diag(np.diagonal(S)) for S in own]


def gaussian_log_density(x: Any, mean: Any, covariance: Any) -> float:
    """-(d log 2 pi + log det S + (x - m)' S^-1 (x - m)) / 2."""
    away = np.asarray(x) - mean
    log_det = np.linalg.slogdet(covariance)[1]
    return float(-(len(away) * np.log(2 * np.pi) + log_det + away @ np.linalg.solve(covariance, away)) / 2)


def bernoulli_posterior(rows: Any, labels: Any, x: Any, s: int = 1) -> dict[Any, Fraction]:
    """p(y | x) without a rounding, the product over the features: prior prod_j phi_j^x_j (1 - phi_j)^(1 - x_j).

    phi_j|y = (n_jy + s) / (n_y + 2 s)
    """
    joint = {}
    for label in sorted(set(labels)):
        own = [row for row, k in zip(rows, labels, strict=True) if k == label]
        joint[label] = Fraction(len(own), len(rows))
        for j, there in enumerate(x):
            phi = Fraction(sum(int(row[j]) for row in own) + s, len(own) + 2 * s)
            joint[label] *= phi if there else 1 - phi
    return {label: value / sum(joint.values()) for label, value in joint.items()}


def multinomial_posterior(rows: Any, labels: Any, x: Any, s: int = 1) -> dict[Any, Fraction]:
    """p(y | x) without a rounding: prior prod_j phi_j^x_j, phi_j|y = (n_jy + s) / (sum_j n_jy + s V)."""
    joint = {}
    for label in sorted(set(labels)):
        own = [row for row, k in zip(rows, labels, strict=True) if k == label]
        joint[label] = Fraction(len(own), len(rows))
        total = sum(int(row[j]) for row in own for j in range(len(x)))
        for j, times in enumerate(x):
            joint[label] *= Fraction(sum(int(row[j]) for row in own) + s, total + s * len(x)) ** int(times)
    return {label: value / sum(joint.values()) for label, value in joint.items()}


# ---- components -----------------------------------------------------------------------------------------------------


def components_by_columns(Z: Any) -> tuple[Any, Any]:
    """Eigenvalues of Z'Z / N, the largest first, and their directions as rows."""
    values, vectors = np.linalg.eigh(Z.T @ Z / len(Z))
    return values[::-1], vectors.T[::-1]


def components_by_rows(Z: Any) -> tuple[Any, Any]:
    """The same from ZZ' / N: u = Z'v / |Z'v| for eigenvalues that are not 0."""
    values, vectors = np.linalg.eigh(Z @ Z.T / len(Z))
    kept = values > 1e-12 * values.max()
    directions = (vectors[:, kept].T @ Z)[::-1]
    return values[kept][::-1], directions / np.linalg.norm(directions, axis=1, keepdims=True)


# ---- exact ----------------------------------------------------------------------------------------------------------


def rational(values: Any) -> Any:
    """Nested lists of the exact values of floats."""
    if np.ndim(values) == 0:
        return Fraction(float(values))
    return [rational(value) for value in values]


def solve_exactly(A: Sequence[Rationals], b: Rationals) -> Rationals:
    """A^-1 b by Gauss-Jordan elimination; A must be regular."""
    n = len(A)
    table = [[*row, right] for row, right in zip(A, b, strict=True)]
    for k in range(n):
        pivot = next(i for i in range(k, n) if table[i][k] != 0)
        table[k], table[pivot] = table[pivot], table[k]
        for i in range(n):
            factor = table[i][k] / table[k][k]
            if i != k and factor:
                table[i] = [a - factor * c for a, c in zip(table[i], table[k], strict=True)]
    return [table[i][n] / table[i][i] for i in range(n)]


def dot(a: Sequence[Fraction], b: Sequence[Fraction]) -> Fraction:
    return sum((p * q for p, q in zip(a, b, strict=True)), Fraction(0))


@dataclass(frozen=True)
class Exact:
    """Least squares of the float64 numbers given, without a rounding. A state is (intercept if any, weights)."""

    X: Any
    y: Any
    weight: Any = None
    alpha: float = 0.0
    fit_intercept: bool = True

    @cached_property
    def rows(self) -> list[Rationals]:
        return [[Fraction(1)] * self.fit_intercept + row for row in rational(self.X)]

    @cached_property
    def targets(self) -> Rationals:
        return rational(self.y)

    @cached_property
    def weights(self) -> Rationals:
        return rational(np.ones(len(self.y)) if self.weight is None else self.weight)

    @cached_property
    def matrix(self) -> list[Rationals]:
        """sum_i w_i a_i a_i' + sum_w alpha I (not on the intercept)."""
        size = len(self.rows[0])
        out = [[Fraction(0)] * size for _ in range(size)]
        for w, row in zip(self.weights, self.rows, strict=True):
            for j in range(size):
                for k in range(size):
                    out[j][k] += w * row[j] * row[k]
        for j in range(int(self.fit_intercept), size):
            out[j][j] += sum(self.weights) * Fraction(self.alpha)
        return out

    @cached_property
    def right(self) -> Rationals:
        terms = zip(self.weights, self.rows, self.targets, strict=True)
        columns = zip(*([w * a * y for a in row] for w, row, y in terms), strict=True)
        return [sum(column, Fraction(0)) for column in columns]

    @cached_property
    def solution(self) -> Rationals:
        return solve_exactly(self.matrix, self.right)

    @cached_property
    def minimum(self) -> Fraction:
        """sum_i w_i r_i^2 + sum_w alpha |v|^2 at the solution: twice sum_w times the objective."""
        squares = sum((w * y * y for w, y in zip(self.weights, self.targets, strict=True)), Fraction(0))
        return squares - dot(self.right, self.solution)

    @cached_property
    def null_objective(self) -> Fraction:
        """The same for the null model: the mean with an intercept, 0 without."""
        squares = sum((w * y * y for w, y in zip(self.weights, self.targets, strict=True)), Fraction(0))
        mean = dot(self.weights, self.targets) / sum(self.weights)
        return squares - mean * mean * sum(self.weights) if self.fit_intercept else squares

    @cached_property
    def standard_errors(self) -> list[float]:
        """From an exact variance, with the one rounding of a square root."""
        freedom = sum(self.weights) - len(self.solution)
        unit = [[Fraction(int(j == k)) for k in range(len(self.right))] for j in range(len(self.right))]
        return [math.sqrt(self.minimum / freedom * solve_exactly(self.matrix, e)[j]) for j, e in enumerate(unit)]

    def residuals(self, state: Any) -> Rationals:
        state = rational(state)
        return [y - dot(row, state) for row, y in zip(self.rows, self.targets, strict=True)]

    def magnitude(self, state: Any) -> Fraction:
        """sum_i w_i (|x_i|'|v| + |y_i|)^2, without the intercept: what rounding errors scale with."""
        size = [abs(v) for v in rational(state)[int(self.fit_intercept) :]]
        rows = [[abs(a) for a in row[int(self.fit_intercept) :]] for row in self.rows]
        terms = zip(self.weights, rows, self.targets, strict=True)
        return sum((w * (dot(row, size) + abs(y)) ** 2 for w, row, y in terms), Fraction(0))

    def excess(self, state: Any) -> Fraction:
        """Objective at the state less the minimum, in the units of `minimum`: (s - s*)' A (s - s*)."""
        move = [a - b for a, b in zip(rational(state), self.solution, strict=True)]
        return dot(move, [dot(row, move) for row in self.matrix])


def digits(got: float, true: Any, cap: float = 15.0) -> float:
    """-log10 of the relative error (of the absolute one where the truth is 0), between 0 and the cap."""
    if not math.isfinite(got):
        return 0.0
    true = Fraction(true)
    error = abs(Fraction(float(got)) - true) / (abs(true) or 1)
    if error == 0:
        return cap
    log = math.log10(error.numerator) - math.log10(error.denominator)  # exact where a float would underflow
    return min(cap, max(0.0, -log))


def hilbert(n: int) -> list[Rationals]:
    """1 / (i + j + 1)."""
    return [[Fraction(1, i + j + 1) for j in range(n)] for i in range(n)]


def pair(value: Fraction) -> tuple[float, float]:
    """The twofold number nearest to a rational: hi + lo."""
    hi = float(value)
    return hi, float(value - Fraction(hi))


def elastic_net_excess(X: Any, y: Any, weight: Any, penalty: tuple[Any, Any, Any, Any], coef: Any, b: float) -> float:
    """Objective at (coef, b) less the least, over the objective, by plain coordinate descent from coef.

    penalty: (l1, l2, lower, upper) of every column.
    """
    w = np.ones(len(y)) if weight is None else np.asarray(weight)
    w = w / w.sum()
    Z, t = X - w @ X, y - w @ y
    gram, moment = Z.T @ (w[:, None] * Z), Z.T @ (w * t)
    l1, l2, low, high = (np.broadcast_to(part, len(coef)) for part in penalty)

    def objective(coef: Any, residual: Any) -> float:
        return float(w @ residual**2 / 2 + l1 @ np.abs(coef) + l2 @ coef**2 / 2)

    best = np.clip(coef, low, high).astype(float)
    for _ in range(20_000):
        before = best.copy()
        for j in range(len(best)):
            pull = moment[j] - gram[j] @ best + gram[j, j] * best[j]
            size = max(abs(pull) - l1[j], 0.0) / (gram[j, j] + l2[j])
            best[j] = min(max(np.copysign(size, pull), low[j]), high[j])
        if np.abs(best - before).max() < 1e-13 * np.abs(best).max(initial=1.0):
            break
    at = objective(coef, y - b - X @ coef)
    return (at - objective(best, t - Z @ best)) / at


def pinball_errors(quantile: float, y: Any, predicted: Any) -> list[float]:
    """q r where the row is above the prediction, (1 - q) |r| where it is below."""
    residuals = [float(a) - float(b) for a, b in zip(y, predicted, strict=True)]
    return [quantile * r if r >= 0 else (1 - quantile) * -r for r in residuals]


def pinball_objective(X: Any, y: Any, model: Any, weight: Any = None, alpha: float = 0.0) -> float:
    """sum_i weight_i rho(r_i) / sum_i weight_i + alpha |w|_1."""
    losses = pinball_errors(model.quantile, y, model.intercept_ + X @ model.coef_)
    return float(np.average(losses, weights=weight) + alpha * np.abs(model.coef_).sum())


def huber_objective(model, X, y, coef, intercept, scale, weight=None) -> float:
    """Huber's objective, term by term: of weights and a scale, with the loss and penalty of a model."""
    weight = np.ones(len(y)) if weight is None else weight
    z = (y - intercept - X @ coef) / scale
    h = np.where(np.abs(z) <= model.delta, z * z / 2, model.delta * np.abs(z) - model.delta**2 / 2)
    penalty = model.alpha / 2 * (coef @ coef)
    if model.scale == "joint":
        return scale * (weight @ h) / weight.sum() + scale / 2 + penalty
    return scale**2 * (weight @ h) / weight.sum() + penalty


def own_huber_objective(model, X, y, weight=None) -> float:
    """Of the model's own weights and scale."""
    return huber_objective(model, X, y, model.coef_, model.intercept_, model.scale_, weight)


def exact_chebyshev(k, u):
    """T_k(u) by its recurrence, in fractions."""
    before, last = Fraction(1), u
    for _ in range(k):
        before, last = last, 2 * u * last - before
    return before


def widrow_hoff(X: Any, y: Any, theta: Any, step: float, mean: Any = lambda z: z) -> list[Any]:
    """theta after every row, theta += step (y_i - h(x_i)) (x_i, 1), h(x) = mean(theta'(x, 1)): one epoch in order."""
    theta, after = np.array(theta, dtype=float), []
    for row, target in zip(np.column_stack([X, np.ones(len(X))]), y, strict=True):
        theta = theta + step * (target - mean(theta @ row)) * row
        after.append(theta)
    return after


def glm_objective(loss: Any, X: Any, y: Any, coef: Any, b: float, alpha: float, weight: Any, offset: Any) -> float:
    """mean of w l(y, offset + b + Xw) + alpha/2 |w|^2."""
    z = offset + b + X @ coef
    return float(weight @ loss.value(y, z) / weight.sum() + alpha / 2 * (coef @ coef))


def glm_newton(loss: Any, X: Any, y: Any, alpha: float, weight: Any, offset: Any) -> tuple[Any, float]:
    """Newton's method with halved steps on the objective above; (weights, intercept)."""
    rows = np.column_stack([X, np.ones(len(X))])
    pull = np.append(np.full(X.shape[1], alpha), 0.0)

    def value(point: Any) -> float:
        return glm_objective(loss, X, y, point[:-1], point[-1], alpha, weight, offset)

    point = np.append(np.zeros(X.shape[1]), loss.score(float(weight @ y / weight.sum())))
    for _ in range(60):
        z, share = offset + rows @ point, weight / weight.sum()
        gradient = rows.T @ (share * loss.slope(y, z)) + pull * point
        hessian = (rows.T * (share * loss.curvature(y, z))) @ rows + np.diag(pull)
        step = np.linalg.solve(hessian, gradient)
        length = 1.0
        while not value(point - length * step) <= value(point) + 1e-15 and length > 1e-12:
            length /= 2
        point = point - length * step
    return point[:-1], float(point[-1])


# Decision trees


def impurity(criterion: str, y: Any, weight: Any) -> float:
    """Of a node with these rows."""
    if criterion in ("gini", "entropy"):
        shares = np.array([weight[y == label].sum() for label in np.unique(y)]) / weight.sum()
        return float(1 - (shares**2).sum() if criterion == "gini" else -(shares * np.log2(shares)).sum())
    mean = np.average(y, weights=weight)
    if criterion == "squared_error":
        return float(np.average((y - mean) ** 2, weights=weight))
    return float(np.average(xlogy(y, y / mean), weights=weight)) if mean > 0 else 0.0


def split_decreases(criterion: str, X: Any, y: Any, weight: Any, least: int) -> list[float]:
    """What every legal split of a node takes from its impurity; least: fewest different rows of a side."""
    whole, total, found = impurity(criterion, y, weight), weight.sum(), []
    for column in X.T:
        known = ~np.isnan(column)
        thresholds = [*np.unique(column[known])]
        for threshold in thresholds:
            for is_missing_left in (False, True):
                left = np.where(known, column <= threshold, is_missing_left)
                sides = [left, ~left]
                if any(len(np.unique(np.column_stack([X, y])[side], axis=0)) < least for side in sides):
                    continue
                if criterion == "poisson" and any(not y[side].any() for side in sides):
                    continue
                parts = [weight[side].sum() / total * impurity(criterion, y[side], weight[side]) for side in sides]
                found.append(whole - sum(parts))
    return found
