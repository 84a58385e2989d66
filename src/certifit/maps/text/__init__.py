"""Texts as sparse columns, one a term."""

from certifit.maps.text.binarizer import NoTermsError, TextBinarizer

__all__ = ["NoTermsError", "TextBinarizer"]
