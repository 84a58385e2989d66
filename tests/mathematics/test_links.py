"""Links: inverses, derivatives, and digits in the tails."""

from __future__ import annotations

import math

import numpy as np
import pytest

from certifit.mathematics.families.links import LINKS, Link, Power, link_of

STEP = 1e-5
ALL = [*LINKS.values(), Power(1.7), Power(-0.5)]
TO_CHANCES = [link for link in ALL if link.means == (0.0, 1.0)]
# (log mu, its first and its second derivative) to 17 digits, by arithmetic of 700 digits
TAILS = [
    ("probit", -700.0, (-245007.47002090905, 700.00142856559773, -0.99999795920866263)),
    ("probit", -40.0, (-804.60844201375379, 40.024968847207264, -0.99937733162140861)),
    ("probit", -8.0, (-35.01343715991455, 8.1213681122361127, -0.98567511655665909)),
    ("probit", -3.1, (-6.9406884584212278, 3.3761969902250672, -0.93249544710709409)),
    ("probit", -2.9, (-6.2840582349474187, 3.190315139542982, -0.92619678492250889)),
    ("probit", -0.5, (-1.1759117615936186, 1.1410777703680645, -0.73151959284412105)),
    ("probit", -0.001, (-0.69394538346696518, 0.79852128956291138, -0.63683772859565205)),
    ("probit", 0.0, (-0.69314718055994531, 0.79788456080286536, -0.63661977236758134)),
    ("probit", 0.5, (-0.36894641528865639, 0.50916043383703349, -0.5138245643036329)),
    ("probit", 3.0, (-0.0013508099647481938, 0.0044378390421256638, -0.013333211541740806)),
    ("probit", 8.0, (-6.2209605742717861e-16, 5.0522710835368954e-15, -4.0418168668295189e-14)),
    ("probit", 36.0, (-4.1826240657972833e-284, 1.5069047176203946e-282, -5.4248569834334207e-281)),
    ("cloglog", -700.0, (-700.0, 1.0, -4.9298382718798854e-305)),
    ("cloglog", -45.0, (-45.0, 1.0, -1.4312592902746968e-20)),
    ("cloglog", -39.0, (-39.0, 0.99999999999999999, -5.774112086507893e-18)),
    ("cloglog", -8.0, (-8.0001677266249856, 0.99983227806397995, -0.00016771255808887307)),
    ("cloglog", -1.0, (-1.1783070964207178, 0.82731286298958016, -0.16148510398898845)),
    ("cloglog", -0.7, (-0.93803881073587972, 0.77217312952641591, -0.20752804054164182)),
    ("cloglog", -0.68, (-0.92263707758292722, 0.76798896472706714, -0.21089434469547488)),
    ("cloglog", 0.0, (-0.45867514538708189, 0.58197670686932642, -0.33869688733846589)),
    ("cloglog", 0.5, (-0.21355918537343414, 0.39252223827990948, -0.4087112327392714)),
    ("cloglog", 2.0, (-0.00061817001705152019, 0.0045691050310371436, -0.029213145085987229)),
    ("cloglog", 4.0, (-1.9423376049564018e-24, 1.0604803997042767e-22, -5.6839787570558596e-21)),
    ("cloglog", 5.0, (-3.5073891964646231e-65, 5.2054271084956242e-63, -7.6734845454153073e-61)),
    ("cloglog", 6.5, (-1.3572476073250021e-289, 9.0276188998170468e-287, -5.9956175586266387e-284)),
]


def points(link: Link) -> np.ndarray:
    return np.linspace(0.05, 4, 80) if link.scores[0] == 0 else np.linspace(-4, 1.5, 110)


@pytest.mark.parametrize("link", ALL, ids=lambda link: link.name)
def test_score_and_mean_are_inverse_to_each_other(link):
    z = points(link)
    np.testing.assert_allclose(link.score(link.mean(z)), z, rtol=1e-9, atol=1e-12)
    assert (np.diff(link.mean(z)) > 0).all() or (np.diff(link.mean(z)) < 0).all()


@pytest.mark.parametrize("link", ALL, ids=lambda link: link.name)
def test_derivatives_of_the_mean_are_those_of_differences(link):
    z = points(link)
    slope = (link.mean(z + STEP * z) - link.mean(z - STEP * z)) / (2 * STEP * z)
    curvature = (link.slope(z + STEP * z) - link.slope(z - STEP * z)) / (2 * STEP * z)
    np.testing.assert_allclose(link.slope(z), slope, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(link.curvature(z), curvature, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("part", ["log_mean", "log_rest"])
@pytest.mark.parametrize("link", [*TO_CHANCES, LINKS["log"], LINKS["identity"]], ids=lambda link: link.name)
def test_logarithms_of_chances_have_their_derivatives(link, part):
    z = np.linspace(0.02, 0.98, 60) if link.name == "identity" else np.linspace(-4, -0.02, 99)
    chance = link.mean(z) if part == "log_mean" else 1 - link.mean(z)
    value, slope, curvature = getattr(link, part)(z)
    np.testing.assert_allclose(value, np.log(chance), rtol=1e-12)
    above, below = getattr(link, part)(z + STEP * z), getattr(link, part)(z - STEP * z)
    np.testing.assert_allclose(slope, (above.value - below.value) / (2 * STEP * z), rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(curvature, (above.slope - below.slope) / (2 * STEP * z), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("name, z, exact", TAILS)
def test_logarithms_of_chances_keep_their_digits_far_out(name, z, exact):
    for found, right in zip(LINKS[name].log_mean(np.array([z])), exact, strict=True):
        rounding = 4 * np.finfo(float).eps * max(10, abs(math.log(abs(right))))  # e^x has x times the error of x
        np.testing.assert_allclose(found, right, rtol=rounding)


@pytest.mark.parametrize("z", [-700.0, -40.0, 0.3, 40.0, 700.0])
def test_the_logit_has_closed_forms_far_out(z):
    far = math.exp(-abs(z))
    chances = (1 / (1 + far), far / (1 + far))
    p, q = chances if z > 0 else chances[::-1]
    value, slope, curvature = LINKS["logit"].log_mean(np.array([z]))
    np.testing.assert_allclose(value, -math.log1p(far) + min(z, 0.0), rtol=1e-15)
    np.testing.assert_allclose([slope[0], curvature[0]], [q, -p * q], rtol=1e-14)
    np.testing.assert_allclose(LINKS["logit"].slope(np.array([z])), p * q, rtol=1e-14)


@pytest.mark.parametrize("link", [*TO_CHANCES, LINKS["log"]], ids=lambda link: link.name)
@pytest.mark.parametrize("z", [-1e300, -800.0, 800.0, 1e300])
def test_nothing_is_a_nan_anywhere(link, z):
    at = np.array([z])
    parts = [link.mean(at), link.slope(at), link.curvature(at)]
    parts += [] if link.name == "log" else [*link.log_mean(at), *link.log_rest(at)]
    assert not np.isnan(np.concatenate(parts)).any()


@pytest.mark.parametrize("link", ALL, ids=lambda link: link.name)
def test_the_ends_of_the_means_are_those_of_the_scores(link):
    ends = sorted(float(link.score(np.array(end))) for end in link.means)
    assert tuple(ends) == link.scores


def test_a_link_is_found_by_name_and_unknown_ones_are_refused():
    assert link_of("inverse") == Power(-1.0) and link_of(Power(3.0)).name == "power(3)"
    with pytest.raises(ValueError, match=r"link must be one of 'identity', 'log', .*Got 'cauchit'"):
        link_of("cauchit")
    with pytest.raises(ValueError, match=r"other than 0. Got 0"):
        Power(0)
