"""Naive Bayes in a file: over numbers, over yes and no, over counts.

It can learn more rows later, for which it needs sums in addition to its state. Of numbers, in scaled units:

    sums.scale, sums.shift   of every column, scales are powers of two     sums.rows   rows of every class
    sums.scatter             sum of weight (x scale - mean)^2 of every class and column

Of counts: what the rows of every class hold of every column, and the rows of every class. Chances follow from the
counts and the smoothing; both are stored, so that predictions are the same bits on every machine, and must agree.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from certifit.models.discriminant.modelfile import REDUNDANT, are_left_out, closed_form
from certifit.models.file_checks import SAME, TINY, UNIT, Floats, agree
from certifit.models.record import NUMBER_FROM_0, Array, Check, Content, Field, Problems, Record
from certifit.statistics.cell_sums import CellCounts, CellMoments
from certifit.statistics.gram import Scaling

POWER = Check(
    "a power of two",
    lambda value: type(value) is float and 0 < value < math.inf and math.frexp(value)[0] == 0.5,
    float,
)
# In standard deviations. Numbers of a column differ by their own rounding or not at all: only weights make it more.
MOST_ROUNDED = 1e9


def _row_problems(content: Content, rows: str) -> Iterator[Problems]:
    numbers, weight = content.arrays[rows], content.arrays["class_count"]
    is_wrong = (numbers < 0).any() or sum(numbers.tolist()) != content.metadata["data"]["n_rows"]
    yield {
        "rows of classes that do not add up": is_wrong,
        "a class without rows that has a weight": ((numbers == 0) & (weight > 0)).any(),
    }


# Numbers


def _gaussian_problems(content: Content) -> Iterator[Problems]:
    variances, scale = content.arrays["state.covariance"], content.arrays["sums.scale"]
    yield {
        "scales that are not powers of two": (scale <= 0).any() or (np.frexp(scale)[0] != 0.5).any(),
        "a scatter below 0": (content.arrays["sums.scatter"] < 0).any(),
        "a variance below 0, or 0 of a column that is used": (variances < 0).any()
        or not (variances[:, ~are_left_out(content)] > 0).all(),
    }
    sums, epsilon = _moments(content), content.metadata["sums"]["epsilon"]
    with np.errstate(all="ignore"):
        wanted = np.where(sums.weight[:, None] > 0, sums.variances + epsilon, 1.0)
        total = sums.total_variances()
        added = float(content.parameters["var_smoothing"]) * float(total.max())
        # Means are rounded, and the spread between classes is what is left of them.
        rounded = UNIT * np.abs(content.arrays["state.means"]).max(axis=0) / np.sqrt(total)
        most = float(rounded[total > 0].max(initial=0.0))
        yield {
            "means whose rounding is beyond every spread": not most < MOST_ROUNDED,
            "a scatter that is within rounding of 0 and not 0": sums.scatter().tobytes() != sums.squares.tobytes(),
            "variances that are not those of its sums": not np.allclose(variances, wanted, rtol=SAME, atol=TINY),
            "an epsilon that is not the share of the largest variance asked for": not agree(
                epsilon, added, SAME + 16 * most
            ),
        }


def _moments(content: Content) -> CellMoments:
    """The sums that rows which come later are added to, about the means of the classes."""
    arrays, weight_scale = content.arrays, content.metadata["sums"]["weight_scale"]
    scale, means = arrays["sums.scale"], arrays["state.means"]
    scaling = Scaling(scale, arrays["sums.shift"], 1.0, 0.0, weight_scale)
    with np.errstate(over="ignore", under="ignore"):
        weight, centre = arrays["class_count"] * weight_scale, means * scale
    return CellMoments(weight, np.zeros_like(means), arrays["sums.scatter"], centre, scaling, arrays["sums.rows"])


GAUSSIAN = closed_form("priors", "state.priors") | Record(
    fields={
        "sums": {
            "epsilon": Field(NUMBER_FROM_0, "epsilon_"),
            "weight_scale": Field(POWER, get=lambda model: model._sums.scaling.weight_scale),
        }
    },
    arrays={
        "state.priors": Array(("K",), at="class_prior_"),
        "state.means": Array(("K", "p"), at="theta_"),
        "state.covariance": Array(("K", "p"), at="var_"),
        "state.redundant": REDUNDANT,
        "sums.rows": Array(("K",), "int64", get=lambda model: np.asarray(model._sums.n_rows, dtype=np.int64)),
        "sums.scale": Array(("p",), get=lambda model: model._sums.scaling.scale),
        "sums.scatter": Array(("K", "p"), get=lambda model: model._sums.scatter()),
        "sums.shift": Array(("p",), get=lambda model: model._sums.scaling.shift),
    },
    derived={"_sums": _moments},
    checks=(partial(_row_problems, rows="sums.rows"), _gaussian_problems),
    shown=(lambda content: {"classes": {"epsilon": content.metadata["sums"]["epsilon"]}},),
)


# Counts


def _count_problems(content: Content, trials: Callable[[Floats, Floats, float], Floats]) -> Iterator[Problems]:
    counts, log_p, weight = (content.arrays[name] for name in ("counts.columns", "state.log_p", "class_count"))
    alpha = float(content.parameters["alpha"])
    yield {"a count below 0": (counts < 0).any()}
    with np.errstate(all="ignore"):
        wanted = np.log(counts + alpha) - np.log(trials(counts, weight, alpha))
        is_same = np.abs(log_p - wanted) <= SAME * (1 + np.abs(wanted))
    is_seen = (weight > 0)[:, None]
    yield {"chances that are not those of its counts and alpha": not (is_same | ~is_seen).all()}


def _chance_problems(content: Content) -> Iterator[Problems]:
    logs = (content.arrays[f"state.{name}"] for name in ("log_p", "log_priors"))
    yield {
        "a chance above 1": any((log > 0).any() for log in logs),
        "a condition, which counts have none of": content.metadata["certificate"]["condition"] != 1.0,
    }


def _surplus_problems(content: Content) -> Iterator[Problems]:
    weight = content.arrays["class_count"][:, None]
    yield {"more rows with a column than rows": (content.arrays["counts.columns"] > weight * (1 + SAME)).any()}


def _bernoulli_trials(counts: Floats, weight: Floats, alpha: float) -> Floats:
    return (weight + 2 * alpha)[:, None]


def _multinomial_trials(counts: Floats, weight: Floats, alpha: float) -> Floats:
    return np.asarray((counts + alpha).sum(axis=1, keepdims=True))


def _cell_counts(content: Content) -> CellCounts:
    counts, rows = content.arrays["counts.columns"], content.arrays["counts.rows"]
    return CellCounts(content.arrays["class_count"], counts, math.inf, True, rows)


_COUNTS = (
    Record(checks=(_chance_problems,))
    | closed_form("class_prior", "state.log_priors", has_rank=False)
    | Record(
        arrays={
            "counts.columns": Array(("K", "p"), at="feature_count_"),
            "counts.rows": Array(("K",), "int64", get=lambda model: np.asarray(model._sums.n_rows, dtype=np.int64)),
            # A chance of 0 in a class without rows.
            "state.log_p": Array(("K", "p"), may_be_infinite=True, at="feature_log_prob_"),
            "state.log_priors": Array(("K",), may_be_infinite=True, at="class_log_prior_"),
        },
        derived={"_sums": _cell_counts},
        checks=(partial(_row_problems, rows="counts.rows"),),
    )
)
BERNOULLI = _COUNTS | Record(checks=(_surplus_problems, partial(_count_problems, trials=_bernoulli_trials)))
MULTINOMIAL = _COUNTS | Record(checks=(partial(_count_problems, trials=_multinomial_trials),))
