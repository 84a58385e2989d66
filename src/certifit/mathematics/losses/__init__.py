"""Losses and their conjugates: of a residual (Huber's), and of a row's score (scores.py)."""

from certifit.mathematics.losses.scores import Huber

__all__ = ["Huber"]
