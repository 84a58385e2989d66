"""Boosted stumps in a file.

r   rounds
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from certifit.models.adaboost.state import StumpVote
from certifit.models.file_checks import NEAR, agree
from certifit.models.record import (
    CLAIM,
    COUNT_FROM_1,
    LABELLED,
    NUMBER,
    NUMBER_FROM_0,
    ROWS,
    TARGET_NAME,
    TEXT,
    Array,
    Content,
    Field,
    Object,
    OrNull,
    Problems,
    Record,
    Shown,
    fault_problems,
    fields_at,
)

_NAMES = ("feature", "threshold", "left", "right", "error", "alpha", "training_error")
_INTEGERS = ("feature", "left", "right")
_CERTIFICATE = {
    **CLAIM,
    "best_margin": OrNull(NUMBER),
    "bound": OrNull(NUMBER_FROM_0),
    "error": NUMBER_FROM_0,
    "fault": TEXT,
    "margin": OrNull(NUMBER),
    "n_rounds": COUNT_FROM_1,
}


def _vote(content: Content) -> StumpVote:
    return StumpVote(**{name: content.arrays[f"stumps.{name}"] for name in _NAMES})


def _problems(content: Content) -> Iterator[Problems]:
    vote, n_classes, p = _vote(content), content.metadata["labels"]["count"], len(content.columns)
    rate = float(content.parameters["learning_rate"])
    codes = np.concatenate([vote.left, vote.right])
    stored, facts = content.metadata["certificate"], content.metadata
    yield {
        "a column that is not there": ((vote.feature < 0) | (vote.feature >= p)).any(),
        "a class that is not there": ((codes < 0) | (codes >= n_classes)).any(),
        "a threshold of minus infinity": np.isneginf(vote.threshold).any(),
        "an error outside of 0 to 1": ((vote.error < 0) | (vote.error > 1)).any(),
        "a training error outside of 0 to 1": ((vote.training_error < 0) | (vote.training_error > 1 + NEAR)).any(),
        "more rounds than were asked for": vote.n_rounds > content.parameters["n_estimators"],
        "another number of rounds than the certificate": stored["n_rounds"] != facts["n_rounds"],
        "boosting of fewer than two classes": n_classes < 2,
        "a bound of more than two classes": n_classes > 2 and stored["bound"] is not None,
        "neither a fault nor a proof": not stored["fault"] and not stored["value"] <= 1,
    }
    inside = (vote.error > 0) & (vote.error < 1 - 1 / n_classes)
    e = np.where(inside, vote.error, 0.5)
    wanted = np.where(inside, rate * (np.log1p(-e) - np.log(e) + np.log(max(n_classes - 1, 1))), vote.alpha)
    yield {
        "rounds after one that ends them": vote.n_rounds > 1 and not inside.all(),
        "a weight that is not that of its error": not np.allclose(vote.alpha, wanted, rtol=NEAR, atol=NEAR),
        "a weight below 0": (vote.alpha < 0).any(),
        "an error that is not the last one of training": not agree(stored["error"], vote.training_error[-1], NEAR)
        and not stored["fault"],
    }


def _show(content: Content) -> Shown:
    return {"model": {"n_rounds": content.metadata["n_rounds"], "has_standard_errors": False}}


RECORD = LABELLED | Record(
    fields={
        "certificate": fields_at("certificate_.*", _CERTIFICATE),
        "data": ROWS,
        "n_rounds": Field(COUNT_FROM_1, get=lambda model: model.vote_.n_rounds),
        **TARGET_NAME,
    },
    arrays={
        f"stumps.{name}": Array(
            ("r",), "int64" if name in _INTEGERS else "float64", may_be_infinite=name == "threshold", at=f"vote_.{name}"
        )
        for name in _NAMES
    },
    objects={
        "certificate_": Object("models.adaboost.certificate:BoostingCertificate"),
        "vote_": Object("models.adaboost.state:StumpVote"),
    },
    derived={"history_": lambda content: _vote(content).history(content.columns, content.metadata["labels"]["count"])},
    sizes=(lambda metadata: {"r": metadata["n_rounds"]},),
    checks=(_problems, fault_problems),
    shown=(_show,),
    counts="counted",
)
