"""The truth about models that claim no optimum: numbers of trees, boosted stumps and local fits, derived exactly."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from flint import arb, fmpq
from scipy.optimize import linprog

from tests.hunt.generate import Array, Problem, Random
from tests.hunt.references.numbers import as_float, ratio, rational, real, reals, set_bits, total
from tests.hunt.truth import Truth, Verdict

UNIT = 2.0**-53
SAME = 1e-9  # of an error or a margin: sums of a few dozen roundings
SOLVED = 1e-7  # of a margin that a linear program in float64 finds
BITS = 400


def masses(problem: Problem) -> list[fmpq]:
    """Weights of the rows."""
    weights = np.ones(len(problem.rows)) if problem.weights is None else problem.weights
    return [rational(w) for w in weights]


class TreeTruth(Truth):
    """Class shares or means of the leaves, in rationals."""

    def __init__(self, problem: Problem, model: Any) -> None:
        self.rows, self.mass = problem.rows, masses(problem)
        self.used = [i for i, m in enumerate(self.mass) if m > 0]
        self.codes = np.searchsorted(model.classes_, problem.y) if hasattr(model, "classes_") else None
        self.y = [] if self.codes is not None else [rational(v) for v in problem.y]
        self.unit = fmpq(1)
        if self.codes is None:
            mean = self._mean(self.used)
            size = max(abs(self.y[i]) for i in self.used) or fmpq(1)
            self.unit = max(abs(self.y[i] - mean) for i in self.used) or size

    def _mean(self, rows: list[int]) -> fmpq:
        return sum((self.mass[i] * self.y[i] for i in rows), fmpq(0)) / sum((self.mass[i] for i in rows), fmpq(0))

    def verdict(self, model: Any, certificate: Any) -> Verdict:
        """How far the worst leaf is off beyond what the certificate states and rounding allows."""
        tree = model.tree_
        members: dict[int, list[int]] = {}
        for i in self.used:
            members.setdefault(leaf_of(tree, self.rows[i]), []).append(i)
        off = max(self._deviation(tree, leaf, rows) for leaf, rows in members.items())
        allowed = 32 * (len(self.rows) + 16) * UNIT
        return Verdict(max(as_float(off) - float(certificate.deviation) - allowed, 0.0) / allowed)

    def _deviation(self, tree: Any, leaf: int, rows: list[int]) -> fmpq:
        if self.codes is None:
            return abs(rational(tree.values[leaf]) - self._mean(rows)) / self.unit
        stored = [rational(v) for v in tree.values[leaf]]
        whole, mass = sum(stored, fmpq(0)), sum((self.mass[i] for i in rows), fmpq(0))
        right = [sum((self.mass[i] for i in rows if self.codes[i] == k), fmpq(0)) / mass for k in range(len(stored))]
        return max(abs(v / whole - share) for v, share in zip(stored, right, strict=True)) if whole else fmpq(1)

    def states(self, model: Any, rng: Random, tol: float) -> Iterator[tuple[str, Any]]:
        """A leaf's value, a threshold and a node's split changed."""
        tree = model.tree_
        leaf, power = int(rng.choice(np.flatnonzero(tree.is_leaf))), rng.uniform(-16, 0)
        values = np.array(tree.values)
        at = (leaf, *(int(rng.integers(size)) for size in values.shape[1:]))
        values[at] += 10.0**power * (abs(values[at]) or 1.0)
        yield f"leaf {leaf} by 1e{power:.1f}", changed(model, "tree_", values=values)
        inner = np.flatnonzero(~tree.is_leaf)
        if len(inner):
            node, thresholds = int(rng.choice(inner)), np.array(tree.threshold)
            thresholds[node] = float(rng.choice(self.rows[:, tree.feature[node]]))
            yield f"threshold of node {node}", changed(model, "tree_", threshold=thresholds)


def leaf_of(tree: Any, x: Array) -> int:
    """Where a row without missing values ends."""
    node = 0
    while tree.left[node]:
        node = int(tree.left[node]) + int(not x[tree.feature[node]] <= tree.threshold[node])
    return node


def changed(model: Any, name: str, **arrays: Array) -> Any:
    """A copy of the model whose state has other arrays."""
    other = copy.copy(model)
    setattr(other, name, replace(getattr(model, name), **arrays))
    return other


class VoteTruth(Truth):
    """AdaBoost of two classes: training error, its bound, the smallest margin, and the best of any vote."""

    def __init__(self, problem: Problem, model: Any) -> None:
        set_bits(BITS)
        self.rows, self.mass = problem.rows, masses(problem)
        self.used = [i for i, m in enumerate(self.mass) if m > 0]
        self.whole = sum(self.mass, fmpq(0))
        self.signs = np.where(np.searchsorted(model.classes_, problem.y) == 1, 1, -1)
        self.best = self._best_margin()

    def _best_margin(self) -> float:
        """The largest smallest margin of a vote over stumps, by a linear program."""
        X, y = self.rows[self.used], self.signs[self.used]
        sides = [np.ones(len(y))]
        sides += [np.where(X[:, j] <= cut, 1.0, -1.0) for j in range(X.shape[1]) for cut in np.unique(X[:, j])[:-1]]
        game = y[:, None] * np.column_stack([*sides, *(-side for side in sides)])
        n, m = game.shape
        found = linprog(
            np.append(np.zeros(m), -1.0),
            A_ub=np.column_stack([-game, np.ones(n)]),
            b_ub=np.zeros(n),
            A_eq=np.append(np.ones(m), 0.0)[None],
            b_eq=[1.0],
            bounds=[(0, None)] * m + [(None, None)],
        )
        return float(found.x[-1]) if found.success else -1.0

    def verdict(self, model: Any, certificate: Any) -> Verdict:
        """What the certificate states beside what is true of this vote."""
        if not certificate.holds:
            return Verdict(0.0, is_known=False)
        leads = self._leads(model.vote_)
        wrong = [i for i in self.used if not leads[i] > 0]
        error = as_float(sum((self.mass[i] for i in wrong), fmpq(0)) / self.whole)
        size = total(reals(model.vote_.alpha)) / 2
        margin = as_float(min(leads[i] for i in self.used) / size) if size > 0 else 0.0
        near = any(abs(lead) <= SAME * (1 + abs(size)) for lead in leads)  # a draw to rounding
        verdict = Verdict(0.0)
        if not near and abs(certificate.error - error) > SAME:
            verdict.faults.append(f"a training error of {certificate.error:.6g} is stated, true {error:.6g}")
        if error > certificate.bound * (1 + SAME) and not near:
            verdict.faults.append(f"the error {error:.6g} is above its bound {certificate.bound:.6g}")
        if abs(certificate.margin - margin) > SAME:
            verdict.faults.append(f"a margin of {certificate.margin:.6g} is stated, true {margin:.6g}")
        if self.best > certificate.best_margin + SOLVED:
            verdict.faults.append(f"a vote has the margin {self.best:.6g}, above {certificate.best_margin:.6g}")
        return verdict

    def _leads(self, vote: Any) -> list[arb]:
        """y F of every row."""
        leads = [arb(0)] * len(self.rows)
        for feature, cut, left, right, alpha in zip(
            vote.feature, vote.threshold, vote.left, vote.right, reals(vote.alpha), strict=True
        ):
            for i, x in enumerate(self.rows):
                says = int(left if x[feature] <= cut else right)
                leads[i] += alpha / 2 * int(self.signs[i]) * (1 if says == 1 else -1)
        return [lead.mid() for lead in leads]

    def states(self, model: Any, rng: Random, tol: float) -> Iterator[tuple[str, Any]]:
        """A weight, an error, a threshold, and the answers of a stump changed."""
        vote = model.vote_
        if not vote.n_rounds:
            return
        j, power = int(rng.integers(vote.n_rounds)), rng.uniform(-14, 0)
        is_j = np.arange(vote.n_rounds) == j
        yield (
            f"alpha of round {j} by 1e{power:.1f}",
            changed(model, "vote_", alpha=np.where(is_j, vote.alpha * (1 + 10.0**power), vote.alpha)),
        )
        yield (
            f"error of round {j} by 1e{power:.1f}",
            changed(model, "vote_", error=np.where(is_j, vote.error * (1 + 10.0**power), vote.error)),
        )
        yield (
            f"answers of round {j}",
            changed(
                model, "vote_", left=np.where(is_j, vote.right, vote.left), right=np.where(is_j, vote.left, vote.right)
            ),
        )


class LocalTruth(Truth):
    """Local regression: the normal equations at every training point, in many bits; terms "constant" or "linear"."""

    def __init__(self, problem: Problem, model: Any) -> None:
        set_bits(BITS)
        points = model.X_fit_ if model.mean_ is None else (model.X_fit_ - model.mean_) / model.scale_
        self.points = [reals(x) for x in points]  # distances are those of the standardised rows, which are float64
        self.y, self.weight = reals(model.y_fit_), reals(model.weight_fit_)
        self.is_linear = problem.parameters.get("terms", "linear") == "linear"
        self.is_gaussian = problem.parameters.get("weights", "gaussian") == "gaussian"

    def verdict(self, model: Any, certificate: Any) -> Verdict:
        """The largest relative residual."""
        tau = real(model.tau_)
        return Verdict(max(self._residual(k, theta, tau) for k, theta in enumerate(model.local_coef_)))

    def _residual(self, k: int, theta: Any, tau: arb) -> float:
        apart = [[a - b for a, b in zip(x, self.points[k], strict=True)] for x in self.points]
        weights = [m * self._near(u, tau) for m, u in zip(self.weight, apart, strict=True)]
        phi = [[arb(1), *u] if self.is_linear else [arb(1)] for u in apart]
        c = reals(theta)
        left = [y - total([a * b for a, b in zip(row, c, strict=True)]) for y, row in zip(self.y, phi, strict=True)]
        columns = list(zip(*phi, strict=True))
        norms = [self._norm(weights, column) for column in columns]
        size = self._norm(weights, self.y) + total([abs(a) * b for a, b in zip(c, norms, strict=True)])
        worst = 0.0
        for column, norm in zip(columns, norms, strict=True):
            across = abs(total([w * a * r for w, a, r in zip(weights, column, left, strict=True)]))
            worst = max(worst, ratio(across.mid(), (norm * size).mid()))
        return worst

    def _near(self, u: list[arb], tau: arb) -> arb:
        square = total([a * a for a in u]) / (tau * tau)
        if self.is_gaussian:
            return (-square / 2).exp()
        share = square.sqrt() ** 3 if square > 0 else arb(0)
        return (1 - share) ** 3 if share < 1 else arb(0)

    def _norm(self, weights: list[arb], column: Any) -> arb:
        return total([w * a * a for w, a in zip(weights, column, strict=True)]).mid().sqrt()

    def states(self, model: Any, rng: Random, tol: float) -> Iterator[tuple[str, Any]]:
        """A coefficient at one of the points, and the width."""
        coefficients = np.array(model.local_coef_)
        i, j = (int(rng.integers(size)) for size in coefficients.shape)
        power = rng.uniform(-14, 0)
        coefficients[i, j] += 10.0**power * (abs(coefficients[i, j]) or 1.0)
        other = copy.copy(model)
        other.local_coef_ = coefficients
        yield f"coefficient {j} of point {i} by 1e{power:.1f}", other
        wider = copy.copy(model)
        wider.tau_ = float(model.tau_ * (1 + 10.0**power))
        yield f"the width by 1e{power:.1f}", wider
