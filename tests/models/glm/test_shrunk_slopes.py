"""What slopes of losses that are shrunk cost a dual bound, against 80-digit arithmetic, and what they prove."""

from __future__ import annotations

from decimal import Decimal, localcontext

import numpy as np
import pandas as pd
import pytest

import certifit as cf
from certifit.data.source import Memory
from certifit.mathematics.losses.poisson_gamma_tweedie import GammaLog, PoissonLog
from certifit.mathematics.losses.scores import Logistic
from certifit.statistics.gram import Scaling
from certifit.statistics.loss_sums import At, shrunk_slopes


def divergence(a: Decimal, b: Decimal) -> Decimal:
    """a log(a / b) - a + b."""
    return (a * (a / b).ln() if a else Decimal(0)) - a + b


def bracket(name: str, y: Decimal, z: Decimal, t: Decimal, slope: Decimal | None = None) -> tuple[Decimal, ...]:
    """l(z) + l*(t u) - t u z, u = slope, or l'(z); l' and l''."""
    e = z.exp()
    p = e / (1 + e)
    true, curved = {"logistic": (p - y, p * (1 - p)), "poisson": (e - y, e), "gamma": (1 - y / e, y / e)}[name]
    u = t * (true if slope is None else slope)
    if name == "logistic":
        return divergence(y + u, p) + divergence(1 - y - u, 1 - p), true, curved
    return divergence(y + u, e) if name == "poisson" else divergence(1 - u, y / e), true, curved


@pytest.mark.parametrize("lost", [1e-9, 1e-3, 0.4, 0.99])
@pytest.mark.parametrize("name", ["logistic", "poisson", "gamma"])
def test_the_price_of_shrunk_slopes_is_never_below_the_true_one(rng, name, lost):
    loss = {"logistic": Logistic, "poisson": PoissonLog, "gamma": GammaLog}[name]()
    z = rng.normal(size=60) * rng.choice([0.1, 3.0, 20.0], 60)
    y = {"logistic": rng.integers(0, 2, 60), "poisson": rng.poisson(3, 60), "gamma": rng.gamma(2.0, size=60)}[name]
    for zi, yi in zip(z.tolist(), y.astype(float).tolist(), strict=True):
        source = Memory(np.array([[zi]]), np.array([yi]), None)
        at = At(loss, Scaling(np.ones(1), np.zeros(1), 1.0, 0.0, 1.0), np.ones(1), 0.0)
        priced = Decimal(shrunk_slopes(source, at, lost, 1e-15))
        with localcontext() as context:
            context.prec = 80
            true, slope, curved = bracket(name, Decimal(yi), Decimal(zi), 1 - Decimal(lost))
            assert priced >= true
            near = Decimal(lost) * abs(slope) < curved / 10
            assert not near or priced <= 5 * true + Decimal("1e-25")
            rounded = Decimal(float(loss.derivatives(np.array([yi], float), np.array([zi]))[1][0]))
            priced = Decimal(shrunk_slopes(source, at, lost, 1e-15, is_rounded=True))
            assert priced >= bracket(name, Decimal(yi), Decimal(zi), 1 - Decimal(lost), rounded)[0]
            assert priced.is_finite() or curved < Decimal("1e-13") * (1 + Decimal(yi))


@pytest.mark.parametrize("family", ["poisson", "gamma"])
@pytest.mark.parametrize("place", ["made here", "medpar"])
def test_a_weak_l1_penalty_on_columns_in_a_relation_is_proven(rng, request, family, place):
    """type1 + type2 + type3 = 1, and type = type1 + 2 type2 + 3 type3; rounding is 1e-5 of the penalty."""
    kind = rng.integers(1, 4, 400)
    table = pd.DataFrame({"died": rng.random(400) < 0.3, "type": kind} | {f"type{k}": kind == k for k in (1, 2, 3)})
    y = 1.0 + rng.poisson(np.exp(1 + 0.5 * kind))
    if place == "medpar":
        table = pd.read_csv(request.getfixturevalue("shared_data") / "classics_small" / "medpar.csv").drop(
            columns="provnum"
        )
        y = table.pop("los").to_numpy(float)
    X = table.to_numpy(float)
    for alpha in (1e-5, 1e-6):
        model = cf.GLM(family, alpha=alpha, l1_ratio=1.0).fit(X, y)
        assert model.certificate_.holds and model.certificate_.value < 1e-10
        model.coef_ = model.coef_ * (1 + 1e-3)
        assert not model.certify(X, y).holds


@pytest.mark.parametrize("family", ["gaussian", "poisson", "gamma", "bernoulli"])
def test_rounding_of_a_large_column_does_not_loosen_the_proof_of_columns_in_a_relation(rng, family):
    """A copy, all levels of a factor, money and its square: their penalty is near the rounding of sums of products."""
    money, level = np.round(rng.lognormal(10, 1, 150)), rng.integers(0, 3, 150)
    X = np.column_stack([money, money**2, money, *(level == k for k in range(3)), rng.normal(size=(150, 2))])
    score = 1 + 0.5 * level + 0.3 * X[:, -1] + money / money.std() / 4
    y = {
        "gaussian": 1e6 * (score + rng.normal(size=150)),
        "poisson": rng.poisson(np.exp(score)),
        "gamma": np.exp(score) * rng.gamma(2.0, size=150),
        "bernoulli": rng.random(150) < 1 / (1 + np.exp(1.5 - score)),
    }[family].astype(float)
    for alpha in (1e-4, 1e-2):
        model = cf.GLM(family, alpha=alpha, l1_ratio=1.0).fit(X, y)
        assert model.certificate_.holds, model.certificate_
        model.coef_ = model.coef_ * (1 + 1e-3 * (np.arange(8) == np.argmax(np.abs(model.coef_) * X.std(axis=0))))
        assert not model.certify(X, y).holds
