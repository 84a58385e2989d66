"""Parameters, options and sentences that mean the same in several families."""

from __future__ import annotations

from dataclasses import replace

from certifit.models.learner import Option, count, flag, number

MAPS = ("basis", "encoder")
PENALTY = ("penalty_factors", "bounds")
INTERCEPT, STANDARDIZE, TOL = flag(True), flag(False), number(1e-8)
MAX_TIME = replace(number(None, is_above=True, or_none=True), legal="a number of seconds above 0", is_left_out=True)
ALPHA = Option(
    "alpha",
    "A",
    "Strength of the penalty, on standardised columns. Default: the folds choose; for huber and quantile 0.",
    "alpha",
)
# Of models that a solver of the user's choice may fit; files of versions without them stay readable.
STEPS = {"max_iter": replace(count(1000), is_left_out=True), "max_time": MAX_TIME}
OFFSETS = ("offset", "exposure")
NO_INFERENCE = "There are no p-values or intervals: "
SHRUNK = (
    f"{NO_INFERENCE}the penalty pulls coefficients towards zero on purpose, so the usual standard errors would be "
    "wrong. Fit with "
)
CLASS_SUMS = ("sums of the columns per class, of rare classes too",)  # what its file stores
LINEAR = "fit with --model linear"
