"""The excess of a generalised linear model in 600 bits: Newton's method on the numbers given, by python-flint."""

from __future__ import annotations

from typing import Any

import numpy as np
from flint import arb, arb_mat, ctx

BITS = 600
MOST_STEPS = 60


def _middle(value: arb) -> arb:
    return value.mid()


def _logistic(y: arb, z: arb) -> tuple[arb, arb, arb]:
    p = 1 / (1 + (-z).exp())
    value = (1 + z.exp()).log() - y * z if z < 0 else (1 + (-z).exp()).log() + (1 - y) * z
    if y > 0 and y < 1:
        value += y * y.log() + (1 - y) * (1 - y).log()
    return value, p - y, p * (1 - p)


def _poisson(y: arb, z: arb) -> tuple[arb, arb, arb]:
    mu = z.exp()
    return (mu - y - y * (z - y.log()) if y > 0 else mu), mu - y, mu


def _gamma(y: arb, z: arb) -> tuple[arb, arb, arb]:
    ratio = y * (-z).exp()
    return ratio - 1 - ratio.log(), 1 - ratio, ratio


def _negative_binomial(alpha: float) -> Any:
    def loss(y: arb, z: arb) -> tuple[arb, arb, arb]:
        a = arb(alpha)
        mu, k = z.exp(), 1 / arb(alpha)
        own = y * (y / mu).log() if y > 0 else arb(0)
        value = own - (y + k) * ((1 + a * y) / (1 + a * mu)).log()
        s = a * mu / (1 + a * mu)
        return value, k * s - y * (1 - s), (y + k) * s * (1 - s)

    return loss


LOSSES = {"logistic": _logistic, "poisson": _poisson, "gamma": _gamma, "negative-binomial": _negative_binomial(1.0)}


class Truth:
    """sum_i w_i l(y_i, b + x_i'w) / sum w + alpha/2 |w|^2 of the numbers given."""

    def __init__(self, name: str, X: Any, y: Any, weight: Any = None, alpha: float = 0.0) -> None:
        self.loss, self.alpha = LOSSES[name], arb(alpha)
        weight = np.ones(len(y)) if weight is None else np.asarray(weight)
        counted = np.flatnonzero(weight > 0)
        self.X = [[arb(float(x)) for x in X[i]] + [arb(1)] for i in counted]
        self.y = [arb(float(y[i])) for i in counted]
        with ctx.workprec(BITS):
            total = sum((arb(float(weight[i])) for i in counted), arb(0))
            self.share = [_middle(arb(float(weight[i])) / total) for i in counted]

    def evaluate(self, at: list[arb]) -> tuple[arb, list[arb], list[list[arb]]]:
        size = len(at)
        value, gradient = arb(0), [arb(0)] * size
        hessian = [[arb(0)] * size for _ in range(size)]
        for x, y, share in zip(self.X, self.y, self.share, strict=True):
            found = self.loss(y, _middle(sum((a * b for a, b in zip(x, at, strict=True)), arb(0))))
            own, slope, curvature = (share * part for part in found)
            value += own
            for j in range(size):
                gradient[j] = gradient[j] + slope * x[j]
                for k in range(size):
                    hessian[j][k] = hessian[j][k] + curvature * x[j] * x[k]
        for j in range(size - 1):
            value += self.alpha * at[j] * at[j] / 2
            gradient[j] = gradient[j] + self.alpha * at[j]
            hessian[j][j] = hessian[j][j] + self.alpha
        return _middle(value), [_middle(g) for g in gradient], hessian

    def excess(self, coef: Any, intercept: Any) -> tuple[float, float]:
        """(objective - lowest found) / objective at a state, and the objective: the excess is at least that."""
        with ctx.workprec(BITS):
            return self._excess([arb(float(v)) for v in np.append(coef, intercept)])

    def _excess(self, at: list[arb]) -> tuple[float, float]:
        start = lowest = self.evaluate(at)[0]
        for _ in range(MOST_STEPS):
            value, gradient, hessian = self.evaluate(at)
            step = _newton(gradient, hessian)
            decrement = _middle(sum((g * s for g, s in zip(gradient, step, strict=True)), arb(0)))
            if not decrement > value * arb(2) ** -150:
                break
            length = arb(1)
            while length > arb(2) ** -60:
                trial = [_middle(a - length * s) for a, s in zip(at, step, strict=True)]
                found = self.evaluate(trial)[0]
                if found < value - decrement * length / 10000:
                    break
                length = length / 2
            else:
                break
            at, lowest = trial, found
        return (float((start - lowest) / start) if start > 0 else 0.0), float(start)


def _newton(gradient: list[arb], hessian: list[list[arb]]) -> list[arb]:
    """H^-1 g, in units of unit diagonal; a little is added to what may be flat."""
    size = len(gradient)
    unit = [_middle(hessian[j][j]).sqrt() if hessian[j][j] > 0 else arb(1) for j in range(size)]
    more = arb(2) ** -200
    matrix = [[_middle(hessian[j][k] / unit[j] / unit[k]) + more * (j == k) for k in range(size)] for j in range(size)]
    found = arb_mat(matrix).solve(arb_mat([[_middle(g / u)] for g, u in zip(gradient, unit, strict=True)]))
    return [_middle(found[j, 0] / unit[j]) for j in range(size)]
