"""Claims far out: columns of 1e-150, weights whose means overflow, offsets of 1e10 and classes that can be parted."""

from __future__ import annotations

import warnings
from copy import copy
from decimal import Decimal, localcontext

import numpy as np
import pytest
import scipy.sparse as sp

import certifit as cf

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

RNG = np.random.default_rng(3)
WHOLE = RNG.integers(-5, 6, size=(24, 3)).astype(float)
TARGETS = {
    "logistic": np.arange(24) % 2,
    "softmax": np.arange(24) % 3,
    "counts": RNG.poisson(2.0, 24).astype(float),
    "sizes": RNG.gamma(2.0, size=24),
}


@pytest.fixture(autouse=True)
def sixty_digits():
    with localcontext(prec=60):
        yield


@pytest.mark.parametrize("model, target, null", [
    (cf.LogisticRegression(alpha=0.5), "logistic", np.log(2)),
    (cf.LogisticRegression(alpha=0.5), "softmax", np.log(3)),
    (cf.PoissonRegressor(alpha=0.5), "counts", None),
    (cf.GLM("poisson", alpha=0.5), "counts", None),
    (cf.GammaRegressor(alpha=0.5), "sizes", None),
])  # fmt: skip
@pytest.mark.parametrize("nudge", [1e-3, 1e-5, 3e-9])
def test_the_penalty_on_weights_of_tiny_columns_is_in_the_bound(model, target, null, nudge):
    """No weight below 1e100 changes a score, so the excess is the penalty itself: alpha/2 |w|^2."""
    X, y = WHOLE * 1e-150, TARGETS[target]
    model.fit(X, y)
    assert model.certificate_.holds
    other = copy(model)
    other.coef_ = np.full_like(model.coef_, nudge)
    if other.coef_.ndim == 2 and len(other.coef_) > 1:  # weights whose sum over the classes is 0, and others
        other.coef_[0] *= -2
    if null is None:
        mean, z = y.mean(), np.where(y > 0, y, 1.0)
        null = np.mean(y * np.log(z / mean)) if target == "counts" else np.mean(np.log(mean / y))
    price = 0.5 / 2 * float(np.sum(np.square(other.coef_)))
    found = other.certify(X, y)
    assert found.value >= price / (null + price) * (1 - 1e-6)
    assert found.value <= price / (null + price) * 1.01 + 1e-20


def gamma_objective(x, y, w, b, l1, l2):
    total = Decimal(0)
    for one, target in zip(x, y, strict=True):
        u = Decimal(target).ln() - (b + Decimal(one) * w)
        total += u.exp() - 1 - u
    return total / len(y) + l1 * abs(w) + l2 / 2 * w * w


def test_the_error_of_a_dual_point_counts_where_the_conjugate_is_steep():
    """A column of 2e10 + noise that is not centred: its slope is known to far less than its weak penalty asks for."""
    rng = np.random.default_rng(0)
    noise = rng.normal(size=25)
    x, y = 2.3e10 + noise, 1e16 * np.exp(0.07 * noise + 0.01 * rng.normal(size=25))
    model = cf.GammaRegressor(alpha=0.1, l1_ratio=0.3).fit(sp.csr_array(x[:, None]), y)
    l1, l2 = Decimal("0.03"), Decimal("0.07")
    own = gamma_objective(x, y, Decimal(float(model.coef_[0])), Decimal(float(model.intercept_)), l1, l2)
    w, middle = Decimal("0.03"), Decimal(float(np.log(y.mean())))
    other = gamma_objective(x, y, w, middle - w * Decimal("2.3e10"), l1, l2)
    assert model.certificate_.value >= float((own - other) / own)


@pytest.mark.parametrize("make, y", [
    (lambda: cf.PoissonRegressor(alpha=0.0), TARGETS["counts"]),
    (lambda: cf.PoissonRegressor(alpha=0.1, l1_ratio=1.0), TARGETS["counts"]),
    (lambda: cf.GammaRegressor(alpha=0.1, bounds=(-0.5, np.inf)), TARGETS["sizes"]),
    (lambda: cf.GLM("gamma"), TARGETS["sizes"]),
    (lambda: cf.GLM("inverse-gaussian", link="inverse"), TARGETS["sizes"]),
    (lambda: cf.GLM("bernoulli", link="cloglog"), TARGETS["logistic"]),
    (lambda: cf.GLM(cf.families.Tweedie(power=1.5)), TARGETS["sizes"]),
    (lambda: cf.GLM(cf.families.NegativeBinomial(alpha=1.0)), TARGETS["counts"]),
    (lambda: cf.LogisticRegression(alpha=0.0), TARGETS["softmax"]),
])  # fmt: skip
@pytest.mark.parametrize("weight", [3.0, 1e3, -1e3, 1e160, -1e300])
@pytest.mark.slow
def test_far_out_states_are_refused_without_a_warning(make, y, weight):
    model = make().fit(WHOLE, y)
    model.coef_ = np.full_like(model.coef_, weight)
    if model.coef_.ndim == 2:
        model.coef_[0] = -weight
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        found = model.certify(WHOLE, y)
    assert not found.holds
    assert found.value > 1e-3 and found.rounding >= 0  # a number, if infinite
    assert len(found.sentences()[0].split()) > 5


@pytest.mark.parametrize("model, classes", [
    (cf.GLM("poisson"), None),
    (cf.LogisticRegression(alpha=0.0), 1),
    (cf.LogisticRegression(alpha=0.0), 2),
])  # fmt: skip
def test_a_fit_without_a_finite_minimum_is_saved_with_what_is_known(model, classes, tmp_path):
    rng = np.random.default_rng(1)
    x, z = rng.normal(size=(2, 2000))
    counts = rng.poisson(np.exp(-1 + 0.3 * x))
    y = counts if classes is None else np.minimum(counts, classes)
    X = np.c_[x, z, counts > 0]
    model.fit(X, y)
    assert not model.certificate_.holds and model.certificate_.rounding >= 0
    cf.save(model, tmp_path / "parted.certifit")
    again = cf.load(tmp_path / "parted.certifit")
    assert again.certificate_.value == np.inf
    assert not cf.verify(again, X, y)


def test_scores_close_to_the_end_of_a_link_have_a_proof_of_their_own_room():
    """Means of 30 have scores of 1e-3 with the inverse-squared link: less room to 0 than any fixed distance."""
    rng = np.random.default_rng(2)
    x = rng.uniform(0, 1, size=40)
    mean = 1 / np.sqrt(1e-3 + 1e-3 * x)
    y = mean * np.exp(0.1 * rng.normal(size=40))
    model = cf.GLM("inverse-gaussian", link="inverse-squared").fit(x[:, None], y)
    assert model.certificate_.holds and not model.certificate_.is_local
    other = copy(model)
    other.coef_ = model.coef_ * (1 + 1e-6)
    found = other.certify(x[:, None], y)

    def objective(fit):
        total = Decimal(0)
        for one, target in zip(x, y, strict=True):
            score = Decimal(float(fit.intercept_)) + Decimal(one) * Decimal(float(fit.coef_[0]))
            total += (Decimal(target) * score + 1 / Decimal(target)) / 2 - score.sqrt()
        return total

    assert found.value >= float((objective(other) - objective(model)) / objective(other))


def test_a_target_that_does_not_vary_leaves_no_objective_to_be_relative_to():
    """The minimum is 0: all of an objective that is not exactly 0 is excess."""
    model = cf.GLM("binomial", link="cloglog", alpha=1.0).fit([[5.0, -4.0], [1.0, 2.0]], [0.25, 0.25])
    assert not model.certificate_.holds and "y is 0.25 in every row" in model.certificate_.sentences()[0]
