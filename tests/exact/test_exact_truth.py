"""Claims about exact values: they are those of rational numbers, on data that float64 sums cannot tell apart."""

from __future__ import annotations

import math
import warnings
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import certifit as cf
from certifit.exact import balls
from certifit.exact.losses import GlmProblem, NoExactForm, _cloglog_mean
from certifit.exact.penalised import Penalty, ScoreFit
from certifit.exact.proof import Bounds, ExactRows, refined
from certifit.mathematics.losses.poisson_gamma_tweedie import PoissonLog
from certifit.mathematics.losses.scores import Squared

pytest.importorskip("flint")


def rows(X: Any, y: Any, weight: Any = None) -> ExactRows:
    X, y = np.asarray(X, dtype=float), np.asarray(y, dtype=float)
    w = np.ones(len(y)) if weight is None else np.asarray(weight, dtype=float)
    return ExactRows(X, y, w, np.zeros(len(y)), tuple(f"x{j}" for j in range(X.shape[1])))


def least_squares(data: ExactRows, coef: Any, intercept: float, alpha: float = 0.0) -> Any:
    penalty = Penalty.ridge(alpha, data.n_columns)
    return ScoreFit(data, Squared(), penalty, True, np.asarray(coef, dtype=float), intercept).proof()


def true_excess(data: ExactRows, coef: Any, intercept: float, alpha: float = 0.0) -> float:
    """(P(w) - min P) / P(w) in rationals, for columns that are independent."""
    A = [[Fraction(1), *map(Fraction, row)] for row in data.X.tolist()]
    y, w = [*map(Fraction, data.y.tolist())], [*map(Fraction, data.weight.tolist())]
    whole, d = sum(w), len(A[0])
    ridge = [Fraction(0)] + [Fraction(alpha) * whole] * (d - 1)
    system = [
        [sum(v * a[i] * a[j] for v, a in zip(w, A, strict=True)) + (ridge[i] if i == j else 0) for j in range(d)]
        + [sum(v * a[i] * t for v, a, t in zip(w, A, y, strict=True))]
        for i in range(d)
    ]
    best = solved(system)
    own = [Fraction(intercept), *map(Fraction, np.asarray(coef, dtype=float).tolist())]

    def objective(theta: list[Fraction]) -> Fraction:
        left = [t - sum(a * b for a, b in zip(row, theta, strict=True)) for row, t in zip(A, y, strict=True)]
        return sum(v * r * r for v, r in zip(w, left, strict=True)) + sum(
            p * t * t for p, t in zip(ridge, theta, strict=True)
        )

    return float((objective(own) - objective(best)) / objective(own))


def solved(system: list[list[Fraction]]) -> list[Fraction]:
    """Gauss and Jordan."""
    d = len(system)
    for i in range(d):
        pivot = next(k for k in range(i, d) if system[k][i] != 0)
        system[i], system[pivot] = system[pivot], system[i]
        system[i] = [v / system[i][i] for v in system[i]]
        for k in range(d):
            if k != i and system[k][i] != 0:
                system[k] = [a - system[k][i] * b for a, b in zip(system[k], system[i], strict=True)]
    return [row[-1] for row in system]


def issue_cases() -> dict[str, tuple[ExactRows, list[float], float, float]]:
    rng = np.random.default_rng(0)
    u, v, noise = rng.normal(size=(3, 30))
    a, z = rng.integers(-60, 60, size=(2, 20)).astype(float)
    constant = np.full(30, 1e10)
    constant[7] += 2e-6
    return {
        "a copy but for 1e-14": (rows(np.c_[u, u + 1e-14 * v], u + v + 0.1 * noise), [1.0, 0.0], 0.1, 0.0),
        "whole numbers beyond 2^48": (rows(np.c_[a, a * 2.0**48 + z], 5 * z), [0.0, 2.0**-48], 0.0, 0.0),
        "a target of 1e12": (rows(u[:, None], 1e12 + 0.01 * (u + noise)), [0.011], 1e12, 0.0),
        "a nearly constant column": (rows(np.c_[u, constant], u + noise), [1.0, 0.0], 0.0, 1e-30),
        "weights from 1e-200 to 1e200": (rows(u[:6, None], v[:6], 10.0 ** np.arange(-200, 201, 80)), [1.0], 0.5, 0.0),
        "columns of 1e150 and 1e-150": (rows(np.c_[1e150 * u, 1e-150 * v], u + noise), [1e-150, 1e150], 0.0, 0.0),
    }


@pytest.mark.parametrize("name", issue_cases())
def test_least_squares_is_that_of_rationals(name):
    data, coef, intercept, alpha = issue_cases()[name]
    proof, truth = least_squares(data, coef, intercept, alpha), true_excess(data, coef, intercept, alpha)
    assert proof.lower <= truth <= proof.upper
    assert proof.is_sharp and not proof.fault


@pytest.mark.parametrize("name", ["a copy but for 1e-14", "whole numbers beyond 2^48", "a target of 1e12"])
def test_a_fit_to_the_issues_data_claims_no_less_than_the_truth_or_is_refused(name):
    data, *_ = issue_cases()[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = cf.LinearRegression().fit(data.X, data.y)
    result = cf.verify(model, data.X, data.y, exact=True)
    is_borne_out = result.exact.lower <= result.certificate.value
    assert is_borne_out or any("is false" in reason for reason in result.reasons)


def test_the_lasso_of_orthogonal_columns_is_soft_thresholding():
    X = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])
    y, alpha = np.array([3.0, 1.0, 0.5, -4.0]), 0.25
    moments = X.T @ y / 4  # whole multiples of 1/8
    best = np.sign(moments) * np.maximum(np.abs(moments) - alpha, 0.0)
    free = np.full(2, np.inf)
    fit = ScoreFit(rows(X, y), Squared(), Penalty(alpha, 1.0, np.ones(2), -free, free), True, best, float(y.mean()))
    assert fit.proof().upper == pytest.approx(0.0, abs=1e-50)
    state = np.array([best[0] + 0.5, best[1]])
    moved = ScoreFit(rows(X, y), Squared(), fit.penalty, True, state, float(y.mean())).proof()
    left = y - y.mean() - X @ state
    own = left @ left / 8 + alpha * np.abs(state).sum()
    assert moved.lower == pytest.approx(0.125 / own, rel=1e-12)  # half the square of the step


def test_poisson_counts_of_1e12_keep_their_digits():
    """A constant model is best at the mean: the deviance of the state in 300 bits beside it."""
    rng = np.random.default_rng(1)
    y = np.round(1e12 * (1 + 1e-6 * rng.normal(size=12)))
    data = rows(np.zeros((12, 0)), y)
    intercept = math.log(1e12) + 1e-9
    proof = ScoreFit(data, PoissonLog(), Penalty.ridge(0.0, 0), True, np.zeros(0), intercept).proof()
    with balls.precision(300):
        own, mean = balls.ball(intercept), balls.total(balls.balls(y.tolist())) / 12

        def deviance(z: Any) -> Any:
            return sum((z.exp() - t - t * (z - t.log()) for t in balls.balls(y.tolist())), balls.ball(0))

        truth = (deviance(own) - deviance(mean.log())) / deviance(own)
        assert balls.about(truth) == pytest.approx(proof.lower, rel=1e-3)
        assert balls.about(truth) == pytest.approx(proof.upper, rel=1e-3)


def test_copies_are_decided_in_whole_numbers():
    rng = np.random.default_rng(2)
    u, v = rng.normal(size=(2, 20))
    assert balls.independent_columns(np.c_[u, 2 * u, v]).tolist() == [0, 2]
    assert balls.independent_columns(np.c_[u, np.nextafter(u, 9), v]).tolist() == [0, 1, 2]
    assert balls.independent_columns(np.c_[1e150 * u, 1e-150 * v, np.zeros(20)]).tolist() == [0, 1]


def test_separated_classes_have_no_minimum_and_the_direction_is_checked():
    X = np.arange(8.0)[:, None]
    y = (X[:, 0] > 3).astype(int)
    model = cf.LogisticRegression(0.01).fit(X, y)
    model.alpha = model.alpha_ = 0.0
    result = cf.verify(model, X, y, exact=True)
    assert not result.holds
    assert "there is no minimum" in str(result) and "checked exactly" in str(result)


@pytest.mark.parametrize(
    "model, words",
    [
        (cf.GLM("gaussian", "log"), "is local"),
        (cf.GLM("gamma", "identity"), "is local"),
        (cf.Perceptron(), "Perceptron has no exact certificate"),
    ],
)
def test_what_has_no_exact_certificate_is_refused(model, words):
    rng = np.random.default_rng(3)
    X = rng.uniform(1, 2, size=(20, 1))
    y = (X[:, 0] > 1.5).astype(int) if isinstance(model, cf.Perceptron) else X[:, 0] + 0.1 * rng.random(20)
    model.fit(X, y)
    with pytest.raises(NoExactForm, match=words):
        cf.verify(model, X, y, exact=True)


def test_precision_doubles_until_both_ends_agree():
    seen = []

    def attempt() -> Any:
        seen.append(balls.flint().ctx.prec)
        third = balls.ball(1) / 3 if len(seen) > 2 else balls.around(balls.ball(0.5), balls.ball(0.4))
        return Bounds(third, third)

    proof = refined(attempt, "", "")
    assert seen == [192, 384, 768] and proof.bits == 768
    assert proof.lower < 1 / 3 < proof.upper
    assert refined(lambda: None, "", "never", most_bits=384).fault == "never"


def test_chances_near_1_are_known_where_the_exponential_is_beyond_all_balls():
    """log(1 - exp(-exp(z))) and its slope are tiny numbers for z = 60: exp(exp(60)) is not needed."""
    with balls.precision(192):
        value, slope, curvature = _cloglog_mean(balls.ball(60.0))
        assert balls.is_finite([value, slope, curvature])
        assert abs(value) < balls.ball(1e-300) and abs(slope) < balls.ball(1e-300)
        near = _cloglog_mean(balls.ball(-3.0))
    t = math.exp(-3.0)
    expected = (math.log(-math.expm1(-t)), t / math.expm1(t))
    assert [float(part.mid()) for part in near[:2]] == pytest.approx(expected, rel=1e-14)


@pytest.mark.filterwarnings("ignore:.*NOT certified")
def test_a_state_far_from_every_minimum_is_given_up_after_few_evaluations(monkeypatch):
    """Targets of 1e-100 beside weights of 0: a Newton step is 1e98 too long, and no bits shorten it."""
    counted = []
    evaluate = GlmProblem.at
    monkeypatch.setattr(GlmProblem, "at", lambda *args, **options: counted.append(1) or evaluate(*args, **options))
    rng = np.random.default_rng(0)
    X = rng.normal(size=(10, 2))
    X, y = np.c_[X, X[:, 0]], 10.0 ** -rng.uniform(97, 104, size=10)
    model = cf.GammaRegressor(alpha=0.1, l1_ratio=1.0, fit_intercept=False).fit(X, y)
    assert not model.certificate_.holds and not cf.verify(model, X, y, exact=True)
    assert len(counted) < 2000
