"""Parameters that mean the same in several families."""

from __future__ import annotations

from certifit.models.learner import flag, number

MAPS = ("basis", "encoder")
PENALTY = ("penalty_factors", "bounds")
INTERCEPT, STANDARDIZE, TOL = flag(True), flag(False), number(1e-8)
