"""Maps: what a row becomes before a model sees it."""

from certifit.maps.basis import Functions, Polynomial

__all__ = ["Functions", "Polynomial"]
