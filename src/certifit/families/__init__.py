"""Distributions as objects, links, and the families of targets.

Distributions of the exponential family: Bernoulli, Normal, Categorical, Multinomial, Poisson, Gamma, Exponential, Beta,
Dirichlet; and Gaussian, the multivariate one. Families of a model's targets, by their mean: FAMILIES, of which Tweedie
and NegativeBinomial take a number. Links: LINKS.
"""

from certifit.families.continuous import Exponential, Gamma, Normal
from certifit.families.discrete import Bernoulli, Categorical, Multinomial, Poisson
from certifit.families.exponential import ExponentialFamily
from certifit.families.links import LINKS, Link, Power
from certifit.families.multivariate import Gaussian
from certifit.families.proportions import Beta, Dirichlet
from certifit.families.response import Response
from certifit.families.responses import FAMILIES, NegativeBinomial, Tweedie

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
