"""Calibration in a file: its copies and its maps as models inside. A map: where its pools begin and end."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from certifit.models.ensembles.modelfile import differ
from certifit.models.record import (
    CLAIM,
    COUNT_FROM_1,
    LABELLED,
    ROWS,
    TARGET_NAME,
    Array,
    Content,
    Field,
    Object,
    Problems,
    Record,
    fields_at,
)

MAPS = {"sigmoid": "glm", "isotonic": "isotonic_map"}


def _problems(content: Content) -> Iterator[Problems]:
    """Models that are not cv + 1 copies of one classifier and a map for every score."""
    n_classes, n_copies = content.metadata["labels"]["count"], content.parameters["cv"] + 1
    n_maps = 1 if n_classes == 2 else n_classes
    yield {
        "fewer than two classes": n_classes < 2,
        "another number of models than it is made of": len(content.children) != n_copies + n_maps,
    }
    copies, maps = content.children[:n_copies], content.children[n_copies:]
    places = list(range(n_classes))
    yield {
        "copies of other classes": any(part.labels is None or part.labels.tolist() != places for part in copies),
        "copies that differ in more than their fit": differ(replace(content, children=copies)),
        "maps that are not of its method": any(
            part.metadata["estimator"] != MAPS[content.parameters["method"]] for part in maps
        ),
    }
    yield {
        "maps of more than a score": any(len(part.columns) != 1 for part in maps),
        "maps that differ in more than their fit": differ(replace(content, children=maps)),
    }


def _map_problems(content: Content) -> Iterator[Problems]:
    thresholds, values = content.arrays["state.thresholds"], content.arrays["state.values"]
    yield {
        "thresholds that do not rise": (np.diff(thresholds) <= 0).any(),
        "a map that falls": (np.diff(values) < 0).any(),
        "a map of more than one column": len(content.columns) != 1,
        "more thresholds than rows": len(values) > content.metadata["data"]["n_rows"],
    }


CALIBRATED = LABELLED | Record(
    fields={"data": ROWS, **TARGET_NAME}, children="estimators_", checks=(_problems,), finish="_take_names"
)
ISOTONIC = Record(
    fields={
        "certificate": fields_at("certificate_.*", CLAIM),
        "data": ROWS,
        "n_thresholds": Field(COUNT_FROM_1, get=lambda model: len(model.values_)),
        **TARGET_NAME,
    },
    arrays={
        "state.thresholds": Array(("t",), at="thresholds_"),
        "state.values": Array(("t",), at="values_"),
    },
    objects={"certificate_": Object("models.certificate:Certificate")},
    sizes=(lambda metadata: {"t": metadata["n_thresholds"]},),
    checks=(_map_problems,),
)
