"""The loss of a family and a link: half the deviance of a row at the mean h(z) of its score z.

    l(y, z)  = d(y, mu) / 2,  mu = h(z)
    slope      (mu - y) h' / V(mu)
    curvature  h'^2 / V + (mu - y) (h'' / V - h'^2 V' / V^2)
    expected   h'^2 / V: the mean of the curvature over targets of mean mu (Fisher's)

loss_of gives the loss written for a pair where there is one: compiled, or keeping its digits far out. ResponseLoss is
right for every pair. Scores that no legal mean belongs to have the value inf and no slope.

Bounds M with |l'''| <= M l'' for scores between two numbers, where no one M serves all scores.

A self-concordance bound looks at scores near those of the rows only: if the optimum that it proves lies no further away
than the interval that M was taken on, the proof stands. Each row is the pair's M on [low, high], with the argument:

    probit     y = 1: l = -log Phi, m = phi / Phi, l'' = m (z + m). V = 1 - l'' is the variance of a normal variable cut
               off above z, and dV/dz = m [(z + m)^2 - V] >= 0, so |l'''| = m [(z + m)^2 - V] <= (z + m) l''. z + m
               grows with z (by V > 0). y = 0 is the same at -z.
    cloglog    y = 0: l = t = e^z, so 1. y = 1: r = t / (e^t - 1), s = t + r - 1, l'' = r s, l''' / l'' = t/s - s - r.
               1 - t/2 <= r <= 1, so t/2 <= s <= t and -t <= 2 - s - r - 1 <= l''' / l'' <= 2 - s - r <= 1.
    log        y = 0: l = -log(1 - e^z), r = 1 / (e^-z - 1), l'' = r (1 + r), l''' / l'' = 1 + 2 r. y = 1: 0.
    powers     sums of -log z, 1/z^2 and the like: 2 / z, or less, which is largest at the low end.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

import numpy as np
from scipy.special import xlog1py, xlogy

from certifit.data.columns import Array
from certifit.mathematics.families import responses
from certifit.mathematics.families.deviances import shares
from certifit.mathematics.families.links import LINKS, Identity, Link, Log, Logit
from certifit.mathematics.families.responses import Response, family_of
from certifit.mathematics.losses.poisson_gamma_tweedie import GammaLog, NegativeBinomialLog, PoissonLog, TweedieLog
from certifit.mathematics.losses.scores import Logistic, ScoreLoss, Squared

Bound = Callable[[float, float], float]


def _probit(low: float, high: float) -> float:
    furthest = max(-low, high)
    return furthest + float(LINKS["probit"].log_mean(np.array(furthest)).slope)


def _cloglog(low: float, high: float) -> float:
    return math.exp(high) if 0 < high < 700 else math.inf if high > 0 else 1.0


def _log_chance(low: float, high: float) -> float:
    return 1 + 2 / math.expm1(-high) if high < 0 else math.inf


def _chance(low: float, high: float) -> float:
    return 2 / min(low, 1 - high) if low > 0 and high < 1 else math.inf


def _inverse(low: float, high: float) -> float:
    return 2 / low if low > 0 else math.inf


CONCORDANCE: dict[tuple[str, str], Bound] = {
    ("bernoulli", "probit"): _probit,
    ("bernoulli", "cloglog"): _cloglog,
    ("bernoulli", "log"): _log_chance,
    ("bernoulli", "identity"): _chance,
    ("poisson", "identity"): _inverse,  # y / z^2
    ("poisson", "sqrt"): _inverse,  # 2 + 2 y / z^2
    ("gamma", "inverse"): _inverse,  # 1 / z^2
    ("inverse-gaussian", "inverse"): lambda low, high: 0.0 if low > 0 else math.inf,  # y
    ("inverse-gaussian", "inverse-squared"): _inverse,  # z^(-3/2) / 4: 1.5 / z
}
CONCORDANCE |= {("binomial", link): bound for (family, link), bound in CONCORDANCE.items() if family == "bernoulli"}
CONCORDANCE["exponential", "inverse"] = _inverse


CLOSE = 0.1  # of the entropy of a share: losses below it are differences of larger terms
_SOME_MEAN = 0.5  # legal in every family, and for every link

# Pairs whose loss is convex in z for every legal y, besides the canonical links (there l'' = h'^2 / V):
_CONVEX = {
    # -log h and -log(1 - h) are convex: Phi and e^-e^z are log-concave, as are 1 - e^z, z and 1 - z
    *(("bernoulli", link) for link in ("logit", "probit", "cloglog", "log", "identity")),
    *(("binomial", link) for link in ("logit", "probit", "cloglog", "log", "identity")),
    ("poisson", "identity"),  # y / z^2
    ("poisson", "sqrt"),  # 2 + 2 y / z^2
    ("gamma", "log"),  # y e^-z
    ("exponential", "log"),
    ("inverse-gaussian", "inverse"),  # (y z - 1)^2 / (2 y): y
    ("tweedie", "log"),  # (2-p) e^((2-p) z) + (p-1) y e^((1-p) z)
    ("negative-binomial", "log"),  # (y + 1/alpha) s (1 - s), s = alpha mu / (1 + alpha mu)
}


@dataclass(frozen=True)
class ResponseLoss(ScoreLoss):
    """Half the deviance of `family` at the mean that `link` gives a score."""

    family: Response
    link: Link

    @property
    def name(self) -> str:  # type: ignore[override]  # a constant in other losses
        """Of the pair."""
        return f"the {self.family.name} loss with the {self.link.name} link"

    @property
    def legal(self) -> str:  # type: ignore[override]  # a constant in other losses
        """What a target may be, in words."""
        return self.family.legal

    @property
    def is_convex(self) -> bool:  # type: ignore[override]  # a constant in other losses
        """Proven; False where it is not, or not known."""
        return self.link == self.family.canonical_link or (self.family.name, self.link.name) in _CONVEX

    @property
    def scores(self) -> tuple[float, float]:
        """The open interval of scores whose means are legal."""
        means = (np.clip(end, *self.link.means) for end in self.family.means)
        ends = [float(self.link.score(np.asarray(end))) for end in means]
        low, high = self.link.scores
        return max(min(ends), low), min(max(ends), high)

    def concordance_on(self, low: float, high: float) -> float | None:
        """M with |l'''| <= M l'' for scores from low to high: the table at the head of this file."""
        bound = CONCORDANCE.get((self.family.name, self.link.name))
        return None if bound is None else bound(low, high)

    def value(self, y: Array, z: Array) -> Array:
        """d(y, h(z)) / 2."""
        inside, at = self._inside(z)
        with np.errstate(all="ignore"):
            return np.where(inside, self.family.half_deviance(y, self.link.mean(at)), np.inf)

    def slope(self, y: Array, z: Array) -> Array:
        """(mu - y) h' / V."""
        inside, at = self._inside(z)
        mu = self.link.mean(at)
        with np.errstate(all="ignore"):
            return np.where(inside, (mu - y) * (self.link.slope(at) / self.family.variance(mu)), np.nan)

    def curvature(self, y: Array, z: Array) -> Array:
        """h'^2 / V + (mu - y)(h'' / V - h'^2 V' / V^2)."""
        inside, at = self._inside(z)
        mu, slope = self.link.mean(at), self.link.slope(at)
        with np.errstate(all="ignore"):
            V = self.family.variance(mu)
            of_slope = (self.link.curvature(at) - slope * (slope * (self.family.variance_slope(mu) / V))) / V
            curvature = slope * (slope / V) + (mu - y) * of_slope
        least = 0.0 if self.is_convex else -np.inf  # rounding of what is 0 is not a dent
        return np.where(inside, np.maximum(curvature, least), np.nan)

    def expected(self, y: Array, z: Array) -> Array:
        """h'^2 / V."""
        inside, at = self._inside(z)
        slope = self.link.slope(at)
        with np.errstate(all="ignore"):
            return np.where(inside, slope * (slope / self.family.variance(self.link.mean(at))), np.nan)

    def mean(self, z: Array) -> Array:
        """h(z); NaN where that is no legal mean."""
        inside, at = self._inside(z)
        return np.where(inside, self.link.mean(at), np.nan)

    def score(self, mean: float) -> float:
        """g(mu); infinite where mu is not a mean of the link."""
        return float(self.link.score(np.clip(np.asarray(mean, dtype=np.float64), *self.link.means)))

    def cancelled(self, mean: float) -> float:
        """mu h' / V and y h' / V, by which an estimate is right in any unit; proofs take what is larger."""
        most = super().cancelled(mean)
        with np.errstate(all="ignore"):
            slope = float(self.link.slope(np.asarray(self.score(mean))) / self.family.variance(np.asarray(mean)))
        size = abs(mean * slope)
        return most if self.is_convex or not np.isfinite(size) else min(size, most)

    def start(self, y: Array) -> Array:
        """Scores of legal means near y; where the link knows none, as for y < 0 with the log link, of a usual size."""
        mu, (low, high) = self.family.start(y), self.link.means
        usual = float(np.mean(np.abs(y))) or 1.0
        return self.link.score(np.where((mu > low) & (mu < high), mu, usual))

    def is_legal(self, y: Array) -> Array:
        """Which targets the family knows."""
        return self.family.is_legal(y)

    def _inside(self, z: Array) -> tuple[Array, Array]:
        """Which scores are legal, and the scores with a legal one in place of the others."""
        low, high = self.scores
        inside = (z > low) & (z < high)
        if inside.all():
            return inside, z
        some = float(self.link.score(np.asarray(_SOME_MEAN)))
        return inside, np.where(inside, z, some)


@dataclass(frozen=True)
class BernoulliLoss(ResponseLoss):
    """-y log mu - (1 - y) log(1 - mu), less what y alone decides: logarithms keep their digits in the tails."""

    def value(self, y: Array, z: Array) -> Array:
        """-y log mu - (1 - y) log(1 - mu) + y log y + (1 - y) log(1 - y)."""
        return self.derivatives(y, z)[0]

    def slope(self, y: Array, z: Array) -> Array:
        """-y (log mu)' - (1 - y) (log(1 - mu))'."""
        return self.derivatives(y, z)[1]

    def curvature(self, y: Array, z: Array) -> Array:
        """-y (log mu)'' - (1 - y) (log(1 - mu))''."""
        return self.derivatives(y, z)[2]

    def derivatives(self, y: Array, z: Array) -> tuple[Array, Array, Array]:
        """l, l' and l'' at once: the logarithms are what costs, and each is taken where its target occurs."""
        y, z = np.broadcast_arrays(np.asarray(y, dtype=np.float64), np.asarray(z, dtype=np.float64))
        inside, at = self._inside(z)
        value, slope, curvature = np.zeros(z.shape), np.zeros(z.shape), np.zeros(z.shape)
        with np.errstate(all="ignore"):
            for share, logarithms in ((y, self.link.log_mean), (1 - y, self.link.log_rest)):
                where = np.nonzero(share > 0)
                part = share[where]
                parts = logarithms(at[where])
                value[where] += part * (np.log(part) - parts.value)  # log y: what y alone decides
                slope[where] -= part * parts.slope
                curvature[where] -= part * parts.curvature
            value = self._uncancelled(y, at, value)
        return (
            np.where(inside, np.maximum(value, 0.0), np.inf),
            np.where(inside, slope, np.nan),
            np.where(inside, curvature, np.nan),
        )

    def _uncancelled(self, y: Array, z: Array, value: Array) -> Array:
        """Values, those of shares near their mean in the formula whose terms do not cancel, by logits."""
        entropy = -xlogy(y, y) - xlog1py(1 - y, -y)
        close = np.nonzero((y > 0) & (y < 1) & (value < CLOSE * entropy))
        if not len(close[0]):
            return value
        targets, at = y[close], z[close]
        apart = self.link.log_mean(at).value - self.link.log_rest(at).value - (np.log(targets) - np.log1p(-targets))
        value[close] = shares(targets, 1 - targets, apart)
        return value

    def expected(self, y: Array, z: Array) -> Array:
        """h'^2 / (mu (1 - mu)) = -(log mu)' (log(1 - mu))'."""
        inside, at = self._inside(z)
        with np.errstate(all="ignore"):
            both = -self.link.log_mean(at).slope * self.link.log_rest(at).slope
        # Where one factor overflows the other is 0, and so is the product
        return np.where(inside, np.where(np.isnan(both), 0.0, both), np.nan)


def loss_of(family: object, link: object = None) -> ScoreLoss:
    """The loss of a family and a link, by name or as objects; link=None: the family's default.

    >>> loss_of("poisson").name
    'the Poisson loss'
    >>> loss_of("bernoulli", "probit").name
    'the bernoulli loss with the probit link'
    """
    response = family_of(family)
    settled_link = response.link(link)
    written = _WRITTEN.get((type(response), type(settled_link)))
    if written is not None:
        return written(response)
    kind = BernoulliLoss if isinstance(response, responses.Bernoulli) else ResponseLoss
    return kind(response, settled_link)


_WRITTEN: dict[tuple[type, type], Callable[[Response], ScoreLoss]] = {
    (responses.Gaussian, Identity): lambda family: Squared(),
    (responses.Bernoulli, Logit): lambda family: Logistic(),
    (responses.Binomial, Logit): lambda family: Logistic(),
    (responses.Poisson, Log): lambda family: PoissonLog(),
    (responses.Gamma, Log): lambda family: GammaLog(),
    (responses.Exponential, Log): lambda family: GammaLog(),
    (responses.Tweedie, Log): lambda family: TweedieLog(cast(responses.Tweedie, family).power),
    (responses.NegativeBinomial, Log): lambda family: NegativeBinomialLog(
        cast(responses.NegativeBinomial, family).alpha
    ),
}
