"""Maps: what a row becomes before a model sees it."""

from certifit.maps.basis import Functions, Polynomial
from certifit.maps.table import TableEncoder, UserEncoder, encoder_key, encoder_of
from certifit.maps.text import TextBinarizer

Basis = Functions | Polynomial

__all__ = [
    "Basis",
    "Functions",
    "Polynomial",
    "TableEncoder",
    "TextBinarizer",
    "UserEncoder",
    "encoder_key",
    "encoder_of",
]
