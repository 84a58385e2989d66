"""Maps: what a row becomes before a model sees it."""

from certifit.maps.functions import Functions
from certifit.maps.polynomial import Polynomial

__all__ = ["Functions", "Polynomial"]
