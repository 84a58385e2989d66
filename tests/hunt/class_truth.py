"""The truth about closed forms: Gaussian classes, naive Bayes, principal components; and about the perceptron."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from flint import arb, arb_mat
from scipy.optimize import nnls

from tests.hunt.generate import Problem
from tests.hunt.references.convex import ZERO
from tests.hunt.references.halfspace import lies_in_a_halfspace
from tests.hunt.references.moments import (
    Rows,
    divergence,
    eigenvalues,
    gaussian_divergence,
    given_matrix,
    part_of,
    quadratic_form,
)
from tests.hunt.references.numbers import as_float, rational, reals
from tests.hunt.references.quadratic import Squares
from tests.hunt.truth import Random, Truth, Verdict

ROUNDINGS = 16  # of a column that is a combination of others but for its own rounding


class ClassTruth(Truth):
    """Classes, their weights and shares."""

    def __init__(self, problem: Problem, model: Any) -> None:
        self.problem = problem
        self.rows = Rows(problem.rows, problem.weights)
        self.codes = np.searchsorted(model.classes_, problem.y)[self.rows.used]
        self.n_classes = len(model.classes_)
        self.members = [np.flatnonzero(self.codes == k).tolist() for k in range(self.n_classes)]
        self.sums = [sum((self.rows.weights[i] for i in own), ZERO) for own in self.members]
        self.total = sum(self.sums, ZERO)
        self.shares = [w / self.total for w in self.sums]

    def prior_shortfall(self, chances: list[arb], given: Any) -> arb:
        """Of the priors; priors that were given are no part of the fit, but must be those given."""
        return divergence(self.shares if given is None else reals(given), chances)


class GaussianTruth(ClassTruth):
    """Gaussian classes: shared, one covariance per class, or variances alone."""

    def __init__(self, problem: Problem, model: Any) -> None:
        super().__init__(problem, model)
        self.kind = problem.parameters.get("covariance", "shared")
        if type(model).__name__ == "GaussianNB":
            self.kind = "diagonal"
        self.moments = [self.rows.moments(own) if own else None for own in self.members]
        self.shrinkage = arb(float(problem.parameters.get("shrinkage", 0.0)))
        self.given = problem.parameters.get("priors")
        # Given priors weigh the classes of a shared covariance.
        self.weights = self.shares if self.given is None else reals(self.given)
        whole = self.rows.moments()[2]
        self.variances = [whole[j, j] for j in range(self.rows.n_columns)]
        self.smoothing = arb(float(getattr(model, "var_smoothing", 0.0))) * max(self.variances)
        self._bests: dict[bool, list[arb_mat]] = {}

    def best(self, certificate: Any) -> list[arb_mat]:
        """The best covariance of every class, shrunk and smoothed as the parameters say.

        Where the likelihood has no maximum and the certificate says so, with a millionth of the variances added.
        """
        is_mended = "millionth" in certificate.kind
        if is_mended not in self._bests:
            added = [self.smoothing + (arb(1e-6) * v if is_mended else ZERO) for v in self.variances]
            self._bests[is_mended] = [self._shrunk(matrix, added) for matrix in self._covariances_of_rows()]
        return self._bests[is_mended]

    def _covariances_of_rows(self) -> list[arb_mat]:
        d = self.rows.n_columns
        own = [arb_mat(d, d) if moments is None else moments[2] for moments in self.moments]
        if self.kind == "shared":
            mixed = arb_mat(d, d)
            for share, matrix in zip(self.weights, own, strict=True):
                mixed = mixed + matrix * share
            own = [mixed.mid()] * self.n_classes
        if self.kind == "diagonal":
            own = [arb_mat([[m[i, j] if i == j else ZERO for j in range(d)] for i in range(d)]) for m in own]
        return own

    def _shrunk(self, matrix: arb_mat, added: list[arb]) -> arb_mat:
        d, s = matrix.nrows(), self.shrinkage
        units = self.variances if self.problem.parameters.get("standardize", False) else [arb(1)] * d
        units = [unit if unit > 0 else arb(1) for unit in units]
        mean = sum((matrix[j, j] / units[j] for j in range(d)), ZERO) / d
        out = matrix * (1 - s)
        for j in range(d):
            out[j, j] += s * mean * units[j] + added[j]
        return out.mid()

    def verdict(self, model: Any, certificate: Any) -> Verdict:
        """Nats per row below the largest likelihood, of the covariance and of the roots that predict.

        Where the certificate claims the error of the stored numbers, that stands in place of the covariance's nats.
        """
        priors = model.class_prior_ if hasattr(model, "class_prior_") else model.priors_
        means = model.theta_ if hasattr(model, "theta_") else model.means_
        kept = [j for j in range(self.rows.n_columns) if j not in set(model.redundant_)]
        best, stored, roots = self.best(certificate), self._covariances(model), self._roots(model)
        has_error = "relative error" in certificate.claim
        of_stored, of_roots, error = ZERO, ZERO, ZERO
        for k, share in enumerate(self.weights):
            if self.moments[k] is None or not share > 0:
                continue
            if roots[k] is None or not has_error:
                of_stored = _more(of_stored, share, self._class_shortfall(k, best[k], stored[k], means[k], kept))
            if roots[k] is not None:
                of_roots = _more(of_roots, share, self._root_shortfall(k, best[k], roots[k], means[k], kept))
            error = max(error, self._error(k, best[k], stored[k], means[k]))
        total = self.prior_shortfall(reals(priors), self.given)
        nats = [as_float(total + part) for part in (of_stored, of_roots)]
        found = Verdict(max(*nats, as_float(error) if has_error else 0.0))
        is_conditional = "treating" in certificate.kind
        found.faults = [] if is_conditional or not certificate.holds else self._faults(model, kept)
        return found

    def _error(self, k: int, best: arb_mat, stored: arb_mat, mean: Any) -> arb:
        """The largest error of a mean, by its size or the spread, and of an entry of the covariance."""
        moments = self.moments[k]
        assert moments is not None
        spread = [best[j, j].sqrt() for j in range(best.nrows())]
        worst = ZERO
        for j, (right, wrong) in enumerate(zip(moments[1], reals(mean), strict=True)):
            if (size := max(abs(right), spread[j])) > 0:
                worst = max(worst, abs(right - wrong) / size)
        for i, a in enumerate(spread):
            for j, b in enumerate(spread):
                if a > 0 and b > 0:
                    worst = max(worst, abs(best[i, j] - stored[i, j]) / (a * b))
        return worst.mid()

    def _faults(self, model: Any, kept: list[int]) -> list[str]:
        return [fault for j in model.redundant_ if (fault := self._fault(j, kept))]

    def _covariances(self, model: Any) -> list[arb_mat]:
        stored = model.var_ if hasattr(model, "var_") else model.covariance_
        if self.kind == "diagonal":
            return [given_matrix(np.diag(variances)) for variances in stored]
        return [given_matrix(stored if self.kind == "shared" else stored[k]) for k in range(self.n_classes)]

    def _roots(self, model: Any) -> list[arb_mat | None]:
        if not hasattr(model, "roots_"):
            return [None] * self.n_classes
        roots = np.broadcast_to(model.roots_, (self.n_classes, *model.roots_.shape[1:]))
        return [given_matrix(np.diag(r[0]) if len(r) == 1 else r) for r in roots]

    def _class_shortfall(self, k: int, best: arb_mat, state: arb_mat, mean: Any, kept: list[int]) -> arb:
        inside = part_of(state, kept) if kept else arb_mat(0, 0)
        apart = gaussian_divergence(part_of(best, kept) if kept else inside, inside)
        if not apart.is_finite():
            return arb("inf")
        _, right, _ = self.moments[k]
        return apart + quadratic_form(inside, [right[j] - arb(float(mean[j])) for j in kept]) / 2

    def _root_shortfall(self, k: int, best: arb_mat, root: arb_mat, mean: Any, kept: list[int]) -> arb:
        if not kept:
            return ZERO
        inner = part_of(root, kept)
        if inner.det().mid() == 0:
            return arb("inf")
        covariance = (inner.transpose() * inner).inv().mid()
        return self._class_shortfall(k, best, _embedded(covariance, kept, root.nrows()), mean, kept)

    def _fault(self, j: int, kept: list[int]) -> str:
        """A column that was left out must be a combination of the others but for the rounding of its entries."""
        X = self.problem.rows[self.rows.used]
        exact = Squares(X[:, kept] if kept else np.zeros((len(X), 1)), X[:, j])
        left, size = exact.minimiser().objective, exact.squares
        if size == 0 or as_float(left / size) <= (ROUNDINGS * 2.0**-53) ** 2:
            return ""
        return f"x{j} is left out, but {math.sqrt(as_float(left / size)):.1e} of it is no combination of the others"

    def states(self, model: Any, rng: Random, tol: float) -> Iterator[tuple[str, Any]]:
        """Nudges of a mean, a variance, a prior."""
        for name in ("means_", "theta_", "covariance_", "var_", "priors_", "class_prior_"):
            if not hasattr(model, name) or rng.random() < 0.3:
                continue
            power = float(rng.uniform(-12, -1))
            yield f"{name} by 1e{power:.1f}", _nudged(model, name, rng, power)


def _more(total: arb, share: arb, part: arb) -> arb:
    return total + share * part if total.is_finite() and part.is_finite() else arb("inf")


def _embedded(matrix: arb_mat, kept: list[int], d: int) -> arb_mat:
    out = arb_mat(d, d)
    for i, row in enumerate(kept):
        for j, column in enumerate(kept):
            out[row, column] = matrix[i, j]
    return out


def _nudged(model: Any, name: str, rng: Random, power: float) -> Any:
    other = copy.copy(model)
    values = np.array(getattr(model, name), dtype=np.float64)
    place = tuple(int(rng.integers(n)) for n in values.shape)
    step = 10.0**power * (abs(values[place]) or 1.0)
    values[place] += step
    if name == "covariance_" and values.ndim == 3 and place[1] != place[2]:
        values[place[0], place[2], place[1]] += step
    setattr(other, name, values)
    return other


class CountTruth(ClassTruth):
    """Naive Bayes over counts, with alpha rows (words) more in every class."""

    def __init__(self, problem: Problem, model: Any) -> None:
        super().__init__(problem, model)
        self.alpha = arb(float(problem.parameters.get("alpha", 1.0)))
        self.is_bernoulli = type(model).__name__ == "BernoulliNB"
        given = problem.parameters.get("class_prior")
        if given is None and not problem.parameters.get("fit_prior", True):
            given = None if not self.n_classes else [1.0 / self.n_classes] * self.n_classes
        self.given = given
        X = [[arb(1) if x > 0 else ZERO for x in row] for row in self.rows.X] if self.is_bernoulli else self.rows.X
        d = self.rows.n_columns
        self.counts = [
            [sum((self.rows.weights[i] * X[i][j] for i in own), ZERO) for j in range(d)] for own in self.members
        ]

    def verdict(self, model: Any, certificate: Any) -> Verdict:
        """Nats per row below the largest smoothed likelihood; where it is claimed, the worst relative error too.

        What smoothing adds counts as rows of as many trials: the mean over rows of class k is that of all its rows.
        """
        priors = [arb(float(x)).exp() for x in model.class_log_prior_]
        best = self.shares if self.given is None else reals(self.given)
        total = divergence(best, priors)
        error = max((abs(q / p - 1) for p, q in zip(best, priors, strict=True) if p > 0), default=ZERO)
        for k, share in enumerate(best):
            if not self.sums[k] > 0:
                continue
            for trials, right, stored in self._outcomes(model, k):
                if share * trials > 0:
                    total += share * trials * divergence(right, stored)
                error = max([error, *(abs(q / p - 1) for p, q in zip(right, stored, strict=True) if p > 0)])
        has_error = "relative error" in certificate.claim
        return Verdict(max(as_float(total), as_float(error) if has_error else 0.0, 0.0))

    def _outcomes(self, model: Any, k: int) -> Iterator[tuple[arb, list[arb], list[arb]]]:
        """Trials per row of class k, the best chances of their outcomes, and those stored."""
        own = self.counts[k]
        chances = [arb(float(x)).exp() for x in model.feature_log_prob_[k]]
        if self.is_bernoulli:
            rows = self.sums[k] + 2 * self.alpha
            rests = [-arb(float(x)).expm1() for x in model.feature_log_prob_[k]]
            for count, p, rest in zip(own, chances, rests, strict=True):
                yes, no = (count + self.alpha) / rows, (self.sums[k] - count + self.alpha) / rows
                yield arb(1), [yes, no], [p, rest]
            return
        words = sum(own, ZERO)
        if words + self.alpha > 0:
            whole = words + self.alpha * len(own)
            yield words / self.sums[k], [(count + self.alpha) / whole for count in own], chances

    def states(self, model: Any, rng: Random, tol: float) -> Iterator[tuple[str, Any]]:
        """Nudges of a chance and a prior."""
        for name in ("feature_log_prob_", "class_log_prior_"):
            power = float(rng.uniform(-12, -1))
            other = _nudged(model, name, rng, power)
            if (getattr(other, name) <= 0).all():
                yield f"{name} by 1e{power:.1f}", other


class ComponentsTruth(Truth):
    """Principal components: residual, orthonormality, variance missed, centre."""

    directions = "components_"

    def __init__(self, problem: Problem, model: Any) -> None:
        self.problem = problem
        rows = Rows(problem.rows, problem.weights)
        self.total, mean, variances = rows.spreads()
        d = rows.n_columns
        if not problem.parameters.get("center", True):
            mean = [ZERO] * d
        scale = [arb(1)] * d
        if problem.parameters.get("standardize", False):
            scale = [v.sqrt() if v > 0 else arb(1) for v in variances]
        # A = Z'Z, z_i = sqrt(w_i / W) (x_i - mean) / scale; Z'Z and ZZ' have the same eigenvalues but for zeros
        roots = [(w / self.total).sqrt() for w in rows.weights]
        away = [
            [r * (x - m) / s for x, m, s in zip(row, mean, scale, strict=True)]
            for r, row in zip(roots, rows.X, strict=True)
        ]
        self.Z = arb_mat(away).mid()
        self.down = self.Z.transpose()
        self.trace = sum((z * z for row in away for z in row), ZERO).mid()
        values = eigenvalues((self.Z * self.down if self.Z.nrows() < d else self.down * self.Z).mid())
        self.values = values + [ZERO] * (d - len(values))
        size = arb(float(np.abs(problem.rows).max(initial=0.0)))
        is_scaled = bool(problem.parameters.get("standardize", False))
        self.is_rounding = not is_scaled and bool(self.trace <= (size * d) ** 2 * arb(2) ** -100)
        self.factor = self.total / (self.total - arb(float(problem.parameters.get("ddof", 1))))

    def product(self, V: arb_mat) -> arb_mat:
        """A V."""
        return (self.down * (self.Z * V)).mid()

    def verdict(self, model: Any, certificate: Any) -> Verdict:
        """The worst of the four claims."""
        V = given_matrix(getattr(model, self.directions)).transpose()
        k, d = V.ncols(), V.nrows()
        AV = self.product(V)
        found = [sum((V[i, c] * AV[i, c] for i in range(d)), ZERO) for c in range(k)]
        largest = max(found)
        inner = (V.transpose() * V).mid()
        apart = max(abs(inner[i, j] - (1 if i == j else 0)) for i in range(k) for j in range(k))
        residual = ZERO
        for c, variance in enumerate(reals(model.explained_variance_)):
            own = variance / self.factor
            square = sum(((AV[i, c] - own * V[i, c]) ** 2 for i in range(d)), ZERO)
            residual = max(residual, square.mid().sqrt().mid())
        missed = sum(self.values[:k], ZERO) - sum(found, ZERO)
        if not self.trace > 0 or (self.is_rounding and "to that rounding" in str(certificate)):
            return Verdict(as_float(apart))
        if not largest > 0:
            return Verdict(math.inf)
        worst = max(as_float(residual / largest), as_float(apart), as_float(missed / self.trace))
        verdict = Verdict(worst)
        explained = as_float(sum(found, ZERO) / self.trace)
        if certificate.holds and abs(explained - certificate.explained) > 1e-4 * explained + certificate.value:
            verdict.faults.append(f"explains {certificate.explained:.6g}, true {explained:.6g}")
        return verdict

    def states(self, model: Any, rng: Random, tol: float) -> Iterator[tuple[str, Any]]:
        """Directions turned, a variance changed."""
        power = float(rng.uniform(-12, -1))
        yield f"variance by 1e{power:.1f}", _nudged(model, "explained_variance_", rng, power)
        other = copy.copy(model)
        power = float(rng.uniform(-12, -1))
        components = getattr(model, self.directions)
        turned = components + 10.0**power * rng.normal(size=components.shape)
        setattr(other, self.directions, np.linalg.qr(turned.T)[0].T)
        yield f"directions by 1e{power:.1f}", other


class PerceptronTruth(Truth):
    """Every row on its side, the margin and the radius, and whether the classes can be separated at all."""

    def __init__(self, problem: Problem, model: Any) -> None:
        self.problem = problem
        self.signs = np.where(problem.y == model.classes_[1], 1, -1)
        self.has_intercept = bool(problem.parameters.get("fit_intercept", True))
        self._is_separable: bool | None = None

    @property
    def is_separable(self) -> bool:
        """Whether some weights put every row strictly on the side of its class."""
        if self._is_separable is None:
            ones = rational(float(self.has_intercept))
            self._is_separable = lies_in_a_halfspace(
                [
                    [int(sign) * entry for entry in (*map(rational, row), ones)]
                    for sign, row in zip(self.signs, self.problem.rows, strict=True)
                ]
            )
        return self._is_separable

    @property
    def most_margin(self) -> float:
        """What no margin exceeds: |sum_i p_i a_i| for shares p of the augmented examples a_i, near the least such."""
        ones = np.full((len(self.problem.rows), 1), float(self.has_intercept))
        examples = self.signs[:, None] * np.hstack([np.array(self.problem.rows, dtype=float), ones])
        scaled = examples / (np.abs(examples).max() or 1.0)
        # Least distance: the residual of A'u = 0, 1'u = 1 over u >= 0 points along the widest separator.
        shares = [
            rational(x) for x in nnls(np.vstack([scaled.T, np.ones(len(scaled))]), np.eye(len(scaled.T) + 1)[-1])[0]
        ]
        total = sum(shares, rational(0))
        if not total > 0:
            return math.inf
        mean = [
            sum((share * rational(entry) for share, entry in zip(shares, column, strict=True)), rational(0)) / total
            for column in examples.T
        ]
        return math.sqrt(as_float(sum((x * x for x in mean), rational(0))))

    def verdict(self, model: Any, certificate: Any) -> Verdict:
        """Updates as a share of the most that are possible: above 1 is false."""
        w = [rational(x) for x in np.append(np.ravel(model.coef_), np.ravel(model.intercept_))]
        faults = []
        least = square = None
        for sign, row in zip(self.signs, self.problem.rows, strict=True):
            example = [rational(x) for x in row] + [rational(float(self.has_intercept))]
            margin = int(sign) * sum((a * b for a, b in zip(example, w, strict=True)), rational(0))
            size = sum((a * a for a in example), rational(0))
            least = margin if least is None or margin < least else least
            square = size if square is None or size > square else square
        norm = math.sqrt(as_float(sum((x * x for x in w), rational(0)))) or 1.0
        if certificate.holds and not certificate.fault:
            widest = max(as_float(least) / norm, self.most_margin)
            if not least > 0:
                faults.append("a row is not on the side of its class")
            elif certificate.margin > widest * (1 + 1e-9):
                faults.append(f"margin {certificate.margin:.6e} claimed, at most {widest:.6e}")
            if certificate.radius < math.sqrt(as_float(square)) * (1 - 1e-9):
                faults.append(f"radius {certificate.radius:.6e} claimed, true {math.sqrt(as_float(square)):.6e}")
        if "no weights separate" in certificate.fault and self.is_separable:
            faults.append("called inseparable, but can be separated")
        if "can be separated" in certificate.fault and "Whether" not in certificate.fault and not self.is_separable:
            faults.append("called separable, but cannot be separated")
        return Verdict(0.0 if not certificate.fault else math.inf, faults=faults)

    def states(self, model: Any, rng: Random, tol: float) -> Iterator[tuple[str, Any]]:
        """None: updates belong to the weights that they ended with."""
        yield from ()
