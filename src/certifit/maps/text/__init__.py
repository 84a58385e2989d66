"""Texts as sparse columns, one a term."""

from certifit.maps.text.binarizer import TextBinarizer

__all__ = ["TextBinarizer"]
