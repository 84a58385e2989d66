"""Naive Bayes over counts in a file.

    counts.columns   what the rows of every class hold of every column     counts.rows   rows of every class
    state.log_priors (K,)    state.log_p (K, p)

Chances follow from the counts and the smoothing; both are stored, so that predictions are the same bits on every
machine, and they must agree.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from certifit.modelfile.agreement import SAME
from certifit.modelfile.classes import Kind, check_priors, family
from certifit.modelfile.family import Arrays, Metadata
from certifit.modelfile.schema import Array, refuse_any


def _dump(model: Any) -> tuple[Metadata, Arrays]:
    arrays = {
        "counts.columns": model.feature_count_,
        "counts.rows": np.asarray(model._sums.n_rows, dtype=np.int64),
        "state.log_p": model.feature_log_prob_,
        "state.log_priors": model.class_log_prior_,
    }
    return {}, arrays


def _arrays(metadata: Metadata, arrays: Arrays, K: int) -> tuple[dict[str, Array], dict[str, int]]:
    specs = {
        "counts.columns": Array(("K", "p")),
        "counts.rows": Array(("K",), np.int64),
        "state.log_p": Array(("K", "p"), may_be_infinite=True),  # a chance of 0 in a class without rows
        "state.log_priors": Array(("K",), may_be_infinite=True),
    }
    return specs, {}


def _check(trials: Callable[[Any, Any, float], Any], metadata: Metadata, arrays: Arrays) -> None:
    counts, rows, log_p = arrays["counts.columns"], arrays["counts.rows"], arrays["state.log_p"]
    log_priors, weight = arrays["state.log_priors"], arrays["class_count"]
    refuse_any(
        {
            "a chance above 1": (log_p > 0).any() or (log_priors > 0).any(),
            "rows of classes that do not add up": (rows < 0).any() or sum(rows.tolist()) != metadata["data"]["n_rows"],
            "a class without rows that has a weight": ((rows == 0) & (weight > 0)).any(),
            "a count below 0": (counts < 0).any(),
        }
    )
    check_priors(np.exp(log_priors), metadata, arrays)
    alpha = float(metadata["parameters"]["alpha"])
    with np.errstate(all="ignore"):
        wanted = np.log(counts + alpha) - np.log(trials(counts, weight, alpha))
        is_same = np.abs(log_p - wanted) <= SAME * (1 + np.abs(wanted))
    is_seen = (weight > 0)[:, None]
    refuse_any({"chances that are not those of its counts and alpha": not (is_same | ~is_seen).all()})


def _bernoulli_trials(counts: Any, weight: Any, alpha: float) -> Any:
    refuse_any({"more rows with a column than rows": (counts > weight[:, None] * (1 + SAME)).any()})
    return (weight + 2 * alpha)[:, None]


def _multinomial_trials(counts: Any, weight: Any, alpha: float) -> Any:
    return (counts + alpha).sum(axis=1, keepdims=True)


def _place(model: Any, metadata: Metadata, arrays: Arrays) -> None:
    from certifit.statistics.cell_sums import CellCounts

    model.feature_count_, rows = arrays["counts.columns"], arrays["counts.rows"]
    model.class_log_prior_, model.feature_log_prob_ = arrays["state.log_priors"], arrays["state.log_p"]
    model._sums = CellCounts(model.class_count_, model.feature_count_, math.inf, True, rows)


BERNOULLI = family(Kind("class_prior", False, _dump, _arrays, partial(_check, _bernoulli_trials), _place))
MULTINOMIAL = family(Kind("class_prior", False, _dump, _arrays, partial(_check, _multinomial_trials), _place))
