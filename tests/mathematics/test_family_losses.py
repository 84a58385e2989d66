"""Losses of families and links: derivatives, least values, curvatures, conjugates, far out."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest

from certifit.mathematics.families import FAMILIES, LINKS, NegativeBinomial, Power, Tweedie
from certifit.mathematics.losses.families import BernoulliLoss, ResponseLoss, loss_of
from certifit.mathematics.losses.poisson_gamma_tweedie import GammaLog, NegativeBinomialLog, PoissonLog, TweedieLog
from certifit.mathematics.losses.scores import Logistic, ScoreLoss, Squared

STEP = 1e-5
PAIRS = [(family, link) for family in FAMILIES.values() for link in family.links]
PAIRS += [(Tweedie(1.2), "log"), (NegativeBinomial(0.2), "log"), (Tweedie(1.5), Power(-0.5))]
IDS = [f"{family!r}-{link}" for family, link in PAIRS]
CONJUGATES = [Logistic(), PoissonLog(), GammaLog(), Squared(), NegativeBinomialLog(1.0), NegativeBinomialLog(0.2)]


def targets(family, n, rng):
    if family.means == (0.0, 1.0):
        return rng.integers(0, 2, n).astype(float)
    if family.name == "gaussian":
        return 3 * rng.normal(size=n)
    return rng.poisson(2.0, n) + (0.3 if family.legal == "> 0" else 0.0)


def generic(family, link) -> ResponseLoss:
    return ResponseLoss(family, family.link(link))


def rows(family, link, rng, n=300):
    """Targets, and legal scores not too near the ends."""
    low, high = generic(family, link).scores
    z = rng.uniform(max(low, -3) + 0.15, min(high, 3) - 0.1, n)
    return targets(family, n, rng), z


@pytest.mark.parametrize("family, link", PAIRS, ids=IDS)
def test_slope_and_curvature_are_the_derivatives_of_value(family, link, rng):
    loss = loss_of(family, link)
    y, z = rows(family, link, rng)
    slope = (loss.value(y, z + STEP) - loss.value(y, z - STEP)) / (2 * STEP)
    curvature = (loss.slope(y, z + STEP) - loss.slope(y, z - STEP)) / (2 * STEP)
    np.testing.assert_allclose(loss.slope(y, z), slope, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(loss.curvature(y, z), curvature, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("family, link", PAIRS, ids=IDS)
def test_a_loss_is_half_the_deviance_at_the_mean_of_the_score(family, link, rng):
    loss, mean = loss_of(family, link), family.link(link).mean
    y, z = rows(family, link, rng)
    np.testing.assert_allclose(loss.value(y, z), family.deviance(y, mean(z)) / 2, rtol=1e-9, atol=1e-13)
    np.testing.assert_allclose(loss.mean(z), mean(z), rtol=1e-14)
    assert loss.score(0.4) == pytest.approx(float(family.link(link).score(np.array(0.4))), rel=1e-13)


@pytest.mark.parametrize("family, link", PAIRS, ids=IDS)
def test_a_loss_of_its_own_is_the_general_one(family, link, rng):
    loss, general = loss_of(family, link), generic(family, link)
    y, z = rows(family, link, rng)
    z = np.minimum(z, 2.0)  # 1 - mu keeps its digits
    for part in ("value", "slope", "curvature"):
        np.testing.assert_allclose(getattr(loss, part)(y, z), getattr(general, part)(y, z), rtol=1e-8, atol=1e-11)
    assert loss.is_convex == general.is_convex


@pytest.mark.parametrize("family, link", PAIRS, ids=IDS)
def test_the_expected_curvature_is_the_mean_of_the_curvature(family, link, rng):
    """The curvature is linear in y, so its mean over targets of mean mu is the curvature at y = mu."""
    general = generic(family, link)
    _, z = rows(family, link, rng)
    mu = general.mean(z)
    np.testing.assert_allclose(general.expected(mu, z), general.curvature(mu, z), rtol=1e-10)
    assert (general.expected(mu, z) > 0).all()
    if isinstance(loss_of(family, link), ResponseLoss | NegativeBinomialLog):
        np.testing.assert_allclose(loss_of(family, link).expected(mu, z), general.expected(mu, z), rtol=1e-7)


@pytest.mark.parametrize("family, link", PAIRS, ids=IDS)
def test_a_loss_called_convex_has_no_negative_curvature_and_others_have(family, link, rng):
    loss = loss_of(family, link)
    low, high = generic(family, link).scores
    z = np.linspace(max(low, -8) + 1e-3, min(high, 8) - 1e-3, 400)
    lowest = min(float(loss.curvature(np.full_like(z, y), z).min()) for y in targets(family, 50, rng))
    assert lowest >= 0 if loss.is_convex else lowest < 0


@pytest.mark.parametrize("family, link", PAIRS, ids=IDS)
def test_a_score_without_a_legal_mean_has_an_infinite_loss(family, link, rng):
    loss, (low, high) = loss_of(family, link), generic(family, link).scores
    ends = [end for end in (low, high) if math.isfinite(end)]
    outside = np.array([end + (step if end == high else -step) for end in ends for step in (0.0, 0.5)])
    assert np.isinf(loss.value(np.full_like(outside, 1.0), outside)).all()
    assert np.isnan(loss.mean(outside)).all()
    y = targets(family, 20, rng)
    start = loss.start(y) if isinstance(loss, ResponseLoss) else np.array([loss.score(0.5)])
    assert ((start > low) & (start < high)).all()


@pytest.mark.parametrize("family, link", PAIRS, ids=IDS)
def test_the_concordance_holds_on_a_grid(family, link):
    """|l'''| <= M l'' by differences of the curvature."""
    loss = loss_of(family, link)
    if loss.concordance is None:
        return
    z, step = np.linspace(-9, 9, 1001), 1e-4
    for y in (0.0, 0.4, 1.0):
        at = np.full_like(z, y if family.legal != "> 0" else y + 0.1)
        third = (loss.curvature(at, z + step) - loss.curvature(at, z - step)) / (2 * step)
        second = loss.curvature(at, z)
        assert (np.abs(third) <= loss.concordance * second * (1 + 1e-6) + 1e-12).all()


@pytest.mark.parametrize("family, link", PAIRS, ids=IDS)
def test_a_convex_loss_has_a_concordance_on_every_interval(family, link, rng):
    """|l'''| <= M l'' by differences of the curvature, and M is not far too large."""
    loss, (low, high) = loss_of(family, link), generic(family, link).scores
    if not loss.is_convex or isinstance(link, Power):
        assert loss.concordance_on(1.0, 2.0) is None
        return
    for _ in range(20):
        ends = np.sort(rng.uniform(max(low, -4.5) + 0.02, min(high, 4.5) - 0.02, 2))
        z, step = np.linspace(*ends, 200), 1e-4 * min(1.0, ends[0] - low, high - ends[1])
        ratios = []
        for y in np.unique(targets(family, 30, rng)):
            at = np.full_like(z, y)
            third = (loss.curvature(at, z + step) - loss.curvature(at, z - step)) / (2 * step)
            second = loss.curvature(at, z)
            known = second > (1e-12 if type(loss) is ResponseLoss else 1e-60)  # its terms cancel
            ratios.append(float(np.max(np.abs(third[known]) / second[known], initial=0.0)))
        assert max(ratios) <= loss.concordance_on(*ends) * (1 + 1e-4) + 1e-6
        assert loss.concordance_on(*ends) <= 3 * max(ratios) + 2


def test_a_concordance_is_infinite_where_scores_are_not_legal():
    for name, link, ends in [
        ("poisson", "identity", (-1.0, 2.0)),
        ("gamma", "inverse", (0.0, 2.0)),
        ("bernoulli", "log", (-1.0, 0.0)),
        ("bernoulli", "identity", (0.5, 1.0)),
        ("bernoulli", "cloglog", (0.0, 800.0)),
    ]:
        assert loss_of(name, link).concordance_on(*ends) == math.inf


def test_probit_and_cloglog_have_no_concordance():
    """l''' / l'' is about -z and -e^z for y = 1: no M bounds it."""
    z, step = np.array([6.0]), 1e-4
    for link, ratio in (("probit", 6.0), ("cloglog", math.exp(3.0))):
        loss = loss_of("bernoulli", link)
        at = z if link == "probit" else np.array([3.0])
        one = np.ones(1)
        third = (loss.curvature(one, at + step) - loss.curvature(one, at - step)) / (2 * step)
        assert loss.concordance is None
        assert -third[0] / loss.curvature(one, at)[0] > 0.8 * ratio


@pytest.mark.parametrize("link", ["logit", "probit", "cloglog"])
@pytest.mark.parametrize("z", [-700.0, -40.0, 40.0, 700.0])
def test_losses_of_chances_keep_their_digits_far_out(link, z):
    """The likely target costs what the other's chance is, the unlikely one its logarithm."""
    loss = BernoulliLoss(FAMILIES["bernoulli"], LINKS[link])
    parts = LINKS[link].log_mean(np.array([z])), LINKS[link].log_rest(np.array([z]))
    for y, exact in ((1.0, parts[0]), (0.0, parts[1])):
        at = np.array([y]), np.array([z])
        np.testing.assert_array_equal(loss.value(*at), -exact.value)
        np.testing.assert_array_equal(loss.slope(*at), -exact.slope)
        np.testing.assert_array_equal(loss.curvature(*at), -exact.curvature)
        assert not np.isnan(loss.expected(*at)).any()


@pytest.mark.parametrize("alpha", [1e-3, 0.5, 10.0])
@pytest.mark.parametrize("z", [-700.0, -40.0, 40.0, 700.0])
def test_the_negative_binomial_has_closed_forms_far_out(alpha, z):
    """l is about y (log y - z) below, log(alpha e^z) / alpha above, less what y decides."""
    loss, y = NegativeBinomialLog(alpha), np.array([3.0])
    own = y * np.log(alpha * y / (1 + alpha * y)) - np.log1p(alpha * y) / alpha
    t = z + math.log(alpha)
    expected = (own - y * t) if z < 0 else own + t / alpha
    np.testing.assert_allclose(loss.value(y, np.array([z])), expected, rtol=1e-13)
    np.testing.assert_allclose(loss.slope(y, np.array([z])), -y if z < 0 else 1 / alpha, rtol=1e-13)
    assert loss.curvature(y, np.array([z]))[0] >= 0


@pytest.mark.parametrize("loss", CONJUGATES, ids=repr)
def test_young_inequality_holds_with_equality_at_the_slope(loss: ScoreLoss, rng):
    y = np.array([0.0, 0.3, 1.0, 1.0, 0.7]) if isinstance(loss, Logistic) else np.array([0.5, 1.0, 2.0, 7.0, 30.0])
    y, z = np.repeat(y, 200), rng.uniform(-5, 5, 1000)
    u = loss.slope(y, rng.uniform(-5, 5, 1000))
    assert (loss.value(y, z) + loss.conjugate(y, u) - u * z >= -1e-11 * (1 + np.abs(u * z))).all()
    at = loss.slope(y, z)
    np.testing.assert_allclose(loss.conjugate(y, at), at * z - loss.value(y, z), rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("loss", CONJUGATES, ids=repr)
def test_a_conjugate_is_the_largest_difference_on_a_fine_grid(loss: ScoreLoss):
    grid = np.linspace(-15, 15, 30_001)
    for y in (0.5, 1.0) if isinstance(loss, Logistic) else (0.5, 3.0):
        for u in loss.slope(np.full(5, y), np.linspace(-3, 3, 5)):
            largest = (u * grid - loss.value(np.full_like(grid, y), grid)).max()
            assert float(loss.conjugate(np.array(y), np.array(u))) == pytest.approx(largest, abs=1e-4, rel=1e-6)


@pytest.mark.parametrize(
    "loss, y, u",
    [
        (Logistic(), 1.0, 0.1),
        (Logistic(), 0.0, -0.1),
        (PoissonLog(), 2.0, -2.1),
        (GammaLog(), 2.0, 1.1),
        (NegativeBinomialLog(0.5), 2.0, 2.1),
        (NegativeBinomialLog(0.5), 2.0, -2.1),
    ],
    ids=repr,
)
def test_a_conjugate_is_infinite_outside_the_slopes(loss, y, u):
    assert loss.conjugate(np.array([y]), np.array([u]))[0] == np.inf


@pytest.mark.parametrize(
    "family, link, kind",
    [
        ("gaussian", None, Squared),
        ("bernoulli", None, Logistic),
        ("binomial", "logit", Logistic),
        ("poisson", None, PoissonLog),
        ("gamma", None, GammaLog),
        ("exponential", "log", GammaLog),
        ("tweedie", None, TweedieLog),
        ("negative-binomial", None, NegativeBinomialLog),
        ("bernoulli", "probit", BernoulliLoss),
        ("gamma", "inverse", ResponseLoss),
    ],
)
def test_a_pair_has_the_loss_that_was_written_for_it(family, link, kind):
    loss = loss_of(family, link)
    assert type(loss) is kind and (loss.code is not None) == (kind not in (BernoulliLoss, ResponseLoss))
    assert pickle.loads(pickle.dumps(loss)) == loss


def test_parameters_of_families_reach_their_losses():
    assert loss_of(Tweedie(1.3)).parameter == 1.3 and loss_of(NegativeBinomial(0.4)).parameter == 0.4


@pytest.mark.parametrize("family, link", PAIRS, ids=IDS)
def test_an_illegal_target_is_refused_with_its_row(family, link):
    bad = {"gaussian": np.inf, "bernoulli": 2.0, "binomial": 2.0}.get(family.name, -1.0)
    with pytest.raises(ValueError, match=r"Row 8 is"):
        loss_of(family, link).check_target(np.array([0.5, bad]), first_row=7)
