"""Maps: what a row becomes before a model sees it."""

from certifit.maps.functions import Functions
from certifit.maps.polynomial import Polynomial
from certifit.maps.table import TableEncoder

__all__ = ["Functions", "Polynomial", "TableEncoder"]
