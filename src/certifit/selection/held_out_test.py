"""Rows that are set aside before anything is looked at, and the one score of the final model on them."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from sklearn.base import BaseEstimator

from certifit.data.cells import Cells
from certifit.data.changed import Picked
from certifit.data.columns import Array
from certifit.data.labels import with_codes
from certifit.data.source import Block, Source
from certifit.data.view import Target
from certifit.evaluation import errors
from certifit.evaluation.intervals import WEIGHTED, Estimate, share
from certifit.models.adapter import learner_of
from certifit.models.folds.rows import ClassState
from certifit.selection.row_metrics import log_scores
from certifit.selection.splits import HoldOut, targets

N_RESAMPLES = 1000


@dataclass(frozen=True)
class HeldOutScore:
    """What a fitted model scores on rows that nothing before had seen.

    name : of the figure; value : with its interval; baseline : the same without any column
    n_rows : of them; others : further figures, by name
    """

    name: str
    value: Estimate
    baseline: float
    n_rows: int
    others: dict[str, float]


def set_aside(source: Source, test_size: float, *, is_classes: bool, random_state: int = 0) -> tuple[Picked, Picked]:
    """(rows to work with, rows set aside). Classes keep their shares, unless there are groups, which stay whole."""
    lean = source.reading(Target.RAW)
    is_grouped = lean.first_block().group is not None
    labels = targets(with_codes(source)[0].narrow()) if is_classes and not is_grouped else None
    holdout = HoldOut(test_size, stratify=labels is not None, random_state=random_state)
    (splits,) = holdout.rounds(lean, labels)
    flags = np.concatenate(list(lean.map(partial(_is_out, splits.cells))))
    return Picked(source, ~flags), Picked(source, flags)


def held_out_score(model: BaseEstimator, source: Source, level: float = 0.95) -> HeldOutScore:
    """The score of a fitted model on rows that were set aside; a level that the fit did not see is the reference."""
    encoder = model.encoder_ if learner_of(model).is_ours else None
    if encoder is not None:
        model = copy(model)
        model.encoder_ = copy(encoder)
        model.encoder_.columns_ = [replace(kind, is_lenient=True) for kind in encoder.columns_]
    return _of_classes(model, source, level) if hasattr(model, "classes_") else _of_numbers(model, source, level)


def _of_classes(model: BaseEstimator, source: Source, level: float) -> HeldOutScore:
    n_classes = len(model.classes_)
    fitted = ClassState(model, np.arange(n_classes), n_classes, model)
    parts = list(source.reading(Target.CODES, model.classes_).map(partial(_posteriors, fitted)))
    codes, log_proba = (np.concatenate([part[i] for part in parts]) for i in (0, 1))
    weight = _joined([part[2] for part in parts], len(codes))
    is_right = log_proba.argmax(axis=1) == codes
    reason = "" if weight is None else WEIGHTED
    own = np.ones(len(codes)) if weight is None else weight
    value = share(float(own @ is_right), float(own.sum()), level, reason=reason)
    shares = np.bincount(codes[codes >= 0], own[codes >= 0], n_classes) / own.sum()
    loss = -float(np.average(log_scores(codes, log_proba), weights=own))
    return HeldOutScore("share of right classes", value, float(shares.max()), len(codes), {"log loss": loss})


def _of_numbers(model: BaseEstimator, source: Source, level: float) -> HeldOutScore:
    y = targets(source)
    weight = _joined([run.weight for run in source.runs()], len(y))
    predicted = np.asarray(model.predict(source))
    seen = np.ones(len(y), dtype=bool) if weight is None else weight > 0
    y, predicted, weight = y[seen], predicted[seen], None if weight is None else weight[seen]
    value = errors.root_mean_squared_error(y, predicted, sample_weight=weight, level=level, n_resamples=N_RESAMPLES)
    centre = float(np.average(y, weights=weight))
    baseline = float(np.sqrt(np.average((y - centre) ** 2, weights=weight)))
    return HeldOutScore("root mean squared error", value, baseline, len(y), {})


def _posteriors(fitted: ClassState, run: Block) -> tuple[Array, Array, Array | None]:
    if run.y is None:
        raise ValueError("The rows carry no labels.")
    return run.y.astype(np.int64), fitted.predicted(run), run.weight


def _joined(parts: Sequence[Array | None], n_rows: int) -> Array | None:
    found = [part for part in parts if part is not None]
    return np.concatenate(found) if found and n_rows else None


def _is_out(cells: Cells, run: Block) -> Array:
    return np.asarray(cells.of(run) == 1)
