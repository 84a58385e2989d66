"""Losses and their conjugates: of a residual (Huber's), and of a row's score (scores.py)."""

from certifit.losses.huber import Huber

__all__ = ["Huber"]
