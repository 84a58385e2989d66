"""Distributions as objects, links, and the families of targets.

Distributions of the exponential family: Bernoulli, Normal, Categorical, Multinomial, Poisson, Gamma, Exponential, Beta,
Dirichlet; and Gaussian, the multivariate one. Families of a model's targets, by their mean: FAMILIES, of which Tweedie
and NegativeBinomial take a number. Links: LINKS.
"""

from certifit.mathematics.families.continuous import Beta, Dirichlet, Exponential, Gamma, Normal
from certifit.mathematics.families.discrete import Bernoulli, Categorical, Multinomial, Poisson
from certifit.mathematics.families.exponential import ExponentialFamily
from certifit.mathematics.families.links import LINKS, Link, Power
from certifit.mathematics.families.multivariate import Gaussian
from certifit.mathematics.families.responses import FAMILIES, NegativeBinomial, Response, Tweedie

__all__ = [
    "FAMILIES",
    "LINKS",
    "Bernoulli",
    "Beta",
    "Categorical",
    "Dirichlet",
    "Exponential",
    "ExponentialFamily",
    "Gamma",
    "Gaussian",
    "Link",
    "Multinomial",
    "NegativeBinomial",
    "Normal",
    "Poisson",
    "Power",
    "Response",
    "Tweedie",
]
