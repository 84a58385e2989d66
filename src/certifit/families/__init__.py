"""Distributions as objects, links, and the families of targets."""

from certifit.families.multivariate import Gaussian

__all__ = ["Gaussian"]
