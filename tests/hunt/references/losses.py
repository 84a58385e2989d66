"""Losses of a score in 300 bits: half the deviance of a row, its slope and curvature.

l(y, z) = d(y, h(z)) / 2,   h the mean that the link gives the score z
"""

from __future__ import annotations

from collections.abc import Callable

from flint import arb, ctx

Triple = tuple[arb, arb, arb]
Law = Callable[[arb], Triple]
NOWHERE = (arb("inf"), arb(0), arb(0))
FAR = 1000  # standard deviations from which on a tail of the normal is its series


def log_of(y: arb) -> arb:
    """log y, and 0 for 0 where y log y is meant."""
    return y.log() if y > 0 else arb(0)


def squared(y: arb) -> Law:
    """(z - y)^2 / 2."""
    return lambda z: ((z - y) ** 2 / 2, z - y, arb(1))


def logistic(y: arb) -> Law:
    """log(1 + e^z) - y z, less its least value where y is a share."""
    own = -(y * log_of(y) + (1 - y) * log_of(1 - y))

    def law(z: arb) -> Triple:
        small = (-abs(z)).exp()  # nothing of it is lost beside z where y is 0 or 1
        q = small / (1 + small)
        if z > 0:
            return small.log1p() + (1 - y) * z - own, (1 - y) - q, q / (1 + small)
        return small.log1p() - y * z - own, q - y, q / (1 + small)

    return law


def poisson_log(y: arb) -> Law:
    """e^z - y z, less its least value y - y log y."""
    own = y - y * log_of(y)

    def law(z: arb) -> Triple:
        mu = z.exp()
        return mu - y * z - own, mu - y, mu

    return law


def poisson_identity(y: arb) -> Law:
    """mu = z > 0."""
    own = y - y * log_of(y)

    def law(z: arb) -> Triple:
        if not z > 0:
            return NOWHERE
        return z - y * z.log() - own, 1 - y / z, y / z**2

    return law


def poisson_root(y: arb) -> Law:
    """mu = z^2, z > 0."""
    own = y - y * log_of(y)

    def law(z: arb) -> Triple:
        if not z > 0:
            return NOWHERE
        return z**2 - 2 * y * z.log() - own, 2 * z - 2 * y / z, 2 + 2 * y / z**2

    return law


def gamma_log(y: arb) -> Law:
    """y e^-z + z - 1 - log y."""
    own = 1 + y.log()

    def law(z: arb) -> Triple:
        part = y * (-z).exp()
        return part + z - own, 1 - part, part

    return law


def gamma_inverse(y: arb) -> Law:
    """mu = 1 / z: y z - 1 - log(y z)."""

    def law(z: arb) -> Triple:
        if not z > 0:
            return NOWHERE
        return y * z - 1 - (y * z).log(), y - 1 / z, 1 / z**2

    return law


def inverse_gaussian_squared(y: arb) -> Law:
    """mu = z^(-1/2): y z / 2 - sqrt z + 1 / (2 y)."""

    def law(z: arb) -> Triple:
        if not z > 0:
            return NOWHERE
        root = z.sqrt()
        return y * z / 2 - root + 1 / (2 * y), y / 2 - 1 / (2 * root), 1 / (4 * z * root)

    return law


def inverse_gaussian_inverse(y: arb) -> Law:
    """mu = 1 / z: (y z - 1)^2 / (2 y)."""

    def law(z: arb) -> Triple:
        return ((y * z - 1) ** 2 / (2 * y), y * z - 1, y) if z > 0 else NOWHERE

    return law


def negative_binomial_log(alpha: arb) -> Callable[[arb], Law]:
    """y log(y / mu) - (y + 1/alpha) log((1 + alpha y) / (1 + alpha mu))."""
    k = 1 / alpha

    def of(y: arb) -> Law:
        own = y * log_of(y) - (y + k) * (1 + alpha * y).log()

        def law(z: arb) -> Triple:
            mu = z.exp()
            one = 1 + alpha * mu
            return own - y * z + (y + k) * one.log(), (mu - y) / one, mu * (1 + alpha * y) / one**2

        return law

    return of


def tweedie_log(p: arb) -> Callable[[arb], Law]:
    """y^(2-p)/((1-p)(2-p)) - y mu^(1-p)/(1-p) + mu^(2-p)/(2-p)."""

    def of(y: arb) -> Law:
        own = ((2 - p) * y.log()).exp() / ((1 - p) * (2 - p)) if y > 0 else arb(0)

        def law(z: arb) -> Triple:
            low, high = y * ((1 - p) * z).exp(), ((2 - p) * z).exp()
            return own - low / (1 - p) + high / (2 - p), high - low, (2 - p) * high - (1 - p) * low

        return law

    return of


def _share(log_mean: Law, log_rest: Law) -> Callable[[arb], Law]:
    """-y log mu - (1 - y) log(1 - mu), less its least value, from the logarithms with their derivatives."""

    def of(y: arb) -> Law:
        own = y * log_of(y) + (1 - y) * log_of(1 - y)

        def law(z: arb) -> Triple:
            parts = [own, arb(0), arb(0)]
            for share, logarithm in ((y, log_mean), (1 - y, log_rest)):
                if share > 0:
                    parts = [part - share * x for part, x in zip(parts, logarithm(z), strict=True)]
            return parts[0], parts[1], parts[2]

        return law

    return of


def _log_normal(z: arb) -> Triple:
    """log Phi(z): m = phi / Phi, m' = -m (z + m)."""
    if z < -FAR:
        return _log_normal_far(-z)
    tail = (-z / arb(2).sqrt()).erfc() / 2
    m = (-z * z / 2).exp() / (2 * arb.pi()).sqrt() / tail
    return tail.log(), m, -m * (z + m)


def _log_normal_far(t: arb) -> Triple:
    """log Phi(-t), where e^(-t^2 / 2) may be below all numbers: Phi(-t) = phi(t) (1 - s) / t,  s = 1/t^2 - 3/t^4 + ...

    Of the series of s the error is at most the first term left out.
    """
    s, term, count = arb(0), 1 / (t * t), 1
    while abs(term) > arb(2) ** -ctx.prec / (t * t):
        s += term
        count += 2
        term = -term * count / (t * t)
    m = t / (1 - s)
    return -t * t / 2 - (2 * arb.pi()).log() / 2 - t.log() + (-s).log1p(), m, -m * t * s / (1 - s)


def _log_normal_rest(z: arb) -> Triple:
    value, slope, curvature = _log_normal(-z)
    return value, -slope, curvature


def _log_cloglog(z: arb) -> Triple:
    """log(1 - e^-t), t = e^z: r = t / (e^t - 1)."""
    t = z.exp()
    r = t / t.expm1()
    return (-(-t).expm1()).log(), r, r * (1 - t - r)


def _log_cloglog_rest(z: arb) -> Triple:
    t = z.exp()
    return -t, -t, -t


LOSSES: dict[tuple[str, str], Callable[..., Callable[[arb], Law]]] = {
    ("gaussian", "identity"): lambda: squared,
    ("bernoulli", "logit"): lambda: logistic,
    ("bernoulli", "probit"): lambda: _share(_log_normal, _log_normal_rest),
    ("bernoulli", "cloglog"): lambda: _share(_log_cloglog, _log_cloglog_rest),
    ("poisson", "log"): lambda: poisson_log,
    ("poisson", "identity"): lambda: poisson_identity,
    ("poisson", "sqrt"): lambda: poisson_root,
    ("gamma", "log"): lambda: gamma_log,
    ("gamma", "inverse"): lambda: gamma_inverse,
    ("inverse-gaussian", "inverse-squared"): lambda: inverse_gaussian_squared,
    ("inverse-gaussian", "inverse"): lambda: inverse_gaussian_inverse,
    ("negative-binomial", "log"): negative_binomial_log,
    ("tweedie", "log"): tweedie_log,
}
LOSSES |= {("binomial", link): loss for (family, link), loss in LOSSES.items() if family == "bernoulli"}
