"""The perceptron in a file: its weights, its mistakes, and the proof that it ended, or that it has no end.

m   epochs    r   rows of the proof    o   rows of an order that was given
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from certifit.minimise.problem import norm
from certifit.models.file_checks import SAME, agree
from certifit.models.record import (
    CLAIM,
    COUNT,
    COUNT_FROM_1,
    FLAG,
    LABELLED,
    MAGNITUDE,
    NUMBER_FROM_0,
    ROWS,
    TARGET_NAME,
    TEXT,
    Array,
    Content,
    Field,
    Metadata,
    Model,
    Object,
    OrNull,
    Problems,
    Record,
    Setting,
    fault_problems,
    fields_at,
    history_rows,
    one_of,
    show_coefficients,
)


def _start(model: Model) -> object:
    return None if model.start is None else np.asarray(model.start, dtype=np.float64)


def _order(model: Model) -> object:
    return model.order if isinstance(model.order, str) else np.asarray(model.order, dtype=np.int64)


def _has_order(metadata: Metadata) -> bool:
    return bool(metadata["order"] == "numbers")


def _cycle(content: Content) -> tuple[int, ...]:
    cycle = content.metadata["cycle"]
    return () if cycle is None else (cycle["first"], cycle["last"])


def _stored_cycle(model: Model) -> dict[str, int] | None:
    return None if model.cycle_ is None else dict(zip(("first", "last"), map(int, model.cycle_), strict=True))


def _n_updates(content: Content) -> int:
    """A mistake is an update. Integers of Python: a forged sum may pass 64 bits."""
    return sum(content.arrays["mistakes"].tolist())


def _certificate(content: Content) -> dict[str, object]:
    return {"n_updates": _n_updates(content), "cycle": _cycle(content)}


def _problems(content: Content) -> Iterator[Problems]:
    metadata, arrays = content.metadata, content.arrays
    stored, n_rows, n_epochs = metadata["certificate"], metadata["data"]["n_rows"], metadata["n_epochs"]
    bound, rows = stored["bound"], arrays["proof.rows"]
    first, last = _cycle(content) or (0, n_epochs)
    share = math.inf if math.isinf(bound) else _n_updates(content) / bound if bound > 0 else 0.0
    yield {
        "a perceptron of other than two classes": metadata["labels"]["count"] != 2,
        f"{metadata['n_order']} rows of an order": _has_order(metadata) != (metadata["n_order"] > 0),
        "an intercept without fit_intercept": not content.parameters["fit_intercept"] and arrays["intercept"].any(),
        "weights of rows, which a perceptron does not take": metadata["data"]["sum_weight"] != n_rows,
        "neither a fault nor a proof": not stored["fault"] and not stored["value"] <= stored["tolerance"],
        "rows that prove a fault, and no fault": not stored["fault"] and len(rows),
        "rows seen once, and no fault": not stored["fault"] and stored["was_seen_once"],
        "negative mistakes": (arrays["mistakes"] < 0).any(),
        "a value that is not updates / bound": stored["value"] != share,
        "epochs of a cycle that do not follow each other": not first < last <= n_epochs,
        "row numbers that are not those of the data": (rows < 0).any() or (rows >= n_rows).any(),
        "multipliers that are not positive": not (arrays["proof.multipliers"] > 0).all(),
        "row numbers of an order that are negative": (arrays.get("order", np.zeros(1)) < 0).any(),
    }


def _bound_problems(content: Content) -> Iterator[Problems]:
    """A proof whose bound is not that of its radius, margin, threshold, start and weights."""
    from certifit.models.perceptron.certificate import bound_on_updates

    stored, arrays = content.metadata["certificate"], content.arrays
    if stored["fault"]:
        return
    start = arrays.get("start", np.zeros(arrays["coef"].size + 1))
    begin = start if content.parameters["fit_intercept"] or "start" not in arrays else np.append(start, 0.0)
    end = np.append(arrays["coef"][0], arrays["intercept"])
    with np.errstate(over="ignore"):
        square = float(np.square(stored["radius"]))
        wanted = bound_on_updates(square, float(content.parameters["delta"]), stored["margin"], begin, end)
    is_within = 0 < stored["margin"] <= stored["radius"] * (1 + SAME)
    yield {
        "a margin that is not above 0 and within the radius": not is_within,
        "a bound that is not that of its radius and margin": not agree(stored["bound"], wanted),
        "mistakes in the last epoch, and a proof that there are none": arrays["mistakes"][-1] != 0,
    }


def _history(content: Content) -> list[dict[str, float]]:
    """Mistakes of every epoch, and the norm at the end of the last."""
    norms = np.full(len(content.arrays["mistakes"]), math.nan)
    norms[-1] = norm(np.append(content.arrays["coef"][0], content.arrays["intercept"]))
    rows = history_rows(content.arrays["mistakes"], keys=("mistakes",))
    return [{**row, "norm": float(size)} for row, size in zip(rows, norms, strict=True)]


RECORD = LABELLED | Record(
    fields={
        "certificate": fields_at(
            "certificate_.*",
            {
                **CLAIM,
                "bound": MAGNITUDE,
                "fault": TEXT,
                "margin": NUMBER_FROM_0,
                "radius": MAGNITUDE,
                "was_seen_once": FLAG,
            },
        ),
        "cycle": Field(OrNull({"first": COUNT, "last": COUNT}), get=_stored_cycle),
        "data": ROWS,
        "has_start": Field(FLAG, get=lambda model: model.start is not None),
        "n_epochs": Field(COUNT_FROM_1, get=lambda model: len(model.history_)),
        "n_order": Field(COUNT, get=lambda model: 0 if isinstance(model.order, str) else len(model.order)),
        "n_proof": Field(COUNT, get=lambda model: len(model.certificate_.rows)),
        "order": Field(
            one_of("given", "shuffled", "numbers"),
            get=lambda model: model.order if isinstance(model.order, str) else "numbers",
        ),
        **TARGET_NAME,
    },
    arrays={
        "coef": Array(("1", "p"), at="coef_"),
        "intercept": Array(("1",), at="intercept_"),
        "mistakes": Array(("m",), "int64", get=lambda model: [int(row["mistakes"]) for row in model.history_]),
        "order": Array(("o",), "int64", get=_order, when=_has_order),
        "proof.multipliers": Array(("r",), at="certificate_.multipliers", is_tuple=True),
        "proof.rows": Array(("r",), "int64", at="certificate_.rows", is_tuple=True),
        "start": Array(("k",), get=_start, when=lambda metadata: metadata["has_start"]),
    },
    objects={"certificate_": Object("models.perceptron.certificate:PerceptronCertificate", _certificate)},
    settings={
        "order": Setting(_order, lambda content: content.arrays.get("order", content.metadata["order"])),
        "start": Setting(_start, lambda content: content.arrays.get("start")),
    },
    derived={
        "cycle_": lambda content: _cycle(content) or None,
        "history_": _history,
        "n_updates_": _n_updates,
    },
    sizes=(lambda metadata: {"m": metadata["n_epochs"], "o": metadata["n_order"], "r": metadata["n_proof"]},),
    checks=(_problems, fault_problems, _bound_problems),
    shown=(
        lambda content: {"model": {"n_updates": _n_updates(content), "has_standard_errors": False}},
        show_coefficients,
    ),
)
