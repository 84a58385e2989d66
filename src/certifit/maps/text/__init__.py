"""Texts as sparse columns, one per term."""

from certifit.maps.text.binarizer import NoTermsError, TextBinarizer

__all__ = ["NoTermsError", "TextBinarizer"]
